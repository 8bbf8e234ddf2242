//! An order of the groups made so far: each comes after those that it reads from. It tells without looking at
//! the whole graph whether a new group would read, by way of others, what it makes itself.
//!
//! Units are groups, and nodes that are in none. Every unit has a separate place, and reads only from units
//! at smaller places. So what leads from a group back into it lies between the places of its members, and the
//! search looks nowhere else. A group that joins its members takes one of their places; of the units between
//! them, those that it leads to move behind it, and those that lead to it before it.

use crate::ir::{Graph, NodeId, Uses};
use std::cell::Cell;
use std::collections::BTreeSet;

/// Units of a graph by their places.
pub(super) struct UnitOrder<'g> {
    graph: &'g Graph,
    /// Place of the unit that each node is in, by node.
    place: Vec<usize>,
    /// Members of the unit at each place, ascending; none where a group has left its members' places.
    units: Vec<Vec<NodeId>>,
    /// Nodes that searches have looked at.
    visits: Cell<u64>,
}

impl<'g> UnitOrder<'g> {
    /// Every node by itself, in the graph's own order.
    pub fn new(graph: &'g Graph) -> UnitOrder<'g> {
        let nodes = || graph.nodes().map(|(id, _)| id);
        UnitOrder {
            graph,
            place: nodes().map(|id| id.0 as usize).collect(),
            units: nodes().map(|id| vec![id]).collect(),
            visits: Cell::new(0),
        }
    }

    /// Nodes that searches have looked at so far.
    pub fn visits(&self) -> u64 {
        self.visits.get()
    }

    /// A node outside of `members`, which are in no group yet, that depends on one of them, and the member
    /// that needs it; nothing if they can be a group.
    pub fn way_back(&self, uses: &Uses, members: &[NodeId]) -> Option<(NodeId, NodeId)> {
        let last = self.places(members).max()?;
        let mut seen = BTreeSet::new();
        let mut stack = members.to_vec();
        while let Some(id) = stack.pop() {
            self.visits.set(self.visits.get() + 1);
            for &user in uses.users(self.graph.node(id).output) {
                if members.contains(&user) {
                    if !members.contains(&id) {
                        return Some((id, user));
                    }
                } else if self.place(user) < last && seen.insert(self.place(user)) {
                    stack.extend(&self.units[self.place(user)]);
                }
            }
        }
        None
    }

    /// Makes a group of nodes that are in none and have no [`UnitOrder::way_back`].
    pub fn join(&mut self, uses: &Uses, members: &[NodeId]) {
        let (Some(first), Some(last)) = (self.places(members).min(), self.places(members).max()) else {
            return;
        };
        let after = self
            .reached(members, |id| uses.users(self.graph.node(id).output).to_vec(), &|place| place < last);
        let producers = |id: NodeId| {
            let inputs = &self.graph.node(id).inputs;
            inputs.iter().filter_map(|value| uses.producer(*value)).collect()
        };
        let before = self.reached(members, producers, &|place| place > first);
        let own: BTreeSet<usize> = self.places(members).collect();
        let free: Vec<usize> =
            before.iter().chain(&own).chain(&after).copied().collect::<BTreeSet<_>>().into_iter().collect();
        let mut take = |places: &BTreeSet<usize>| -> Vec<Vec<NodeId>> {
            places.iter().map(|place| std::mem::take(&mut self.units[*place])).collect()
        };
        let (before, after) = (take(&before), take(&after));
        take(&own);
        let mut group = members.to_vec();
        group.sort();
        // Those before move to the first places and those behind to the last, so that none passes a unit that
        // is not among them.
        let behind = free.len() - after.len();
        let moved =
            free.iter().zip(before.into_iter().chain([group])).chain(free[behind..].iter().zip(after));
        for (place, unit) in moved {
            unit.iter().for_each(|id| self.place[id.0 as usize] = *place);
            self.units[*place] = unit;
        }
    }

    /// Places of the units that `next` leads to from the members, by way of units within, without those of
    /// the members.
    fn reached(
        &self,
        members: &[NodeId],
        next: impl Fn(NodeId) -> Vec<NodeId>,
        is_within: &dyn Fn(usize) -> bool,
    ) -> BTreeSet<usize> {
        let mut seen = BTreeSet::new();
        let mut stack = members.to_vec();
        while let Some(id) = stack.pop() {
            self.visits.set(self.visits.get() + 1);
            for other in next(id) {
                let place = self.place(other);
                if !members.contains(&other) && is_within(place) && seen.insert(place) {
                    stack.extend(&self.units[place]);
                }
            }
        }
        seen
    }

    fn places(&self, members: &[NodeId]) -> impl Iterator<Item = usize> {
        members.iter().map(|id| self.place(*id))
    }

    fn place(&self, id: NodeId) -> usize {
        self.place[id.0 as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ModelShape, Rng, build};

    /// Whether units can be brought into an order, by taking one after the other that waits for none.
    fn have_an_order(graph: &Graph, uses: &Uses, units: &[Vec<NodeId>]) -> bool {
        let mut unit_of = vec![0; graph.nodes.len()];
        units.iter().enumerate().for_each(|(n, unit)| unit.iter().for_each(|id| unit_of[id.0 as usize] = n));
        let reads = |n: usize| {
            let inputs = units[n].iter().flat_map(|id| &graph.node(*id).inputs);
            let producers = inputs.filter_map(|value| uses.producer(*value));
            producers.map(|id| unit_of[id.0 as usize]).filter(move |other| *other != n)
        };
        let mut left: Vec<usize> = (0..units.len()).collect();
        loop {
            let before = left.len();
            let waits: Vec<usize> = left.clone();
            left.retain(|n| reads(*n).any(|other| waits.contains(&other)));
            if left.is_empty() || left.len() == before {
                return left.is_empty();
            }
        }
    }

    /// The units of an order, which must keep to it.
    fn units(order: &UnitOrder, uses: &Uses) -> Vec<Vec<NodeId>> {
        for (id, node) in order.graph.nodes() {
            assert!(order.units[order.place(id)].contains(&id));
            for producer in node.inputs.iter().filter_map(|value| uses.producer(*value)) {
                assert!(order.place(producer) <= order.place(id), "{producer:?} {id:?}");
            }
        }
        order.units.iter().filter(|unit| !unit.is_empty()).cloned().collect()
    }

    #[test]
    fn groups_of_any_nodes_are_refused_where_no_order_is_left() {
        let (mut joined, mut refused) = (0, 0);
        for seed in 0..60 {
            let graph = build(&ModelShape::random(seed)).unwrap();
            let (uses, mut rng) = (Uses::new(&graph), Rng::new(seed));
            let mut order = UnitOrder::new(&graph);
            for _ in 0..40 {
                // Some nodes near each other, or far apart, that are in no group.
                let count = graph.nodes.len();
                let near = if rng.one_in(3) { count } else { 8 };
                let start = rng.below(count);
                let mut members: Vec<NodeId> = (0..2 + rng.below(3))
                    .map(|_| NodeId(((start + rng.below(near)) % count) as u32))
                    .filter(|id| order.units[order.place(*id)].len() == 1)
                    .collect();
                members.sort();
                members.dedup();
                if members.len() < 2 {
                    continue;
                }
                let mut after = units(&order, &uses);
                after.retain(|unit| !members.contains(&unit[0]));
                after.push(members.clone());
                let expected = have_an_order(&graph, &uses, &after);
                let way = order.way_back(&uses, &members);
                assert_eq!(way.is_none(), expected, "seed {seed}: {members:?} {way:?}");
                match way {
                    None => order.join(&uses, &members),
                    Some((outside, member)) => {
                        assert!(members.contains(&member) && !members.contains(&outside));
                        assert!(uses.users(graph.node(outside).output).contains(&member));
                    }
                }
                *(if expected { &mut joined } else { &mut refused }) += 1;
                assert_eq!(units(&order, &uses).concat().len(), count);
            }
        }
        assert!(joined > 200 && refused > 200, "{joined} {refused}");
    }
}
