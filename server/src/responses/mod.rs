//! OpenAI's Responses API: items go in and come out, and answers may be stored and gone on with.

mod events;
mod request;
mod response;
pub mod seal;
pub mod store;

pub use response::{answer, compact, count, stored};

/// What paths of stored responses begin with.
pub const PATH: &str = "/v1/responses/";
