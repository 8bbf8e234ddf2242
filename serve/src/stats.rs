//! Counts of steps.

use kernmill_runtime::DraftStats;
use std::collections::BTreeMap;
use std::time::Duration;

/// Counts of the steps of a [`Serving`](crate::Serving).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServeStats {
    /// Steps that were run.
    pub steps: u64,
    /// Tokens that were run: of prompts, and generated ones.
    pub tokens: u64,
    /// Tokens that were generated.
    pub generated: u64,
    /// Tokens of drafts that were checked, and how many were right.
    pub drafts: DraftStats,
    /// Drafts that were checked.
    pub checked_drafts: u64,
    /// Drafts whose token at this place was right, by the place from 0 on. A place that no draft has reached
    /// is not there.
    pub accepted_at: Vec<u64>,
    /// Sequences that lost their place.
    pub preemptions: u64,
    /// Starts that found a beginning of their text in the prefix cache.
    pub hits: u64,
    /// Time that the engine was running.
    pub busy: Duration,
    /// Steps by the number of sequences in them.
    pub widths: BTreeMap<u32, WidthStats>,
}

/// Steps with a certain number of sequences.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WidthStats {
    /// Steps.
    pub steps: u64,
    /// Steps among them that decoded only: the last token of each sequence, and drafts.
    pub decode_steps: u64,
    /// Tokens that these gave.
    pub decode_tokens: u64,
    /// The time of these, with what there was to do between them and the steps before.
    pub decode_time: Duration,
}

impl WidthStats {
    /// Tokens decoded per second by steps that decode only; 0 if there were none.
    pub fn decode_rate(&self) -> f64 {
        let time = self.decode_time.as_secs_f64();
        if self.decode_time.is_zero() { 0.0 } else { self.decode_tokens as f64 / time }
    }
}

impl ServeStats {
    /// Tokens that steps decoded which did nothing else, and how long those took.
    pub fn decoded(&self) -> (u64, Duration) {
        let of = |stats: &WidthStats| (stats.decode_tokens, stats.decode_time);
        self.widths.values().map(of).fold((0, Duration::ZERO), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    }

    /// Notes that a draft of some tokens was checked, and that its first `accepted` ones are right.
    pub(crate) fn checked(&mut self, tokens: usize, accepted: usize) {
        self.checked_drafts += 1;
        self.drafts.tokens += tokens as u64;
        self.drafts.accepted += accepted as u64;
        if self.accepted_at.len() < tokens {
            self.accepted_at.resize(tokens, 0);
        }
        self.accepted_at.iter_mut().take(accepted).for_each(|count| *count += 1);
    }

    /// Notes a step of `width` sequences, which took `time` from the end of the one before, and the tokens
    /// that it gave if it decoded only.
    pub(crate) fn note(&mut self, width: usize, decoded: Option<u64>, time: Duration) {
        let stats = self.widths.entry(width as u32).or_default();
        stats.steps += 1;
        if let Some(tokens) = decoded {
            stats.decode_steps += 1;
            stats.decode_tokens += tokens;
            stats.decode_time += time;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ServeStats;

    #[test]
    fn drafts_are_counted_by_the_places_of_their_tokens() {
        let mut stats = ServeStats::default();
        [(3, 2), (1, 0), (4, 4), (2, 1)]
            .iter()
            .for_each(|(tokens, accepted)| stats.checked(*tokens, *accepted));
        assert_eq!((stats.checked_drafts, stats.drafts.tokens, stats.drafts.accepted), (4, 10, 7));
        assert_eq!(stats.accepted_at, [3, 2, 1, 1]);
    }
}
