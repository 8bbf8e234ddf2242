//! Anthropic's Messages API.

mod events;
mod messages;
mod request;
mod response;
mod tools;

pub use request::{COUNTED, MESSAGES};
pub use response::{answer, count};

/// Header of clients of that API, which get models and errors in its form.
pub const VERSION: &str = "anthropic-version";

#[cfg(test)]
mod tests;
