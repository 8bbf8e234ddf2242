//! `--emit`: the compiler's stages as text.

use crate::failure::{Failure, Result};
use crate::output;
use clap::ValueEnum;
use std::path::PathBuf;

/// What to show of the compilation.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "Compiler stages")]
pub struct Emit {
    /// Print these stages of the compilation, in the order of the pipeline
    #[arg(long, value_name = "STAGE,..", value_delimiter = ',')]
    pub emit: Vec<Stage>,
    /// Write each stage to a file of its own in this directory instead
    #[arg(long, value_name = "DIR", requires = "emit")]
    pub emit_dir: Option<PathBuf>,
}

/// A stage of the pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Stage {
    /// The model spec
    Spec,
    /// The graph of the spec
    Graph,
    /// The graph with the preset's quantisation made explicit
    Quant,
    /// Groups of nodes that become one kernel each
    Fused,
    /// The kernel for each group
    Select,
    /// Steps and buffers
    Schedule,
    /// Places of the buffers in the arena
    Memory,
    /// Cranelift IR of the kernels
    Clif,
    /// Machine code of the kernels
    Asm,
    /// What the runtime gets: steps with their operands, buffers, symbols
    Plan,
}

impl Emit {
    /// Prints or writes the wanted stages; a single one is printed as it is, several with a title each.
    pub fn write(&self, text: &dyn Fn(Stage) -> Result<String>) -> Result<()> {
        let mut wanted = self.emit.clone();
        wanted.sort_unstable();
        wanted.dedup();
        if let Some(dir) = &self.emit_dir {
            std::fs::create_dir_all(dir).map_err(|error| Failure::input(dir, error))?;
        }
        for stage in &wanted {
            let text = text(*stage)?;
            match &self.emit_dir {
                Some(dir) => output::write_file(&dir.join(stage.file_name()), &text)?,
                None if wanted.len() == 1 => output::print(&text)?,
                None => output::print(&format!("==== {} ====\n{text}\n", stage.name()))?,
            }
        }
        Ok(())
    }
}

impl Stage {
    /// Its name on the command line.
    pub fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    fn file_name(self) -> String {
        match self {
            Stage::Spec => "spec.toml".to_owned(),
            _ => format!("{}.txt", self.name()),
        }
    }
}
