//! Caches of keys and values: which attention each belongs to, and which others read it.

use super::{Graph, NodeId, ValueId};
use std::collections::BTreeSet;

impl Graph {
    /// The attention whose cache an attention reads, which may be itself; `None` of another node.
    pub fn cache_owner(&self, attention: NodeId) -> Option<NodeId> {
        let reader = self.node(attention).op.attention()?;
        if !reader.shared {
            return Some(attention);
        }
        let owns =
            |id: &NodeId| self.node(*id).op.attention().is_some_and(|a| a.layer == reader.layer && !a.shared);
        self.nodes().map(|(id, _)| id).find(owns)
    }

    /// Whether both nodes are attentions over the same cache.
    pub fn read_one_cache(&self, a: NodeId, b: NodeId) -> bool {
        let layer = |id: NodeId| self.node(id).op.attention().map(|attention| attention.layer);
        layer(a).is_some() && layer(a) == layer(b)
    }

    /// Whether a value is computed from the result of a node.
    pub fn follows(&self, value: ValueId, node: NodeId) -> bool {
        let from = self.node(node).output;
        let (mut seen, mut left) = (BTreeSet::new(), vec![value]);
        while let Some(value) = left.pop() {
            if value == from {
                return true;
            }
            // Nodes compute values in ascending order.
            if value > from && seen.insert(value) {
                left.extend(&self.nodes[value.0 as usize - 1].inputs);
            }
        }
        false
    }
}
