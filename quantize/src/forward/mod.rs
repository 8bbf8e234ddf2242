//! A model in f32, run layer by layer: all texts go through a layer before the next one's weights are read,
//! so that a model of any size needs the memory of one layer and of the texts' rows.
//!
//! Inputs of products can be seen, and weights can be others than the model's. Products and attention are
//! those of [`gemm`], everything else is what the interpreter does: the same bits for any number of threads.

mod attention;
pub(crate) mod gemm;
mod weights;

pub(crate) use weights::{ChangedWeights, PartWeights, WeightChange};

use attention::attend;
use gemm::PanelMatrix;
use kernmill::{Error, Result};
use kernmill_checkpoint::Checkpoint;
use kernmill_compiler::interp::NodeRun;
use kernmill_compiler::ir::{Embed, Graph, MatrixRows, Node, Op, Rows, Tensor, TensorId, ValueId};
use kernmill_compiler::weights::{CheckpointWeights, WeightSource};
use kernmill_os::threads::share;
use kernmill_plan::abi::ChosenExpert;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A model whose layers run one after the other.
pub(crate) struct LayeredModel<'a> {
    pub(crate) graph: Arc<Graph>,
    weights: CheckpointWeights<'a>,
    /// Nodes of each layer; what comes before the first and behind the last are parts too.
    parts: Vec<Range<usize>>,
    /// By value, the last node that reads it.
    last_use: Vec<usize>,
    /// The product whose results are logits, if the model has some.
    head: Option<usize>,
    threads: usize,
}

/// The input of a product, as it is before it is made.
pub(crate) struct ProductInput<'r> {
    /// The matrix, or the matrices of experts.
    pub(crate) tensor: &'r Tensor,
    /// The rows.
    pub(crate) x: &'r [f32],
    /// Columns of the rows.
    pub(crate) cols: usize,
    /// The routes to experts' matrices, and how many of them share a row.
    pub(crate) routing: Option<(&'r [ChosenExpert], usize)>,
}

/// Sees the inputs of products of a text, and may keep something of each.
pub(crate) type SeeInput<'s, T> = dyn Fn(usize, &ProductInput<'_>) -> Option<T> + Sync + 's;

/// The weights that a text runs with in place of the model's, by its number.
pub(crate) type ChangeOf<'s> = dyn Fn(usize) -> Option<&'s ChangedWeights> + Sync + 's;

/// The number of the layer that a name is of.
pub(crate) fn layer_of(name: &str) -> Option<usize> {
    name.strip_prefix("layers.")?.split_once('.')?.0.parse().ok()
}

