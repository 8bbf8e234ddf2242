//! `kernmill compile --dry-run`: what it would write, and how the plan would run here.

use super::Compile;
use crate::failure::Result;
use crate::output;
use crate::version;
use kernmill::locate::SourceFiles;
use kernmill::source::SpecSource;
use kernmill::tools::estimate::Estimate;
use kernmill_compiler::pipeline::Compiled;
use kernmill_compiler::plan_file::{PlanParts, PlanWriter};
use kernmill_compiler::quant::Preset;
use kernmill_compiler::quant::choose::FormatChoices;
use kernmill_plan::target::Level;
use kernmill_runtime::pool::default_threads;

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
        let writer = PlanWriter::new(&PlanParts {
            producer: version::PRODUCER,
            compiled: &compiled,
            choices: choices.as_ref(),
            chunk: self.compile.chunk() as usize,
            fused: !self.compile.no_fuse,
            fused_specs: &source.fused,
            spec: &source.text,
            tokenizer_json: None,
            end_tokens: &[],
            chat_template: None,
        })?;
        self.show_dry_run(&writer, &compiled, notes)
    }

    /// Prints it.
    pub(super) fn show_dry_run(
        &self,
        writer: &PlanWriter<'_>,
        compiled: &[Compiled],
        notes: Vec<String>,
    ) -> Result<()> {
        let threads = self.threads.map_or_else(default_threads, usize::from);
        let Some(estimate) = Estimate::new(writer, compiled, self.context, threads, notes)? else {
            return Ok(());
        };
        match self.json {
            true => output::print(version::report("kernmill.dry-run/1", estimate.json())),
            false => output::show(estimate.text()),
        }
    }
}
