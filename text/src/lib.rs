//! Texts of tokens, for crates that know no engine.
//!
//! A [`Vocabulary`] turns text into token ids and back, a [`Utf8Stream`] makes characters of bytes that come
//! in pieces, and a [`StopMatcher`] ends a text at the first stop string that is whole.
//!
//! ```
//! use kernmill_text::StopMatcher;
//!
//! let mut stops = StopMatcher::new(&["\n\n".to_owned()]);
//! assert_eq!(stops.push("One\n").text, "One");
//! let released = stops.push("\nTwo");
//! assert_eq!((released.text.as_str(), released.stop.as_deref()), ("", Some("\n\n")));
//! ```

#![warn(clippy::missing_errors_doc, clippy::missing_panics_doc)]

mod stop;
mod utf8;
mod vocabulary;

pub use stop::{Released, StopMatcher};
pub use utf8::Utf8Stream;
pub use vocabulary::{AddedToken, Vocabulary, VocabularyError};
