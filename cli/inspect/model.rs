//! What only a kernmill with the compiler shows: what a preset makes of a model's weights, and code as text.

use super::Inspect;
use crate::failure::{Failure, Result};
use crate::output;
use crate::progress::Terminal;
use crate::version;
use kernmill::locate::SourceFiles;
use kernmill::source::{SourceModel, SpecSource};
use kernmill_compiler::assemble::{gate_up_pairs, model_info};
use kernmill_compiler::choose::{Choices, MAX_ERROR_OF_BLOCKS, MAX_RELATIVE_ERROR};
use kernmill_compiler::fuse::FusedSet;
use kernmill_compiler::graph::{Graph, Role, Tensor, TensorId};
use kernmill_compiler::pack::{WeightLayout, plan_weights};
use kernmill_compiler::pipeline::CompileError;
use kernmill_compiler::quant::{Preset, quantise_chosen};
use kernmill_kernels::disasm;
use kernmill_plan::program::Program;
use kernmill_runtime::pool::default_threads;
use serde_json::json;
use std::fmt::Write;

/// What is shown.
struct Listing<'a> {
    preset: Preset,
    /// Quantised.
    graph: &'a Graph,
    layout: &'a WeightLayout,
    choices: Option<&'a Choices>,
    /// Bytes of weights that one token reads.
    decode_bytes: u64,
}

impl Inspect {
    pub(super) fn show_model(&self, given: &SourceFiles) -> Result<()> {
        let (graph, choices) = if given.lacks_weights() {
            let graph = SpecSource::of(given, FusedSet::builtin())?.graph()?;
            if self.preset == Preset::Fast {
                let because = "preset fast decides from the weights; give --weights, or another --preset";
                return Err(Failure::BadInput(format!("--weights is missing: {because}")));
            }
            (graph, None)
        } else {
            let model = SourceModel::open(given, FusedSet::builtin())?;
            let threads = self.threads.map_or_else(default_threads, usize::from);
            let choices = model.choices(self.preset, threads, &*Terminal::observer(self.quiet))?;
            (model.graph, choices)
        };
        let graph = &quantise_chosen(&graph, self.preset, choices.as_ref()).map_err(CompileError::from)?;
        let layout = &plan_weights(graph, &gate_up_pairs(graph)).map_err(CompileError::from)?;
        let decode_bytes = model_info(graph, layout, self.preset.name()).decode_bytes;
        let listing = Listing { preset: self.preset, graph, layout, choices: choices.as_ref(), decode_bytes };
        if self.json { output::print(listing.json()) } else { output::show(listing.text()) }
    }
}

/// Text of the functions whose names contain `part`.
pub(super) fn disassembly(program: &Program, part: &str) -> Result<String> {
    let symbols = program.code.symbols.iter().filter(|symbol| symbol.name.contains(part));
    let functions: Vec<String> = symbols.map(|symbol| disasm::function(&program.code, symbol)).collect();
    if functions.is_empty() {
        return Err(Failure::BadInput(format!(
            "--disasm {part}: no function's name contains it; kernmill inspect lists the symbols"
        )));
    }
    Ok(functions.join("\n"))
}

impl Listing<'_> {
    fn text(&self) -> String {
        let graph = self.graph;
        let mut text = String::new();
        let width = graph.tensors.iter().map(|tensor| tensor.name.len()).max().unwrap_or(0);
        // Writing to a String cannot fail.
        let _ = writeln!(text, "model {}, preset {}", graph.name, self.preset.name());
        let _ =
            writeln!(text, "{:width$}  {:18} format  {:>14}  error at 4 bits", "tensor", "shape", "bytes");
        for (id, tensor) in self.tensors() {
            let shape = format!("{:?}", tensor.shape);
            let bytes = self.bytes(id);
            let _ =
                write!(text, "{:width$}  {shape:18} {:6}  {bytes:>14}", tensor.name, tensor.format.name());
            if let Some(error) = self.error(id) {
                let large =
                    self.choices.and_then(|all| all.of(id)).is_some_and(|choice| error > choice.limit);
                let kept = if large { " (too large)" } else { "" };
                let _ = write!(text, "  {error:.4}{kept}");
            }
            text.push('\n');
        }
        if let Some(choices) = self.choices {
            let (all, at_4_bits) = (choices.elements(graph), choices.elements_at_4_bits(graph));
            let _ = writeln!(
                text,
                "attention and unembedding: {at_4_bits} of {all} parameters at 4 bits ({:.1} %), where the error is at most \
                 {MAX_RELATIVE_ERROR} (of what the file has in blocks of fewer than 8 bits, {MAX_ERROR_OF_BLOCKS})",
                at_4_bits as f64 * 100.0 / all as f64
            );
        }
        let _ = writeln!(
            text,
            "weights: {} bytes, of which one token reads {}",
            self.layout.bytes, self.decode_bytes
        );
        text
    }

    fn json(&self) -> String {
        let graph = self.graph;
        let tensor = |(id, tensor): (TensorId, &Tensor)| {
            let choice = self.choices.and_then(|choices| choices.of(id));
            json!({
                "name": tensor.name,
                "source": tensor.source.name,
                "shape": tensor.shape,
                "stored": tensor.stored.name(),
                "format": tensor.format.name(),
                "bytes": self.bytes(id),
                "site": choice.map(|choice| choice.site.name()),
                "int4_error": choice.and_then(|choice| choice.error),
                "int4_limit": choice.map(|choice| choice.limit),
            })
        };
        let four_bits = self.choices.map(|choices| {
            let (all, at_4_bits) = (choices.elements(graph), choices.elements_at_4_bits(graph));
            json!({
                "max_error": MAX_RELATIVE_ERROR,
                "candidates": all,
                "parameters": at_4_bits,
                "share": at_4_bits as f64 / all as f64,
            })
        });
        let report = json!({
            "model": graph.name,
            "preset": self.preset.name(),
            "tensors": self.tensors().map(tensor).collect::<Vec<_>>(),
            "attention_and_unembedding_at_4_bits": four_bits,
            "weight_bytes": self.layout.bytes,
            "decode_bytes": self.decode_bytes,
        });
        version::report("kernmill.inspect-model/1", report)
    }

    fn tensors(&self) -> impl Iterator<Item = (TensorId, &Tensor)> {
        self.graph.tensors.iter().enumerate().map(|(id, tensor)| (TensorId(id as u32), tensor))
    }

    /// Packed bytes: of a matrix whose tiles alternate with another's, its own.
    fn bytes(&self, id: TensorId) -> u64 {
        let tensor = self.graph.tensor(id);
        match (tensor.role, tensor.shape.as_slice()) {
            (Role::Matrix, &[n, k]) => tensor.format.matrix_bytes(n, k) as u64,
            (Role::ExpertMatrix, &[experts, n, k]) => (experts * tensor.format.matrix_bytes(n, k)) as u64,
            _ => self.layout.placement(id).bytes,
        }
    }

    fn error(&self, tensor: TensorId) -> Option<f64> {
        self.choices?.of(tensor)?.error
    }
}
