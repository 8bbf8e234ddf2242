//! Ollama's API: conversations, texts, and what its clients ask of a server first.

mod events;
mod messages;
mod models;
mod request;
mod response;
#[cfg(test)]
mod tests;

pub use models::{SHOW, list, running, show, version};
pub use request::{CHAT, GENERATE, model};
pub use response::{answer, generate};

/// The prefix of the API's paths.
pub const PATH: &str = "/api/";
