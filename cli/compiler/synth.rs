//! `kernmill synth`: a random checkpoint of a model's true shapes.

use super::options::FusedArgs;
use crate::aside::Aside;
use crate::explicit::Explicit;
use crate::failure::Result;
use crate::given::GivenArgs;
use crate::output;
use kernmill::compiler as regenerate;
use kernmill::compiler::SpecSource;
use kernmill::locate::{Located, SPEC_FILE};
use kernmill::observe::Unit;
use kernmill_tools::{AdapterShape, MAX_RANK, Plan, synth};
use std::path::PathBuf;
use std::sync::OnceLock;

/// Writes a random checkpoint of a model's true shapes, in the published layout, with a tokenizer of its
/// vocabulary size; or an adapter
///
/// A checkpoint gets a `kernmill.toml`, its spec, and a config.json where a published class has such a graph,
/// so that other programs read it, too. Its routing is as lively as a trained model's, so that speed and
/// memory are as they would be. The same seed gives the same bytes.
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("../help/synth.txt"))]
pub struct Synth {
    /// Model whose shapes it has: a spec (TOML), a checkpoint's directory, a GGUF file or a plan
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// Directory to write, created if need be; it must not hold a checkpoint already
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
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
        let source = SpecSource { text: synth::with_own_scales(&source.text), ..source };
        let graph = source.graph()?;
        let bar = OnceLock::new();
        let progress = |done: u64, total: u64| {
            bar.get_or_init(|| self.aside.bar("writing", Unit::Bytes, total)).set_position(done);
        };
        let result = match self.lora {
            None => synth::write(&graph, &self.output, self.seed, &progress).map(Some),
            Some(rank) => {
                let targets = self.targets.clone();
                let shape = AdapterShape { rank: rank.into(), targets, dora: self.dora };
                synth::write_adapter(&graph, &self.output, &shape, self.seed, &progress).map(|()| None)
            }
        };
        drop(bar);
        let done = |what| self.aside.wrote(&self.output, what);
        let Some(has_config) = result? else {
            done("--lora NAME=DIR takes it");
            return Ok(());
        };
        // By it the directory is a model without --spec.
        output::write_file(&self.output.join(SPEC_FILE), &source.text)?;
        if !has_config {
            self.aside.note(format_args!(
                "only {SPEC_FILE} describes the model: no class that a config.json may name has such a graph"
            ));
        }
        done("`kernmill run` takes the directory");
        Ok(())
    }
}
