//! From a path to a model that runs, in three steps: [`Opened`], [`Prepared`], [`Model`].

use crate::adapters::{self, LoadedAdapter};
#[cfg(feature = "compiler")]
use crate::cache;
use crate::error::Result;
use crate::locate::Located;
use crate::memory::{WeightsIn, check_memory};
#[cfg(feature = "compiler")]
use crate::nano;
#[cfg(feature = "compiler")]
use crate::observe::Unit;
use crate::options::Options;
use crate::plan::PlanModel;
#[cfg(feature = "compiler")]
use crate::source::SourceModel;
#[cfg(feature = "compiler")]
use kernmill_compiler::{
    pack::region::build_weights,
    pipeline::{Compiled, compile},
    weights::Weights,
};
use kernmill_plan::program::Program;
use kernmill_plan::target::Level;

use kernmill_runtime::kv::{KvBudget, KvShape};
use kernmill_runtime::pool::PoolConfig;
use kernmill_runtime::{Engine, EngineConfig, PlanImage, TokenizerHandle};

#[cfg(feature = "compiler")]
use std::path::PathBuf;
#[cfg(feature = "compiler")]
use std::time::Instant;

/// A model whose files have been checked; its weights have not been read.
pub enum Opened {
    /// A plan.
    Plan(Box<PlanModel>),
    /// One that is compiled here.
    #[cfg(feature = "compiler")]
    Source(Box<OpenedSource>),
}

/// A model that is compiled here.
#[cfg(feature = "compiler")]
pub struct OpenedSource {
    /// Its files.
    pub model: SourceModel,
    /// The level that it is compiled for, which this CPU can run.
    pub level: Level,
    /// Where its plan is to be kept.
    kept: Option<PathBuf>,
    /// Its tokenizer, once it was asked for.
    tokenizer: Option<TokenizerHandle>,
}

impl Opened {
    /// Reads and checks everything but the weights.
    ///
    /// # Errors
    /// When a file is wrong, or asks for what this CPU or version cannot do.
    pub fn open(located: Located, options: &Options) -> Result<Opened> {
        adapters::check(&options.adapters)?;
        match located {
            Located::Plan(path) => Ok(Opened::Plan(Box::new(PlanModel::open(&path, options)?))),
            #[cfg(feature = "compiler")]
            Located::Source(files) => {
                let fused = options.compile.fused.clone();
                if files.lacks_weights() {
                    // A text that is no spec says so first.
                    crate::source::SpecSource::of(&files, fused.clone())?.graph()?;
                    files.need_weights()?;
                }
                let level = options.target.runnable_level(options.compile.preset, &*options.observer)?;
                let model = SourceModel::open(&files, fused)?;
                let kept = cache::place(&model, level, options)?;
                if let Some(plan) = kept.as_deref().and_then(|path| cache::open(path, options)) {
                    return Ok(Opened::Plan(Box::new(plan)));
                }
                Ok(Opened::Source(Box::new(OpenedSource { model, level, kept, tokenizer: None })))
            }
        }
    }

    /// Tokens of the vocabulary.
    pub fn vocab(&self) -> usize {
        match self {
            Opened::Plan(plan) => plan.program().model.vocab as usize,
            #[cfg(feature = "compiler")]
            Opened::Source(source) => source.model.graph.vocab,
        }
    }

    /// The longest context, in tokens.
    pub fn longest_context(&self) -> u32 {
        match self {
            Opened::Plan(plan) => plan.program().model.max_context,
            #[cfg(feature = "compiler")]
            Opened::Source(source) => source.model.graph.max_context as u32,
        }
    }

    /// A prompt that the model continues well, if it is the embedded one.
    pub fn example(&self) -> Option<&'static str> {
        match self {
            Opened::Plan(plan) => plan.example(),
            #[cfg(feature = "compiler")]
            Opened::Source(source) => source.model.embedded.then_some(nano::PROMPT),
        }
    }

    /// Its tokenizer, if it has one, which a thread of its own reads from now on.
    pub fn tokenizer(&mut self) -> Option<TokenizerHandle> {
        match self {
            Opened::Plan(plan) => plan.tokenizer(),
            #[cfg(feature = "compiler")]
            Opened::Source(source) => {
                if source.tokenizer.is_none() {
                    source.tokenizer = source.model.tokenizer();
                }
                source.tokenizer.clone()
            }
        }
    }

    /// Goes on without the tokenizer: token ids in, token ids out.
    pub fn leave_tokenizer(&mut self) {
        match self {
            Opened::Plan(plan) => plan.leave_tokenizer(),
            #[cfg(feature = "compiler")]
            Opened::Source(source) => source.tokenizer = None,
        }
    }

    /// What a user should know about the tokenizer.
    pub fn tokenizer_note(&self) -> Option<String> {
        match self {
            Opened::Plan(_) => None,
            #[cfg(feature = "compiler")]
            Opened::Source(source) => source.model.texts.note(),
        }
    }

    /// Tokens by which the model's texts end.
    ///
    /// # Errors
    /// When a file that names them is wrong.
    pub fn end_tokens(&self) -> Result<Vec<u32>> {
        match self {
            Opened::Plan(plan) => Ok(plan.plan().metadata().end_tokens.clone()),
            #[cfg(feature = "compiler")]
            Opened::Source(source) => source.model.end_tokens(),
        }
    }

    /// Compiles what is no plan.
    ///
    /// # Errors
    /// When it cannot be compiled.
    pub fn prepare(self, options: &Options) -> Result<Prepared> {
        #[cfg(not(feature = "compiler"))]
        let _ = options;
        match self {
            Opened::Plan(plan) => {
                let (compile, open) = plan.times();
                Ok(Prepared { times: Times { compile, open, ..Times::default() }, kind: Kind::Plan(plan) })
            }
            #[cfg(feature = "compiler")]
            Opened::Source(source) => {
                let start = Instant::now();
                if let Some(path) = &source.kept {
                    let mut plan = Box::new(cache::fill(&source.model, source.level, path, options)?);
                    if source.tokenizer.is_some() {
                        plan.tokenizer();
                    }
                    let times = Times { compile: start.elapsed().as_secs_f64(), ..Times::default() };
                    return Ok(Prepared { times, kind: Kind::Plan(plan) });
                }
                let preset = options.compile.preset;
                let choices = source.model.choices(preset, options.threads(), &*options.observer)?;
                let choose = start.elapsed().as_secs_f64();
                let start = Instant::now();
                let compiler = options.compile.at(source.level, options.chunk(), choices);
                let compiled = Box::new(compile(&source.model.graph, &compiler)?);
                let times = Times { choose, compile: start.elapsed().as_secs_f64(), ..Times::default() };
                Ok(Prepared { times, kind: Kind::Compiled { source, compiled } })
            }
        }
    }
}

