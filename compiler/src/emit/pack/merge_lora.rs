//! Adapters baked into the weights: a graph whose changed matrices are no longer those of the checkpoint, and
//! the source of their rows.
//!
//! A changed matrix counts as stored in f32, whatever the checkpoint has: the preset packs it as it packs any
//! matrix, so that blocks become int8 (f32 in preset `exact`).

use crate::ir::lora::with_adapters;
use crate::ir::{Graph, GraphError, Role, Tensor, TensorId};
use crate::weights::{CheckpointWeights, WeightSource};
use kernmill_checkpoint::CheckpointError;
use kernmill_plan::adapter::{Adapters, LoraTarget, LoraTargetSlice, PackedAt};
use kernmill_plan::format::WeightFormat;
use std::collections::BTreeMap;
use std::ops::Range;

/// A sum that is added to weights.
pub trait Delta: Sync {
    /// Adds it to rows of an expert (0 for a dense matrix) of a LoRA target: `weights` is `[rows][k]`, row i
    /// being row `first + i * step` of the checkpoint's tensor.
    fn add(&self, lora_target: usize, expert: usize, first: usize, step: usize, weights: &mut [f32]);
}

/// The LoRA targets of a graph before it is quantised: matrices of the checkpoint that an adapter may change.
/// Their places are not known.
///
/// # Errors
/// Only on defects.
pub fn lora_targets(graph: &Graph) -> Result<Adapters, GraphError> {
    let branched = with_adapters(graph, WeightFormat::F32)?;
    let nowhere = PackedAt { format: WeightFormat::F32, offset: 0, tile_stride: 0, expert_stride: 0 };
    let out = |id: &TensorId| {
        let tensor = branched.tensor(*id);
        let rows = tensor.shape[tensor.row_dim()];
        let (first, step) = tensor.source.rows.first_and_step(rows).expect("a LoRA target's are");
        LoraTargetSlice {
            name: tensor.name.clone(),
            rows: rows as u32,
            first: first as u32,
            step: step as u32,
            weights: nowhere,
        }
    };
    let lora_target = |tensors: &[TensorId]| {
        let tensor = branched.tensor(tensors[0]);
        LoraTarget {
            name: tensor.name.clone(),
            tensor: tensor.source.name.clone(),
            k: tensor.shape[tensor.shape.len() - 1] as u32,
            experts: if tensor.role == Role::ExpertMatrix { tensor.shape[0] as u32 } else { 0 },
            outs: tensors.iter().map(out).collect(),
        }
    };
    let lora_targets = branched.lora_targets().iter().map(|of| lora_target(&of.tensors)).collect();
    Ok(Adapters { format: WeightFormat::F32, lora_targets })
}

/// The graph with these matrices, by logical name, stored in f32.
pub fn merged_graph(graph: &Graph, changed: &dyn Fn(&str) -> bool) -> Graph {
    let mut graph = graph.clone();
    for tensor in graph.tensors.iter_mut().filter(|tensor| changed(&tensor.name)) {
        tensor.stored = WeightFormat::F32;
        tensor.format = WeightFormat::F32;
        tensor.source.scales = None;
    }
    graph
}

/// A checkpoint's weights with adapters added to some.
pub struct MergedWeights<'a, D> {
    base: CheckpointWeights<'a>,
    /// Graph of the model as the checkpoint has it.
    graph: &'a Graph,
    delta: &'a D,
    /// LoRA targets of the changed matrices, by logical name.
    changed: &'a BTreeMap<String, usize>,
}

impl<'a, D: Delta> MergedWeights<'a, D> {
    /// The weights of `graph`, a checkpoint's, of which the matrices in `changed` have `delta` added at their
    /// LoRA targets.
    pub fn new(
        base: CheckpointWeights<'a>,
        graph: &'a Graph,
        changed: &'a BTreeMap<String, usize>,
        delta: &'a D,
    ) -> MergedWeights<'a, D> {
        MergedWeights { base, graph, delta, changed }
    }

    /// A tensor as the checkpoint has it.
    fn stored<'t>(&'t self, tensor: &'t Tensor) -> &'t Tensor {
        match self.changed.contains_key(&tensor.name) {
            true => self.graph.tensors.iter().find(|other| other.name == tensor.name).unwrap_or(tensor),
            false => tensor,
        }
    }
}

impl<D: Delta> WeightSource for MergedWeights<'_, D> {
    type Error = CheckpointError;

    fn f32_rows(
        &self,
        tensor: &Tensor,
        expert: usize,
        range: Range<usize>,
        out: &mut Vec<f32>,
    ) -> Result<(), CheckpointError> {
        let stored = self.stored(tensor);
        self.base.f32_rows(stored, expert, range.clone(), out)?;
        if let Some(lora_target) = self.changed.get(&tensor.name) {
            let rows = stored.shape[stored.row_dim()];
            let (first, step) = stored.source.rows.first_and_step(rows).expect("a LoRA target's are");
            self.delta.add(*lora_target, expert, first + range.start * step, step, out);
        }
        Ok(())
    }

    fn stored_rows(
        &self,
        tensor: &Tensor,
        expert: usize,
        rows: Range<usize>,
        blocks: &mut Vec<u8>,
        scales: &mut Vec<u8>,
    ) -> Result<(), CheckpointError> {
        self.base.stored_rows(tensor, expert, rows, blocks, scales)
    }

    fn will_need(&self, tensor: &Tensor, expert: usize, rows: Range<usize>) {
        self.base.will_need(self.stored(tensor), expert, rows);
    }

    fn done_with(&self, tensor: &Tensor, expert: usize, rows: Range<usize>) {
        self.base.done_with(self.stored(tensor), expert, rows);
    }

    fn drop_cache(&self) {
        self.base.drop_cache();
    }
}