impl<'a> LayeredModel<'a> {
    /// The model of a graph and its weights.
    ///
    /// # Errors
    /// If they do not fit each other.
    pub(crate) fn new(graph: Graph, checkpoint: &'a Checkpoint, threads: usize) -> Result<LayeredModel<'a>> {
        let weights = CheckpointWeights::new(&graph, checkpoint)?;
        let mut last_use = vec![0; graph.values.len()];
        for (at, node) in graph.nodes.iter().enumerate() {
            node.inputs.iter().for_each(|input| last_use[input.0 as usize] = at);
        }
        last_use[graph.output.0 as usize] = usize::MAX;
        let has_logits = graph.vectors.is_none();
        let is_head =
            |node: &Node| node.op.matmul().is_some() && graph.value(node.output).ty.rows() == Rows::LogitRows;
        let head = graph.nodes.iter().rposition(is_head).filter(|_| has_logits);
        let layer = |at: usize| layer_of(&graph.value(graph.nodes[at].output).name);
        let mut parts: Vec<Range<usize>> = Vec::new();
        for at in 0..head.map_or(graph.nodes.len(), |head| head + 1) {
            match parts.last_mut() {
                Some(part) if layer(part.start) == layer(at) => part.end = at + 1,
                _ => parts.push(at..at + 1),
            }
        }
        Ok(LayeredModel { graph: Arc::new(graph), weights, parts, last_use, head, threads })
    }

    /// A copy of the model with the weights of another file, whose tensors have the same names and shapes,
    /// and may have other types.
    pub(crate) fn with<'b>(&self, checkpoint: &'b Checkpoint) -> LayeredModel<'b> {
        LayeredModel {
            graph: self.graph.clone(),
            weights: CheckpointWeights::of_some(checkpoint),
            parts: self.parts.clone(),
            last_use: self.last_use.clone(),
            head: self.head,
            threads: self.threads,
        }
    }

    /// How many parts there are, which run one after the other.
    pub(crate) fn parts(&self) -> usize {
        self.parts.len()
    }

    /// Nodes of a part.
    pub(crate) fn nodes(&self, part: usize) -> &[Node] {
        &self.graph.nodes[self.parts[part].clone()]
    }

    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    /// The product that makes logits, and the nodes behind it.
    pub(crate) fn head(&self) -> Option<(&Node, &[Node])> {
        self.head.map(|head| (&self.graph.nodes[head], &self.graph.nodes[head + 1..]))
    }

    /// A text at the beginning.
    pub(crate) fn text(&self, ids: &[u32]) -> NodeRun {
        NodeRun::new(&self.graph, ids)
    }

    /// The weights of a part, as the model has them or with a change. Those of logits are left out.
    ///
    /// # Errors
    /// If they cannot be read.
    pub(crate) fn weights(&self, part: usize, change: Option<&WeightChange<'_>>) -> Result<PartWeights> {
        let nodes = &self.graph.nodes[self.parts[part].clone()];
        let nodes = &nodes[..nodes.len() - usize::from(self.head == Some(self.parts[part].end - 1))];
        PartWeights::read(&self.graph, nodes, &self.weights, change, self.threads)
    }

    /// The product of logits, and its matrix.
    ///
    /// # Panics
    /// For a model without logits.
    pub(crate) fn head_ids(&self) -> (&Node, TensorId) {
        let (node, _) = self.head().expect("who asks for it has checked that there is one");
        (node, node.tensors[0])
    }

    /// The matrix of logits, as the model has it or with a change, and its bias.
    ///
    /// # Errors
    /// If they cannot be read.
    pub(crate) fn head_weights(
        &self,
        change: Option<&WeightChange<'_>>,
    ) -> Result<(PanelMatrix, Option<Vec<f32>>)> {
        let (node, id) = self.head_ids();
        let nodes = std::slice::from_ref(node);
        let mut read = PartWeights::read(&self.graph, nodes, &self.weights, change, self.threads)?;
        let bias = node.tensors.get(1).and_then(|bias| read.vector(*bias)).map(<[f32]>::to_vec);
        let matrix = read.matrices.remove(&id).and_then(|mut all| all.pop());
        let matrix = matrix.ok_or_else(|| Error::failed("the matrix of logits was not read"))?;
        Ok((matrix, bias))
    }

    /// Tensors with a change, but for `head` if it is given; of tables, the rows of some tokens.
    ///
    /// # Errors
    /// If they cannot be read.
    pub(crate) fn changed(
        &self,
        tensors: &[TensorId],
        head: Option<TensorId>,
        change: &WeightChange<'_>,
        tokens: &[u32],
    ) -> Result<ChangedWeights> {
        let others: Vec<TensorId> = tensors.iter().copied().filter(|id| Some(*id) != head).collect();
        ChangedWeights::read(&self.graph, &others, &self.weights, change, tokens, self.threads)
    }

    /// Runs texts through a part. What `see` kept is returned by text, in the order of the products. Values
    /// that no later part needs are given up. The product of logits is seen, but not made.
    pub(crate) fn run<T: Send>(
        &self,
        part: usize,
        texts: &mut [NodeRun],
        weights: &PartWeights,
        change: &ChangeOf<'_>,
        see: &SeeInput<'_, T>,
    ) -> Result<Vec<Vec<T>>> {
        let count = texts.len();
        let texts: Vec<Mutex<&mut NodeRun>> = texts.iter_mut().map(Mutex::new).collect();
        let kept: Vec<Mutex<Vec<T>>> = (0..count).map(|_| Mutex::new(Vec::new())).collect();
        let (next, failure) = (AtomicUsize::new(0), Mutex::new(None));
        share(self.threads.min(count), || {
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(text) = texts.get(at) else { break };
                let mut text = text.lock().unwrap_or_else(PoisonError::into_inner);
                let mut own = Vec::new();
                let seen = |input: &ProductInput<'_>| own.extend(see(at, input));
                match self.run_text(part, &mut text, weights, change(at), seen) {
                    Ok(()) => *kept[at].lock().unwrap_or_else(PoisonError::into_inner) = own,
                    Err(error) => {
                        *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                        next.store(count, Ordering::Relaxed);
                    }
                }
            }
        });
        match failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(error) => Err(error),
            None => {
                let kept = kept.into_iter();
                Ok(kept.map(|kept| kept.into_inner().unwrap_or_else(PoisonError::into_inner)).collect())
            }
        }
    }

    fn run_text(
        &self,
        part: usize,
        text: &mut NodeRun,
        weights: &PartWeights,
        change: Option<&ChangedWeights>,
        mut see: impl FnMut(&ProductInput<'_>),
    ) -> Result<()> {
        weights.set_vectors(text);
        for at in self.parts[part].clone() {
            let node = &self.graph.nodes[at];
            match &node.op {
                Op::MatMul(_) => {
                    let tensor = self.graph.tensor(node.tensors[0]);
                    let input = self.input(node, tensor, text);
                    see(&input);
                    if self.head != Some(at) {
                        let rows = self.product(node, &input, weights, change)?;
                        text.set_rows(node.output, rows);
                    }
                }
                Op::Embed(Embed { by_position }) => {
                    let rows = self.embedded(node, *by_position, text, change)?;
                    text.set_rows(node.output, rows);
                }
                Op::Attention(attention) => {
                    let [q, k, v] = [0, 1, 2].map(|input| text.rows(node.inputs[input]));
                    let sinks = node.tensors.first().and_then(|sinks| weights.vector(*sinks));
                    let rows = attend(attention, q, k, v, sinks);
                    text.set_rows(node.output, rows);
                }
                _ => text.eval(node),
            }
            let used = |value: &&ValueId| self.last_use[value.0 as usize] == at && self.head != Some(at);
            node.inputs.iter().filter(used).for_each(|value| text.forget(*value));
        }
        weights.take_vectors(text);
        Ok(())
    }

    fn input<'r>(&self, node: &Node, tensor: &'r Tensor, text: &'r NodeRun) -> ProductInput<'r> {
        let value = node.inputs[0];
        let ty = self.graph.value(value).ty;
        let of_experts = node.op.matmul().is_some_and(|op| op.rows == MatrixRows::Expert);
        let routing = of_experts.then(|| {
            let slots = match self.graph.value(node.output).ty.rows() {
                Rows::Slots(k) if ty.rows() == Rows::Tokens => k as usize,
                _ => 1,
            };
            (text.routing(node.inputs[1]), slots)
        });
        ProductInput { tensor, x: text.rows(value), cols: ty.cols(), routing }
    }

    fn product(
        &self,
        node: &Node,
        input: &ProductInput<'_>,
        weights: &PartWeights,
        change: Option<&ChangedWeights>,
    ) -> Result<Vec<f32>> {
        let id = node.tensors[0];
        let changed = change.and_then(|change| change.matrices.get(&id));
        let matrices = changed.or_else(|| weights.matrices.get(&id));
        let matrices =
            matrices.ok_or_else(|| Error::failed(format!("@{} was not read", input.tensor.name)))?;
        let n = matrices[0].rows();
        let bias = node.tensors.get(1).and_then(|bias| weights.vector(*bias));
        let Some((routing, slots)) = input.routing else {
            let mut out = matrices[0].product(input.x);
            if let Some(bias) = bias {
                out.chunks_exact_mut(n).for_each(|row| add(row, bias));
            }
            return Ok(out);
        };
        let mut out = vec![0.0; routing.len() * n];
        for (expert, matrix) in matrices.iter().enumerate() {
            let chosen: Vec<usize> = chosen(routing, expert).collect();
            if chosen.is_empty() {
                continue;
            }
            let row = |slot: &usize| &input.x[slot / slots * input.cols..][..input.cols];
            let x: Vec<f32> = chosen.iter().flat_map(row).copied().collect();
            let made = matrix.product(&x);
            for (slot, made) in chosen.iter().zip(made.chunks_exact(n)) {
                let out = &mut out[slot * n..][..n];
                out.copy_from_slice(made);
                if let Some(bias) = bias {
                    add(out, &bias[expert * n..][..n]);
                }
            }
        }
        Ok(out)
    }

    fn embedded(
        &self,
        node: &Node,
        by_position: bool,
        text: &NodeRun,
        change: Option<&ChangedWeights>,
    ) -> Result<Vec<f32>> {
        let id = node.tensors[0];
        let (mut all, mut row) = (Vec::new(), Vec::new());
        for (position, token) in text.tokens().into_iter().enumerate() {
            let at = if by_position { position } else { token as usize };
            match change.and_then(|change| change.rows.get(&(id, at))) {
                Some(row) => all.extend_from_slice(row),
                None => {
                    self.weights.f32_rows(self.graph.tensor(id), 0, at..at + 1, &mut row)?;
                    all.extend_from_slice(&row);
                }
            }
        }
        Ok(all)
    }
}

/// Slots of a routing that chose an expert.
pub(crate) fn chosen(routing: &[ChosenExpert], expert: usize) -> impl Iterator<Item = usize> {
    let is_it =
        move |(slot, route): (usize, &ChosenExpert)| (route.expert as usize == expert).then_some(slot);
    routing.iter().enumerate().filter_map(is_it)
}

fn add(row: &mut [f32], bias: &[f32]) {
    row.iter_mut().zip(bias).for_each(|(y, b)| *y += b);
}

#[cfg(test)]
pub(crate) mod tests;
