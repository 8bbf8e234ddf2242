//! The graph interpreter: the living definition of every op. No fusion, no vectors; the obvious loops in the
//! order of arithmetic of docs/dev/numerics.md. Fused graphs, kernels and plans are tested against it.

#[cfg(test)]
mod oracle_tests;
mod sequence;
#[cfg(test)]
mod tests;

pub use crate::ir::eval::expr::eval;
pub use crate::ir::eval::lora::LoraTargetAdapter;
pub use crate::ir::eval::num;
pub use crate::ir::eval::state::{BatchToken, CachedRows, Data, LayerKv, SequenceKv};
pub use crate::ir::eval::weights::{BlockData, RawTensor, TensorData, Weights};
pub use sequence::NodeRun;

use crate::ir::eval::state::{OpState, Weight};
use crate::ir::ops;
use crate::ir::{Factor, Graph, NodeId, Op, TensorId};
use crate::passes::fuse::FusedGraph;
use kernmill_os::float_env::FloatEnv;
use kernmill_plan::format::PlainDecode;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Why the interpreter cannot run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InterpError {
    /// A weight does not fit its tensor.
    #[error("weight @{name}: {message}")]
    Weight {
        /// Tensor.
        name: String,
        /// The expected input.
        message: String,
    },
    /// A batch that does not continue its sequences, or names what does not exist.
    #[error("batch row {row}: {message}")]
    Batch {
        /// Row of the batch (or of the wanted rows).
        row: usize,
        /// The expected input.
        message: String,
    },
}

/// A graph, its weights and the sequences run so far.
pub struct Interpreter {
    order: Vec<NodeId>,
    lengths: Vec<usize>,
    state: OpState,
}

impl Interpreter {
    /// An interpreter of a verified graph.
    ///
    /// # Errors
    /// When a weight does not have its tensor's size or form.
    pub fn new(graph: &Graph, weights: &dyn Weights) -> Result<Interpreter, InterpError> {
        let _env = FloatEnv::standard();
        let order = graph.nodes().map(|(id, _)| id).collect();
        Interpreter::ordered(graph, order, weights)
    }

    /// An interpreter that runs the groups of a fused graph one after the other.
    ///
    /// # Errors
    /// As [`Interpreter::new`].
    pub fn fused(fused: &FusedGraph, weights: &dyn Weights) -> Result<Interpreter, InterpError> {
        let _env = FloatEnv::standard();
        let order = fused.groups.iter().flat_map(|group| group.members()).collect();
        Interpreter::ordered(&fused.graph, order, weights)
    }

    fn ordered(graph: &Graph, order: Vec<NodeId>, weights: &dyn Weights) -> Result<Interpreter, InterpError> {
        let prepared = (0..graph.tensors.len() as u32).map(|id| prepare(graph, TensorId(id), weights));
        let state = OpState {
            weights: prepared.collect::<Result<_, _>>()?,
            sequences: Vec::new(),
            values: vec![None; graph.values.len()],
            batch: Vec::new(),
            wanted: Vec::new(),
            rope_tables: graph.ropes.iter().map(crate::ir::rope::inv_freq).collect(),
            lora_targets: graph.lora_targets(),
            adapters: vec![Vec::new()],
            slots: BTreeMap::new(),
            graph: Arc::new(graph.clone()),
        };
        Ok(Interpreter { order, lengths: Vec::new(), state })
    }

    /// Runs a batch and returns the logits `[wanted.len(), vocab]` of its rows `wanted`. Tokens of a sequence
    /// come in order, each at the position that follows the last.
    ///
    /// # Errors
    /// When the batch does not continue its sequences; then nothing has changed.
    pub fn run(&mut self, batch: &[BatchToken], wanted: &[usize]) -> Result<Vec<f32>, InterpError> {
        let _env = FloatEnv::standard();
        self.check(batch, wanted)?;
        self.state.values.fill(None);
        self.state.batch = batch.to_vec();
        self.state.wanted = wanted.to_vec();
        self.state.values[0] = Some(Data::Ids(batch.iter().map(|token| token.token).collect()));
        for id in self.order.clone() {
            let node = self.state.graph.node(id).clone();
            let data = ops::eval(&mut self.state, &node);
            self.state.values[node.output.0 as usize] = Some(data);
        }
        match &self.state.values[self.state.graph.output.0 as usize] {
            Some(Data::F32(logits)) => Ok(logits.clone()),
            _ => Ok(Vec::new()),
        }
    }

    /// Runs one sequence's next tokens in one batch and returns all their logits.
    ///
    /// # Errors
    /// As [`Interpreter::run`].
    pub fn extend(&mut self, sequence: usize, tokens: &[u32]) -> Result<Vec<f32>, InterpError> {
        let start = self.length(sequence);
        let batch: Vec<BatchToken> = tokens
            .iter()
            .enumerate()
            .map(|(i, &token)| BatchToken { sequence, token, position: start + i })
            .collect();
        let wanted: Vec<usize> = (0..tokens.len()).collect();
        self.run(&batch, &wanted)
    }

