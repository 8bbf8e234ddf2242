//! The fused graph: the quantised graph, unchanged, with its nodes in groups that each become one kernel.

use crate::graph::{Graph, NodeId, OpKind, Uses, ValueId};
use std::collections::BTreeMap;
use std::fmt;

/// The kernel template of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum GroupKind {
    /// One node by itself.
    Single(OpKind),
    /// Norm, q, k and v projections, RoPE, KV write. Captures: `norm`, `quant`?, `q`, `k`, `v`, `rope_q`?, `rope_k`?,
    /// `cast_k`?, `cast_v`?.
    Qkv,
    /// Attention and the quantisation of its result. Captures: `attention`, `quant`?.
    Attention,
    /// A projection added to the residual stream. Captures: `quant`?, `linear`, `add`.
    LinearResidual,
    /// Norm, router, top-k, the chosen experts' gate and up, activation. Captures: `norm`, `router`, `topk`, `quant`?,
    /// `gate`, `up`, `glu`, `quant_out`?.
    MoeGateUp,
    /// The chosen experts' down, weighting, residual. Captures: `down`, `sum`, `add`.
    MoeDown,
    /// Norm, dense gate and up, activation. Captures: `norm`, `quant`?, `gate`, `up`, `glu`, `quant_out`?.
    MlpGateUp,
    /// The wanted rows, norm, unembedding. Captures: `select`, `norm`, `quant`?, `linear`.
    Logits,
    /// The A of adapters at one or several matrices that read one value, with the norm, and the routing, before it. Captures: `norm`, and `a`, `b`?, `c`?,
    /// or `router`, `topk`, `shrink`.
    Shrink,
    /// Norm and quantisation. Captures: `norm`, `quant`.
    NormQuant,
}

impl GroupKind {
    /// Name in listings; that of the op for single nodes.
    pub fn name(self) -> &'static str {
        match self {
            GroupKind::Single(op) => op.name(),
            GroupKind::Qkv => "qkv",
            GroupKind::Attention => "attention",
            GroupKind::LinearResidual => "linear_residual",
            GroupKind::MoeGateUp => "moe_gate_up",
            GroupKind::MoeDown => "moe_down",
            GroupKind::MlpGateUp => "mlp_gate_up",
            GroupKind::Logits => "logits",
            GroupKind::NormQuant => "norm_quant",
            GroupKind::Shrink => "shrink",
        }
    }
}

impl fmt::Display for GroupKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Nodes that one kernel computes.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// The rule that made it; `None` for a node by itself.
    pub rule: Option<String>,
    /// Kernel template.
    pub kind: GroupKind,
    /// Members that prepare the roots' input, ascending.
    pub prologue: Vec<NodeId>,
    /// The matrix products or the attention (or the only member), in the pattern's order.
    pub roots: Vec<NodeId>,
    /// Members that work on the roots' results, ascending.
    pub epilogue: Vec<NodeId>,
    /// Members by the rule's names; absent optional ones are not in it. A single node has none.
    pub captures: BTreeMap<String, NodeId>,
    /// Values read from outside, ascending.
    pub inputs: Vec<ValueId>,
    /// Values of members that are used outside (the graph's output included), ascending.
    pub outputs: Vec<ValueId>,
}

impl Group {
    /// A node by itself.
    pub fn single(graph: &Graph, uses: &Uses, node: NodeId) -> Group {
        let mut group = Group {
            rule: None,
            kind: GroupKind::Single(graph.node(node).op.kind()),
            prologue: Vec::new(),
            roots: vec![node],
            epilogue: Vec::new(),
            captures: BTreeMap::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
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

    /// The member that the rule calls `name`.
    pub fn capture(&self, name: &str) -> Option<NodeId> {
        self.captures.get(name).copied()
    }

    /// Fills in `inputs` and `outputs` from the members.
    pub(super) fn find_edges(&mut self, graph: &Graph, uses: &Uses) {
        (self.inputs, self.outputs) = edges(graph, uses, &self.members());
    }
}

/// Values that `members` read from outside and values of theirs that are used outside, each ascending.
pub(super) fn edges(graph: &Graph, uses: &Uses, members: &[NodeId]) -> (Vec<ValueId>, Vec<ValueId>) {
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

    /// Index of the group that writes this attention's keys and values to the cache: its `qkv` group, or its own group
    /// when k and v come from elsewhere (then the attention kernel writes them before it attends).
    pub fn kv_writer(&self, attention: NodeId) -> usize {
        let group_of = self.group_of();
        let own = group_of[attention.0 as usize];
        let k = self.graph.node(attention).inputs.get(1);
        let producer = k.and_then(|&k| Uses::new(&self.graph).producer(k));
        match producer.map(|node| group_of[node.0 as usize]) {
            Some(i) if self.groups[i].kind == GroupKind::Qkv => i,
            _ => own,
        }
    }
}
