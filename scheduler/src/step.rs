//! The scheduler's answers: the next step, and its reasons.

use crate::facts::{AdapterId, RequestId};
use std::fmt;
use std::time::Duration;

/// An accepted request's prospects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admission {
    /// Estimated time until its first token, without its own prefill.
    pub wait: Duration,
}

/// Why a request is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum RefusalReason {
    /// Another request has the name.
    #[error("another request has this id: names must be unique until a request has ended")]
    Duplicate,
    /// The prompt has no token, or none may be generated.
    #[error("the request has no prompt tokens or asks for none: at least 1 of each is needed")]
    Empty,
    /// No request is accepted any more.
    #[error("the server is shutting down: try another one, or later")]
    Draining,
    /// The queue is full.
    #[error("the queue is full: try again later")]
    QueueFull,
    /// The estimated wait is longer than the configuration allows.
    #[error("the wait would be too long: try again later")]
    TooLongWait,
    /// Even if the machine did nothing else, the first token would come after the deadline.
    #[error("the deadline cannot be met: give the request more time or a shorter prompt")]
    Unreachable,
}

/// A request that is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Refusal {
    /// Why.
    pub reason: RefusalReason,
    /// The estimated wait: after that time the request is likely to be accepted. Zero where waiting is of no
    /// use.
    pub retry_after: Duration,
}

/// Why the scheduler ended a request. Its generated tokens stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EndReason {
    /// The caller cancelled it.
    Cancelled,
    /// The request has all tokens that it asked for.
    MaxTokens,
    /// The request's deadline has passed.
    Expired,
    /// The request's first token could not come before its deadline any more.
    Unreachable,
    /// The request's adapter is gone or could not be loaded.
    AdapterGone,
    /// The KV cache cannot hold it, even if nothing else runs.
    TooLarge,
    /// The KV cache is full, and nothing else runs that could make room.
    OutOfMemory,
    /// The scheduler is draining: it had no token yet, or the time is up.
    Draining,
}

/// Why a request that could run does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HoldReason {
    /// The request's adapter is being loaded.
    Adapter,
    /// There are not enough KV blocks for it.
    Memory,
    /// As many sequences run as may.
    Sequences,
    /// One sequence more would bring the interactive answers under their floor.
    Width,
    /// Interactive answers must get tokens first, so that they stay over their floor.
    Floor,
    /// The request is of class background, and others have work.
    NotIdle,
    /// The next step, which will be on its way beside this one, has room for it.
    Turn,
    /// The step has no room for it.
    StepFull,
    /// Another request is computing its prefix: it will find it cached.
    Prefix,
    /// The request has just lost its place.
    Preempted,
    /// A request with a higher claim is held, and would have to wait longer if this one passed it.
    Behind,
}

/// Why a sequence lost its place. It waits again; its KV blocks stay as cache, and what it has generated
/// stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PreemptReason {
    /// There were not enough KV blocks for those with a higher claim.
    Memory,
    /// A request of a higher class needed its place.
    Class,
    /// A tenant that has had less than its share needed its place.
    Share,
}

macro_rules! text {
    ($type:ty, $($reason:ident => $text:literal),+) => {
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Self::$reason => $text),+ })
            }
        }
    };
}

text!(EndReason, Cancelled => "cancelled", MaxTokens => "all tokens generated", Expired => "deadline passed",
    Unreachable => "deadline cannot be met", AdapterGone => "adapter gone", TooLarge => "too large for the KV cache",
    OutOfMemory => "KV cache full", Draining => "shutting down");
text!(HoldReason, Adapter => "adapter loading", Memory => "not enough KV blocks", Sequences => "all sequences in use",
    Width => "others would be too slow", Floor => "others need tokens first", NotIdle => "others have work",
    Turn => "its turn is the next step", StepFull => "step full", Prefix => "its prefix is being computed",
        Preempted => "just preempted", Behind => "behind a held request");
text!(PreemptReason, Memory => "not enough KV blocks", Class => "for a higher class", Share => "for a fair share");

/// A request that the scheduler ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedRequest {
    /// The request.
    pub id: RequestId,
    /// Why.
    pub reason: EndReason,
    /// Whether it runs: if so, its sequence is to be dropped.
    pub was_running: bool,
}

/// A sequence to be dropped with its blocks kept as cache; its request waits again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preempted {
    /// The request.
    pub id: RequestId,
    /// Why.
    pub reason: PreemptReason,
}

/// A request that gets a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Started {
    /// The request.
    pub id: RequestId,
    /// Tokens that the sequence takes from the prefix cache: the first piece begins there.
    pub cached: u32,
}

/// Tokens of one sequence in a step.
///
/// A request's *known* tokens are its prompt and what it has generated. An entry runs some of them; if they
/// reach the last known one, a token is to be sampled behind it, and drafts may follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepEntry {
    /// The request.
    pub id: RequestId,
    /// Adapter of the request. Entries are in the order of their adapters.
    pub adapter: Option<AdapterId>,
    /// The first of the known tokens that run: as many are in the KV cache.
    pub from: u32,
    /// The one after the last of the known tokens that run.
    pub to: u32,
    /// Draft tokens that run behind them.
    pub drafts: u32,
    /// Whether `to` is the end of the known tokens: the logits after the last one and after each draft are
    /// needed.
    pub samples: bool,
}

impl StepEntry {
    /// Tokens that the entry runs.
    pub fn tokens(&self) -> u32 {
        self.to - self.from + self.drafts
    }
}

/// A request that could run and does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldRequest {
    /// The request.
    pub id: RequestId,
    /// Why.
    pub reason: HoldReason,
}

/// The next actions, in the order of the fields.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlannedStep {
    /// Requests that end. They are forgotten.
    pub ended: Vec<EndedRequest>,
    /// Sequences that lose their places.
    pub preempted: Vec<Preempted>,
    /// Requests that get sequences.
    pub started: Vec<Started>,
    /// The step to run, in the order of adapters; empty if there is nothing to run.
    pub entries: Vec<StepEntry>,
    /// Sequences that have a place and are not in the step, and for each class the first request that could
    /// not start although the step had room.
    pub held: Vec<HeldRequest>,
    /// The step's time by the cost model; zero without entries.
    pub predicted: Duration,
    /// Without entries: when to plan again if nothing happens before, or `None` if only a new fact can change
    /// anything.
    pub wake: Option<Duration>,
}

impl PlannedStep {
    /// Whether there is nothing to run.
    pub fn is_idle(&self) -> bool {
        self.entries.is_empty()
    }

    /// Tokens of the step, drafts included.
    pub fn tokens(&self) -> u32 {
        self.entries.iter().map(StepEntry::tokens).sum()
    }
}
