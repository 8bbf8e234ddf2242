//! Writers and readers of each value.

use super::{Graph, Node, NodeId, Tensor, TensorId, Value, ValueId};

/// Index of producers and users of a graph's values.
#[derive(Clone, Debug)]
pub struct Uses {
    producers: Vec<Option<NodeId>>,
    users: Vec<Vec<NodeId>>,
}

impl Uses {
    /// Indexes `graph`; ids out of range are left out, the verifier reports them.
    pub fn new(graph: &Graph) -> Uses {
        let mut uses =
            Uses { producers: vec![None; graph.values.len()], users: vec![Vec::new(); graph.values.len()] };
        for (id, node) in graph.nodes() {
            if let Some(slot) = uses.producers.get_mut(node.output.0 as usize) {
                *slot = Some(id);
            }
            for input in &node.inputs {
                if let Some(users) = uses.users.get_mut(input.0 as usize)
                    && users.last() != Some(&id)
                {
                    users.push(id);
                }
            }
        }
        uses
    }

    /// The node that writes `value`; `None` for the graph's input.
    pub fn producer(&self, value: ValueId) -> Option<NodeId> {
        self.producers[value.0 as usize]
    }

    /// The nodes that read `value`, ascending, each once.
    pub fn users(&self, value: ValueId) -> &[NodeId] {
        &self.users[value.0 as usize]
    }
}

impl Graph {
    /// Nodes with their ids, in topological order.
    pub fn nodes(&self) -> impl DoubleEndedIterator<Item = (NodeId, &Node)> + ExactSizeIterator {
        self.nodes.iter().enumerate().map(|(i, node)| (NodeId(i as u32), node))
    }

    /// The node of that id.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0 as usize]
    }

    /// The value of that id.
    pub fn value(&self, id: ValueId) -> &Value {
        &self.values[id.0 as usize]
    }

    /// Elements of all tensors.
    pub fn weights(&self) -> u64 {
        self.tensors.iter().map(|tensor| tensor.shape.iter().product::<usize>() as u64).sum()
    }

    /// The tensor of that id.
    pub fn tensor(&self, id: TensorId) -> &Tensor {
        &self.tensors[id.0 as usize]
    }

    /// The value of that name.
    pub fn find_value(&self, name: &str) -> Option<ValueId> {
        self.values.iter().position(|value| value.name == name).map(|i| ValueId(i as u32))
    }
}
