//! OpenAI's Responses API: items go in and come out, and answers may be stored and gone on with.

mod calls;
mod events;
mod open;
mod request;
mod response;
pub mod seal;
pub mod store;
pub mod stored;
mod tools;

pub use request::RESPONSES;
pub use response::{answer, compact, count};

/// Header of clients that follow the Open Responses specification, in which events of reasoning have other
/// names than in OpenAI's API.
pub const OPEN_RESPONSES: &str = "openresponses-version";

#[cfg(test)]
mod tests;
