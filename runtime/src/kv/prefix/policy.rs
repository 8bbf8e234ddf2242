//! The order in which blocks make way when the prefix cache needs room.

use super::heap::Worth;

/// Which cached blocks make way for others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Eviction {
    /// The longest unused first, where what takes long to compute counts as used later. This is GreedyDual
    /// (N. Young, "The k-server dual and loose competitiveness for paging", 1994) with the time to compute as
    /// cost.
    #[default]
    LeastRecentlyUsed,
    /// The least often used first; among equals, the longest unused.
    LeastFrequentlyUsed,
    /// Any, by a generator with this seed.
    Random(u64),
}

/// Gives worths, which say what makes way first.
#[derive(Debug)]
pub(super) struct Policy {
    eviction: Eviction,
    /// Counts uses.
    clock: u64,
    /// Worth of what made way last: what is used from now on is worth more.
    floor: u64,
}

impl Policy {
    pub(super) fn new(eviction: Eviction) -> Policy {
        Policy { eviction, clock: 0, floor: 0 }
    }

    /// The worth of something that is used now, for the `uses`-th time, and would cost `cost` to compute
    /// again. Costs of things in one queue have one unit.
    pub(super) fn used(&mut self, uses: u32, cost: u64) -> Worth {
        self.clock += 1;
        match self.eviction {
            Eviction::LeastRecentlyUsed => (self.floor.saturating_add(cost), self.clock),
            Eviction::LeastFrequentlyUsed => (u64::from(uses), self.clock),
            Eviction::Random(seed) => (fastrand::Rng::with_seed(seed ^ self.clock).u64(..), self.clock),
        }
    }

    /// Learns what has made way.
    pub(super) fn evicted(&mut self, worth: Worth) {
        self.floor = self.floor.max(worth.0);
    }
}
