//! One sequence that runs through a graph node by node, for those who make the products themselves: with
//! weights of a few nodes at a time, a model needs no more memory than these.

use crate::ir::eval::state::{BatchToken, Data, LayerKv, OpState, Weight};
use crate::ir::ops;
use crate::ir::{Graph, Node, TensorId, ValueId};
use kernmill_plan::abi::ChosenExpert;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A sequence of tokens that is run whole, and the values that it has so far.
pub struct NodeRun {
    state: OpState,
}

impl Clone for NodeRun {
    /// Copies the values; weights are those that are set anew.
    fn clone(&self) -> NodeRun {
        let mut copy = NodeRun::new(&self.state.graph, &self.tokens());
        copy.state.values.clone_from(&self.state.values);
        copy
    }
}

impl NodeRun {
    /// A run of the tokens `ids`, all of whose outputs are wanted. No weights are set.
    pub fn new(graph: &Arc<Graph>, ids: &[u32]) -> NodeRun {
        let token = |(position, token): (usize, &u32)| BatchToken { sequence: 0, token: *token, position };
        let layers = graph.nodes.iter().filter(|node| node.op.attention().is_some()).count();
        let mut values = vec![None; graph.values.len()];
        values[0] = Some(Data::Ids(ids.to_vec()));
        let none = |_| Weight { dense: Vec::new(), blocks: None };
        let state = OpState {
            weights: (0..graph.tensors.len()).map(none).collect(),
            sequences: vec![vec![LayerKv::default(); layers]],
            values,
            batch: ids.iter().enumerate().map(token).collect(),
            wanted: (0..ids.len()).collect(),
            rope_tables: graph.ropes.iter().map(crate::ir::rope::inv_freq).collect(),
            lora_targets: Vec::new(),
            adapters: vec![Vec::new()],
            slots: BTreeMap::new(),
            graph: Arc::clone(graph),
        };
        NodeRun { state }
    }

    /// Ids of the tokens.
    pub fn tokens(&self) -> Vec<u32> {
        self.state.batch.iter().map(|token| token.token).collect()
    }

    /// Sets the elements of a tensor, row-major; none take them away.
    pub fn set_weight(&mut self, tensor: TensorId, elements: Vec<f32>) {
        self.state.weights[tensor.0 as usize].dense = elements;
    }

    /// Computes the value of a node, whose inputs and weights are there. Keys and values of attention are
    /// forgotten behind it: the sequence runs once.
    pub fn eval(&mut self, node: &Node) {
        let data = ops::eval(&mut self.state, node);
        if node.op.attention().is_some() {
            self.state.sequences[0].fill(LayerKv::default());
        }
        self.state.values[node.output.0 as usize] = Some(data);
    }

    /// Elements of a value in f32, rows one after the other; none of another value.
    pub fn rows(&self, value: ValueId) -> &[f32] {
        self.state.f32s(value)
    }

    /// Routes of a routing, by token and order of choice; none of another value.
    pub fn routing(&self, value: ValueId) -> &[ChosenExpert] {
        self.state.routing(value)
    }

    /// Sets a value, rows one after the other.
    pub fn set_rows(&mut self, value: ValueId, rows: Vec<f32>) {
        self.state.values[value.0 as usize] = Some(Data::F32(rows));
    }

    /// Gives up a value's memory.
    pub fn forget(&mut self, value: ValueId) {
        self.state.values[value.0 as usize] = None;
    }
}
