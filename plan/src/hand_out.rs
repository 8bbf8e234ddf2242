//! How the items of a step are handed out to its workers, as numbers. Kernels have these rules as code,
//! replays of reads follow them, and so does the compiler's simulation of steps.
//!
//! Where workers are of several nodes of memory, the items of matrices are cut into a part for each node
//! ([`HandOut::by_node`]), which has a counter of its own. A worker begins with its own node's part, and
//! turns to the others' counters when that is empty. So weights can lie beside the workers that read them.

use crate::abi::TAIL_SHIFT;
use std::ops::Range;

/// Bytes of the next step's weights that a waiting worker fetches at most: a part of the smallest
/// second-level cache that a CPU with AVX2 is likely to have to itself.
pub const FETCHED_AHEAD: u64 = 192 << 10;

/// A waiting worker looks at a choice of experts only when it is this short.
pub const FEW_ROUTES: usize = 64;

/// Workers by the node of memory that they are of: those of a node follow each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkersByNode {
    /// First worker of each node, and the number of all.
    starts: Vec<u32>,
}

impl WorkersByNode {
    /// So many workers of one node.
    pub fn of_one(workers: u32) -> WorkersByNode {
        WorkersByNode { starts: vec![0, workers] }
    }

    /// So many workers of each node.
    pub fn counted(workers: impl IntoIterator<Item = u32>) -> WorkersByNode {
        let behind = workers.into_iter().scan(0, |first, count| {
            *first += count;
            Some(*first)
        });
        WorkersByNode { starts: [0].into_iter().chain(behind).collect() }
    }

    /// First worker of each node, and the number of all.
    pub fn starts(&self) -> &[u32] {
        &self.starts
    }

    /// All workers.
    pub fn workers(&self) -> u32 {
        self.starts.last().copied().unwrap_or(0)
    }

    /// Nodes.
    pub fn nodes(&self) -> usize {
        self.starts.len() - 1
    }

    /// The node of a worker.
    pub fn node_of(&self, worker: u32) -> usize {
        self.starts.partition_point(|first| *first <= worker) - 1
    }

    /// The part of `total` things that a node has: as much as its workers are of all.
    pub fn part(&self, total: u64, node: usize) -> Range<u64> {
        let start = |node: usize| total * u64::from(self.starts[node]) / u64::from(self.workers());
        start(node)..start(node + 1)
    }
}

/// A node's part of a step's items, which are numbered by themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeItems {
    items: HandOut,
    /// First worker of the node, and how many it has.
    first_worker: u64,
    workers: u64,
    /// Items of each group of `of_group` that are the node's.
    units: Range<u64>,
    of_group: u64,
}

impl NodeItems {
    /// The items that a worker of the node begins with.
    pub fn share(&self, worker: u32) -> Range<u64> {
        self.items.share(u64::from(worker) - self.first_worker, self.workers)
    }

    /// The node's workers.
    pub fn workers(&self) -> u64 {
        self.workers
    }

    /// How many items a worker takes from the node's counter when `taken` are gone.
    pub fn claim(&self, taken: u64) -> u64 {
        self.items.claim(taken, self.workers)
    }

    /// The items of a claim of `count` before which `taken` were gone; none when nothing was left.
    pub fn claimed(&self, taken: u64, count: u64) -> Option<Range<u64>> {
        self.items.claimed(taken, count)
    }

    /// Whether the node's counter has any items.
    pub fn has_tail(&self) -> bool {
        self.items.shared < self.items.total
    }

    /// The numbers of some items among all of the step's: those that follow each other, in order.
    pub fn ranges(&self, items: Range<u64>) -> impl Iterator<Item = Range<u64>> + use<> {
        let (units, of_group) = (self.units.clone(), self.of_group);
        let mut left = items;
        std::iter::from_fn(move || {
            let each = units.end - units.start;
            let (group, unit) = (left.start.checked_div(each)?, left.start % each);
            let count = (each - unit).min(left.end.checked_sub(left.start).filter(|left| *left > 0)?);
            left.start += count;
            let first = group * of_group + units.start + unit;
            Some(first..first + count)
        })
    }
}

