//! Fetching what a worker reads first in the next step, while it waits for the others to finish this one.
//!
//! A prefetch reads nothing that can be seen and never faults, whatever its address.

use crate::pool::IdleWork;
use kernmill_plan::abi::ChosenExpert;
use kernmill_plan::format::LINE;
use kernmill_plan::hand_out::{FETCHED_AHEAD, FEW_ROUTES, WorkersByNode};
use kernmill_plan::program::{Operand, Step, TokenClass, WeightReads};
use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
use std::sync::atomic::{AtomicU32, Ordering};

/// Lines fetched between two looks at the barrier.
const LINES_AT_ONCE: u64 = 4;

/// Where a step's workers begin to read, as addresses.
#[derive(Default)]
pub(super) struct NextStepPrefetch {
    /// The bytes that every worker reads whole.
    whole: Box<[(u64, u64)]>,
    /// By worker, what it streams from there on; empty where that is nothing.
    streams: Box<[WeightStream]>,
    /// Routes that tell which experts are read.
    routes: Option<Routes>,
}

#[derive(Clone, Copy, Default)]
struct WeightStream {
    start: u64,
    bytes: u64,
    expert_stride: u64,
}

struct Routes {
    /// Address of the first [`ChosenExpert`].
    address: u64,
    top_k: usize,
}

impl NextStepPrefetch {
    /// The heads of a checked step, whose operands have these addresses, for so many workers.
    pub(super) fn resolve(
        step: &Step,
        class: &TokenClass,
        addresses: &[u64],
        arena: u64,
        workers: &WorkersByNode,
    ) -> NextStepPrefetch {
        let WeightReads { whole, parts, routing, own_items } = &step.weight_reads;
        // Nobody knows yet with which expert a worker begins.
        let parts = if *own_items { &[] } else { &parts[..] };
        let routing = routing.filter(|_| !own_items);
        let bytes = |operand: u32| match step.operands[operand as usize] {
            Operand::Weights { bytes, .. } => bytes,
            _ => 0,
        };
        let hand_out = step.weight_reads.hand_out();
        let items = hand_out.by_node(workers);
        let stream = |worker: u32| {
            let own = hand_out.order(workers, worker).next().map(|part| &items[part]);
            let first = own.and_then(|own| own.ranges(own.share(worker)).next());
            // Behind the last part there is nothing to fetch.
            let mut item = first.map_or(u64::MAX, |range| range.start);
            for part in parts {
                let Some(first) = part.operands.first().filter(|_| item < part.items.into()) else {
                    item = item.saturating_sub(part.items.into());
                    continue;
                };
                let skipped = item.saturating_mul(first.pieces.into()).saturating_mul(first.stride);
                let start = addresses[first.operand as usize].wrapping_add(skipped);
                let bytes = bytes(first.operand).saturating_sub(skipped);
                return WeightStream { start, bytes, expert_stride: first.expert_stride };
            }
            WeightStream::default()
        };
        NextStepPrefetch {
            whole: whole.iter().map(|o| (addresses[*o as usize], bytes(*o))).collect(),
            streams: if parts.is_empty() { [].into() } else { (0..workers.workers()).map(stream).collect() },
            routes: routing.map(|index| {
                let routing = &class.routings[index as usize];
                let address = arena + class.buffers[routing.buffer as usize].offset;
                Routes { address, top_k: routing.top_k as usize }
            }),
        }
    }

    /// Whether the step reads no weights.
    pub(super) fn is_empty(&self) -> bool {
        self.whole.is_empty() && self.streams.is_empty()
    }

    /// The bytes that `worker` is to fetch for a batch of `tokens` tokens.
    pub(super) fn fetch(&self, worker: u32, tokens: usize) -> Fetch<'_> {
        let stream = self.streams.get(worker as usize).copied().unwrap_or_default();
        Fetch {
            heads: self,
            tokens,
            expert: None,
            stream: Some(stream),
            next: 0,
            at: 0,
            end: 0,
            left: FETCHED_AHEAD,
        }
    }

    /// The bytes that a worker is to fetch where it is not known with which item it begins.
    pub(super) fn fetch_whole(&self) -> Fetch<'_> {
        Fetch { stream: None, ..self.fetch(0, 1) }
    }

    /// The bytes that `worker` is to fetch where `expert` is the lowest that is chosen.
    pub(super) fn fetch_of(&self, worker: u32, expert: u64) -> Fetch<'_> {
        Fetch { expert: Some(expert), ..self.fetch(worker, 1) }
    }
}

impl Routes {
    /// The lowest expert chosen, if the step that chooses is past that point and the choice is short.
    fn lowest(&self, tokens: usize) -> Option<u64> {
        let count = tokens * self.top_k;
        if count > FEW_ROUTES {
            return None;
        }
        let first = self.address as *const ChosenExpert;
        let expert = |i: usize| {
            // SAFETY: the checker has found room for the class's `max_tokens * top_k` routes in the buffer,
            // whose memory the executor holds. Another worker may be writing: whole words, and a stale one
            // costs a useless prefetch.
            let word = unsafe { AtomicU32::from_ptr((&raw const (*first.add(i)).expert).cast_mut()) };
            u64::from(word.load(Ordering::Relaxed))
        };
        (0..count).map(expert).min()
    }
}

