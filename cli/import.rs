//! `kernmill import`: a spec from a published model's `config.json` or GGUF file.

use crate::failure::Result;
use crate::output;
use crate::source::SpecSource;
use kernmill_compiler::fuse::FusedSet;
use std::path::PathBuf;

/// Writes a model spec from a published model's config.json or GGUF file
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Architectures: GptOssForCausalLM, LlamaForCausalLM; in GGUF files: gpt-oss, llama.

Examples:
  kernmill import DIR                       to standard output
  kernmill import DIR -o gpt-oss-20b.toml
  kernmill import gpt-oss-20b.gguf")]
pub struct Import {
    /// Directory with the config.json, or GGUF file
    #[arg(value_name = "DIR|FILE.gguf")]
    model: PathBuf,
    /// File to write
    #[arg(short, long, value_name = "SPEC")]
    output: Option<PathBuf>,
}

impl Import {
    /// Runs the command.
    pub fn execute(self) -> Result<()> {
        let source = SpecSource::import(&self.model, FusedSet::builtin())?;
        match &self.output {
            Some(path) => output::write_file(path, &source.text),
            None => output::print(&source.text),
        }
    }
}
