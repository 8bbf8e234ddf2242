//! From `--spec` and `--weights`, or nothing, to a loaded engine. Everything that can be refused is refused before the work.

use crate::emit::{Emit, Stages};
use crate::failure::{Failure, Result};
use crate::{nano, progress};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use kernmill_compiler::build::{BuildError, build_weights};
use kernmill_compiler::checkpoint::{Checkpoint, CheckpointError, Weights};
use kernmill_compiler::choose::Choices;
use kernmill_compiler::gguf::{Gguf, is_gguf};
use kernmill_compiler::graph::Graph;
use kernmill_compiler::import;
use kernmill_compiler::pipeline::{Compiled, Options, compile};
use kernmill_compiler::quant::Preset;
use kernmill_compiler::spec::{self, Spec};
use kernmill_plan::memory::available_memory;
use kernmill_plan::output::directory;
use kernmill_plan::region::WeightRegion;
use kernmill_plan::target::Level;
use kernmill_runtime::engine::DEFAULT_CONTEXT;
use kernmill_runtime::kv::KvShape;
use kernmill_runtime::pool::{MAX_THREADS, PoolConfig, default_threads};
use kernmill_runtime::tiles;
use kernmill_runtime::{Engine, EngineConfig, MemoryNeed, PlanImage, Tokenizer};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// Which model, and how it is compiled and run.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Model")]
pub struct ModelArgs {
    /// Model spec (TOML). Without it, the spec is imported from the GGUF file, or the config.json beside the weights
    #[arg(long, value_name = "SPEC", requires = "weights")]
    pub spec: Option<PathBuf>,
    /// Checkpoint: a directory with model.safetensors, or shards and their index, whose tokenizer.json is used if there is one;
    /// or a GGUF file. Without --weights and --spec: the embedded nano model
    #[arg(long, value_name = "DIR|FILE.gguf")]
    pub weights: Option<PathBuf>,
    #[command(flatten)]
    pub compile: CompileArgs,
    /// Worker threads; by default one for each physical core that this process may use
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=MAX_THREADS as i64))]
    pub threads: Option<u16>,
    /// Refuse to start when more memory than this would be needed, such as 15G or 800M
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub max_memory: Option<u64>,
}

