//! From a plan, or `--spec` and `--weights`, or nothing, to a loaded engine. Everything that can be refused is refused before the work.

use crate::adapters::AdapterArgs;
use crate::emit::Emit;
use crate::failure::{Failure, Result};
use crate::plan::PlanModel;
#[cfg(feature = "compiler")]
use crate::source::{SourceAt, SourceModel, SpecSource};
use clap::builder::{PossibleValuesParser, TypedValueParser};
#[cfg(feature = "compiler")]
use kernmill_compiler::choose::Choices;
#[cfg(feature = "compiler")]
use kernmill_compiler::fuse::{FusedSet, FusedSpec};
#[cfg(feature = "compiler")]
use kernmill_compiler::pipeline::Options;
#[cfg(feature = "compiler")]
use kernmill_compiler::quant::Preset;
use kernmill_plan::memory::available_memory;
use kernmill_plan::program::Program;
#[cfg(feature = "compiler")]
use kernmill_plan::region::WeightRegion;
use kernmill_plan::target::Level;
#[cfg(feature = "compiler")]
use kernmill_plan::target::Tuning;
#[cfg(feature = "compiler")]
use kernmill_plan::tiles;
use kernmill_runtime::engine::DEFAULT_CONTEXT;
use kernmill_runtime::kv::KvShape;
use kernmill_runtime::perf;
use kernmill_runtime::pool::{MAX_THREADS, PoolConfig, default_threads};
use kernmill_runtime::{Engine, EngineConfig, MemoryNeed, PlanImage, TokenizerHandle};
#[cfg(feature = "compiler")]
use std::path::Path;
use std::path::PathBuf;
#[cfg(feature = "compiler")]
use std::sync::Arc;

/// Which model, and how it is compiled and run.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Model")]
pub struct ModelArgs {
    /// Plan that `kernmill compile` wrote: it starts at once
    #[arg(value_name = "PLAN")]
    #[cfg_attr(feature = "compiler", arg(conflicts_with_all = ["spec", "weights", "preset", "no_fuse", "fused", "without_fusion", "no_adapters"]))]
    #[cfg_attr(not(feature = "compiler"), arg(required = true))]
    pub plan: Option<PathBuf>,
    /// Use the plan's weights only, and generate the code anew from its spec
    #[cfg(feature = "compiler")]
    #[arg(long, requires = "plan")]
    pub regenerate: bool,
    /// Model spec (TOML). Without it, the spec is imported from the GGUF file, or the config.json beside the weights
    #[cfg(feature = "compiler")]
    #[arg(long, value_name = "SPEC", requires = "weights")]
    pub spec: Option<PathBuf>,
    /// Checkpoint: a directory with model.safetensors, or shards and their index, whose tokenizer.json is used if there is one;
    /// or a GGUF file. Without --weights and --spec: the embedded nano model
    #[cfg(feature = "compiler")]
    #[arg(long, value_name = "DIR|FILE.gguf")]
    pub weights: Option<PathBuf>,
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
    #[cfg(feature = "compiler")]
    #[arg(long, value_name = "PRESET", default_value = "faithful", value_parser = preset_parser())]
    pub preset: Preset,
    /// Prompt tokens that are run at once
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub chunk: u32,
    /// Whose CPUs the code is to be fast on: it runs on all of its level, and gives the same bits. native is this CPU and the default, but
    /// `compile` and `explain` with a --target other than native tune for all (generic)
    #[cfg(feature = "compiler")]
    #[arg(long, value_name = "MAKER", value_parser = tuning_parser())]
    pub tune: Option<Tuning>,
    /// Compile every graph node by itself: for comparing
    #[cfg(feature = "compiler")]
    #[arg(long)]
    pub no_fuse: bool,
    /// Leave out the branches for adapters (--lora): the code is smaller
    #[cfg(feature = "compiler")]
    #[arg(long)]
    pub no_adapters: bool,
    /// What is fused.
    #[cfg(feature = "compiler")]
    #[command(flatten)]
    pub fusions: FusedArgs,
    /// Neither progress bars nor the closing lines on standard error
    #[arg(long, short)]
    pub quiet: bool,
}

