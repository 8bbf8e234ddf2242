//! Facts for the scheduler: requests that arrive, and the outcome of a step.

use std::time::Duration;

/// Names a request. The caller chooses it; it is free again when the request has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// Names someone who shares the machine with others, such as the holder of an API key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TenantId(pub u64);

/// Names an adapter that requests may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AdapterId(pub u64);

/// The kind of work that a request is, in the order of priority, the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Runs only while no request of another class could.
    Background,
    /// Throughput counts, and no rate is promised: nobody looks on.
    Batch,
    /// Somebody waits for each token.
    Interactive,
}

impl Class {
    /// All classes, the least first.
    pub const ALL: [Class; 3] = [Class::Background, Class::Batch, Class::Interactive];

    /// The class's place in [`Class::ALL`].
    pub fn index(self) -> usize {
        self as usize
    }
}

/// A request, as it arrives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arrival {
    /// The request's name.
    pub id: RequestId,
    /// Whose share of the machine the request uses.
    pub tenant: TenantId,
    /// The kind of work.
    pub class: Class,
    /// Each step up doubles the request's claim within its class; -4 to 4, what is beyond counts as the end.
    pub priority: i32,
    /// When the answer must have ended. A running answer is cut there.
    pub deadline: Option<Duration>,
    /// The adapter that all of the request's tokens go through.
    pub adapter: Option<AdapterId>,
    /// Tokens of the prompt, at least one.
    pub prompt_tokens: u32,
    /// How many of the prompt's tokens a prefix cache is likely to have when the request starts.
    pub cached_tokens: u32,
    /// Tokens that are generated at most, at least one.
    pub max_tokens: u32,
}

/// The outcome of one entry of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryOutcome {
    /// The request.
    pub id: RequestId,
    /// Tokens by which the answer has grown: drafts that were accepted, the token that was sampled, and those
    /// that follow from it without being sampled ("forced"). The last sampled and the forced ones are not in
    /// the KV cache yet. At least 1 if the entry samples and the request goes on; 0 for a piece that did not
    /// reach the prompt's end.
    pub tokens: u32,
    /// How many of the entry's draft tokens were accepted.
    pub accepted: u32,
    /// Draft tokens on offer for the next step.
    pub drafts: u32,
    /// Whether the request has ended; its KV blocks have been given back.
    pub ended: bool,
}

/// Why a step did not run. None of its entries has changed anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepFault {
    /// There were not enough KV blocks after all. The next plan preempts a sequence.
    OutOfMemory,
    /// Something else. The next plan tries again; requests that cannot go on should be cancelled.
    Other,
}

/// The outcome of a step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepReport {
    /// The measured time of the step.
    pub took: Duration,
    /// One for each entry that ran. An entry without an outcome has not run.
    pub outcomes: Vec<EntryOutcome>,
    /// Why the step did not run, if it did not.
    pub fault: Option<StepFault>,
}

/// Seconds of a time.
pub(crate) fn seconds(time: Duration) -> f64 {
    time.as_secs_f64()
}

/// The time after so many seconds; none for what is no time.
pub(crate) fn duration(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX)
}
