//! `--emit`: the compiler's stages as text.

use crate::failure::{Failure, Result};
use crate::{listing, output};
use clap::ValueEnum;
use kernmill_compiler::graph::Graph;
use kernmill_compiler::pipeline::Compiled;
use kernmill_kernels::disasm;
use std::fmt::{Display, Write};
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

/// What the stages are printed from.
pub struct Stages<'a> {
    /// Text of the spec.
    pub spec: &'a str,
    /// Its graph.
    pub graph: &'a Graph,
    /// Everything after it; `None` shows the first two stages only.
    pub compiled: Option<&'a Compiled>,
}

impl Emit {
    /// Whether only stages before compilation are wanted.
    pub fn needs_no_compiler(&self) -> bool {
        self.emit.iter().all(|stage| *stage <= Stage::Graph)
    }

    /// Whether Cranelift's IR must be kept.
    pub fn wants_clif(&self) -> bool {
        self.emit.contains(&Stage::Clif)
    }

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

impl Stages<'_> {
    /// A stage as text.
    pub fn text(&self, stage: Stage) -> Result<String> {
        Ok(match (stage, self.compiled) {
            (Stage::Spec, _) => self.spec.to_owned(),
            (Stage::Graph, _) => self.graph.to_string(),
            (_, None) => String::new(),
            (Stage::Quant, Some(compiled)) => compiled.fused.graph.to_string(),
            (Stage::Fused, Some(compiled)) => compiled.fused.to_string(),
            (Stage::Select, Some(compiled)) => listings(&compiled.selections),
            (Stage::Schedule, Some(compiled)) => listings(&compiled.schedules),
            (Stage::Memory, Some(compiled)) => arenas(compiled),
            (Stage::Clif, Some(compiled)) => compiled.clif.join("\n"),
            (Stage::Asm, Some(compiled)) => disasm::blob(&compiled.program.code),
            (Stage::Plan, Some(compiled)) => listing::program(&compiled.program),
        })
    }
}

/// One listing for each token class.
fn listings<T: Display>(classes: &[T]) -> String {
    classes.iter().map(T::to_string).collect::<Vec<_>>().join("\n")
}

fn arenas(compiled: &Compiled) -> String {
    let mut text = String::new();
    for (class, arena) in compiled.program.classes.iter().zip(&compiled.arenas) {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "class of up to {} tokens\n{arena}", class.max_tokens);
    }
    text
}
