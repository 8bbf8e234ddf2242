//! A model's weights under a preset: format, size and error of every tensor.

use kernmill::compiler::{SourceModel, SpecSource, choices};
use kernmill::locate::SourceFiles;
use kernmill::observe::Observer;
use kernmill::{Error, Result};
use kernmill_compiler::emit::assemble::model_info;
use kernmill_compiler::ir::{Graph, Role, Tensor, TensorId};
use kernmill_compiler::passes::fuse::FusedSet;
use kernmill_compiler::passes::layout::{WeightLayout, gate_up_pairs, plan_weights};
use kernmill_compiler::passes::quant::choose::{FormatChoices, MAX_RELATIVE_ERROR};
use kernmill_compiler::passes::quant::{Preset, quantise_chosen};
use kernmill_compiler::pipeline::CompileError;
use kernmill_compiler::weights::CheckpointWeights;
use kernmill_os::text::size;
use serde_json::{Value, json};
use std::fmt::Write;

/// Bytes of a packed tensor: of a matrix whose tiles alternate with another's, its own.
pub fn packed_bytes(graph: &Graph, layout: &WeightLayout, id: TensorId) -> u64 {
    let tensor = graph.tensor(id);
    match (tensor.role, tensor.shape.as_slice()) {
        (Role::Matrix, &[n, k]) => tensor.format.matrix_bytes(n, k) as u64,
        (Role::ExpertMatrix, &[experts, n, k]) => (experts * tensor.format.matrix_bytes(n, k)) as u64,
        _ => layout.placement(id).bytes,
    }
}

/// Every tensor of a quantised model.
pub struct TensorList {
    preset: Preset,
    /// Graph of the model as the preset quantises it.
    graph: Graph,
    layout: WeightLayout,
    choices: Option<FormatChoices>,
    /// Bytes of weights that one token reads.
    decode_bytes: u64,
}

impl TensorList {
    /// The tensors of the model in some files. Preset `fast` needs their weights: reads them with so many
    /// threads.
    ///
    /// # Errors
    /// When the files are wrong, weights are missing that the preset needs, or the preset cannot be made of
    /// the model.
    pub fn of(
        given: &SourceFiles,
        preset: Preset,
        threads: usize,
        observer: &dyn Observer,
    ) -> Result<TensorList> {
        if given.need_weights().is_err() {
            let graph = SpecSource::of(given, FusedSet::builtin())?.graph()?;
            if preset == Preset::Fast {
                let because = "preset fast decides from the weights; give --weights, or another --preset";
                return Err(Error::bad_input(format!("--weights is missing: {because}")));
            }
            return TensorList::new(&graph, preset, None);
        }
        let model = SourceModel::open(given, FusedSet::builtin())?;
        let weights = CheckpointWeights::new(&model.graph, &model.checkpoint)?;
        let choices = choices(&model.graph, &weights, preset, threads, observer)?;
        TensorList::new(&model.graph, preset, choices)
    }

    /// The tensors of a model, with what preset `fast` chose, if it is that.
    ///
    /// # Errors
    /// When the preset cannot be made of the model.
    pub fn new(graph: &Graph, preset: Preset, choices: Option<FormatChoices>) -> Result<TensorList> {
        let graph = quantise_chosen(graph, preset, choices.as_ref()).map_err(CompileError::from)?;
        let layout = plan_weights(&graph, &gate_up_pairs(&graph)).map_err(CompileError::from)?;
        let decode_bytes = model_info(&graph, &layout, preset.name()).decode_bytes;
        Ok(TensorList { preset, graph, layout, choices, decode_bytes })
    }

    /// The tensors as a table.
    pub fn text(&self) -> String {
        let graph = &self.graph;
        let mut text = String::new();
        let width = graph.tensors.iter().map(|tensor| tensor.name.len()).max().unwrap_or(0);
        // Writing to a String cannot fail.
        let _ = writeln!(text, "model {}, preset {}", graph.name, self.preset.name());
        let format_width = graph.tensors.iter().map(|tensor| tensor.format.name().len()).max().unwrap_or(0);
        let format_width = format_width.max("format".len());
        let _ = writeln!(
            text,
            "{:width$}  {:18} {:format_width$}  {:>14}  error at 4 bits",
            "tensor", "shape", "format", "bytes"
        );
        for (id, tensor) in self.tensors() {
            let shape = format!("{:?}", tensor.shape);
            let bytes = self.bytes(id);
            let format = tensor.format.name();
            let _ = write!(text, "{:width$}  {shape:18} {format:format_width$}  {bytes:>14}", tensor.name);
            if let Some(error) = self.error(id) {
                let kept = if error > MAX_RELATIVE_ERROR { " (too large)" } else { "" };
                let _ = write!(text, "  {error:.4}{kept}");
            }
            text.push('\n');
        }
        if let Some(choices) = &self.choices {
            let (all, at_4_bits) = (choices.elements(graph), choices.elements_at_4_bits(graph));
            let _ = match all {
                0 => writeln!(text, "attention and unembedding: as stored, since they are in blocks"),
                _ => writeln!(
                    text,
                    "attention and unembedding: {at_4_bits} of {all} parameters at 4 bits ({:.1} %), where \
                     the error is at most {MAX_RELATIVE_ERROR}",
                    at_4_bits as f64 * 100.0 / all as f64
                ),
            };
        }
        let _ = writeln!(
            text,
            "weights: {}, of which one token reads {}",
            size(self.layout.bytes),
            size(self.decode_bytes)
        );
        text
    }

    /// The tensors as one JSON object.
    pub fn json(&self) -> Value {
        let graph = &self.graph;
        let tensor = |(id, tensor): (TensorId, &Tensor)| {
            let choice = self.choices.as_ref().and_then(|choices| choices.of(id));
            json!({
                "name": tensor.name,
                "source": tensor.source.name,
                "shape": tensor.shape,
                "stored": tensor.stored.name(),
                "format": tensor.format.name(),
                "bytes": self.bytes(id),
                "site": choice.map(|choice| choice.lora_target.name()),
                "int4_error": choice.and_then(|choice| choice.error),
                "int4_limit": choice.map(|_| MAX_RELATIVE_ERROR),
            })
        };
        let four_bits = self.choices.as_ref().map(|choices| {
            let (all, at_4_bits) = (choices.elements(graph), choices.elements_at_4_bits(graph));
            json!({
                "max_error": MAX_RELATIVE_ERROR,
                "candidates": all,
                "parameters": at_4_bits,
                "share": (all > 0).then(|| at_4_bits as f64 / all as f64),
            })
        });
        json!({
            "model": graph.name,
            "preset": self.preset.name(),
            "tensors": self.tensors().map(tensor).collect::<Vec<_>>(),
            "attention_and_unembedding_at_4_bits": four_bits,
            "weight_bytes": self.layout.bytes,
            "decode_bytes": self.decode_bytes,
        })
    }

    fn tensors(&self) -> impl Iterator<Item = (TensorId, &Tensor)> {
        self.graph.tensors.iter().enumerate().map(|(id, tensor)| (TensorId(id as u32), tensor))
    }

    fn bytes(&self, id: TensorId) -> u64 {
        packed_bytes(&self.graph, &self.layout, id)
    }

    fn error(&self, tensor: TensorId) -> Option<f64> {
        self.choices.as_ref()?.of(tensor)?.error
    }
}
