//! `kernmill explain`: what a model compiles to, and why.

use crate::emit::Emit;
use crate::explicit::Explicit;
use crate::failure::Result;
use crate::given::{GivenArgs, OF_COMPILING};
use crate::options::{CompileArgs, target_parser};
use crate::output;
use crate::progress::Terminal;
use crate::version;
use kernmill::locate::Located;
use kernmill::regenerate::{Origin, origin};
use kernmill::source::SpecSource;
use kernmill::tools::explain;
use kernmill::tools::stages::Stages;
use kernmill::{Error, Target};
use kernmill_compiler::graph::Graph;
use kernmill_compiler::pipeline::{Options, compile};
use kernmill_compiler::quant::Preset;
use kernmill_compiler::quant::choose::FormatChoices;
use kernmill_compiler::select;
use kernmill_runtime::Plan;
use std::path::Path;

/// Shows what a model compiles to: what fused, what nearly did and why not, what it takes, and which kernels
/// were picked why
///
/// No weights are needed, and the target need not be this CPU's. Of preset fast, which decides tensor by
/// tensor from the weights, it shows what comes out when every tensor that may have 4 bits does; `kernmill
/// inspect` shows the decisions. Of a plan it shows what the plan's spec compiles to with the plan's own
/// preset, formats and chunk.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kernmill explain model-specs/gpt-oss-20b.toml
  kernmill explain DIR                                                  what a checkpoint's config.json describes
  kernmill explain my.plan                                              what a plan was compiled from
  kernmill explain model-specs/gpt-oss-20b.toml --json                  candidates, costs and picks
  kernmill explain model-specs/nano/nano.toml --emit graph              the graph, as text
  kernmill explain model-specs/nano/nano.toml --emit fused,schedule     several stages
  kernmill explain model-specs/nano/nano.toml --emit clif,asm --emit-dir stages --target x86-64-v3")]
pub struct Explain {
    #[command(flatten)]
    given: GivenArgs,
    /// Instruction set; native is the best that this CPU has (amx only for preset bf16)
    #[arg(long, value_name = "LEVEL", default_value = "native", value_parser = target_parser())]
    target: Target,
    #[command(flatten)]
    compile: CompileArgs,
    #[command(flatten)]
    emit: Emit,
    /// Print the candidates of every kernel and micro-kernel, their costs and the picks as JSON instead
    #[arg(long, conflicts_with = "emit")]
    json: bool,
}

impl Explain {
    /// Runs the command.
    pub fn execute(self, explicit: &Explicit) -> Result<()> {
        self.emit.check(None)?;
        match self.given.resolve(explicit)? {
            Located::Plan(path) => self.explain_plan(&path, explicit),
            Located::Source(source) => {
                let source = SpecSource::of(&source, self.compile.fusions.set()?)?;
                let graph = source.graph()?;
                if self.shows_only_early_stages() {
                    return self.show_early_stages(&source, &graph);
                }
                let assumed = Some(FormatChoices::assumed(&graph));
                let level =
                    self.target.level(self.compile.preset, &*Terminal::observer(self.compile.quiet))?;
                let compile = self.compile.clone().tuned(self.is_native());
                let options =
                    compile.options(source.fused.clone(), &self.emit).at(level, compile.chunk(), assumed);
                self.explain(&source, &graph, &options, self.compile.preset == Preset::Fast)
            }
        }
    }

    fn explain_plan(&self, path: &Path, explicit: &Explicit) -> Result<()> {
        let not: Vec<&str> = OF_COMPILING.into_iter().filter(|option| *option != "tune").collect();
        explicit.refuse(&not, "a plan says itself how it was compiled")?;
        explicit.refuse(&["chunk"], "a plan has its own chunk")?;
        let plan = Plan::open(path)?;
        let observer = Terminal::observer(self.compile.quiet);
        let Origin { source, graph, options } =
            origin(&plan, &|preset| self.target.level(preset, &*observer))?;
        if self.shows_only_early_stages() {
            return self.show_early_stages(&source, &graph);
        }
        let tuning = self.compile.clone().tuned(self.is_native()).tune.unwrap_or(options.tuning);
        let options = Options { tuning, keep_clif: self.emit.wants_clif(), ..options };
        self.explain(&source, &graph, &options, false)
    }

    fn is_native(&self) -> bool {
        matches!(self.target, Target::Native)
    }

    fn shows_only_early_stages(&self) -> bool {
        !self.emit.emit.is_empty() && self.emit.needs_no_compiler()
    }

    fn show_early_stages(&self, source: &SpecSource, graph: &Graph) -> Result<()> {
        let stages = Stages { spec: &source.text, graph, compiled: &[] };
        self.emit.write(None, &|stage| stages.contents(stage))
    }

    fn explain(&self, source: &SpecSource, graph: &Graph, options: &Options, assumed: bool) -> Result<()> {
        let compiled = compile(graph, options).map_err(Error::from)?;
        let stages = Stages { spec: &source.text, graph, compiled: std::slice::from_ref(&compiled) };
        self.emit.write(None, &|stage| stages.contents(stage))?;
        if self.json {
            let report = select::explain(&compiled.model, &compiled.selections, &compiled.ukernels);
            output::print(version::report("kernmill.explain/2", serde_json::json!(report)))?;
        } else if self.emit.emit.is_empty() {
            output::show(explain::report(graph, &compiled, assumed))?;
        }
        if !self.compile.quiet {
            output::note(explain::times(&compiled));
        }
        Ok(())
    }
}
