//! `kernmill synth`: a random checkpoint of a model's true shapes.

use crate::failure::Result;
use crate::model::FusedArgs;
use crate::progress;
use crate::source::SpecSource;
use kernmill_compiler::synth;
use std::path::PathBuf;
use std::sync::OnceLock;

/// Writes a random checkpoint of a model's true shapes, in the published layout, with a tokenizer of its vocabulary size
///
/// Its routing is as lively as a trained model's, so that speed and memory are as they would be. The same seed gives the same bytes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kernmill synth model-specs/gpt-oss-20b.toml -o synth-20b              13.8 GB
  kernmill run --spec model-specs/gpt-oss-20b.toml --weights synth-20b -n 32")]
pub struct Synth {
    /// Model spec (TOML)
    #[arg(value_name = "SPEC")]
    spec: PathBuf,
    /// Directory to write, created if need be; it must not hold a checkpoint already
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// Seed of the weights
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    fusions: FusedArgs,
    /// No progress bar
    #[arg(long, short)]
    quiet: bool,
}

impl Synth {
    /// Runs the command.
    pub fn execute(self) -> Result<()> {
        let graph = SpecSource::read(&self.spec, self.fusions.set()?)?.graph()?;
        let bar = OnceLock::new();
        let progress = |done: u64, total: u64| {
            bar.get_or_init(|| progress::bytes("writing", total, self.quiet)).set_position(done);
        };
        let result = synth::write(&graph, &self.output, self.seed, &progress);
        if let Some(bar) = bar.get() {
            bar.finish_and_clear();
        }
        Ok(result?)
    }
}
