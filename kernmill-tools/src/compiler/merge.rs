//! Adapters baked into a model's weights.

use kernmill::adapters::AdapterSource;
use kernmill::compiler::SourceModel;
use kernmill::observe::Observer;
use kernmill::{Error, Result};
use kernmill_compiler::emit::pack::merge_lora::{Delta, MergedWeights, lora_targets, merged_graph};
use kernmill_compiler::ir::Graph;
use kernmill_compiler::passes::quant::Preset;
use kernmill_compiler::weights::{CheckpointWeights, grown};
use kernmill_os::text::size;
use kernmill_plan::adapter::{Adapters, LoraTargetLayout};
use kernmill_runtime::adapter::{Adapter, AdapterLoader};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Adapters that are added to a model's weights before these are packed, and the graph of the model that
/// results.
pub struct AdapterMerge {
    /// The model's graph. A matrix that an adapter changes counts as stored in f32.
    pub graph: Graph,
    names: Vec<String>,
    deltas: Deltas,
    /// LoRA targets of the changed matrices, by logical name.
    changed: BTreeMap<String, usize>,
}

/// Adapters, added one after the other.
struct Deltas(Vec<Adapter>);

impl Delta for Deltas {
    fn add(&self, lora_target: usize, expert: usize, first: usize, step: usize, weights: &mut [f32]) {
        for adapter in self.0.iter().filter(|adapter| adapter.changes(lora_target)) {
            adapter.merge(lora_target, expert, first, step, weights);
        }
    }
}

impl AdapterMerge {
    /// Reads the adapters. Without any, the model stays as it is.
    ///
    /// # Errors
    /// When an adapter cannot be read, or does not fit the model.
    pub fn new(model: &SourceModel, args: &[AdapterSource], observer: &dyn Observer) -> Result<AdapterMerge> {
        let mut merge = AdapterMerge {
            graph: model.graph.clone(),
            names: args.iter().map(|arg| arg.name.clone()).collect(),
            deltas: Deltas(Vec::new()),
            changed: BTreeMap::new(),
        };
        if args.is_empty() {
            return Ok(merge);
        }
        let lora_targets: Adapters =
            lora_targets(&model.graph).map_err(|error| Error::failed(error.to_string()))?;
        let loader = AdapterLoader::for_merging(Arc::new(lora_targets.clone()), model.graph.name.clone());
        for arg in args {
            let adapter = loader.load(&arg.directory, arg.scale)?;
            adapter.notes().iter().for_each(|note| observer.note(note));
            merge.deltas.0.push(adapter);
        }
        for (index, lora_target) in lora_targets.lora_targets.iter().enumerate() {
            let layouts: Vec<&LoraTargetLayout> = merge
                .deltas
                .0
                .iter()
                .filter_map(|adapter| adapter.packed().layouts()[index].as_ref())
                .collect();
            if layouts.len() > 1 && layouts.iter().any(|layout| layout.has_factors()) {
                return Err(Error::bad_input(format!(
                    "--merge-lora: one of the adapters is a DoRA at {}, where another one has a part too: a \
                     DoRA scales whole rows, and cannot be added to",
                    lora_target.name
                )));
            }
            if !layouts.is_empty() {
                merge.changed.extend(lora_target.outs.iter().map(|out| (out.name.clone(), index)));
            }
        }
        merge.graph = merged_graph(&model.graph, &|name| merge.changed.contains_key(name));
        Ok(merge)
    }

    /// The weights of `model` with the adapters added. They are computed row by row, when they are read.
    ///
    /// # Errors
    /// When the model's own weights do not fit its graph.
    pub fn weights<'a>(&'a self, model: &'a SourceModel) -> Result<MergedWeights<'a, impl Delta>> {
        let base = CheckpointWeights::new(&model.graph, &model.checkpoint)?;
        Ok(MergedWeights::new(base, &model.graph, &self.changed, &self.deltas))
    }

    /// One sentence for users that says what was merged and how many bytes the weights have now; without
    /// adapters, whether they are well above the file's in `preset`.
    pub fn note(&self, model: &SourceModel, preset: Preset, bytes: u64) -> Option<String> {
        if self.changed.is_empty() {
            let note = grown(&model.graph, model.checkpoint.bytes(), preset.name(), bytes);
            return note.map(|note| format!("note: {note}"));
        }
        let in_blocks = |tensor: &&kernmill_compiler::ir::Tensor| {
            tensor.stored.is_blocked() && self.changed.contains_key(&tensor.name)
        };
        let in_blocks = model.graph.tensors.iter().filter(in_blocks).count();
        Some(format!(
            "merged {}: {} matrices changed{}; {} of weights",
            self.names.join(", "),
            self.changed.len(),
            if in_blocks > 0 {
                format!(", {in_blocks} of them not in the file's blocks any more")
            } else {
                String::new()
            },
            size(bytes)
        ))
    }
}
