//! `kernmill import`: a spec from a published model's `config.json` or GGUF file, or out of a plan.

use crate::explicit::Explicit;
use crate::failure::Result;
use crate::given::GivenArgs;
use crate::output;
use kernmill_tools::imported;
use std::path::PathBuf;

/// Writes a model spec from a published model's config.json or GGUF file
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("../help/import.txt"))]
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
        let given = GivenArgs { model: Some(self.model.clone()), ..GivenArgs::default() };
        let found = given.resolve(explicit)?;
        self.output.as_deref().map_or(Ok(()), |path| found.check_apart(path))?;
        let source = imported(found, &self.model)?;
        match &self.output {
            Some(path) => {
                output::check_new(path)?;
                explicit.aside().deliver(path, &source.text, "`run` takes it, with --weights DIR")
            }
            None => output::print(&source.text),
        }
    }
}
