//! Builds a graph node by node; types are inferred.

use super::{
    Graph, GraphError, Node, Op, Role, RopeParameters, Tensor, TensorId, TensorSource, Type, Value, ValueId,
};
use crate::ir::ops::infer;
use kernmill_plan::format::WeightFormat;
use kernmill_plan::vectors::VectorForm;
use std::collections::HashSet;

/// A graph in the making. Names that are taken get a number appended.
#[derive(Clone, Debug)]
pub struct GraphBuilder {
    graph: Graph,
    value_names: HashSet<String>,
    tensor_names: HashSet<String>,
}

impl GraphBuilder {
    /// An empty graph with its input, the token ids (`%tokens`).
    pub fn new(name: &str, vocab: usize, max_context: usize) -> GraphBuilder {
        let tokens = Value { name: "tokens".into(), ty: Type::TokenIds };
        let graph = Graph {
            name: name.into(),
            vocab,
            max_context,
            left_out: Vec::new(),
            values: vec![tokens],
            tensors: Vec::new(),
            nodes: Vec::new(),
            ropes: Vec::new(),
            output: ValueId(0),
            vectors: None,
        };
        GraphBuilder { graph, value_names: HashSet::from(["tokens".into()]), tensor_names: HashSet::new() }
    }

    /// Says how vectors are made of the output's rows, if they are no logits.
    #[must_use]
    pub fn with_vectors(mut self, vectors: Option<VectorForm>) -> GraphBuilder {
        self.graph.vectors = vectors;
        self
    }

    /// The token ids.
    pub fn tokens(&self) -> ValueId {
        ValueId(0)
    }

    /// The graph so far.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Adds RoPE parameters and returns their index; equal ones are shared.
    pub fn rope(&mut self, rope: RopeParameters) -> u32 {
        let known = self.graph.ropes.iter().position(|other| *other == rope);
        known.map_or_else(|| self.add_rope(rope), |known| known as u32)
    }

    /// Adds RoPE parameters as the next index, shared or not.
    pub fn add_rope(&mut self, rope: RopeParameters) -> u32 {
        self.graph.ropes.push(rope);
        self.graph.ropes.len() as u32 - 1
    }

    /// Adds a tensor whose plan format is the stored one.
    pub fn tensor(
        &mut self,
        name: &str,
        role: Role,
        shape: &[usize],
        stored: WeightFormat,
        source: TensorSource,
    ) -> TensorId {
        let shape = shape.to_vec();
        self.add_tensor(Tensor { name: name.into(), role, shape, stored, format: stored, plus: 0.0, source })
    }

    /// Adds a tensor as it is, but for a fresh name.
    pub fn add_tensor(&mut self, mut tensor: Tensor) -> TensorId {
        tensor.name = fresh(&mut self.tensor_names, &tensor.name);
        self.graph.tensors.push(tensor);
        TensorId(self.graph.tensors.len() as u32 - 1)
    }

    /// Says that so much is added to a vector's elements.
    pub fn plus(&mut self, tensor: TensorId, plus: f32) {
        self.graph.tensors[tensor.0 as usize].plus = plus;
    }

    /// Says that the checkpoint has a tensor under the tensor's own name.
    pub fn name_source(&mut self, tensor: TensorId) {
        let tensor = &mut self.graph.tensors[tensor.0 as usize];
        tensor.source.name.clone_from(&tensor.name);
        if let Some(scales) = &mut tensor.source.scales {
            *scales = format!("{}.scales", tensor.name);
        }
    }

    /// Changes the plan format of a tensor.
    pub fn set_format(&mut self, tensor: TensorId, format: WeightFormat) {
        self.graph.tensors[tensor.0 as usize].format = format;
    }

    /// Adds a node and returns its output.
    ///
    /// # Errors
    /// When the op does not take these inputs and tensors.
    pub fn node(
        &mut self,
        name: &str,
        op: impl Into<Op>,
        inputs: &[ValueId],
        tensors: &[TensorId],
    ) -> Result<ValueId, GraphError> {
        let types: Vec<Type> = inputs.iter().map(|&value| self.graph.value(value).ty).collect();
        let operands: Vec<&Tensor> = tensors.iter().map(|&tensor| self.graph.tensor(tensor)).collect();
        let op = op.into();
        let ty = infer(&op, &types, &operands, &self.graph.ropes).map_err(|message| {
            GraphError::new(format!("%{name} ({})", op.def().kind(inputs.len())), message)
        })?;
        let output = ValueId(self.graph.values.len() as u32);
        let name = fresh(&mut self.value_names, name);
        self.graph.values.push(Value { name, ty });
        self.graph.nodes.push(Node { op, inputs: inputs.to_vec(), tensors: tensors.to_vec(), output });
        Ok(output)
    }

    /// The number that the next attention with a cache of its own has.
    pub fn next_layer(&self) -> u32 {
        self.graph.nodes.iter().filter(|node| node.op.attention().is_some_and(|a| !a.shared)).count() as u32
    }

    /// The whole graph, verified.
    ///
    /// # Errors
    /// What the verifier finds.
    pub fn finish(mut self, output: ValueId) -> Result<Graph, GraphError> {
        self.graph.output = output;
        self.graph.verify()?;
        Ok(self.graph)
    }
}

fn fresh(taken: &mut HashSet<String>, name: &str) -> String {
    let numbered = (1..).map(|i| format!("{name}.{i}"));
    let free = std::iter::once(name.to_string()).chain(numbered).find(|name| !taken.contains(name));
    let name = free.unwrap_or_default();
    taken.insert(name.clone());
    name
}
