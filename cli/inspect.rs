//! `kernmill inspect`: what is in a plan; or the format, size and loss of every tensor of a model.

#[cfg(feature = "compiler")]
mod model;

use crate::failure::{Failure, Result};
#[cfg(feature = "compiler")]
use crate::model::preset_parser;
use crate::model::{Target, target_parser};
use crate::plan::wrong;
use crate::{listing, output, progress};
#[cfg(feature = "compiler")]
use kernmill_compiler::quant::Preset;
use kernmill_runtime::Plan;
use kernmill_runtime::pool::{MAX_THREADS, default_threads};
use std::path::PathBuf;

#[cfg(feature = "compiler")]
const HELP: &str = "\
Examples:
  kernmill inspect                                       the embedded nano model
  kernmill inspect my.plan                               sections, tensors, targets, steps
  kernmill inspect my.plan --verify                      reads everything and compares all hashes
  kernmill inspect my.plan --disasm                      machine code as text
  kernmill inspect my.plan --target x86-64-v3 --disasm logits
  kernmill inspect --weights DIR                         which tensors have 4 bits in preset fast
  kernmill inspect --spec my.toml --weights DIR --preset faithful --json

In preset fast a matrix of attention or unembedding has 4 bits if its relative error, the norm of what 4 bits change over the norm of
the weights, is within a limit that is the same for all models.";

#[cfg(not(feature = "compiler"))]
const HELP: &str = "\
Examples:
  kernmill inspect my.plan                               sections, tensors, targets, steps
  kernmill inspect my.plan --verify                      reads everything and compares all hashes";

/// Shows what is in a plan; or what a preset makes of a model's weights
///
/// Of a plan: its sections, tensors, targets, and the steps of the target that runs here. Of a model: each tensor's format and size, and for
/// 4 bits the error that decides.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Inspect {
    /// Plan that `kernmill compile` wrote
    #[arg(value_name = "PLAN")]
    #[cfg_attr(feature = "compiler", arg(conflicts_with_all = ["spec", "weights", "preset"]))]
    #[cfg_attr(not(feature = "compiler"), arg(required = true))]
    plan: Option<PathBuf>,
    /// Read all of the plan, weights included, and compare every hash
    #[arg(long, requires = "plan")]
    verify: bool,
    /// Show the plan's machine code, of functions whose names contain KERNEL
    #[cfg(feature = "compiler")]
    #[arg(long, value_name = "KERNEL", requires = "plan", num_args = 0..=1, default_missing_value = "")]
    disasm: Option<String>,
    /// Which of the plan's targets to show; native is the one that runs here
    #[arg(long, value_name = "LEVEL", requires = "plan", default_value = "native", value_parser = target_parser())]
    target: Target,
    /// Model spec (TOML). Without it, the spec is imported from the GGUF file, or the config.json beside the weights
    #[cfg(feature = "compiler")]
    #[arg(long, value_name = "SPEC", requires = "weights")]
    spec: Option<PathBuf>,
    /// Checkpoint: a directory with model.safetensors or shards, or a GGUF file. Without it: the embedded nano model
    #[cfg(feature = "compiler")]
    #[arg(long, value_name = "DIR|FILE.gguf")]
    weights: Option<PathBuf>,
    /// Quantisation, as for the other commands
    #[cfg(feature = "compiler")]
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

impl Inspect {
    /// Runs the command.
    pub fn execute(self) -> Result<()> {
        if let Some(path) = &self.plan {
            return self.show_plan(&Plan::open(path)?);
        }
        self.show_model()
    }

    #[cfg(not(feature = "compiler"))]
    fn show_model(&self) -> Result<()> {
        Err(Failure::BadInput("no plan is given, and this kernmill has no compiler".to_owned()))
    }

    fn show_plan(&self, plan: &Plan) -> Result<()> {
        if self.verify {
            self.verify(plan)?;
        }
        let target = self.shown(plan)?;
        #[cfg(feature = "compiler")]
        if let Some(part) = &self.disasm {
            let (program, _) = plan.file().program(target).map_err(|source| wrong(plan, source))?;
            return output::print(model::disassembly(&program, part)?);
        }
        let verified = if self.verify { "every hash fits\n" } else { "" };
        output::print(match self.json {
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
