//! The tokens that a step is given, and the rows of logits that it hands out.

use super::SeqId;
use crate::sampler::TokenMask;

/// Tokens that a step appends to one sequence.
#[derive(Clone, Copy, Debug)]
pub struct SequenceTokens<'a> {
    /// The sequence.
    pub sequence: SeqId,
    /// Ids of the tokens, at least one.
    pub tokens: &'a [u32],
    /// After which of them logits are wanted.
    pub logits: LogitRows,
    /// Where each row of these is only looked at for tokens that one of the masks allows: the masks. Logits
    /// of other tokens may be anything then. Empty: all logits are wanted.
    pub allowed: &'a [&'a TokenMask],
}

impl<'a> SequenceTokens<'a> {
    /// Tokens of which the last one's logits are wanted, as decoding does.
    pub fn last(sequence: SeqId, tokens: &'a [u32]) -> SequenceTokens<'a> {
        SequenceTokens { sequence, tokens, logits: LogitRows::Last, allowed: &[] }
    }

    /// Tokens of which all logits are wanted.
    pub fn all(sequence: SeqId, tokens: &'a [u32]) -> SequenceTokens<'a> {
        SequenceTokens { sequence, tokens, logits: LogitRows::All, allowed: &[] }
    }

    /// Tokens of which no logits are wanted, as all but the last part of a prompt.
    pub fn silent(sequence: SeqId, tokens: &'a [u32]) -> SequenceTokens<'a> {
        SequenceTokens { sequence, tokens, logits: LogitRows::None, allowed: &[] }
    }
}

/// After which tokens of an entry logits are wanted. Only these rows go through the unembedding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogitRows {
    /// After none.
    None,
    /// After the last one.
    Last,
    /// After the last so many, or all if there are fewer: what checking a draft takes.
    LastN(u32),
    /// After every one.
    All,
    /// After the first one.
    First,
}

impl SequenceTokens<'_> {
    /// Whether any row of logits is wanted.
    pub(super) fn wants_logits(&self) -> bool {
        let ends = [0, self.tokens.len().saturating_sub(1)];
        !self.tokens.is_empty() && ends.iter().any(|at| self.logits.wants(*at, self.tokens.len()))
    }
}

impl LogitRows {
    /// Whether the logits after token `at` of `tokens` are wanted.
    pub(super) fn wants(self, at: usize, tokens: usize) -> bool {
        let from_end = tokens - at;
        match self {
            LogitRows::None => false,
            LogitRows::Last => from_end == 1,
            LogitRows::LastN(most) => from_end <= most as usize,
            LogitRows::All => true,
            LogitRows::First => at == 0,
        }
    }
}

/// Logits after one token.
#[derive(Clone, Copy, Debug)]
pub struct LogitRow<'a> {
    /// Index of the step's entry.
    pub entry: usize,
    /// Index of the token among the entry's.
    pub token: usize,
    /// The logits, `[vocab]`, aligned to 64 bytes; or the row of a program that makes vectors
    /// ([`kernmill_plan::program::ModelInfo::output`]). They are gone when the call ends. Logits of tokens
    /// that no mask of the step allows may be anything ([`SequenceTokens::allowed`]).
    pub logits: &'a [f32],
}

/// Takes rows of logits on the engine's workers.
///
/// A row is handed out once, by any worker, while others hand out other rows; all have been when the step
/// returns. The use of a row keeps its worker from the next step, so it should not wait for anything. A panic
/// in it is passed on by the step.
///
/// Closures are sinks:
///
/// ```
/// use kernmill_runtime::{LogitRow, RowSink};
/// use std::sync::Mutex;
/// let best = Mutex::new(Vec::new());
/// let sink = |_worker: usize, row: LogitRow<'_>| {
///     let largest = row.logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
///     best.lock().unwrap().push((row.entry, row.token, largest));
/// };
/// let sink: &dyn RowSink = &sink;
/// sink.row(0, LogitRow { entry: 0, token: 2, logits: &[0.5, 1.5] });
/// assert_eq!(best.into_inner().unwrap(), [(0, 2, 1.5)]);
/// ```
pub trait RowSink: Sync {
    /// Takes a row on worker `worker`, counted from 0.
    fn row(&self, worker: usize, row: LogitRow<'_>);
}

/// Takes rows and does nothing with them.
impl RowSink for () {
    fn row(&self, _: usize, _: LogitRow<'_>) {}
}

impl<F: Fn(usize, LogitRow<'_>) + Sync> RowSink for F {
    fn row(&self, worker: usize, row: LogitRow<'_>) {
        self(worker, row);
    }
}

/// Counts of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepStats {
    /// Tokens that were run.
    pub tokens: u32,
    /// Rows of logits that were handed out.
    pub rows: u32,
}
