//! The pass that gives matrix products their adapter branches.
//!
//! Every product that may have an adapter gets a [`LoraShrink`] of its f32 input, and reads it as its
//! last input. Nothing else changes: while a token has no adapter, the graph means what it meant. A norm or a
//! routing that fusion computes together with the products cannot also be an input of a shrink before them;
//! the shrink has copies of those nodes.

use crate::ir::{
    Graph, GraphBuilder, GraphError, LoraShrink, MatMul, Node, RowSelect, Rows, TensorId, ValueId,
};
use kernmill_plan::adapter::RANK_STEP;
use kernmill_plan::format::WeightFormat;
use std::collections::HashMap;

/// The graph with an adapter branch at every product of a matrix that is multiplied with all tokens.
/// Adapters' elements are rounded to `format`, bf16 or f32.
///
/// # Errors
/// Only on defects.
pub fn with_adapters(graph: &Graph, format: WeightFormat) -> Result<Graph, GraphError> {
    let mut builder =
        GraphBuilder::new(&graph.name, graph.vocab, graph.max_context).with_vectors(graph.vectors);
    for rope in &graph.ropes {
        builder.add_rope(rope.clone());
    }
    for tensor in &graph.tensors {
        builder.add_tensor(tensor.clone());
    }
    let mut pass = Pass {
        graph,
        format,
        builder,
        values: vec![ValueId(0)],
        lora_targets: HashMap::new(),
        shrunk: HashMap::new(),
        copies: HashMap::new(),
    };
    for (_, node) in graph.nodes() {
        let output = pass.node(node)?;
        pass.values.push(output);
    }
    let output = pass.values[graph.output.0 as usize];
    pass.builder.finish(output)
}

struct Pass<'g> {
    graph: &'g Graph,
    format: WeightFormat,
    builder: GraphBuilder,
    /// New value of each old one.
    values: Vec<ValueId>,
    /// LoRA target of each checkpoint tensor.
    lora_targets: HashMap<&'g str, u32>,
    /// Shrunk value by LoRA target, old input and old routing.
    shrunk: HashMap<(u32, ValueId, Option<ValueId>), ValueId>,
    /// Copies for shrinks: by old value and the old routing of the shrink.
    copies: HashMap<(ValueId, Option<ValueId>), ValueId>,
}

impl<'g> Pass<'g> {
    fn node(&mut self, node: &Node) -> Result<ValueId, GraphError> {
        let mut inputs: Vec<ValueId> = node.inputs.iter().map(|value| self.renewed(*value)).collect();
        if let Some(tensor) = self.lora_target_tensor(node) {
            inputs.push(self.shrink(node, tensor)?);
        }
        self.builder.node(&self.graph.value(node.output).name, node.op.clone(), &inputs, &node.tensors)
    }

    fn renewed(&self, old: ValueId) -> ValueId {
        self.values[old.0 as usize]
    }

    /// The matrix of a product that may have an adapter.
    fn lora_target_tensor(&self, node: &Node) -> Option<TensorId> {
        let tensor = *node.tensors.first().filter(|_| node.op.matmul().is_some())?;
        let whole = self.is_whole(tensor);
        let input = self.graph.value(node.inputs[0]).ty;
        let rows = input.rows() == Rows::Tokens || node.inputs.len() == 2 && input.rows() != Rows::LogitRows;
        let fits = input.cols().is_multiple_of(RANK_STEP) && rows;
        (whole && fits).then_some(tensor)
    }

    /// Whether the matrices made of the tensor's checkpoint tensor have each of its rows once: it alone, or
    /// gate and up. A checkpoint tensor for each expert has adapters of its own, which have no place here.
    fn is_whole(&self, tensor: TensorId) -> bool {
        let tensor = self.graph.tensor(tensor);
        let alike = self.graph.tensors.iter().filter(|other| other.source.name == tensor.source.name);
        let rows: Vec<RowSelect> =
            alike.clone().filter(|other| other.role == tensor.role).map(|other| other.source.rows).collect();
        alike.clone().count() == rows.len()
            && match rows.as_slice() {
                [RowSelect::ALL] => true,
                [a, b] => a.completes(*b),
                _ => false,
            }
            && !tensor.source.is_gathered()
            && alike
                .clone()
                .all(|other| other.source.rows.first_and_step(other.shape[other.row_dim()]).is_some())
    }

    /// A rounding of a product's input is no part of the adapter's.
    fn unrounded(&self, value: ValueId) -> ValueId {
        let rounded = self.producer(value).filter(|node| node.op.rounding().is_some());
        rounded.map_or(value, |node| node.inputs[0])
    }

