//! The whole pipeline on one screen: one line per pass; after each, its result is checked, timed and can be
//! printed.

use crate::emit::assemble::{assemble, model_info};
use crate::ir::Graph;
use crate::ir::lora::with_adapters;
use crate::passes::fuse::{self, FusedGraph, FusedSet};
use crate::passes::layout::{WeightLayout, gate_up_pairs, plan_weights};
use crate::passes::memory::{self, MemoryPlan, plan_memory};
use crate::passes::quant::choose::FormatChoices;
use crate::passes::quant::{Preset, Quantisation};
use crate::passes::schedule::{Kernels, Schedule, check_sizes, schedule_all};
use crate::passes::select::cost::CostModel;
use crate::passes::select::costs_of_machine::{MACHINE, Machine};
use crate::passes::select::{MicroKernelChoice, Pick, Selection, choose_ukernels, select_classes};
use kernmill_kernels_gen::generate::generate;
use kernmill_kernels_gen::ukernel::MicroKernel;
use kernmill_os::float_env::FloatEnv;
use kernmill_plan::kv::KvFormats;
use kernmill_plan::program::Program;
use kernmill_plan::target::{Level, Tuning};
use std::time::{Duration, Instant};

/// The target and settings of a compilation.
#[derive(Clone, Debug)]
pub struct CompilerOptions {
    /// Quantisation.
    pub preset: Preset,
    /// Which matrices have 4 bits; [`Preset::Fast`] needs them, the others do without.
    pub choices: Option<FormatChoices>,
    /// Formats of cached keys and values, if not those of the preset.
    pub kv: Option<KvFormats>,
    /// Instruction set.
    pub level: Level,
    /// Whose CPUs it is to be fast on.
    pub tuning: Tuning,
    /// The machine that candidates are weighed for.
    pub machine: Machine,
    /// Tokens per prefill chunk: the largest batch.
    pub chunk: usize,
    /// Whether tokens may have adapters.
    pub adapters: bool,
    /// Whether to fuse; off is for tests and for finding out what fusion brings.
    pub fuse: bool,
    /// The fused ops.
    pub fused: FusedSet,
    /// Keep the Cranelift IR for `--emit clif`.
    pub keep_clif: bool,
    /// Which candidate each group is; others than the cheapest are for tests and benches.
    pub kernels: Pick,
    /// Which version each micro-kernel is; others than the cheapest are for tests and benches.
    pub ukernels: Pick,
}

impl CompilerOptions {
    /// The defaults for a level: `faithful`, its chunk, the built-in fusions.
    pub fn new(level: Level) -> CompilerOptions {
        CompilerOptions {
            preset: Preset::Faithful,
            choices: None,
            kv: None,
            level,
            tuning: Tuning::Generic,
            machine: MACHINE,
            chunk: Level::default_chunk([level]) as usize,
            adapters: true,
            fuse: true,
            fused: FusedSet::builtin(),
            keep_clif: false,
            kernels: Pick::Cheapest,
            ukernels: Pick::Cheapest,
        }
    }
}

/// Every stage's result.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The quantised graph, grouped.
    pub fused: FusedGraph,
    /// The fusions that were not done, and the reasons.
    pub report: fuse::FusionReport,
    /// The cost model that picked kernels and micro-kernels.
    pub model: CostModel,
    /// Where the weights go.
    pub layout: WeightLayout,
    /// Kernels by token class.
    pub selections: Vec<Selection>,
    /// Steps by token class.
    pub schedules: Vec<Schedule>,
    /// Distinct kernels.
    pub kernels: Kernels,
    /// The version of each micro-kernel.
    pub ukernels: Vec<MicroKernelChoice>,
    /// Arenas by token class.
    pub arenas: Vec<MemoryPlan>,
    /// Cranelift IR by function, if kept.
    pub clif: Vec<String>,
    /// The program.
    pub program: Program,
    /// Time of each pass.
    pub times: Vec<(&'static str, Duration)>,
}

