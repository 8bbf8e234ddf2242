//! A step of the engine between its begin and its end.

use kernmill_runtime::SeqId;
use kernmill_scheduler::RequestId;
use std::time::Duration;

/// A step that has begun.
pub(crate) struct StepInFlight {
    pub parts: Vec<EntryInFlight>,
    pub start: Duration,
}

/// An entry of the plan in flight.
pub(crate) struct EntryInFlight {
    pub id: RequestId,
    pub sequence: SeqId,
    /// Known tokens that run; none if all are cached.
    pub from: usize,
    pub to: usize,
    pub samples: bool,
    /// Tokens of its draft that run behind them.
    pub drafts: usize,
}