/// A worker's fetching during one wait.
pub(crate) struct Fetch<'a> {
    heads: &'a NextStepPrefetch,
    tokens: usize,
    /// The lowest expert chosen, if it need not be looked up.
    expert: Option<u64>,
    /// The worker's stream, once the whole operands are through.
    stream: Option<WeightStream>,
    /// Next of the whole operands.
    next: usize,
    /// Lines from here to `end` are next.
    at: u64,
    end: u64,
    /// Bytes that may still be fetched.
    left: u64,
}

impl Fetch<'_> {
    /// This fetching, without the bound of a lifetime.
    ///
    /// # Safety
    /// The step's heads, and the memory of the buffers that its routes lie in, are there whenever it fetches.
    pub(super) unsafe fn outliving(self) -> Fetch<'static> {
        // SAFETY: only the lifetime changes; the rest is the caller's promise.
        unsafe { std::mem::transmute::<Fetch<'_>, Fetch<'static>>(self) }
    }
}

impl IdleWork for Fetch<'static> {
    fn some(&mut self) -> bool {
        Fetch::some(self)
    }
}

impl Fetch<'_> {
    /// Fetches a few lines; false when there is nothing left to fetch.
    pub(super) fn some(&mut self) -> bool {
        if self.at >= self.end && !self.advance() {
            return false;
        }
        let end = self.end.min(self.at.saturating_add(LINES_AT_ONCE * LINE as u64));
        while self.at < end {
            // SAFETY: every x86-64 CPU has the instruction, and it accepts any address.
            unsafe { _mm_prefetch::<_MM_HINT_T1>(self.at as *const i8) };
            self.at = self.at.saturating_add(LINE as u64);
        }
        true
    }

    fn advance(&mut self) -> bool {
        let (start, bytes) = match self.heads.whole.get(self.next) {
            Some(operand) => {
                self.next += 1;
                *operand
            }
            None => {
                let Some(stream) = self.stream.take() else { return false };
                let expert = match &self.heads.routes {
                    Some(routes) => self.expert.or_else(|| routes.lowest(self.tokens)),
                    None => Some(0),
                };
                let Some(expert) = expert else { return false };
                (stream.start.wrapping_add(expert.wrapping_mul(stream.expert_stride)), stream.bytes)
            }
        };
        let bytes = bytes.min(self.left);
        self.left -= bytes;
        (self.at, self.end) = (start, start.saturating_add(bytes));
        bytes > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where the ranges end that an endless wait fetches, and what is left of the budget.
    fn fetched(heads: &NextStepPrefetch, worker: u32, tokens: usize) -> (Vec<u64>, u64) {
        let mut fetch = heads.fetch(worker, tokens);
        let mut ends = Vec::new();
        while fetch.some() {
            if ends.last() != Some(&fetch.end) {
                ends.push(fetch.end);
            }
        }
        (ends, fetch.left)
    }

    fn stream(start: u64, bytes: u64, expert_stride: u64) -> WeightStream {
        WeightStream { start, bytes, expert_stride }
    }

    #[test]
    fn whole_operands_come_before_the_workers_own_stream() {
        let streams = [stream(1 << 20, 640, 0), stream(2 << 20, 640, 0)].into();
        let heads = NextStepPrefetch { whole: [(4096, 128), (8192, 64)].into(), streams, routes: None };
        let ends = |worker| fetched(&heads, worker, 1).0;
        assert_eq!(ends(0), [4096 + 128, 8192 + 64, (1 << 20) + 640]);
        assert_eq!(ends(1), [4096 + 128, 8192 + 64, (2 << 20) + 640]);
        // A worker that the step does not know has only what all read.
        assert_eq!(ends(7), [4096 + 128, 8192 + 64]);
    }

    #[test]
    fn the_budget_bounds_a_wait() {
        let heads = NextStepPrefetch {
            streams: [stream(0, 10 * FETCHED_AHEAD, 0)].into(),
            ..NextStepPrefetch::default()
        };
        assert_eq!(fetched(&heads, 0, 1), (vec![FETCHED_AHEAD], 0));
        assert!(!heads.is_empty() && NextStepPrefetch::default().is_empty());
        assert!(!NextStepPrefetch::default().fetch(0, 1).some());
    }

    #[test]
    fn addresses_past_the_last_one_end_the_fetching() {
        let heads = NextStepPrefetch {
            streams: [stream(u64::MAX - 100, 640, 0)].into(),
            ..NextStepPrefetch::default()
        };
        assert_eq!(fetched(&heads, 0, 1).0, [u64::MAX]);
    }

    #[test]
    fn the_lowest_expert_comes_first_while_the_choice_is_short() {
        let routes = [9, 5, 7, 6].map(|expert| ChosenExpert { expert, weight: 0.0 });
        let heads = NextStepPrefetch {
            streams: [stream(1 << 30, 128, 1 << 20)].into(),
            routes: Some(Routes { address: routes.as_ptr() as u64, top_k: 2 }),
            ..NextStepPrefetch::default()
        };
        let end = |expert: u64| (vec![(1 << 30) + (expert << 20) + 128], FETCHED_AHEAD - 128);
        assert_eq!(fetched(&heads, 0, 1), end(5));
        assert_eq!(fetched(&heads, 0, 2), end(5));
        // Longer choices are not read at all: this one would be past the buffer.
        assert_eq!(fetched(&heads, 0, FEW_ROUTES), (vec![], FETCHED_AHEAD));
    }
}