/// How a model is compiled.
#[derive(Clone, Debug, clap::Args)]
pub struct CompileArgs {
    /// Quantisation. exact: weights as stored, f32 activations and cache. faithful: MXFP4 weights bit for bit, other matrices and
    /// activations int8, f16 cache. bf16: as faithful, but MXFP4 experts are multiplied by bf16 activations. fast: as faithful, but 4 bits for the matrices of attention and unembedding that lose little
    #[arg(long, value_name = "PRESET", default_value = "faithful", value_parser = preset_parser())]
    pub preset: Preset,
    /// Instruction set; native is the best that this CPU has, amx only for preset bf16
    #[arg(long, value_name = "LEVEL", default_value = "native", value_parser = target_parser())]
    pub target: Target,
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

fn target_parser() -> impl TypedValueParser<Value = Target> {
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
    fn options(&self, level: Level, choices: Option<Choices>, emit: &Emit) -> Options {
        Options {
            preset: self.preset,
            choices,
            level,
            chunk: self.chunk as usize,
            fuse: !self.no_fuse,
            keep_clif: emit.wants_clif(),
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
        emit.write(&Stages { spec: &source.text, graph, compiled: Some(&compiled) })?;
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

/// A spec's text and the name that messages call it by.
pub struct SpecSource {
    /// File name.
    pub name: String,
    /// TOML.
    pub text: String,
}

impl SpecSource {
    /// Reads a spec file.
    pub fn read(path: &Path) -> Result<SpecSource> {
        let text = std::fs::read_to_string(path).map_err(Failure::read(path))?;
        Ok(SpecSource { name: path.display().to_string(), text })
    }

    /// Writes a spec from the `config.json` in a directory, or from a GGUF file.
    pub fn import(path: &Path) -> Result<SpecSource> {
        if is_gguf(path) {
            SpecSource::import_gguf(&Gguf::open(path)?)
        } else {
            SpecSource::import_config(path)
        }
    }

    fn import_gguf(gguf: &Gguf) -> Result<SpecSource> {
        let name = gguf.path().file_stem().map_or("model".into(), |stem| stem.to_string_lossy());
        let text = import::from_gguf(&name, gguf)?;
        Ok(SpecSource { name: gguf.path().display().to_string(), text })
    }

    fn import_config(dir: &Path) -> Result<SpecSource> {
        let path = dir.join("config.json");
        let config = std::fs::read_to_string(&path).map_err(Failure::read(&path))?;
        let name =
            dir.canonicalize().ok().and_then(|dir| Some(dir.file_name()?.to_string_lossy().into_owned()));
        let text = import::from_config(name.as_deref().unwrap_or("model"), &config)
            .map_err(|error| Failure::BadInput(format!("{}: {error}", dir.display())))?;
        Ok(SpecSource { name: path.display().to_string(), text })
    }

    /// The graph that it describes.
    pub fn graph(&self) -> Result<Graph> {
        Ok(spec::lower(&Spec::parse(&self.name, &self.text)?)?)
    }
}

/// A model whose files have been checked.
pub struct Model {
    source: SpecSource,
    /// What it computes.
    pub graph: Graph,
    checkpoint: Checkpoint,
    tokenizer_json: Option<Vec<u8>>,
    chat_template: Option<String>,
    /// Its tokenizer, if it has one.
    pub tokenizer: Option<Tokenizer>,
    /// Whether it is the embedded one.
    pub embedded: bool,
    level: Level,
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
    /// Seconds to choose formats by the weights.
    pub choose_seconds: f64,
    /// Seconds to generate code.
    pub compile_seconds: f64,
    /// Seconds to pack weights.
    pub pack_seconds: f64,
}

impl Model {
    /// Reads spec, tokenizer and checkpoint headers.
    pub fn open(args: &ModelArgs) -> Result<Model> {
        let level = args.compile.target.runnable_level(args.compile.preset)?;
        Model::open_files(args.spec.as_deref(), args.weights.as_deref(), level)
    }

    /// As [`Model::open`], with the spec and the weights that there are.
    pub fn open_files(spec: Option<&Path>, weights: Option<&Path>, level: Level) -> Result<Model> {
        let mut chat_template = None;
        let (source, checkpoint, tokenizer_json) = match (spec, weights) {
            (spec, Some(weights)) => {
                // The spec's own faults come before those of the weights.
                let given = spec.map(SpecSource::read).transpose()?;
                given.as_ref().map(SpecSource::graph).transpose()?;
                if is_gguf(weights) {
                    let gguf = Gguf::open(weights)?;
                    let source = given.map_or_else(|| SpecSource::import_gguf(&gguf), Ok)?;
                    let tokenizer = read_gguf_tokenizer(&gguf)?;
                    chat_template = gguf.chat_template()?.map(str::to_owned);
                    (source, gguf.into_checkpoint()?, tokenizer)
                } else {
                    let source = given.map_or_else(|| SpecSource::import_config(weights), Ok)?;
                    source.graph()?;
                    (source, Checkpoint::open(weights)?, read_tokenizer(weights)?)
                }
            }
            _ => {
                let source = SpecSource { name: nano::NAME.to_owned(), text: nano::SPEC.to_owned() };
                let checkpoint = Checkpoint::from_static(nano::NAME, nano::WEIGHTS)?;
                (source, checkpoint, Some(nano::TOKENIZER.to_vec()))
            }
        };
        let graph = source.graph()?;
        Weights::new(&graph, &checkpoint)?;
        let tokenizer = match &tokenizer_json {
            Some(json) => Some(Tokenizer::from_json(json, graph.vocab as u32)?),
            None => None,
        };
        let embedded = weights.is_none();
        Ok(Model { source, graph, checkpoint, tokenizer_json, chat_template, tokenizer, embedded, level })
    }

    /// Tokens that a sequence may have, if the caller asks for `asked` or else wants room for `wanted`.
    pub fn context(&self, asked: Option<u32>, wanted: usize) -> Result<u32> {
        let longest = self.graph.max_context as u32;
        match asked {
            Some(context) if !(1..=longest).contains(&context) => Err(Failure::BadInput(format!(
                "--context is {context}, expected 1 to {longest}, the model's longest"
            ))),
            Some(context) => Ok(context),
            None => Ok((wanted.min(longest as usize) as u32).max(DEFAULT_CONTEXT.min(longest))),
        }
    }

    /// What preset `fast` makes of the weights; nothing for the other presets.
    pub fn choices(&self, preset: Preset, threads: usize, quiet: bool) -> Result<Option<Choices>> {
        if preset != Preset::Fast {
            return Ok(None);
        }
        let all = Choices::assumed(&self.graph).elements(&self.graph);
        let bar = progress::bytes("choosing formats", all, quiet);
        let weights = Weights::new(&self.graph, &self.checkpoint)?;
        let choices = Choices::measured(&self.graph, &weights, threads, &|elements| bar.inc(elements));
        bar.finish_and_clear();
        Ok(Some(choices.map_err(BuildError::Pack)?))
    }

    /// Compiles, packs, and starts an engine for one sequence of `context` tokens.
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
        let threads = args.threads.map_or_else(default_threads, usize::from);
        let start = Instant::now();
        let choices = self.choices(args.compile.preset, threads, args.compile.quiet)?;
        let choose_seconds = start.elapsed().as_secs_f64();
        let start = Instant::now();
        let compiled = args.compile.compile(self.level, &self.source, &self.graph, choices, emit)?;
        let compile_seconds = start.elapsed().as_secs_f64();
        let chunk = args.compile.chunk.min(context);
        let shape = KvShape { context, sequences, chunk };
        check_memory(&compiled, shape, threads, args.max_memory)?;

        let start = Instant::now();
        let weight_bytes = compiled.layout.bytes;
        let bar = progress::bytes("packing weights", weight_bytes, args.compile.quiet);
        let weights = Weights::new(&self.graph, &self.checkpoint)?;
        let packed = build_weights(&compiled, &weights, threads, &|bytes| bar.inc(bytes));
        bar.finish_and_clear();
        let image = PlanImage {
            program: compiled.program,
            code_hash: None,
            weights: packed?,
            tokenizer_json: self.tokenizer_json,
            chat_template: self.chat_template,
        };
        let pack_seconds = start.elapsed().as_secs_f64();
        let pool = PoolConfig { threads: Some(threads), pin: false };
        let config = EngineConfig { pool, context: Some(context), sequences, chunk: Some(chunk) };
        let engine = Engine::new(&image, config)?;
        let weights = image.weights;
        Ok(Loaded {
            engine,
            level: self.level,
            weights,
            weight_bytes,
            choose_seconds,
            compile_seconds,
            pack_seconds,
        })
    }
}

/// The file's own, or the `tokenizer.json` beside it if it has none that can be used.
fn read_gguf_tokenizer(gguf: &Gguf) -> Result<Option<Vec<u8>>> {
    match gguf.tokenizer_json() {
        Ok(Some(json)) => Ok(Some(json)),
        Ok(None) => read_tokenizer(gguf.path()),
        Err(error @ CheckpointError::Unsupported { .. }) => match read_tokenizer(gguf.path())? {
            Some(json) => Ok(Some(json)),
            None => Err(Failure::BadInput(format!("{error}, or the model's tokenizer.json beside the file"))),
        },
        Err(error) => Err(error.into()),
    }
}

fn read_tokenizer(weights: &Path) -> Result<Option<Vec<u8>>> {
    let dir = if weights.is_dir() { weights } else { directory(weights) };
    let path = dir.join("tokenizer.json");
    if !path.exists() {
        return Ok(None);
    }
    std::fs::read(&path).map(Some).map_err(Failure::read(&path))
}

/// Everything that will be taken is compared with what there is before any of it is.
fn check_memory(compiled: &Compiled, shape: KvShape, threads: usize, limit: Option<u64>) -> Result<()> {
    let need = MemoryNeed::of(&compiled.program, shape, threads);
    let total = need.total().saturating_add(compiled.layout.bytes);
    let allowed = available_memory().into_iter().chain(limit).min().unwrap_or(u64::MAX);
    if total <= allowed {
        return Ok(());
    }
    let gb = |bytes: u64| bytes as f64 / 1e9;
    Err(Failure::BadInput(format!(
        "not enough memory: {:.3} GB needed (weights {:.3}, KV cache {:.3}, working memory {:.3}), {:.3} GB allowed: lower \
         --context or --chunk, or take a smaller model",
        gb(total),
        gb(compiled.layout.bytes),
        gb(need.kv),
        gb(need.total() - need.kv),
        gb(allowed)
    )))
}
