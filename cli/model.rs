//! From a plan, or `--spec` and `--weights`, or nothing, to a loaded engine. Everything that can be refused is refused before the work.

use crate::emit::{Emit, Stages};
use crate::failure::{Failure, Result};
use crate::plan::PlanModel;
use crate::source::{SourceModel, SpecSource};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use kernmill_compiler::choose::Choices;
use kernmill_compiler::graph::Graph;
use kernmill_compiler::pipeline::{Compiled, Options, compile};
use kernmill_compiler::quant::Preset;
use kernmill_plan::memory::available_memory;
use kernmill_plan::program::Program;
use kernmill_plan::region::WeightRegion;
use kernmill_plan::target::Level;
use kernmill_runtime::engine::DEFAULT_CONTEXT;
use kernmill_runtime::kv::KvShape;
use kernmill_runtime::pool::{MAX_THREADS, PoolConfig, default_threads};
use kernmill_runtime::tiles;
use kernmill_runtime::{Engine, EngineConfig, MemoryNeed, PlanImage, TokenizerHandle};
use std::path::PathBuf;
use std::sync::Arc;

/// Which model, and how it is compiled and run.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Model")]
pub struct ModelArgs {
    /// Plan that `kernmill compile` wrote: it starts at once
    #[arg(value_name = "PLAN", conflicts_with_all = ["spec", "weights", "preset", "no_fuse"])]
    pub plan: Option<PathBuf>,
    /// Use the plan's weights only, and generate the code anew from its spec
    #[arg(long, requires = "plan")]
    pub regenerate: bool,
    /// Model spec (TOML). Without it, the spec is imported from the GGUF file, or the config.json beside the weights
    #[arg(long, value_name = "SPEC", requires = "weights")]
    pub spec: Option<PathBuf>,
    /// Checkpoint: a directory with model.safetensors, or shards and their index, whose tokenizer.json is used if there is one;
    /// or a GGUF file. Without --weights and --spec: the embedded nano model
    #[arg(long, value_name = "DIR|FILE.gguf")]
    pub weights: Option<PathBuf>,
    /// Instruction set; native is the best that this CPU has (amx only for preset bf16), or of a plan's targets the best that runs here
    #[arg(long, value_name = "LEVEL", default_value = "native", value_parser = target_parser())]
    pub target: Target,
    #[command(flatten)]
    pub compile: CompileArgs,
    /// Worker threads; by default one for each physical core that this process may use
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=MAX_THREADS as i64))]
    pub threads: Option<u16>,
    /// Refuse to start when more memory than this would be needed, such as 15G or 800M
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub max_memory: Option<u64>,
    /// Say which of a plan's targets runs, and why
    #[arg(long, short)]
    pub verbose: bool,
}

impl ModelArgs {
    /// Worker threads.
    pub fn threads(&self) -> usize {
        self.threads.map_or_else(default_threads, usize::from)
    }
}

/// How a model is compiled.
#[derive(Clone, Debug, clap::Args)]
pub struct CompileArgs {
    /// Quantisation. exact: weights as stored, f32 activations and cache. faithful: MXFP4 weights bit for bit, other matrices and
    /// activations int8, f16 cache. bf16: as faithful, but MXFP4 experts are multiplied by bf16 activations. fast: as faithful, but 4 bits for the matrices of attention and unembedding that lose little
    #[arg(long, value_name = "PRESET", default_value = "faithful", value_parser = preset_parser())]
    pub preset: Preset,
    /// Prompt tokens that are run at once
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub chunk: u32,
    /// Compile every graph node by itself: for comparing
    #[arg(long)]
    pub no_fuse: bool,
    /// Neither progress bars nor the closing lines on standard error
    #[arg(long, short)]
    pub quiet: bool,
}

/// `--target`.
#[derive(Clone, Copy, Debug)]
pub enum Target {
    /// The best level of this CPU.
    Native,
    /// A certain level.
    Level(Level),
}

const NATIVE: &str = "native";

