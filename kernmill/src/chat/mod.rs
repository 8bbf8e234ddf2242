//! Conversations: the crate `kernmill-chat`, the format of a model, and talking with one: [`Dialogue`] has
//! the turns, [`Talk`] what is typed.

mod commands;
mod console;
mod dialogue;
mod events;
mod markdown;
mod parts;
mod saved;
mod talk;
mod templates;
mod tools;

pub use commands::HELP;
pub use console::{Console, Line};
pub use dialogue::{Answered, Dialogue};
pub use events::{Look, Shown};
pub use kernmill_chat::*;
pub use kernmill_plan::chat::{ChatTemplate, ChatTemplates, ChatToken, TokenName};
pub use saved::SavedConversation;
pub use talk::Talk;
pub use templates::{fault, format_of, given_or, named_tokens};
