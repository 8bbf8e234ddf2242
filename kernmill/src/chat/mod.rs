//! Conversations: the crate `kernmill-chat`, the format of a model, and talking with one: [`Dialogue`] has
//! the turns, [`Talk`] what is typed.

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

pub use commands::HELP;
pub use console::{Console, Line};
pub use dialogue::{AnswerEnd, Answered, Dialogue};
pub use events::{Look, Shown};
pub use format::format_of;
pub use kernmill_chat::*;
pub use saved::SavedConversation;
pub use talk::Talk;
