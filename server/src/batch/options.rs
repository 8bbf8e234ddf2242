//! Settings of a batch.

use crate::state::Today;
use kernmill::observe::Observer;
use std::sync::Arc;

/// The settings of a batch.
#[derive(Clone)]
pub struct BatchOptions {
    /// Sequences that run at once.
    pub parallel: u32,
    /// Tokens generated at most where a request does not say how many. `None` is 200, and for a conversation
    /// as many as the context holds.
    pub max_tokens: Option<u32>,
    /// Tokens that end a text.
    pub end_tokens: Vec<u32>,
    /// Day that conversations are told: one for all lines, also past midnight.
    pub date: Today,
    /// Gets a note with the first conversation if the model has no format for them.
    pub observer: Arc<dyn Observer>,
}