/// Why compilation failed; each pass has its own kinds.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum CompileError {
    #[error("the graph is not legal: {0}")]
    Graph(#[from] crate::ir::GraphError),
    #[error(transparent)]
    Quant(#[from] crate::passes::quant::QuantError),
    #[error(transparent)]
    Layout(#[from] crate::passes::layout::LayoutError),
    #[error(transparent)]
    Select(#[from] crate::passes::select::SelectError),
    #[error(transparent)]
    Size(#[from] crate::passes::schedule::SizeError),
    #[error(transparent)]
    Memory(#[from] memory::MemoryError),
    #[error("the memory plan is of other buffers: {0} (please report this)")]
    MemoryCheck(#[from] memory::check::MemoryCheckError),
    #[error(transparent)]
    Generate(#[from] kernmill_kernels_gen::generate::GenerateError),
    #[error("the program is not sound: {0} (please report this)")]
    Program(#[from] kernmill_plan::check::CheckError),
}

/// Compiles a model graph.
///
/// # Errors
/// Unsupported shapes and presets; anything else is a defect and says so.
pub fn compile(graph: &Graph, options: &CompilerOptions) -> Result<Compiled, CompileError> {
    let _env = FloatEnv::standard();
    let mut passes = Passes::default();
    let preset = options.preset;
    passes.run("verify", || graph.verify())?;
    let kv = options.kv.unwrap_or(preset.kv_formats());
    let quantisation = Quantisation { preset, choices: options.choices.as_ref(), kv };
    let quantised = passes.run("quantise", || quantisation.quantise(graph))?;
    let quantised = match options.adapters {
        true => passes.run("adapters", || with_adapters(&quantised, preset.adapter_format()))?,
        false => quantised,
    };
    let rules = options.fused.rules().filter(|_| options.fuse);
    let (fused, report) = passes.time("fuse", || fuse::fuse(&quantised, rules, options.level));
    passes.run("verify fused", || fused.verify())?;
    let layout = passes.run("place weights", || plan_weights(&quantised, &gate_up_pairs(&quantised)))?;
    let model = CostModel::on(options.level, options.tuning, options.machine);
    let selections =
        passes.run("select", || select_classes(&fused, &layout, options.chunk, &model, options.kernels))?;
    let (schedules, kernels) = passes.time("schedule", || schedule_all(&quantised, &selections));
    passes.run("check sizes", || check_sizes(&schedules))?;
    let arenas = passes.run("plan memory", || {
        schedules.iter().map(|one| plan_memory(&one.buffers)).collect::<Result<Vec<_>, _>>()
    })?;
    passes.run("check memory", || {
        schedules
            .iter()
            .zip(&arenas)
            .try_for_each(|(schedule, arena)| memory::check::check(&schedule.buffers, arena))
    })?;
    let ukernels =
        passes.time("choose micro-kernels", || choose_ukernels(&kernels.list, &model, options.ukernels));
    let version = |ukernel: &MicroKernel| {
        ukernels.iter().find(|choice| choice.ukernel == *ukernel).and_then(|one| one.version)
    };
    let mut generated =
        passes.run("generate", || generate(&kernels.list, options.level, &version, options.keep_clif))?;
    let clif = std::mem::take(&mut generated.clif);
    let info = model_info(&quantised, &layout, preset.name());
    let program = passes.time("assemble", || {
        assemble(&quantised, info, &layout, (&schedules, &kernels), &arenas, generated, options.level)
    });
    passes.run("check program", || kernmill_plan::check::check_program(&program))?;
    let times = passes.times;
    Ok(Compiled {
        fused,
        report,
        model,
        layout,
        selections,
        schedules,
        kernels,
        ukernels,
        arenas,
        clif,
        program,
        times,
    })
}

/// Runs and times passes.
#[derive(Default)]
struct Passes {
    times: Vec<(&'static str, Duration)>,
}

impl Passes {
    fn time<T>(&mut self, name: &'static str, pass: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = pass();
        let elapsed = start.elapsed();
        tracing::debug!(pass = name, ?elapsed);
        self.times.push((name, elapsed));
        result
    }

    fn run<T, E>(
        &mut self,
        name: &'static str,
        pass: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, CompileError>
    where
        CompileError: From<E>,
    {
        Ok(self.time(name, pass)?)
    }
}