/// A hand-out of items to the workers of a node: some in equal contiguous shares, the rest from a counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandOut {
    total: u64,
    /// Items in equal shares.
    shared: u64,
    /// Items that claims keep together, where there are so many.
    run: u64,
    claim: ClaimRule,
    /// Items of a group. Each node has a part of them; 0 where nodes have none.
    units: u64,
    /// By group, the cost of an item by which shares are equal, at least 1; none where items cost alike.
    costs: Option<Vec<u64>>,
}

/// The cost that is handed out in shares, of groups of `units` items.
fn shared_cost(costs: &[u64], units: u64) -> u64 {
    let all = costs.iter().sum::<u64>() * units;
    all - (all >> TAIL_SHIFT)
}

/// Whole items of groups of `units` whose costs lie before `at`.
fn items_before(costs: &[u64], units: u64, at: u64) -> u64 {
    let (mut before, mut items) = (0, 0);
    for cost in costs {
        items += (at.saturating_sub(before) / cost).min(units);
        before += cost * units;
    }
    items
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
        HandOut { total, shared: total, run: 1, claim: ClaimRule::One, units: 0, costs: None }
    }

    /// Equal shares of three quarters; the rest in claims that shrink.
    pub fn with_tail(total: u64, run: u64) -> HandOut {
        HandOut::in_groups(1, total, run)
    }

    /// Equal shares of three quarters of groups of `units` items; the rest in claims that shrink.
    pub fn in_groups(groups: u64, units: u64, run: u64) -> HandOut {
        let total = groups * units;
        let shared = total - (total >> TAIL_SHIFT);
        HandOut { total, shared, run, claim: ClaimRule::Shrinking, units, costs: None }
    }

    /// Equal shares of `shared` of the items, the rest in claims that shrink. Nodes have no parts.
    pub fn with_shares(total: u64, shared: u64) -> HandOut {
        let shared = shared.min(total);
        HandOut { total, shared, run: 1, claim: ClaimRule::Shrinking, units: 0, costs: None }
    }

    /// Shares of three quarters of the cost of groups of `units` items, an item of each group at its cost,
    /// which is at least 1; the rest in claims that shrink.
    pub fn by_cost(costs: Vec<u64>, units: u64, run: u64) -> HandOut {
        let total = costs.len() as u64 * units;
        let shared = items_before(&costs, units, shared_cost(&costs, units));
        HandOut { total, shared, run, claim: ClaimRule::Shrinking, units, costs: Some(costs) }
    }

    /// One item after the other from the counter. Nodes have no parts.
    pub fn one_by_one(total: u64) -> HandOut {
        HandOut { total, shared: 0, run: 1, claim: ClaimRule::One, units: 0, costs: None }
    }

    /// The parts of all nodes. Items that all lie in fixed shares, and those that are taken one by one, are
    /// not cut: there is one part for all workers.
    pub fn by_node(&self, nodes: &WorkersByNode) -> Vec<NodeItems> {
        (0..self.parts(nodes)).map(|part| self.part(nodes, part)).collect()
    }

    fn parts(&self, nodes: &WorkersByNode) -> usize {
        if self.units == 0 { 1 } else { nodes.nodes() }
    }

    /// The part of a node.
    pub fn part(&self, nodes: &WorkersByNode, node: usize) -> NodeItems {
        if self.parts(nodes) == 1 {
            let (workers, units) = (nodes.workers().into(), 0..self.total);
            return NodeItems { items: self.clone(), first_worker: 0, workers, units, of_group: self.total };
        }
        let units = nodes.part(self.units, node);
        let count = units.end - units.start;
        let items = match &self.costs {
            Some(costs) => HandOut::by_cost(costs.clone(), count, self.run),
            None => HandOut::in_groups(self.total / self.units, count, self.run),
        };
        let [first_worker, end] = [node, node + 1].map(|node| u64::from(nodes.starts[node]));
        NodeItems { items, first_worker, workers: end - first_worker, units, of_group: self.units }
    }

    /// The numbers of the parts in which a worker looks for items: its own node's, those behind it, and then
    /// those before it.
    pub fn order(&self, nodes: &WorkersByNode, worker: u32) -> impl Iterator<Item = usize> + use<> {
        let parts = self.parts(nodes);
        let own = if parts == 1 { 0 } else { nodes.node_of(worker) };
        (own..parts).chain(0..own)
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
            let shared = shared_cost(costs, self.units);
            let start = |worker: u64| items_before(costs, self.units, shared * worker / workers);
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

    /// All that a step's workers get, in turns: each takes from the counters as it comes.
    fn given(items: &HandOut, nodes: &WorkersByNode) -> Vec<u64> {
        let (parts, workers) = (items.by_node(nodes), nodes.workers());
        let mut taken = vec![0; parts.len()];
        let mut given: Vec<Range<u64>> = Vec::new();
        for worker in 0..workers {
            let own = &parts[items.order(nodes, worker).next().unwrap()];
            given.extend(own.ranges(own.share(worker)));
        }
        let mut left: Vec<u32> = (0..workers).collect();
        while !left.is_empty() {
            left.retain(|worker| {
                let take = |part: usize| {
                    let count = parts[part].claim(taken[part]);
                    let items = parts[part].claimed(taken[part], count)?;
                    taken[part] += count;
                    Some(parts[part].ranges(items))
                };
                let got = items.order(nodes, *worker).find_map(take);
                got.map(|ranges| given.extend(ranges)).is_some()
            });
        }
        let mut items: Vec<u64> = given.into_iter().flatten().collect();
        items.sort_unstable();
        items
    }

    #[test]
    fn parts_of_nodes_are_all_items_once() {
        let nodes = [&[1][..], &[2], &[7], &[1, 1], &[3, 5], &[2, 2, 1], &[4, 4, 4, 4]];
        for nodes in nodes.map(|counts| WorkersByNode::counted(counts.iter().copied())) {
            for total in (0..20).chain([80, 180, 1257]) {
                let costs = (0..total % 5).map(|group| group * 7 % 5 + 1).collect();
                for items in [
                    HandOut::even(total),
                    HandOut::one_by_one(total),
                    HandOut::with_shares(total, total / 3),
                    HandOut::with_tail(total, 4),
                    HandOut::in_groups(total % 7, 1 + total / 5, 2),
                    HandOut::by_cost(costs, 1 + total / 3, 2),
                ] {
                    let all: Vec<u64> = (0..items.total()).collect();
                    assert_eq!(given(&items, &nodes), all, "{nodes:?} {items:?}");
                }
            }
        }
    }

    #[test]
    fn nodes_have_rows_that_follow_each_other_of_every_group() {
        // Three workers of four are on the first node.
        let nodes = WorkersByNode::counted([3, 1]);
        assert_eq!([0, 2, 3].map(|worker| nodes.node_of(worker)), [0, 0, 1]);
        assert_eq!([0, 1].map(|node| nodes.part(64, node)), [0..48, 48..64]);
        let items = HandOut::with_tail(64, 1);
        let dense = items.by_node(&nodes);
        assert_eq!(items.order(&nodes, 3).collect::<Vec<_>>(), [1, 0]);
        let ranges = |part: &NodeItems, items| -> Vec<_> {
            part.ranges(items).map(|range| (range.start, range.end)).collect()
        };
        assert_eq!([0, 1, 2].map(|worker| dense[0].share(worker)), [0..12, 12..24, 24..36]);
        assert_eq!(ranges(&dense[1], dense[1].share(3)), [(48, 60)]);
        assert_eq!(ranges(&dense[1], dense[1].claimed(0, dense[1].claim(0)).unwrap()), [(60, 64)]);
        let experts = HandOut::by_cost(vec![1, 1], 8, 1).by_node(&nodes);
        assert_eq!(ranges(&experts[0], 0..12), [(0, 6), (8, 14)]);
        assert_eq!(ranges(&experts[1], experts[1].share(3)), [(6, 8), (14, 15)]);
        assert_eq!(HandOut::even(7).by_node(&nodes).len(), 1);
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
