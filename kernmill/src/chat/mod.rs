//! Conversations with a model: [`Chat`].

mod conversing;
mod parts;
mod reply;
mod saved;
mod templates;

pub use conversing::Chat;
pub use kernmill_chat::{Call, Conversation, Effort, Event, Format, Tool};
pub use reply::{Answered, Reply, Said};
pub use templates::{fault, format_of, given_or, named_tokens};