    fn producer(&self, value: ValueId) -> Option<&'g Node> {
        self.graph.nodes.get((value.0 as usize).checked_sub(1)?)
    }

    /// The shrunk input of a product.
    fn shrink(&mut self, node: &Node, tensor: TensorId) -> Result<ValueId, GraphError> {
        let source = self.graph.tensor(tensor).source.name.as_str();
        let next = self.lora_targets.len() as u32;
        let lora_target = *self.lora_targets.entry(source).or_insert(next);
        let x = self.unrounded(node.inputs[0]);
        let routing = node.inputs.get(1).copied();
        if let Some(known) = self.shrunk.get(&(lora_target, x, routing)) {
            return Ok(*known);
        }
        let mut inputs = vec![self.input(x, routing)?];
        if let Some(routing) = routing {
            // Products of slots come after the routing anyway.
            let before = self.graph.value(x).ty.rows() == Rows::Tokens;
            inputs.push(if before { self.routing(routing, x)? } else { self.renewed(routing) });
        }
        let name = format!("{}.shrink", self.graph.value(node.output).name);
        let op = LoraShrink { lora_target, format: self.format };
        let value = self.builder.node(&name, op, &inputs, &[])?;
        self.shrunk.insert((lora_target, x, routing), value);
        Ok(value)
    }

    /// The input of a shrink: a copy of a norm and of the arithmetic on its elements, or the value itself.
    fn input(&mut self, x: ValueId, routing: Option<ValueId>) -> Result<ValueId, GraphError> {
        let Some(node) = self.producer(x).filter(|_| self.is_normed(x)) else { return self.sum(x, routing) };
        let inputs = node.inputs.iter().map(|input| match node.op.norm().is_some() {
            true => self.sum(*input, routing),
            false => self.input(*input, routing),
        });
        let inputs = inputs.collect::<Result<Vec<_>, _>>()?;
        self.copy(node, &inputs, routing)
    }

    /// A copy of a sum with a norm, or the value itself: such a sum is part of the kernel that reads it.
    fn sum(&mut self, x: ValueId, routing: Option<ValueId>) -> Result<ValueId, GraphError> {
        let norm = |value: &ValueId| self.producer(*value).filter(|node| node.op.norm().is_some());
        let Some(add) =
            self.producer(x).filter(|node| node.is_add() && node.inputs.iter().any(|i| norm(i).is_some()))
        else {
            return Ok(self.renewed(x));
        };
        let norms: Vec<Option<&Node>> = add.inputs.iter().map(norm).collect();
        let mut inputs = Vec::new();
        for (input, norm) in add.inputs.iter().zip(norms) {
            inputs.push(match norm {
                Some(norm) => self.copy(norm, &[self.renewed(norm.inputs[0])], routing)?,
                None => self.renewed(*input),
            });
        }
        self.copy(add, &inputs, routing)
    }

    /// Whether a value is a norm's, or made of one by arithmetic on single elements.
    fn is_normed(&self, x: ValueId) -> bool {
        self.producer(x).is_some_and(|node| {
            let is_arithmetic = node.op.def().expr().is_some() && !node.is_add();
            node.op.norm().is_some()
                || is_arithmetic && node.inputs.iter().any(|input| self.is_normed(*input))
        })
    }

    /// A copy of the top-k that is the routing of products of `x`, and of the router before it where that
    /// reads the same norm.
    fn routing(&mut self, routing: ValueId, x: ValueId) -> Result<ValueId, GraphError> {
        let Some(topk) = self.producer(routing).filter(|node| node.op.router().is_some()) else {
            return Ok(self.renewed(routing));
        };
        let router = self.producer(topk.inputs[0]).filter(|router| {
            router.op.matmul() == Some(MatMul::LINEAR) && router.inputs[0] == x && self.is_normed(x)
        });
        let logits = match router {
            None => self.renewed(topk.inputs[0]),
            Some(router) => {
                let mut inputs = vec![self.input(x, Some(routing))?];
                let new = self.renewed(router.output);
                inputs.extend(self.builder.graph().nodes[new.0 as usize - 1].shrunk());
                self.copy(router, &inputs, Some(routing))?
            }
        };
        self.copy(topk, &[logits], Some(routing))
    }

    fn copy(
        &mut self,
        node: &Node,
        inputs: &[ValueId],
        routing: Option<ValueId>,
    ) -> Result<ValueId, GraphError> {
        let key = (node.output, routing);
        if let Some(known) = self.copies.get(&key) {
            return Ok(*known);
        }
        let name = format!("{}.lora", self.graph.value(node.output).name);
        let value = self.builder.node(&name, node.op.clone(), inputs, &node.tensors)?;
        self.copies.insert(key, value);
        Ok(value)
    }
}
