//! The order in which blocks are evicted: the longest unused first, weighted by what they cost.
//!
//! This is GreedyDual-Size. A block that is used gets the priority `floor + seconds / bytes`. The `floor` is
//! the priority of the last block that was evicted. The lowest priority goes first, among equal ones the
//! longest unused. With equal costs this is LRU; a block that costs more for its size outlives as many more
//! evictions.

use std::collections::BTreeSet;

/// The name of a block in memory: a hash of its id.
pub(crate) type Digest = u128;

/// A place in the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank {
    /// Bits of the priority, which is finite and not negative: their order is that of the numbers.
    priority: u64,
    /// When the block was used or written last.
    time: u64,
}

impl Rank {
    /// The rank of a block that was written with this priority at this time.
    pub fn new(priority: f64, time: u64) -> Rank {
        // Adding zero turns a negative zero into the positive one, whose bits are the lowest.
        Rank { priority: (priority.max(0.0) + 0.0).to_bits(), time }
    }

    /// The priority: finite, at least 0.
    pub fn priority(self) -> f64 {
        f64::from_bits(self.priority)
    }

    /// When the block was used or written last.
    pub fn time(self) -> u64 {
        self.time
    }
}

/// Blocks in the order of their eviction.
#[derive(Debug, Default)]
pub(crate) struct EvictionOrder {
    ranks: BTreeSet<(Rank, Digest)>,
    floor: f64,
    /// Counts uses and writes.
    clock: u64,
}

impl EvictionOrder {
    /// The rank of a block that is used now. `weight` is its cost by byte, in seconds.
    pub fn rank_now(&mut self, weight: f64) -> Rank {
        self.clock += 1;
        Rank::new((self.floor + weight).min(f64::MAX), self.clock)
    }

    /// Takes a block in.
    pub fn insert(&mut self, rank: Rank, digest: Digest) {
        self.clock = self.clock.max(rank.time);
        self.ranks.insert((rank, digest));
    }

    /// Takes a block out.
    pub fn remove(&mut self, rank: Rank, digest: Digest) {
        self.ranks.remove(&(rank, digest));
    }

    /// Takes the block out that goes first, and raises the floor to its priority.
    pub fn evict(&mut self) -> Option<Digest> {
        let (rank, digest) = self.ranks.pop_first()?;
        self.floor = self.floor.max(rank.priority());
        Some(digest)
    }

    /// Raises the floor to the lowest priority there is: the floor of the store whose blocks were loaded was
    /// not above it.
    pub fn restore_floor(&mut self) {
        self.floor = self.ranks.first().map_or(0.0, |(rank, _)| rank.priority());
    }

    /// The priority of the last block that was evicted.
    pub fn floor(&self) -> f64 {
        self.floor
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(order: &mut EvictionOrder, weight: f64, digest: Digest) -> Rank {
        let rank = order.rank_now(weight);
        order.insert(rank, digest);
        rank
    }

    #[test]
    fn equal_costs_go_by_last_use() {
        let mut order = EvictionOrder::default();
        let first = used(&mut order, 0.5, 1);
        used(&mut order, 0.5, 2);
        used(&mut order, 0.5, 3);
        order.remove(first, 1);
        used(&mut order, 0.5, 1);
        let gone: Vec<Digest> = std::iter::from_fn(|| order.evict()).collect();
        assert_eq!(gone, [2, 3, 1]);
    }

    #[test]
    fn a_dear_block_stays_for_as_many_rounds_more() {
        let mut order = EvictionOrder::default();
        used(&mut order, 3.5, 100);
        used(&mut order, 1.0, 0);
        let mut rounds = 0;
        while order.evict() != Some(100) {
            rounds += 1;
            used(&mut order, 1.0, rounds);
        }
        assert_eq!(rounds, 3);
    }

    #[test]
    fn equal_times_and_the_ends_of_numbers_lose_nobody() {
        let mut order = EvictionOrder::default();
        for digest in 0..4 {
            order.insert(Rank::new(-0.0, 7), digest);
        }
        order.insert(Rank::new(f64::MAX, 7), 4);
        assert_eq!(std::iter::from_fn(|| order.evict()).count(), 5);
        assert!(order.rank_now(f64::MAX).priority().is_finite());
    }
}
