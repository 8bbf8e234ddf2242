//! `kernmill import`: a spec from a published model's `config.json` or GGUF file, or out of a plan.

use crate::explicit::Explicit;
use crate::failure::Result;
use crate::given::GivenArgs;
use crate::output;
use kernmill::regenerate;
use kernmill_os::files::lead_to_same_file;
use std::path::PathBuf;

/// Writes a model spec from a published model's config.json or GGUF file
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Architectures: GptOssForCausalLM, LlamaForCausalLM, MistralForCausalLM, Qwen2ForCausalLM; in GGUF files:
gpt-oss, llama.

Examples:
  kernmill import DIR                       to standard output
  kernmill import DIR -o gpt-oss-20b.toml
  kernmill import gpt-oss-20b.gguf
  kernmill import my.plan                   the spec that a plan holds")]
pub struct Import {
    /// Directory with a config.json, GGUF file, or plan
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// File to write; by default, and for -, standard output
    #[arg(short, long, value_name = "SPEC")]
    output: Option<PathBuf>,
}

impl Import {
    /// Runs the command.
    pub fn execute(self, explicit: &Explicit) -> Result<()> {
        if self.output.as_deref().is_some_and(|output| lead_to_same_file(output, &self.model)) {
            return Err(
                kernmill::Error::input(&self.model, "it is the model: give the output another name").into()
            );
        }
        let given = GivenArgs { model: Some(self.model.clone()), ..GivenArgs::default() };
        let source = regenerate::imported(given.resolve(explicit)?, &self.model)?;
        match &self.output {
            Some(path) => output::write_file(path, &source.text),
            None => output::print(&source.text),
        }
    }
}
