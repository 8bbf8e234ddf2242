//! Conversations to token ids, and generated ids to events.
//!
//! There are two ways: [`harmony`], the format of GPT-OSS, and a [`Template`] that a model brings along, with
//! a [`calls::TextParser`] for what the model generates. Both need a [`Vocabulary`], and no engine. No text
//! of a conversation becomes a special token. `docs/dev/harmony.md` explains how.
//!
//! ```
//! use kernmill_chat::harmony::{PromptOptions, HarmonyParser, HarmonyTokens, prompt};
//! use kernmill_chat::{Conversation, Event, Item, Vocabulary};
//!
//! fn answer(
//!     vocabulary: &dyn Vocabulary,
//!     mut generate: impl FnMut(&[u32]) -> Option<u32>,
//! ) -> Result<String, Box<dyn std::error::Error>> {
//!     let user = Item::User { name: None, text: "Hello".to_owned() };
//!     let conversation = Conversation { items: vec![user], ..Conversation::default() };
//!     let mut ids = prompt(vocabulary, &conversation, &PromptOptions::default())?.ids;
//!     let stops = HarmonyTokens::of(vocabulary)?.stops();
//!     let mut events = Vec::new();
//!     let mut parser = HarmonyParser::new(vocabulary, &conversation, &mut events)?;
//!     while let Some(id) = generate(&ids) {
//!         parser.push(vocabulary, id, &mut events);
//!         ids.push(id);
//!         if stops.contains(&id) {
//!             break;
//!         }
//!     }
//!     parser.finish(&mut events);
//!     let texts = events.into_iter().filter_map(|event| match event {
//!         Event::Delta(text) => Some(text),
//!         _ => None,
//!     });
//!     Ok(texts.collect())
//! }
//! ```

#![warn(clippy::missing_errors_doc, clippy::missing_panics_doc)]

pub mod calls;
mod conversation;
mod event;
mod format;
mod grammar;
pub mod harmony;
mod prompt;
mod template;
mod turn;

pub use conversation::{BuiltinTool, Call, Conversation, Date, Effort, Item, Output, ResponseFormat, Tool};
pub use event::{Anomalies, Anomaly, AnswerPart, Event};
pub use format::{Format, Refused, Templates};
pub use grammar::{Thoughts, ToolChoice, TurnGrammar};
pub use kernmill_text::{AddedToken, StopMatcher, Utf8Stream, Vocabulary, VocabularyError};
pub use prompt::Prompt;
pub use template::{TEMPLATE_BYTES, TEXT_BYTES, Template, TemplateError};
pub use turn::{Turn, TurnError, TurnOptions, TurnPiece};