    /// Tokens of a sequence so far.
    pub fn length(&self, sequence: usize) -> usize {
        self.lengths.get(sequence).copied().unwrap_or(0)
    }

    /// Keys and values of a sequence, by layer.
    pub fn sequence(&self, sequence: usize) -> Option<&SequenceKv> {
        self.state.sequences.get(sequence)
    }

    /// Sets the adapters: by slot from 1 on, by LoRA target. Their elements are rounded to the graph's
    /// format.
    pub fn set_adapters(&mut self, slots: &[Vec<Option<LoraTargetAdapter>>]) {
        let decode = self.state.graph.adapter_format().and_then(|format| format.decode().plain());
        let round = |x: &mut f32| match decode {
            Some(PlainDecode::Bf16) => {
                let bits = x.to_bits();
                let even = bits >> 16 & 1;
                *x = f32::from_bits((bits + 0x7fff + even) & 0xffff_0000);
            }
            Some(PlainDecode::F32) | None => {}
        };
        let mut slots = slots.to_vec();
        for adapter in slots.iter_mut().flatten().flatten() {
            adapter.a.iter_mut().chain(&mut adapter.b).for_each(round);
        }
        self.state.adapters = vec![Vec::new()];
        self.state.adapters.extend(slots);
    }

    /// Tokens of a sequence use that slot's adapter from now on; 0 is no adapter.
    pub fn use_adapter(&mut self, sequence: usize, slot: usize) {
        self.state.slots.insert(sequence, slot);
    }

    /// A value of the last run by its name.
    pub fn value(&self, name: &str) -> Option<&Data> {
        self.state.values[self.state.graph.find_value(name)?.0 as usize].as_ref()
    }

    /// Checks the batch and, when it is good, makes room for its sequences.
    fn check(&mut self, batch: &[BatchToken], wanted: &[usize]) -> Result<(), InterpError> {
        let mut lengths = self.lengths.clone();
        for (row, token) in batch.iter().enumerate() {
            let error = |message| Err(InterpError::Batch { row, message });
            if token.token as usize >= self.state.graph.vocab {
                return error(format!("token {} of a vocabulary of {}", token.token, self.state.graph.vocab));
            }
            if token.sequence > lengths.len() + batch.len() {
                return error(format!(
                    "sequence {}, expected at most {}",
                    token.sequence,
                    lengths.len() + batch.len()
                ));
            }
            if token.sequence >= lengths.len() {
                lengths.resize(token.sequence + 1, 0);
            }
            let length = &mut lengths[token.sequence];
            if token.position != *length {
                return error(format!("position {}, expected {length}", token.position));
            }
            if *length >= self.state.graph.max_context {
                return error(format!("position {length} of a context of {}", self.state.graph.max_context));
            }
            *length += 1;
        }
        if let Some(i) = wanted.iter().position(|&row| row >= batch.len()) {
            let message = format!("wanted row {}, the batch has {}", wanted[i], batch.len());
            return Err(InterpError::Batch { row: i, message });
        }
        let has_cache = |node: &&crate::ir::Node| node.op.attention().is_some_and(|a| !a.shared);
        let layers = self.state.graph.nodes.iter().filter(has_cache).count();
        self.state.sequences.resize_with(lengths.len(), || vec![LayerKv::default(); layers]);
        self.lengths = lengths;
        Ok(())
    }
}

/// Decodes a weight once, into the forms that its users need.
fn prepare(graph: &Graph, id: TensorId, weights: &dyn Weights) -> Result<Weight, InterpError> {
    let (tensor, data) = (graph.tensor(id), weights.tensor(id));
    let error = |message: String| InterpError::Weight { name: tensor.name.clone(), message };
    let elements: usize = tensor.shape.iter().product();
    if data.elements() != elements {
        return Err(error(format!(
            "{} elements, its shape {:?} has {elements}",
            data.elements(),
            tensor.shape
        )));
    }
    let is_quant = |op: &Op| op.matmul().is_some_and(|op| matches!(op.x, Factor::Q8 | Factor::Q8x2));
    let users = || graph.nodes.iter().filter(|node| node.tensors.contains(&id));
    let quant = users().any(|node| is_quant(&node.op) && node.tensors[0] == id);
    let dense = users().any(|node| !is_quant(&node.op) || node.tensors[0] != id);
    let blocks = match data {
        TensorData::Blocks(blocks) => {
            if let Some(fault) = blocks.fault() {
                return Err(error(fault));
            }
            quant.then(|| blocks.clone())
        }
        TensorData::Dense(_) if quant => return Err(error("plain elements, expected blocks".into())),
        TensorData::Dense(_) => None,
    };
    Ok(Weight { dense: if dense { data.to_f32() } else { Vec::new() }, blocks })
}
