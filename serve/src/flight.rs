//! A step of the engine between its begin and its end.

use kernmill_runtime::SeqId;
use kernmill_scheduler::RequestId;
use std::time::Duration;

/// A step that has begun.
pub(crate) struct Flight {
    pub parts: Vec<Part>,
    pub start: Duration,
}

/// What an entry of the plan becomes.
pub(crate) struct Part {
    pub id: RequestId,
    pub sequence: SeqId,
    /// Known tokens that run; none if all are cached.
    pub from: usize,
    pub to: usize,
    pub samples: bool,
    /// Tokens of its draft that run behind them.
    pub drafts: usize,
}

impl Part {
    /// Tokens that run.
    pub fn tokens(&self) -> usize {
        self.to - self.from + self.drafts
    }
}
