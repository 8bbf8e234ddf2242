//! `kernmill inspect`: what is in a plan; or the format, size and loss of every tensor of a model.

use crate::failure::{Failure, Result};
use crate::model::{Target, preset_parser, target_parser};
use crate::plan::wrong;
use crate::source::SourceModel;
use crate::{listing, output, progress};
use kernmill_compiler::assemble::{gate_up_pairs, model_info};
use kernmill_compiler::choose::{Choices, MAX_RELATIVE_ERROR};
use kernmill_compiler::graph::{Graph, Role, Tensor, TensorId};
use kernmill_compiler::pack::{WeightLayout, plan_weights};
use kernmill_compiler::pipeline::CompileError;
use kernmill_compiler::quant::{Preset, quantise_chosen};
use kernmill_kernels::disasm;
use kernmill_plan::program::Program;
use kernmill_runtime::Plan;
use kernmill_runtime::pool::{MAX_THREADS, default_threads};
use serde_json::json;
use std::fmt::Write;
use std::path::PathBuf;

/// Shows what is in a plan; or what a preset makes of a model's weights
///
/// Of a plan: its sections, tensors, targets, and the steps of the target that runs here. Of a model: each tensor's format and size, and for
/// 4 bits the error that decides.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kernmill inspect                                       the embedded nano model
  kernmill inspect my.plan                               sections, tensors, targets, steps
  kernmill inspect my.plan --verify                      reads everything and compares all hashes
  kernmill inspect my.plan --disasm                      machine code as text
  kernmill inspect my.plan --target x86-64-v3 --disasm logits
  kernmill inspect --weights DIR                         which tensors have 4 bits in preset fast
  kernmill inspect --spec my.toml --weights DIR --preset faithful --json

In preset fast a matrix of attention or unembedding has 4 bits if its relative error, the norm of what 4 bits change over the norm of
the weights, is within a limit that is the same for all models.")]
pub struct Inspect {
    /// Plan that `kernmill compile` wrote
    #[arg(value_name = "PLAN", conflicts_with_all = ["spec", "weights", "preset"])]
    plan: Option<PathBuf>,
    /// Read all of the plan, weights included, and compare every hash
    #[arg(long, requires = "plan")]
    verify: bool,
    /// Show the plan's machine code, of functions whose names contain KERNEL
    #[arg(long, value_name = "KERNEL", requires = "plan", num_args = 0..=1, default_missing_value = "")]
    disasm: Option<String>,
    /// Which of the plan's targets to show; native is the one that runs here
    #[arg(long, value_name = "LEVEL", requires = "plan", default_value = "native", value_parser = target_parser())]
    target: Target,
    /// Model spec (TOML). Without it, the spec is imported from the GGUF file, or the config.json beside the weights
    #[arg(long, value_name = "SPEC", requires = "weights")]
    spec: Option<PathBuf>,
    /// Checkpoint: a directory with model.safetensors or shards, or a GGUF file. Without it: the embedded nano model
    #[arg(long, value_name = "DIR|FILE.gguf")]
    weights: Option<PathBuf>,
    /// Quantisation, as for the other commands
    #[arg(long, value_name = "PRESET", default_value = "fast", value_parser = preset_parser())]
    preset: Preset,
    /// Threads; by default one for each physical core that this process may use
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=MAX_THREADS as i64))]
    threads: Option<u16>,
    /// As JSON
    #[arg(long)]
    json: bool,
    /// No progress bar on standard error
    #[arg(long, short)]
    quiet: bool,
}

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
    /// Runs the command.
    pub fn execute(self) -> Result<()> {
        if let Some(path) = &self.plan {
            return self.show_plan(&Plan::open(path)?);
        }
        let model = SourceModel::open(self.spec.as_deref(), self.weights.as_deref())?;
        let threads = self.threads.map_or_else(default_threads, usize::from);
        let choices = model.choices(self.preset, threads, self.quiet)?;
        let graph =
            &quantise_chosen(&model.graph, self.preset, choices.as_ref()).map_err(CompileError::from)?;
        let layout = &plan_weights(graph, &gate_up_pairs(graph)).map_err(CompileError::from)?;
        let decode_bytes = model_info(graph, layout, self.preset.name()).decode_bytes;
        let listing = Listing { preset: self.preset, graph, layout, choices: choices.as_ref(), decode_bytes };
        output::print(&if self.json { listing.json() } else { listing.text() })
    }

    fn show_plan(&self, plan: &Plan) -> Result<()> {
        if self.verify {
            self.verify(plan)?;
        }
        let target = self.shown(plan)?;
        if let Some(part) = &self.disasm {
            let (program, _) = plan.file().program(target).map_err(|source| wrong(plan, source))?;
            return output::print(&disassembly(&program, part)?);
        }
        let verified = if self.verify { "every hash fits\n" } else { "" };
        output::print(&match self.json {
            true => format!("{:#}\n", listing::plan_json(plan)),
            false => listing::plan(plan, Some(target))? + verified,
        })
    }

    /// Index of the target to show: the one asked for, or the one that runs here, or the first.
    fn shown(&self, plan: &Plan) -> Result<usize> {
        let targets = plan.targets();
        match self.target {
            Target::Native => Ok(plan.choose(None).unwrap_or(0)),
            Target::Level(level) => {
                targets.iter().position(|target| target.name == level.name()).ok_or_else(|| {
                    let names: Vec<&str> = targets.iter().map(|target| target.name.as_str()).collect();
                    Failure::input(
                        plan.path(),
                        format!("no target {}; the plan has {}", level.name(), names.join(", ")),
                    )
                })
            }
        }
    }

    fn verify(&self, plan: &Plan) -> Result<()> {
        let threads = self.threads.map_or_else(default_threads, usize::from);
        let bar = progress::bytes("verifying", plan.metadata().weight_bytes, self.quiet);
        let verified = plan.file().verify(threads, &|bytes| bar.inc(bytes));
        bar.finish_and_clear();
        verified.map_err(|source| wrong(plan, source))
    }
}

/// Text of the functions whose names contain `part`.
fn disassembly(program: &Program, part: &str) -> Result<String> {
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
                let kept = if error > MAX_RELATIVE_ERROR { " (too large)" } else { "" };
                let _ = write!(text, "  {error:.4}{kept}");
            }
            text.push('\n');
        }
        if let Some(choices) = self.choices {
            let (all, at_4_bits) = (choices.elements(graph), choices.elements_at_4_bits(graph));
            let _ = writeln!(
                text,
                "attention and unembedding: {at_4_bits} of {all} parameters at 4 bits ({:.1} %), where the error is at most \
                 {MAX_RELATIVE_ERROR}",
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
        format!("{report:#}\n")
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
