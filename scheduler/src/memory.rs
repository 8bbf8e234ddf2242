//! The scheduler's view of the KV cache.

use crate::facts::RequestId;

/// KV blocks by layer kind: those of layers that see the whole context, and those of layers with a window.
pub type BlockCounts = [u64; 2];

/// KV blocks that a step's entry takes and gives back, by layer kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// Blocks taken.
    pub takes: BlockCounts,
    /// Blocks given back before any is taken.
    pub frees: BlockCounts,
}

impl Demand {
    /// The blocks that must be there so that the entry fits, whichever entries come before it.
    pub fn net(&self) -> BlockCounts {
        minus(self.takes, self.frees)
    }

    /// The blocks given back that are taken again.
    pub(crate) fn reused(&self) -> BlockCounts {
        least(self.takes, self.frees)
    }
}

/// KV blocks that a request takes which does not run, by layer kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StartDemand {
    /// Free and evictable blocks that it takes at most, those of its cached prefix included that nobody uses:
    /// they can no longer be evicted.
    pub takes: BlockCounts,
    /// Blocks of its cached prefix that running requests use. Blocks that these give back in the same plan do
    /// not become free as far as they may be among them.
    pub shares: BlockCounts,
}

/// Facts about the KV cache at the time of a plan.
///
/// A block is *used* by the sequences that run, *evictable* if only a prefix cache keeps it, or *free*. The
/// scheduler treats free and evictable blocks alike: whoever carries the plan out evicts as many as a step
/// takes. "Running" here means: started by an earlier plan, and neither ended nor preempted since.
pub trait Memory {
    /// Blocks that hold nothing.
    fn free(&self) -> BlockCounts;

    /// Blocks that only a prefix cache keeps, and that could be evicted now. Pinned ones do not count.
    fn evictable(&self) -> BlockCounts;

    /// Blocks that would become free or evictable if this running request ended now. Those that others share
    /// with it do not count.
    fn held(&self, id: RequestId) -> BlockCounts;

    /// How many of the first tokens of a request that does not run are cached. They need no prefill.
    fn cached(&self, id: RequestId) -> u32;

    /// Whether a request that does not run would compute tokens again that another one has still to compute,
    /// and would find them cached if it started later. The other one runs, or starts in this plan.
    fn computes_the_same(&self, id: RequestId, other: RequestId) -> bool {
        let _ = (id, other);
        false
    }

    /// The blocks that a waiting request needs until it holds its first `tokens` tokens, appended in steps of
    /// at most the engine's largest.
    fn to_start(&self, id: RequestId, tokens: u32) -> StartDemand;

    /// The blocks that appending `tokens` tokens to a running request takes and gives back in one step.
    fn to_append(&self, id: RequestId, tokens: u32) -> Demand;

    /// Free and evictable blocks that a running request takes at most, beyond those it has, while `tokens`
    /// more tokens are appended in steps of at most the engine's largest.
    fn to_grow(&self, id: RequestId, tokens: u32) -> BlockCounts;
}

/// Memory without a limit, for engines whose KV cache is as large as all sequences can be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unlimited;

impl Memory for Unlimited {
    fn free(&self) -> BlockCounts {
        [u64::MAX; 2]
    }

    fn evictable(&self) -> BlockCounts {
        [0; 2]
    }

    fn held(&self, _: RequestId) -> BlockCounts {
        [0; 2]
    }

    fn cached(&self, _: RequestId) -> u32 {
        0
    }

    fn to_start(&self, _: RequestId, _: u32) -> StartDemand {
        StartDemand::default()
    }

    fn to_append(&self, _: RequestId, _: u32) -> Demand {
        Demand::default()
    }

    fn to_grow(&self, _: RequestId, _: u32) -> BlockCounts {
        [0; 2]
    }
}

/// The sum of two counts of blocks.
pub(crate) fn plus(a: BlockCounts, b: BlockCounts) -> BlockCounts {
    [a[0].saturating_add(b[0]), a[1].saturating_add(b[1])]
}

/// The difference of two counts of blocks, not below zero.
pub(crate) fn minus(a: BlockCounts, b: BlockCounts) -> BlockCounts {
    [a[0].saturating_sub(b[0]), a[1].saturating_sub(b[1])]
}

/// The smaller of two counts of blocks, kind by kind.
pub(crate) fn least(a: BlockCounts, b: BlockCounts) -> BlockCounts {
    [a[0].min(b[0]), a[1].min(b[1])]
}

/// Whether blocks are there.
pub(crate) fn fits(needed: BlockCounts, there: BlockCounts) -> bool {
    needed[0] <= there[0] && needed[1] <= there[1]
}