/// `--preset`.
pub fn preset_parser() -> impl TypedValueParser<Value = Preset> {
    PossibleValuesParser::new(Preset::ALL.map(Preset::name))
        .map(|name| Preset::from_name(&name).unwrap_or(Preset::Faithful))
}

/// `--target`.
pub fn target_parser() -> impl TypedValueParser<Value = Target> {
    let names = std::iter::once(NATIVE).chain(Level::ALL.map(Level::name));
    PossibleValuesParser::new(names.collect::<Vec<_>>())
        .map(|name| Level::from_name(&name).map_or(Target::Native, Target::Level))
}

/// A number of bytes, with K, M, G or T for powers of 1000.
pub fn size(text: &str) -> std::result::Result<u64, String> {
    let (digits, factor) = match text.char_indices().last() {
        Some((at, 'K' | 'k')) => (&text[..at], 1e3),
        Some((at, 'M' | 'm')) => (&text[..at], 1e6),
        Some((at, 'G' | 'g')) => (&text[..at], 1e9),
        Some((at, 'T' | 't')) => (&text[..at], 1e12),
        _ => (text, 1.0),
    };
    match digits.parse::<f64>() {
        Ok(number) if number.is_finite() && number >= 0.0 => Ok((number * factor) as u64),
        _ => Err("expected a number of bytes, such as 800M or 15G".to_owned()),
    }
}

impl CompileArgs {
    /// The compiler's options for `level`.
    pub fn options(&self, level: Level, choices: Option<Choices>, emit: &Emit) -> Options {
        Options {
            preset: self.preset,
            choices,
            level,
            chunk: self.chunk as usize,
            fuse: !self.no_fuse,
            keep_clif: emit.wants_clif(),
            ..Options::new(level)
        }
    }

    /// Compiles for a level that need not be this CPU's, and emits what is wanted. Preset `fast` needs choices.
    pub fn compile(
        &self,
        level: Level,
        source: &SpecSource,
        graph: &Graph,
        choices: Option<Choices>,
        emit: &Emit,
    ) -> Result<Compiled> {
        let compiled = compile(graph, &self.options(level, choices, emit))?;
        emit.write(&|stage| Stages { spec: &source.text, graph, compiled: Some(&compiled) }.text(stage))?;
        Ok(compiled)
    }
}

impl Target {
    /// The level to generate the preset's code for.
    pub fn level(self, preset: Preset) -> Result<Level> {
        match self {
            Target::Level(level) => Ok(level),
            Target::Native => native(preset).ok_or_else(|| lacks(Level::V3)),
        }
    }

    /// The level, if this CPU can run it.
    pub fn runnable_level(self, preset: Preset) -> Result<Level> {
        let level = self.level(preset)?;
        if level.missing().is_empty() { Ok(level) } else { Err(lacks(level)) }
    }
}

/// The best level of this CPU for the preset. Tiles that the system does not permit are done without.
fn native(preset: Preset) -> Option<Level> {
    if !preset.has_tiles() || !Level::Amx.missing().is_empty() {
        return Level::native(false);
    }
    let permission = tiles::request();
    let level = Level::native(permission.is_ok());
    if let (Err(error), Some(level)) = (permission, level) {
        eprintln!("the system does not permit AMX tiles ({error}): compiling for {} instead", level.name());
    }
    level
}

fn lacks(level: Level) -> Failure {
    Failure::BadInput(format!("this CPU lacks {}, which {} needs", level.missing().join(", "), level.name()))
}

/// A model whose files have been checked.
pub enum Model {
    /// It is compiled here, for that level.
    #[allow(missing_docs)]
    Source { model: Box<SourceModel>, level: Level },
    /// It has been.
    Plan(Box<PlanModel>),
}

/// A model that is ready to run.
pub struct Loaded {
    /// It.
    pub engine: Engine,
    /// What its code uses.
    pub level: Level,
    /// Packed weights.
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

impl Model {
    /// Reads and checks everything but the weights.
    pub fn open(args: &ModelArgs) -> Result<Model> {
        if let Some(path) = &args.plan {
            return Ok(Model::Plan(Box::new(PlanModel::open(path, args)?)));
        }
        let level = args.target.runnable_level(args.compile.preset)?;
        let model = SourceModel::open(args.spec.as_deref(), args.weights.as_deref())?;
        Ok(Model::Source { model: Box::new(model), level })
    }

