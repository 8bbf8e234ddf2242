//! `kernmill synth`: a random checkpoint of a model's true shapes.

use super::options::FusedArgs;
use crate::aside::Aside;
use crate::explicit::Explicit;
use crate::failure::Result;
use crate::given::GivenArgs;
use kernmill::compiler as regenerate;
use kernmill::compiler::SpecSource;
use kernmill::locate::Located;
use kernmill_tools::{GgufTypes, MAX_RANK, Plan, Synthesised, synthesise};
use std::path::PathBuf;

/// Writes a random checkpoint or GGUF file of a model's true shapes, with a tokenizer, or an adapter
///
/// A checkpoint is in the published layout, with its spec as `kernmill.toml` beside it. Routing is as lively
/// as a trained model's, so that speed and memory are as they would be. The same seed gives the same bytes.
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("../help/synth.txt"))]
pub struct Synth {
    /// Model whose shapes it has: a spec (TOML), a checkpoint's directory, a GGUF file or a plan
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// Directory to write, created if need be, without a checkpoint; or a new file, which ends in .gguf
    #[arg(short, long, value_name = "PATH")]
    output: PathBuf,
    /// Write a GGUF file with these types of matrices, instead of those that the spec states: q4_k_m and the
    /// like, as files are called, or all:q4_k for one everywhere
    #[arg(long, value_name = "NAME", conflicts_with = "lora")]
    types: Option<GgufTypes>,
    /// Write an adapter of this rank instead of a checkpoint: a directory as PEFT saves it
    #[arg(long, value_name = "RANK", value_parser = clap::value_parser!(u16).range(1..=MAX_RANK as i64))]
    lora: Option<u16>,
    /// Matrices that the adapter changes: ends of their modules' names, such as q, k, v, o, router, experts,
    /// gate, up, down
    #[arg(long, value_name = "NAME,..", default_value = "q,k,v,o", value_delimiter = ',', requires = "lora")]
    targets: Vec<String>,
    /// Make the adapter a DoRA (dense matrices only)
    #[arg(long, requires = "lora")]
    dora: bool,
    /// Seed of the weights
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    fusions: FusedArgs,
    #[command(flatten)]
    aside: Aside,
}

impl Synth {
    /// Runs the command.
    pub fn execute(self, explicit: &Explicit) -> Result<()> {
        let given = GivenArgs { model: Some(self.model.clone()), ..GivenArgs::default() };
        let source = match given.resolve(explicit)? {
            Located::Plan(path) => {
                explicit.refuse(&["fused", "without-fusion"], "a plan has its own fused-op specs")?;
                regenerate::source(&Plan::open(&path)?)?
            }
            Located::Source(source) => SpecSource::of(&source, self.fusions.set()?)?,
        };
        let made = Synthesised::of(self.lora, self.targets, self.dora, self.types);
        let takes = synthesise(source, &self.output, made, self.seed, &self.aside)?;
        self.aside.wrote(&self.output, takes);
        Ok(())
    }
}
