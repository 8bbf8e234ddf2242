//! `/v1/completions`: texts that go on from prompts, with the logarithms that evaluations need.

mod request;
mod response;

pub use request::{COMPLETION, Shows, take};
pub use response::{PendingCompletion, answer};
