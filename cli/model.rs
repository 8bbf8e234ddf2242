//! From what was given to a loaded engine. Everything that can be refused is refused before the work.

use crate::adapters::AdapterArgs;
use crate::emit::Emit;
use crate::explicit::Explicit;
use crate::failure::{Failure, Result};
use crate::given::{Given, GivenArgs, OF_COMPILING};
use crate::options::{CompileArgs, Target, size, target_parser};
use crate::output;
use crate::plan::PlanModel;
#[cfg(feature = "compiler")]
use crate::source::{SourceAt, SourceModel, SpecSource};
use kernmill_os::memory::available_memory;
#[cfg(feature = "compiler")]
use kernmill_os::region::WeightRegion;
use kernmill_plan::program::Program;
use kernmill_plan::target::Level;
use kernmill_runtime::engine::DEFAULT_CONTEXT;
use kernmill_runtime::kv::KvShape;
use kernmill_runtime::perf;
use kernmill_runtime::pool::{MAX_THREADS, PoolConfig, default_threads};
use kernmill_runtime::{Engine, EngineConfig, MemoryNeed, PlanImage, TokenizerHandle};
#[cfg(feature = "compiler")]
use std::sync::Arc;

/// Which model, and how it is compiled and run.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Model")]
pub struct ModelArgs {
    #[command(flatten)]
    pub given: GivenArgs,
    /// Use the plan's weights only, and generate the code anew from its spec
    #[cfg(feature = "compiler")]
    #[arg(long)]
    pub regenerate: bool,
    /// Instruction set; native is the best that this CPU has (amx only for preset bf16), or of a plan's targets the best that runs here
    #[arg(long, value_name = "LEVEL", default_value = "native", value_parser = target_parser())]
    pub target: Target,
    #[command(flatten)]
    pub lora: AdapterArgs,
    #[command(flatten)]
    pub compile: CompileArgs,
    /// Worker threads; by default one for each physical core that this process may use
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=MAX_THREADS as i64))]
    pub threads: Option<u16>,
    /// Refuse to start when more memory than this would be needed, such as 15G or 800M
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub max_memory: Option<u64>,
    /// Write /tmp/perf-PID.map, by which `perf report` names the kernels
    #[arg(long)]
    pub perf_map: bool,
}

impl ModelArgs {
    /// Worker threads.
    pub fn threads(&self) -> usize {
        self.threads.map_or_else(default_threads, usize::from)
    }

    /// Whether a plan's code is generated anew.
    fn regenerates(&self) -> bool {
        #[cfg(feature = "compiler")]
        return self.regenerate;
        #[cfg(not(feature = "compiler"))]
        false
    }

    /// Notes that there are more threads than CPUs: they wait for each other at every step.
    fn note_threads(&self) {
        let cpus = std::thread::available_parallelism().map_or(usize::MAX, usize::from);
        if self.threads() > cpus && !self.compile.quiet {
            let plural = if cpus == 1 { "" } else { "s" };
            output::note(format_args!(
                "note: --threads {}: this process may use {cpus} CPU{plural}; more threads than that are slower",
                self.threads()
            ));
        }
    }
}

/// A model whose files have been checked: a plan, or one that is compiled here.
pub trait Model {
    /// Size of its vocabulary.
    fn vocab(&self) -> usize;

    /// Its longest context, in tokens.
    fn longest(&self) -> u32;

    /// What to continue unless told otherwise.
    fn example(&self) -> Option<&'static str> {
        None
    }

    /// Its tokenizer, if it has one, which is being read from now on.
    fn tokenizer(&mut self) -> Option<TokenizerHandle>;

    /// Runs without the tokenizer, which cannot be used.
    fn leave_tokenizer(&mut self);

    /// What a user should know about the tokenizer.
    fn tokenizer_note(&self) -> Option<String> {
        None
    }

    /// Tokens by which its texts end.
    fn end_tokens(&self) -> Result<Vec<u32>>;

    /// Starts an engine for `sequences` sequences of `context` tokens.
    fn load(self: Box<Self>, args: &ModelArgs, emit: &Emit, context: u32, sequences: u32) -> Result<Loaded>;
}

