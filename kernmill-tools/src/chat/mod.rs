//! Talking with a model: [`Talk`] has what is typed, [`Shown`] what is shown.

mod commands;
mod console;
mod events;
mod markdown;
mod talk;
mod tools;

pub use commands::HELP;
pub use console::{Console, Line};
pub use events::{Look, Shown};
pub use kernmill_chat::Effort;
pub use talk::Talk;
