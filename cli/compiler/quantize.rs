//! `kernmill quantize`: a GGUF file of few bits a weight.

use crate::aside::Aside;
use crate::explicit::Explicit;
use crate::failure::Result;

/// Writes a GGUF file of few bits a weight, fitted so that errors are small where inputs are large
///
/// The types are those of a mix that people know by its name, or those that make the least of a size. Weights
/// that are on a grid of their new type already stay as they are.
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("../help/quantize.txt"))]
pub struct Quantize {
    #[command(flatten)]
    work: kernmill_tools::QuantizeArgs,
    #[command(flatten)]
    aside: Aside,
}

impl Quantize {
    /// Runs the command.
    pub fn execute(self, _explicit: &Explicit) -> Result<()> {
        let written = self.work.run(&self.aside)?;
        self.aside.wrote(&written.path, written.about);
        Ok(())
    }
}
