//! Anthropic's Messages API.

mod events;
mod messages;
mod request;
mod response;

pub use response::{answer, count};
