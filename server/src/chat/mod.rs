//! Conversations: requests, the turn of the model, and its answer in OpenAI's chat API.

pub mod custom;
pub mod message;
pub mod messages;
pub mod pieces;
pub mod request;
pub mod response;
pub mod tools;
pub mod turn;

pub use response::answer;

#[cfg(test)]
mod tests;
