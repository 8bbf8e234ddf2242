//! `kernmill explain`: what a model compiles to, and why.

use super::options::{CompileArgs, MachineArgs};
use crate::aside::Aside;
use crate::emit::Emit;
use crate::explicit::Explicit;
use crate::failure::Result;
use crate::given::{GivenArgs, OF_COMPILING};
use crate::options::{target_parser, thread_count};
use crate::{output, version};
use kernmill::locate::Located;
use kernmill::{Error, ModelMakes, Target};
use kernmill_tools::explain::{ExplainOptions, Explained, SCHEMA, Subject, page, times};
use kernmill_tools::stages::{Stage, StageSources};
use kernmill_tools::targets::target_on;
use kernmill_tools::vectors::making;
use kernmill_tools::{FusedSet, Preset, compile};

/// Shows on one screen what a model compiles to: what it takes, how fast it may be, what its steps are and
/// what nearly fused
///
/// Speeds are estimates by the compiler's cost model, for an assumed machine or for one that was measured. No
/// weights are needed, and the target need not be this CPU's. Of preset fast, which decides tensor by
/// tensor from the weights, it shows what comes out when every tensor that may have 4 bits does; `kernmill
/// inspect` shows the decisions. Of a plan it shows what the plan's spec compiles to with the plan's own
/// preset, formats and chunk.
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("../help/explain.txt"))]
pub struct Explain {
    #[command(flatten)]
    given: GivenArgs,
    /// Instruction set; native is this CPU's best (amx for preset bf16 only). It wins over --machine
    #[arg(long, value_name = "LEVEL", default_value = "native", value_parser = target_parser())]
    target: Target,
    #[command(flatten)]
    machine: MachineArgs,
    #[command(flatten)]
    compile: CompileArgs,
    #[command(flatten)]
    aside: Aside,
    #[command(flatten)]
    emit: Emit,
    /// Workers of --machine that speeds are shown for; by default the most that it was measured with
    #[arg(long, value_name = "N", requires = "machine", value_parser = thread_count())]
    threads: Option<u16>,
    /// Context that memory and speed are shown for, in tokens; by default 4096 if the model can
    #[arg(long, value_name = "N")]
    context: Option<u32>,
    /// Show also what every group fused, and all candidates with their costs; with --json, also all code
    #[arg(long, conflicts_with = "emit")]
    all: bool,
    /// Print all of it as JSON instead
    #[arg(long, conflicts_with = "emit")]
    json: bool,
    /// Write all of it with the code to one file for a browser instead, which needs no network
    #[arg(long, value_name = "FILE", conflicts_with_all = ["emit", "all", "json"])]
    html: Option<std::path::PathBuf>,
}

impl Explain {
    /// Runs the command.
    pub fn execute(self, explicit: &Explicit) -> Result<()> {
        self.emit.check(None)?;
        self.html.as_deref().map_or(Ok(()), output::check)?;
        let code = self.html.is_some() || self.all && self.json;
        let machine = self.machine.read()?;
        let machine = machine.as_ref();
        let target = |preset: Preset| target_on(self.target, explicit.has("target"), machine, preset);
        let level = |preset| target(preset).level(preset, &self.aside);
        let early = !self.emit.emit.is_empty() && self.emit.emit.iter().all(|it| *it <= Stage::Graph);
        let is_native = target(self.compile.preset) == Target::Native;
        let compile_args = self.compile.clone().tuned(is_native, machine);
        let options =
            |fused| compile_args.options(fused, &self.emit).with(|it| it.machine = machine.cloned());
        let located = making(self.given.resolve(explicit)?, self.compile.makes(ModelMakes::AsFiles));
        self.html.as_deref().map_or(Ok(()), |path| located.check_apart(path))?;
        let subject = match located {
            Located::Plan(path) => {
                explicit.refuse(&OF_COMPILING, "a plan says itself how it was compiled")?;
                explicit.refuse(&["chunk"], "a plan has its own chunk")?;
                Subject::of_plan(&path, &options(FusedSet::builtin()), &level)?
            }
            Located::Source(files) => {
                let options = options(self.compile.fusions.set()?);
                Subject::of_source(&files, &options, self.compile.chunk, &level, early)?
            }
        };
        let Subject { source, graph, mut options, assumed, stored } = subject;
        options.iter_mut().for_each(|options| options.keep_clif |= code);
        let compiled = options.filter(|_| !early).map(|options| compile(&graph, &options));
        let compiled = compiled.transpose().map_err(Error::from)?;
        let stages = StageSources { spec: &source.text, graph: &graph, compiled: compiled.as_slice() };
        self.emit.write(None, &|stage| stages.contents(stage))?;
        let Some(compiled) = &compiled else { return Ok(()) };
        if self.emit.emit.is_empty() {
            let (workers, context) = (self.threads.map(usize::from), self.context);
            let how = ExplainOptions { machine, workers, context, assumed, stored };
            let explained = Explained::new(&graph, compiled, how)?;
            match &self.html {
                Some(path) => {
                    let page = page(&version::report(SCHEMA, explained.json()));
                    self.aside.deliver(path, page, "a page for a browser, without network")?
                }
                None => version::show(self.json, SCHEMA, || explained.json(), || explained.text(self.all))?,
            }
        }
        self.aside.line(times(compiled));
        Ok(())
    }
}