/// Reads and checks everything but the weights.
pub fn open(args: &ModelArgs, explicit: &Explicit) -> Result<Box<dyn Model>> {
    args.lora.check()?;
    args.note_threads();
    match args.given.resolve(explicit)? {
        Given::Plan(path) => {
            let generates = args.regenerates();
            let unused: Vec<&str> =
                OF_COMPILING.into_iter().filter(|option| *option != "tune" || !generates).collect();
            explicit.refuse(&unused, "a plan is compiled already; compile the model anew instead")?;
            Ok(Box::new(PlanModel::open(&path, args)?))
        }
        #[cfg(feature = "compiler")]
        Given::Source(source) => {
            if args.compile.no_fuse {
                explicit.refuse(&["without-fusion"], "--no-fuse leaves out all of them")?;
            }
            explicit
                .refuse(&["regenerate"], "only a plan's code can be generated anew; this is compiled here")?;
            let fused = args.compile.fusions.set()?;
            if source.lacks_weights() {
                // A text that is no spec says so first.
                SpecSource::of(&source, fused.clone())?.graph()?;
                source.need_weights()?;
            }
            let level = args.target.runnable_level(args.compile.preset)?;
            let model = SourceModel::open(&source, fused)?;
            Ok(Box::new(SourceAt { model, level, tokenizer: None }))
        }
    }
}

/// Tokens that a sequence may have, if the caller asks for `asked` or else wants room for `wanted`.
pub fn context(longest: u32, asked: Option<u32>, wanted: usize) -> Result<u32> {
    match asked {
        Some(context) if !(1..=longest).contains(&context) => Err(Failure::BadInput(format!(
            "--context is {context}, expected 1 to {longest}, the model's longest"
        ))),
        Some(context) => Ok(context),
        None => Ok((wanted.min(longest as usize) as u32).max(DEFAULT_CONTEXT.min(longest))),
    }
}

/// A model that is ready to run.
pub struct Loaded {
    /// It.
    pub engine: Engine,
    /// What its code uses.
    pub level: Level,
    /// Packed weights.
    #[cfg(feature = "compiler")]
    pub weights: Arc<WeightRegion>,
    /// Bytes of packed weights.
    pub weight_bytes: u64,
    /// How long it took.
    pub times: Times,
}

/// Seconds that parts of loading took.
#[derive(Clone, Copy, Debug, Default)]
pub struct Times {
    /// To choose formats by the weights.
    pub choose: f64,
    /// To generate code.
    pub compile: f64,
    /// To pack weights.
    pub pack: f64,
    /// To read and check a plan.
    pub open: f64,
}

/// Starts the engine of an image.
pub fn engine(image: &PlanImage, shape: KvShape, args: &ModelArgs, times: Times) -> Result<Loaded> {
    let pool = PoolConfig { threads: Some(args.threads()), pin: false };
    let (context, sequences, chunk) = (Some(shape.context), shape.sequences, Some(shape.chunk));
    let engine = Engine::new(image, EngineConfig { pool, context, sequences, chunk })?;
    if args.perf_map {
        let map = perf::write_map(&engine, &image.program().code.symbols);
        map.map_err(|(path, error)| Failure::write(&path)(error))?;
    }
    let (level, weight_bytes) = (image.program().level, image.program().weight_bytes);
    Ok(Loaded {
        engine,
        level,
        #[cfg(feature = "compiler")]
        weights: Arc::clone(image.weights()),
        weight_bytes,
        times,
    })
}

/// Where the weights are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WeightsIn {
    /// In memory of their own.
    #[cfg(feature = "compiler")]
    Memory,
    /// In a mapped file, whose pages the system may drop and read again: what is in its cache already, or on a file system in memory, is not
    /// taken once more.
    File,
}

/// Everything that will be taken is compared with what there is before any of it is. `limit` counts mapped weights as well.
pub fn check_memory(
    program: &Program,
    shape: KvShape,
    threads: usize,
    limit: Option<u64>,
    weights: WeightsIn,
) -> Result<()> {
    let need = MemoryNeed::of(program, shape, threads);
    let total = need.total().saturating_add(program.weight_bytes);
    let taken = if weights == WeightsIn::File { need.total() } else { total };
    let available = available_memory().unwrap_or(u64::MAX);
    let gb = |bytes: u64| bytes as f64 / 1e9;
    let refused = |needed: u64, allowed: u64| {
        Err(Failure::BadInput(format!(
            "not enough memory: {:.3} GB needed (weights {:.3}, KV cache {:.3}, working memory {:.3}), {:.3} GB allowed: lower \
             --context or --chunk, or take a smaller model",
            gb(needed),
            if needed == total { gb(program.weight_bytes) } else { 0.0 },
            gb(need.kv),
            gb(need.total() - need.kv),
            gb(allowed)
        )))
    };
    match limit {
        Some(limit) if total > limit => refused(total, limit),
        _ if taken > available => refused(taken, available),
        _ => Ok(()),
    }
}
