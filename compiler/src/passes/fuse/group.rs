//! The fused graph: the quantised graph, unchanged, with its nodes in groups that each become one kernel.

use super::composition::Composition;
use super::rule::Hints;
use crate::ir::ops::places::KernelTemplate;
use crate::ir::{Graph, NodeId, OpKind, Uses, ValueId};
use std::collections::BTreeMap;

/// The kind of kernel that a group becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GroupKind {
    /// One node by itself.
    Single(OpKind),
    /// Members that a rule put together; `compose` says what kernel they make.
    Fused(KernelTemplate),
}

/// Nodes that one kernel computes.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// The rule that made it; `None` for a node by itself.
    pub rule: Option<String>,
    /// Kind of kernel.
    pub kind: GroupKind,
    /// Members that prepare the roots' input, ascending.
    pub prologue: Vec<NodeId>,
    /// The matrix products or the attention (or the only member), in the pattern's order.
    pub roots: Vec<NodeId>,
    /// Members that work on the roots' results, ascending.
    pub epilogue: Vec<NodeId>,
    /// Members by the rule's names; absent optional ones are not in it. A single node has none.
    pub captures: BTreeMap<String, NodeId>,
    /// The attention into whose cache the group writes the keys and values, in place of buffers.
    pub kv_write: Option<NodeId>,
    /// The rule's schedule hints.
    pub hints: Hints,
    /// Values read from outside, ascending.
    pub inputs: Vec<ValueId>,
    /// Values of members that are used outside (the graph's output included), ascending.
    pub outputs: Vec<ValueId>,
    /// The kernel that the members make, in terms of the graph.
    pub composition: Composition,
}

impl Group {
    /// A node by itself.
    pub fn single(graph: &Graph, uses: &Uses, node: NodeId) -> Group {
        let mut group = Group {
            rule: None,
            kind: GroupKind::Single(graph.node(node).kind()),
            prologue: Vec::new(),
            roots: vec![node],
            epilogue: Vec::new(),
            captures: BTreeMap::new(),
            kv_write: None,
            hints: Hints::default(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            composition: Composition::single(graph, node),
        };
        group.find_edges(graph, uses);
        group
    }

    /// All members in executable order (the graph's).
    pub fn members(&self) -> Vec<NodeId> {
        let mut members: Vec<NodeId> =
            self.prologue.iter().chain(&self.roots).chain(&self.epilogue).copied().collect();
        members.sort();
        members
    }

    /// Name in listings: the rule's, or the op's of a single node.
    pub fn name(&self) -> &str {
        match (&self.rule, self.kind) {
            (Some(rule), _) => rule,
            (None, GroupKind::Single(op)) => op.name,
            (None, GroupKind::Fused(template)) => template.name(),
        }
    }

    /// The member that the rule calls `name`.
    pub fn capture(&self, name: &str) -> Option<NodeId> {
        self.captures.get(name).copied()
    }

    /// Fills in `inputs` and `outputs`, which follow from the members.
    pub(super) fn find_edges(&mut self, graph: &Graph, uses: &Uses) {
        (self.inputs, self.outputs) = edges(graph, uses, &self.members());
    }
}

/// Values that `members` read from outside and values of theirs that are used outside, each ascending.
pub fn edges(graph: &Graph, uses: &Uses, members: &[NodeId]) -> (Vec<ValueId>, Vec<ValueId>) {
    let mut inputs: Vec<ValueId> = members
        .iter()
        .flat_map(|&id| graph.node(id).inputs.iter().copied())
        .filter(|&value| uses.producer(value).is_none_or(|producer| !members.contains(&producer)))
        .collect();
    inputs.sort();
    inputs.dedup();
    let mut outputs: Vec<ValueId> = members
        .iter()
        .map(|&id| graph.node(id).output)
        .filter(|&value| {
            value == graph.output || uses.users(value).iter().any(|user| !members.contains(user))
        })
        .collect();
    outputs.sort();
    (inputs, outputs)
}

/// A graph whose nodes are grouped into kernels.
#[derive(Clone, Debug, PartialEq)]
pub struct FusedGraph {
    /// The quantised graph, unchanged.
    pub graph: Graph,
    /// Groups in executable order; every node is in exactly one.
    pub groups: Vec<Group>,
}

impl FusedGraph {
    /// Every node by itself: fusion off.
    pub fn unfused(graph: &Graph) -> FusedGraph {
        let uses = Uses::new(graph);
        let groups = graph.nodes().map(|(id, _)| Group::single(graph, &uses, id)).collect();
        FusedGraph { graph: graph.clone(), groups }
    }

    /// Index of the group that each node is in, by node.
    pub fn group_of(&self) -> Vec<usize> {
        let mut group_of = vec![usize::MAX; self.graph.nodes.len()];
        for (i, group) in self.groups.iter().enumerate() {
            for id in group.members() {
                group_of[id.0 as usize] = i;
            }
        }
        group_of
    }

    /// Index of the group that writes this attention's keys and values to the cache: one whose rule says so,
    /// or the attention's own, which then writes them before it attends. Where it shares a cache, that is the
    /// group that writes this.
    pub fn kv_writer(&self, attention: NodeId) -> usize {
        let attention = self.graph.cache_owner(attention).unwrap_or(attention);
        let writer = self.groups.iter().position(|group| group.kv_write == Some(attention));
        let has = |group: &Group| {
            [&group.roots, &group.prologue, &group.epilogue].iter().any(|part| part.contains(&attention))
        };
        writer.or_else(|| self.groups.iter().position(has)).unwrap_or(usize::MAX)
    }
}
