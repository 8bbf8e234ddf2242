//! x
pub mod calls;
mod conversation;
mod event;
pub mod harmony;
mod prompt;
mod template;
mod utf8;
mod vocabulary;

pub use conversation::{BuiltinTool, Call, Conversation, Date, Effort, Item, Output, ResponseFormat, Tool};
pub use event::{Anomalies, Anomaly, Event, Part};
pub use prompt::Prompt;
pub use template::{TEMPLATE_BYTES, TEXT_BYTES, Template, TemplateError};
pub use utf8::Utf8Stream;
pub use vocabulary::{AddedToken, Vocabulary, VocabularyError};
