//! `kernmill compile --dry-run`: what it would write, and how the plan would run here.

use super::Compile;
use crate::failure::Result;
use crate::version;
use kernmill::compiler::SpecSource;
use kernmill::locate::SourceFiles;
use kernmill_tools::estimate::{Host, PlanEstimate};
use kernmill_tools::{Compiled, FormatChoices, Level, PlanWriter, Preset};

impl Compile {
    /// Tells what compiling a spec would give. Of its weights only shapes and stored formats count, which the
    /// spec says.
    pub(super) fn dry_run_of_spec(&self, levels: &[Level], given: &SourceFiles) -> Result<()> {
        if !self.merge_lora.is_empty() {
            given.need_weights()?;
        }
        let source = SpecSource::of(given, self.compile.fusions.set()?)?;
        let graph = source.graph()?;
        let mut notes = vec!["without weights at hand: a tokenizer would come on top".to_owned()];
        let choices = (self.compile.preset == Preset::Fast).then(|| {
            notes.push("assuming that every tensor that may have 4 bits does".to_owned());
            FormatChoices::assumed(&graph)
        });
        let compiled = self.targets(&source, &graph, levels, choices.as_ref())?;
        let writer = PlanWriter::new(&self.parts(&compiled, choices.as_ref(), &source))?;
        self.show_dry_run(&writer, &compiled, notes)
    }

    /// Prints it.
    pub(super) fn show_dry_run(
        &self,
        writer: &PlanWriter<'_>,
        compiled: &[Compiled],
        notes: Vec<String>,
    ) -> Result<()> {
        let host = Host::of(self.described.as_ref(), self.threads.given());
        let Some(it) = PlanEstimate::new(writer, compiled, self.context, host, notes)? else { return Ok(()) };
        version::show(self.json, "kernmill.dry-run/1", || it.json(), || it.text())
    }
}