/// A model whose code is there; its weights have not been read.
pub struct Prepared {
    kind: Kind,
    times: Times,
}

enum Kind {
    Plan(Box<PlanModel>),
    #[cfg(feature = "compiler")]
    Compiled {
        source: Box<OpenedSource>,
        compiled: Box<Compiled>,
    },
}

/// What a [`Prepared`] model came from.
pub enum Origin<'a> {
    /// A plan.
    Plan(&'a PlanModel),
    /// A compilation.
    #[cfg(feature = "compiler")]
    Compiled(&'a SourceModel, &'a Compiled),
}

/// Seconds that parts of opening took.
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

impl Prepared {
    /// What it came from.
    pub fn origin(&self) -> Origin<'_> {
        match &self.kind {
            Kind::Plan(plan) => Origin::Plan(plan),
            #[cfg(feature = "compiler")]
            Kind::Compiled { source, compiled } => Origin::Compiled(&source.model, compiled),
        }
    }

    /// Its program.
    pub fn program(&self) -> &Program {
        match &self.kind {
            Kind::Plan(plan) => plan.program(),
            #[cfg(feature = "compiler")]
            Kind::Compiled { compiled, .. } => &compiled.program,
        }
    }

    /// Checks that there is memory enough, reads the weights, and starts an engine for `sequences` sequences of up to `context` tokens.
    ///
    /// # Errors
    /// When memory is short, an adapter does not fit, or weights cannot be read or used.
    pub fn load(self, options: &Options, context: u32, sequences: u32) -> Result<Loaded> {
        adapters::check_fit(&options.adapters, self.program())?;
        let threads = options.threads();
        match self.kind {
            Kind::Plan(plan) => {
                let largest = plan.program().classes.last().map_or(1, |class| class.max_tokens);
                let chunk = options.chunk.unwrap_or(largest).min(context).min(largest);
                let shape = KvShape { context, sequences, chunk, budget: KvBudget::WorstCase };
                check_memory(plan.program(), shape, threads, options.max_memory, WeightsIn::File)?;
                if let Some(note) = plan.too_large_for_memory(shape, threads) {
                    options.observer.note(&note);
                }
                engine(plan.image().clone(), shape, threads, self.times)
            }
            #[cfg(feature = "compiler")]
            Kind::Compiled { source, compiled } => {
                let shape = KvShape {
                    context,
                    sequences,
                    chunk: options.chunk().min(context),
                    budget: KvBudget::WorstCase,
                };
                check_memory(&compiled.program, shape, threads, options.max_memory, WeightsIn::Memory)?;
                let start = Instant::now();
                let OpenedSource { model, tokenizer, .. } = *source;
                let progress = options.observer.begin("packing weights", Unit::Bytes, compiled.layout.bytes);
                let weights = Weights::new(&model.graph, &model.checkpoint)?;
                let packed = build_weights(&compiled, &weights, threads, &|bytes| progress.advance(bytes));
                drop(progress);
                // SAFETY: the compiler of this process made the program.
                let image = unsafe { PlanImage::generated(compiled.program, packed?) };
                let image = image.with_tokenizer(tokenizer).with_chat_template(model.chat_template);
                let times = Times { pack: start.elapsed().as_secs_f64(), ..self.times };
                engine(image, shape, threads, times)
            }
        }
    }
}

/// A model in memory, with its engine.
pub struct Loaded {
    /// The engine.
    pub engine: Engine,
    /// What it runs.
    pub image: PlanImage,
    /// How long it took.
    pub times: Times,
}

impl Loaded {
    /// The level that its code uses.
    pub fn level(&self) -> Level {
        self.image.program().level
    }

    /// Bytes of packed weights.
    pub fn weight_bytes(&self) -> u64 {
        self.image.program().weight_bytes
    }

    /// Loads the adapters of `options` into the engine.
    ///
    /// # Errors
    /// When one cannot be read or does not fit, or memory is short.
    pub fn load_adapters(&mut self, options: &Options) -> Result<Vec<LoadedAdapter>> {
        adapters::load(&options.adapters, &mut self.engine, &*options.observer)
    }
}

fn engine(image: PlanImage, shape: KvShape, threads: usize, times: Times) -> Result<Loaded> {
    let pool = PoolConfig { threads: Some(threads), pin: false };
    let (context, sequences, chunk) = (Some(shape.context), shape.sequences, Some(shape.chunk));
    let engine =
        Engine::new(&image, EngineConfig { pool, context, sequences, chunk, ..EngineConfig::default() })?;
    Ok(Loaded { engine, image, times })
}
