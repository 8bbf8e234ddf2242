//! Talking with a model: [`Talk`] has what is typed, [`AnswerDisplay`] what is shown.

mod commands;
mod console;
mod events;
mod markdown;
mod talk;
mod tools;

pub use commands::HELP;
pub use console::{Console, TypedLine};
pub use events::{AnswerDisplay, AnswerStyle};
pub use kernmill_chat::Effort;
pub use talk::Talk;
