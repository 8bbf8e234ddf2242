//! Conversations: the crate `kernmill-chat`, the engine's tokenizer as it needs one, and talking with a
//! model: [`Dialogue`] has the turns, [`Talk`] what is typed.

mod commands;
mod console;
mod dialogue;
mod events;
mod format;
mod markdown;
mod parts;
mod saved;
mod talk;
mod tools;
mod vocabulary;

pub use commands::HELP;
pub use console::{Console, Line};
pub use dialogue::{Dialogue, Turn, TurnEnd};
pub use events::{Look, Shown};
pub use format::{Format, Reader};
pub use kernmill_chat::*;
pub use saved::SavedConversation;
pub use talk::Talk;
pub use vocabulary::ChatVocabulary;