/// Which fused-op specs a model is compiled with.
#[cfg(feature = "compiler")]
#[derive(Clone, Debug, clap::Args)]
pub struct FusedArgs {
    /// Fused-op specs (TOML) besides the built-in ones: a file, or a directory of .toml files; one that has a built-in one's name replaces it
    #[arg(long, value_name = "FILE|DIR")]
    pub fused: Vec<PathBuf>,
    /// Leave out the fused-op spec of that name
    #[arg(long, value_name = "NAME")]
    pub without_fusion: Vec<String>,
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
#[cfg(feature = "compiler")]
pub fn preset_parser() -> impl TypedValueParser<Value = Preset> {
    PossibleValuesParser::new(Preset::ALL.map(Preset::name))
        .map(|name| Preset::from_name(&name).unwrap_or(Preset::Faithful))
}

/// `--tune`.
#[cfg(feature = "compiler")]
fn tuning_parser() -> impl TypedValueParser<Value = Tuning> {
    let names = std::iter::once(NATIVE).chain(Tuning::ALL.map(Tuning::name));
    let named = |name: String| Tuning::ALL.into_iter().find(|tuning| tuning.name() == name);
    PossibleValuesParser::new(names.collect::<Vec<_>>())
        .map(move |name| named(name).unwrap_or_else(Tuning::native))
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

#[cfg(feature = "compiler")]
impl CompileArgs {
    /// The same with a tuning, unless one was given: this CPU's for target native; everybody's for targets that were named, whose code does not depend
    /// on where it is compiled.
    pub fn tuned(mut self, is_native: bool) -> CompileArgs {
        self.tune.get_or_insert_with(|| if is_native { Tuning::native() } else { Tuning::Generic });
        self
    }

    /// The compiler's options for `level`.
    pub fn options(
        &self,
        level: Level,
        source: &SpecSource,
        choices: Option<Choices>,
        emit: &Emit,
    ) -> Options {
        Options {
            preset: self.preset,
            choices,
            level,
            tuning: self.tune.unwrap_or_else(Tuning::native),
            chunk: self.chunk as usize,
            adapters: !self.no_adapters,
            fuse: !self.no_fuse,
            fused: source.fused.clone(),
            keep_clif: emit.wants_clif(),
            ..Options::new(level)
        }
    }
}

#[cfg(feature = "compiler")]
impl FusedArgs {
    /// The specs given.
    pub fn read(&self) -> Result<Vec<FusedSpec>> {
        let mut specs = Vec::new();
        for path in &self.fused {
            for file in toml_files(path)? {
                let text = std::fs::read_to_string(&file).map_err(Failure::read(&file))?;
                specs.push(FusedSpec::parse(&file.display().to_string(), &text)?);
            }
        }
        Ok(specs)
    }

    /// The built-in specs and those given, without those left out.
    pub fn set(&self) -> Result<FusedSet> {
        let mut set = FusedSet::builtin().with(self.read()?)?;
        for name in &self.without_fusion {
            set = set
                .without(name)
                .map_err(|message| Failure::BadInput(format!("--without-fusion: {message}")))?;
        }
        Ok(set)
    }
}

/// A file itself, or the .toml files of a directory by name.
#[cfg(feature = "compiler")]
fn toml_files(path: &Path) -> Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let entries = std::fs::read_dir(path).map_err(Failure::read(path))?;
    let mut files = Vec::new();
    for entry in entries {
        let file = entry.map_err(Failure::read(path))?.path();
        if file.extension().is_some_and(|extension| extension == "toml") {
            files.push(file);
        }
    }
    files.sort();
    if files.is_empty() {
        return Err(Failure::input(path, "no .toml files in it, expected fused-op specs"));
    }
    Ok(files)
}

#[cfg(feature = "compiler")]
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
#[cfg(feature = "compiler")]
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

#[cfg(feature = "compiler")]
fn lacks(level: Level) -> Failure {
    Failure::BadInput(format!("this CPU lacks {}, which {} needs", level.missing().join(", "), level.name()))
}

/// A model whose files have been checked: a plan, or one that is compiled here.
pub trait Model {
    /// Size of its vocabulary.
    fn vocab(&self) -> usize;

    /// Its longest context, in tokens.
    fn longest(&self) -> u32;

    /// What to continue unless told otherwise.
    fn example(&self) -> Option<Example> {
        None
    }

    /// Its tokenizer, if it has one; a plan's is being read from now on.
    fn tokenizer(&mut self) -> Option<TokenizerHandle>;

    /// Tokens by which its texts end.
    fn end_tokens(&self) -> Result<Vec<u32>>;

    /// Starts an engine for `sequences` sequences of `context` tokens.
    fn load(self: Box<Self>, args: &ModelArgs, emit: &Emit, context: u32, sequences: u32) -> Result<Loaded>;
}

/// How the texts of a model's training began.
#[derive(Clone, Copy, Debug)]
pub struct Example {
    /// A prompt.
    pub prompt: &'static str,
    /// The token before every text.
    pub start: &'static str,
}

/// Reads and checks everything but the weights.
pub fn open(args: &ModelArgs) -> Result<Box<dyn Model>> {
    args.lora.check()?;
    if let Some(path) = &args.plan {
        return Ok(Box::new(PlanModel::open(path, args)?));
    }
    open_source(args)
}

#[cfg(feature = "compiler")]
fn open_source(args: &ModelArgs) -> Result<Box<dyn Model>> {
    let level = args.target.runnable_level(args.compile.preset)?;
    let model =
        SourceModel::open(args.spec.as_deref(), args.weights.as_deref(), args.compile.fusions.set()?)?;
    Ok(Box::new(SourceAt { model, level }))
}

#[cfg(not(feature = "compiler"))]
fn open_source(_args: &ModelArgs) -> Result<Box<dyn Model>> {
    Err(Failure::BadInput("no plan is given, and this kernmill has no compiler".to_owned()))
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
        let map = perf::write_map(&engine, &image.program.code.symbols);
        map.map_err(|(path, error)| Failure::write(&path)(error))?;
    }
    let (level, weight_bytes) = (image.program.level, image.program.weight_bytes);
    Ok(Loaded {
        engine,
        level,
        #[cfg(feature = "compiler")]
        weights: Arc::clone(&image.weights),
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
