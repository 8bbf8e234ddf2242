//! Constraints on what a model may generate, as masks over token ids.
//!
//! A [`Rule`] says what a text must be: JSON of a schema, any JSON object, a regular expression, a grammar,
//! or a whole that is put together of these. A [`Constraint`] follows one text, and says which tokens may
//! come next. A [`Lexicon`] is a model's vocabulary made ready for that, once. No engine is needed.
//!
//! ```
//! use kernmill_constrain::{Constraint, Error, Lexicon, Rule};
//!
//! fn answer(lexicon: &Lexicon, mut sample: impl FnMut(&[u64]) -> u32) -> Result<Vec<u32>, Error> {
//!     let mut constraint = Constraint::new(lexicon, &Rule::JsonObject)?;
//!     let mut ids = Vec::new();
//!     while !constraint.is_done() {
//!         // Tokens that must come next join the engine's next step together.
//!         let forced = constraint.forced();
//!         let next = if forced.is_empty() { vec![sample(constraint.mask()?.words())] } else { forced };
//!         for id in next {
//!             constraint.accept(id)?;
//!             ids.push(id);
//!         }
//!     }
//!     Ok(ids)
//! }
//! ```

#![warn(clippy::missing_errors_doc, clippy::missing_panics_doc)]

mod ahead;
mod constraint;
mod error;
mod joined;
mod json;
mod lexicon;
mod limits;
mod mask;
mod numbers;
mod parser;
mod regular;
mod rule;
mod words;

pub use constraint::Constraint;
pub use error::Error;
pub use kernmill_text::{AddedToken, Vocabulary, VocabularyError};
pub use lexicon::Lexicon;
pub use limits::{GRAMMAR_BYTES, SCHEMA_BYTES, SCHEMA_DEPTH};
pub use mask::Mask;
pub use regular::regular;
pub use rule::{Composed, Rule};
