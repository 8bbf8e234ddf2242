//! How the items of a step are handed out to its workers, as numbers. Kernels have these rules as code,
//! replays of reads follow them, and so does the compiler's simulation of steps.

use crate::abi::TAIL_SHIFT;
use std::ops::Range;

/// A hand-out of items: some in equal contiguous shares, the rest from the step's counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandOut {
    total: u64,
    /// Items in equal shares.
    shared: u64,
    /// Items that claims keep together, where there are so many.
    run: u64,
    claim: ClaimRule,
    /// The costs by which shares are equal, where it is not the number of items.
    costs: Option<GroupCosts>,
}

/// Groups of equally many items, those of a group of one cost.
#[derive(Clone, Debug, PartialEq, Eq)]
struct GroupCosts {
    /// Items of a group.
    units: u64,
    /// The cost of an item, by group; at least 1.
    costs: Vec<u64>,
}

impl GroupCosts {
    /// The cost that is handed out in shares.
    fn shared(&self) -> u64 {
        let all = self.costs.iter().sum::<u64>() * self.units;
        all - (all >> TAIL_SHIFT)
    }

    /// Whole items whose costs lie before `at`.
    fn items_before(&self, at: u64) -> u64 {
        let (mut before, mut items) = (0, 0);
        for cost in &self.costs {
            items += (at.saturating_sub(before) / cost).min(self.units);
            before += cost * self.units;
        }
        items
    }
}

/// How many items a worker takes from the counter at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClaimRule {
    One,
    /// An equal share of what is left, in whole runs as long as there is one for every worker.
    Shrinking,
}

impl HandOut {
    /// Equal shares of all items.
    pub fn even(total: u64) -> HandOut {
        HandOut { total, shared: total, run: 1, claim: ClaimRule::One, costs: None }
    }

    /// Equal shares of three quarters; the rest in claims that shrink.
    pub fn with_tail(total: u64, run: u64) -> HandOut {
        let shared = total - (total >> TAIL_SHIFT);
        HandOut { total, shared, run, claim: ClaimRule::Shrinking, costs: None }
    }

    /// Equal shares of `shared` of the items, the rest in claims that shrink.
    pub fn with_shares(total: u64, shared: u64) -> HandOut {
        HandOut { total, shared: shared.min(total), run: 1, claim: ClaimRule::Shrinking, costs: None }
    }

    /// Shares of three quarters of the cost of groups of `units` items, an item of each group at its cost,
    /// which is at least 1; the rest in claims that shrink.
    pub fn by_cost(costs: Vec<u64>, units: u64, run: u64) -> HandOut {
        let total = costs.len() as u64 * units;
        let costs = GroupCosts { units, costs };
        let shared = costs.items_before(costs.shared());
        HandOut { total, shared, run, claim: ClaimRule::Shrinking, costs: Some(costs) }
    }

    /// One item after the other from the counter.
    pub fn one_by_one(total: u64) -> HandOut {
        HandOut { total, shared: 0, run: 1, claim: ClaimRule::One, costs: None }
    }

    /// Items in all.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Items in equal shares: the counter's first is behind them.
    pub fn shared(&self) -> u64 {
        self.shared
    }

    /// The items that a worker begins with.
    pub fn share(&self, worker: u64, workers: u64) -> Range<u64> {
        if let Some(costs) = &self.costs {
            let start = |worker: u64| costs.items_before(costs.shared() * worker / workers);
            return start(worker)..start(worker + 1);
        }
        self.shared * worker / workers..self.shared * (worker + 1) / workers
    }

    /// How many items a worker takes from the counter when `taken` are gone.
    pub fn claim(&self, taken: u64, workers: u64) -> u64 {
        let left = self.total.saturating_sub(self.shared + taken);
        let part = (left / workers).max(1);
        match self.claim {
            ClaimRule::One => 1,
            ClaimRule::Shrinking if self.run > 1 && left >= workers * self.run => {
                (part / self.run * self.run).max(self.run)
            }
            ClaimRule::Shrinking => part,
        }
    }

    /// The items of a claim of `count` before which `taken` were gone; none when nothing was left.
    pub fn claimed(&self, taken: u64, count: u64) -> Option<Range<u64>> {
        let first = self.shared + taken;
        (first < self.total).then(|| first..(first + count).min(self.total))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_quarters_are_shares_and_claims_of_the_rest_shrink_in_whole_runs() {
        // 180 items: 45 are left to the counter.
        let items = HandOut::with_tail(180, 4);
        assert_eq!((items.shared(), items.share(0, 2), items.share(1, 2)), (135, 0..67, 67..135));
        let (mut taken, mut claims) = (0, Vec::new());
        while let Some(range) = items.claimed(taken, items.claim(taken, 2)) {
            taken += range.end - range.start;
            claims.push(range.end - range.start);
        }
        assert_eq!(claims, [20, 12, 4, 4, 2, 1, 1, 1]);
        assert_eq!(taken, 45);
    }

    #[test]
    fn shares_by_cost_hold_fewer_items_of_groups_that_cost_more() {
        // Three quarters of 4 * (30 + 10) are 120: an item of the second group is not reached.
        let items = HandOut::by_cost(vec![30, 10], 4, 1);
        assert_eq!((items.total(), items.shared()), (8, 4));
        assert_eq!([0, 1].map(|worker| items.share(worker, 2)), [0..2, 2..4]);
        let items = HandOut::by_cost(vec![10, 30], 4, 1);
        assert_eq!([0, 1].map(|worker| items.share(worker, 2)), [0..4, 4..6]);
        assert_eq!(items.claimed(0, items.claim(0, 2)), Some(6..7));
    }

    #[test]
    fn equal_shares_leave_nothing_to_the_counter_and_the_counter_may_have_all() {
        let even = HandOut::even(7);
        assert_eq!([0, 1, 2].map(|worker| even.share(worker, 3)), [0..2, 2..4, 4..7]);
        assert_eq!(even.claimed(0, even.claim(0, 3)), None);
        let single = HandOut::one_by_one(2);
        assert!(single.share(0, 3).is_empty());
        assert_eq!([0, 1, 2].map(|taken| single.claimed(taken, 1)), [Some(0..1), Some(1..2), None]);
    }
}