    /// Size of its vocabulary.
    pub fn vocab(&self) -> usize {
        match self {
            Model::Source { model, .. } => model.graph.vocab,
            Model::Plan(model) => model.info().vocab as usize,
        }
    }

    /// Its longest context, in tokens.
    pub fn longest(&self) -> u32 {
        match self {
            Model::Source { model, .. } => model.graph.max_context as u32,
            Model::Plan(model) => model.info().max_context,
        }
    }

    /// Whether it is the embedded one.
    pub fn embedded(&self) -> bool {
        matches!(self, Model::Source { model, .. } if model.embedded)
    }

    /// Its tokenizer, if it has one; a plan's is being read from now on.
    pub fn tokenizer(&mut self) -> Option<TokenizerHandle> {
        match self {
            Model::Source { model, .. } => model.tokenizer.clone(),
            Model::Plan(model) => model.tokenizer(),
        }
    }

    /// Tokens by which its texts end.
    pub fn end_tokens(&self) -> Result<Vec<u32>> {
        match self {
            Model::Source { model, .. } => model.end_tokens(),
            Model::Plan(model) => Ok(model.end_tokens()),
        }
    }

    /// Tokens that a sequence may have, if the caller asks for `asked` or else wants room for `wanted`.
    pub fn context(&self, asked: Option<u32>, wanted: usize) -> Result<u32> {
        let longest = self.longest();
        match asked {
            Some(context) if !(1..=longest).contains(&context) => Err(Failure::BadInput(format!(
                "--context is {context}, expected 1 to {longest}, the model's longest"
            ))),
            Some(context) => Ok(context),
            None => Ok((wanted.min(longest as usize) as u32).max(DEFAULT_CONTEXT.min(longest))),
        }
    }

    /// Starts an engine for one sequence of `context` tokens.
    pub fn load(self, args: &ModelArgs, emit: &Emit, context: u32) -> Result<Loaded> {
        self.load_sequences(args, emit, context, 1)
    }

    /// The same for several sequences.
    pub fn load_sequences(
        self,
        args: &ModelArgs,
        emit: &Emit,
        context: u32,
        sequences: u32,
    ) -> Result<Loaded> {
        match self {
            Model::Source { model, level } => model.load(args, level, emit, context, sequences),
            Model::Plan(model) => model.load(args, emit, context, sequences),
        }
    }
}

/// Starts the engine of an image.
pub fn engine(image: &PlanImage, shape: KvShape, threads: usize, times: Times) -> Result<Loaded> {
    let pool = PoolConfig { threads: Some(threads), pin: false };
    let (context, sequences, chunk) = (Some(shape.context), shape.sequences, Some(shape.chunk));
    let engine = Engine::new(image, EngineConfig { pool, context, sequences, chunk })?;
    let (level, weight_bytes) = (image.program.level, image.program.weight_bytes);
    Ok(Loaded { engine, level, weights: Arc::clone(&image.weights), weight_bytes, times })
}

/// Everything that will be taken is compared with what there is before any of it is.
pub fn check_memory(program: &Program, shape: KvShape, threads: usize, limit: Option<u64>) -> Result<()> {
    let need = MemoryNeed::of(program, shape, threads);
    let total = need.total().saturating_add(program.weight_bytes);
    let allowed = available_memory().into_iter().chain(limit).min().unwrap_or(u64::MAX);
    if total <= allowed {
        return Ok(());
    }
    let gb = |bytes: u64| bytes as f64 / 1e9;
    Err(Failure::BadInput(format!(
        "not enough memory: {:.3} GB needed (weights {:.3}, KV cache {:.3}, working memory {:.3}), {:.3} GB allowed: lower \
         --context or --chunk, or take a smaller model",
        gb(total),
        gb(program.weight_bytes),
        gb(need.kv),
        gb(need.total() - need.kv),
        gb(allowed)
    )))
}
