//! Which model is explained, and how it is compiled.

use kernmill::CompileOptions;
use kernmill::Result;
use kernmill::compiler::SpecSource;
use kernmill::compiler::{PlanOrigin, origin};
use kernmill::locate::SourceFiles;
use kernmill_checkpoint::Checkpoint;
use kernmill_checkpoint::gguf::{Gguf, is_gguf};
use kernmill_compiler::ir::Graph;
use kernmill_compiler::machine::Description;
use kernmill_compiler::passes::quant::Preset;
use kernmill_compiler::passes::quant::choose::FormatChoices;
use kernmill_compiler::pipeline::CompilerOptions;
use kernmill_plan::target::Level;
use kernmill_runtime::Plan;
use std::path::Path;

/// A model that is explained.
pub struct Subject {
    /// Spec of the model.
    pub source: SpecSource,
    /// The graph that the spec describes.
    pub graph: Graph,
    /// How it is compiled; `None` if it need not be.
    pub options: Option<CompilerOptions>,
    /// Whether preset `fast` makes its choices without weights.
    pub assumed: bool,
    /// Bytes of the weights in their files, if these are at hand.
    pub stored: Option<u64>,
}

impl Subject {
    /// The model that `files` describe, with the fused-op specs of `options`. Preset `fast` is taken to give
    /// 4 bits to every tensor that may have them. No chunk is that of the level, which is not asked for if
    /// only `early` stages are wanted.
    ///
    /// # Errors
    /// When the spec is wrong, or there is no level.
    pub fn of_source(
        files: &SourceFiles,
        options: &CompileOptions,
        chunk: Option<u32>,
        level: &dyn Fn(Preset) -> Result<Level>,
        early: bool,
    ) -> Result<Subject> {
        let source = SpecSource::of(files, options.fused.clone())?;
        let graph = source.graph()?;
        let assumed = Some(FormatChoices::assumed(&graph));
        let preset = options.preset;
        let level = if early { None } else { Some(level(preset)?) };
        let options = level.map(|level| options.at(level, graph.chunk(chunk, [level]), assumed));
        let stored = files.weights.as_deref().and_then(stored);
        Ok(Subject { source, graph, options, assumed: preset == Preset::Fast, stored })
    }

    /// The model of the plan at `path`, as it was compiled; of `options` only tuning and machine count.
    ///
    /// # Errors
    /// When the plan cannot be read, its spec is wrong, or there is no level.
    pub fn of_plan(
        path: &Path,
        options: &CompileOptions,
        level: &dyn Fn(Preset) -> Result<Level>,
    ) -> Result<Subject> {
        let PlanOrigin { source, graph, options: own } = origin(&Plan::open(path)?, level)?;
        let machine = options.machine.as_ref().map_or(own.machine, Description::costs);
        let keep_clif = options.keep_clif;
        let own = CompilerOptions { tuning: options.tuning(), machine, keep_clif, ..own };
        Ok(Subject { source, graph, options: Some(own), assumed: false, stored: None })
    }
}

/// Bytes of the weights in the files at `path`; `None` where a config stands alone.
fn stored(path: &Path) -> Option<u64> {
    let gguf = || Gguf::open(path)?.into_checkpoint();
    let checkpoint = if is_gguf(path) { gguf() } else { Checkpoint::open(path) };
    checkpoint.ok().map(|checkpoint| checkpoint.bytes())
}
