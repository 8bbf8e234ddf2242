//! `--emit`: the compiler's stages as text, and its code as an object file.

use crate::failure::{Failure, Result};
use crate::output;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use kernmill_tools::stages::{NO_OBJECT, Stage};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

/// Parts of the compilation to show.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "Compiler stages")]
pub struct Emit {
    /// Print these stages of the compilation, in the order of the pipeline
    #[arg(long, value_name = "STAGE,..", value_delimiter = ',', value_parser = stage_parser())]
    pub emit: Vec<Stage>,
    /// Write each stage to a file of its own in this directory instead
    #[arg(long, value_name = "DIR", requires = "emit")]
    pub emit_dir: Option<PathBuf>,
}

fn stage_parser() -> impl TypedValueParser<Value = Stage> {
    PossibleValuesParser::new(Stage::ALL.map(|stage| PossibleValue::new(stage.name()).help(stage.about())))
        .map(|name| Stage::from_name(&name).unwrap_or(Stage::Spec))
}

impl Emit {
    /// Nothing is shown.
    pub const NONE: Emit = Emit { emit: Vec::new(), emit_dir: None };

    /// Whether `stage` is wanted.
    pub fn wants(&self, stage: Stage) -> bool {
        self.emit.contains(&stage)
    }

    /// Whether stages go to standard output.
    pub fn prints(&self) -> bool {
        !self.emit.is_empty() && self.emit_dir.is_none()
    }

    /// Refuses to print what is no text. Done before the work; `object` is where an object file goes without
    /// `--emit-dir`.
    pub fn check(&self, object: Option<&Path>) -> Result<()> {
        if self.wants(Stage::Obj) && self.emit_dir.is_none() && object.is_none() {
            return Err(Failure::BadInput(NO_OBJECT.to_owned()));
        }
        Ok(())
    }

    /// Prints or writes the wanted stages; a single one is printed as it is, several with a title each. An
    /// object file goes to `object`, unless there is `--emit-dir`.
    pub fn write(
        &self,
        object: Option<&Path>,
        contents: &dyn Fn(Stage) -> kernmill::Result<Vec<u8>>,
    ) -> Result<()> {
        let mut wanted = self.emit.clone();
        wanted.sort_unstable();
        wanted.dedup();
        if let Some(dir) = &self.emit_dir {
            std::fs::create_dir_all(dir).map_err(Failure::read(dir))?;
        }
        for stage in &wanted {
            let contents = contents(*stage)?;
            let object = object.filter(|_| *stage == Stage::Obj);
            match (&self.emit_dir, object) {
                (Some(dir), _) => output::write_regular(&dir.join(stage.file_name()), &contents)?,
                (None, Some(path)) => output::write_file(path, &contents)?,
                (None, None) if wanted.len() == 1 => print(&contents)?,
                (None, None) => {
                    output::print(format!("==== {} ====\n", stage.name()))?;
                    print(&contents)?;
                    output::print("\n")?;
                }
            }
        }
        Ok(())
    }
}

/// Prints a stage; to a terminal, names from files without their control characters.
fn print(contents: &[u8]) -> Result<()> {
    match std::io::stdout().is_terminal() {
        true => output::show(String::from_utf8_lossy(contents)),
        false => output::print(contents),
    }
}
