//! From a path to a model that runs, in three steps: [`Opened`], [`Prepared`], [`Loaded`].

use crate::adapters::{self, LoadedAdapter};
use crate::chat::given_or;
use crate::compiler::{Compiled, CompiledModel, Found, Made, OpenedSource, SourceModel};
use crate::error::{Error, Result};
use crate::locate::Located;
use crate::makes::ModelMakes;
use crate::memory::{self, lock};
use crate::options::Options;
use crate::plan::PlanModel;
use kernmill_kv_store::{PayloadLayout, Store, StoreOptions};
use kernmill_plan::chat::ChatTemplates;
use kernmill_plan::program::Program;
use kernmill_runtime::kv::KvShape;
use kernmill_runtime::{Engine, EngineConfig, PlanImage, TokenizerHandle, perf, vtune};
use kernmill_serve::{SchedulerConfig, Serving};
use std::path::PathBuf;

/// A model whose files have been opened and checked. Its weights have not been read.
///
/// ```
/// # fn main() -> Result<(), kernmill::Error> {
/// use kernmill::{Opened, Options, locate::nano};
/// use kernmill_runtime::{SequenceTokens, LogitRow, Steps};
///
/// let options = Options::default().with(|it| it.threads = Some(1));
/// let opened = Opened::open(nano(), &options)?; // or locate("gpt-oss-20b.plan")?
/// // Two sequences of up to 128 tokens.
/// let mut engine = opened.prepare(&options)?.load(&options, 128, 2)?.engine;
/// let (a, b) = (engine.create()?, engine.create()?);
/// let batch = [SequenceTokens::last(a, &[1, 2, 3]), SequenceTokens::silent(b, &[4])];
/// engine.step(&batch, &|_worker: usize, row: LogitRow<'_>| assert_eq!((row.entry, row.token), (0, 2)))?;
/// # Ok(())
/// # }
/// ```
pub enum Opened {
    /// A plan: the model was compiled before.
    Plan(Box<PlanModel>),
    /// A checkpoint or GGUF file: the model is compiled in this process.
    Source(Box<OpenedSource>),
}

impl Opened {
    /// Opens the files of a model and checks everything but the weights. With `options.compile.plan_cache`, a
    /// model that was compiled before is a plan.
    ///
    /// # Errors
    /// When a file cannot be read or is wrong, or asks for what this CPU or version cannot do.
    pub fn open(located: Located, options: &Options) -> Result<Opened> {
        adapters::check(&options.adapters)?;
        options.check_cpus()?;
        options.note_threads();
        match located {
            Located::Plan(path) => Ok(Opened::Plan(Box::new(PlanModel::open(&path, options)?))),
            Located::Source(mut files) => {
                if files.makes == ModelMakes::AsFiles {
                    files.makes = options.makes;
                }
                Ok(match OpenedSource::open(&files, options)? {
                    Found::Source(source) => Opened::Source(source),
                    Found::Kept(plan) => Opened::Plan(plan),
                })
            }
        }
    }

    /// The number of tokens of the model's vocabulary.
    pub fn vocab(&self) -> usize {
        match self {
            Opened::Plan(plan) => plan.program().model.vocab as usize,
            Opened::Source(source) => source.vocab(),
        }
    }

    /// The longest context that the model was made for, in tokens.
    pub fn longest_context(&self) -> u32 {
        match self {
            Opened::Plan(plan) => plan.program().model.max_context,
            Opened::Source(source) => source.longest_context(),
        }
    }

    /// The tokens that a sequence may have: `asked` of them, or else room for `wanted`, but at least
    /// [`DEFAULT_CONTEXT`](kernmill_runtime::engine::DEFAULT_CONTEXT), if the model was made for so many.
    ///
    /// # Errors
    /// When more is asked for than the model was made for, or nothing.
    pub fn context(&self, asked: Option<u32>, wanted: usize) -> Result<u32> {
        memory::context(self.longest_context(), asked, wanted)
    }

    /// A prompt that the model continues well; `None` unless it is the embedded model.
    pub fn example(&self) -> Option<&'static str> {
        match self {
            Opened::Plan(plan) => plan.example(),
            Opened::Source(source) => source.example(),
        }
    }

    /// A handle to the model's tokenizer, which a new thread begins to read now; `None` if the model has
    /// none.
    pub fn tokenizer(&mut self) -> Option<TokenizerHandle> {
        match self {
            Opened::Plan(plan) => plan.tokenizer(),
            Opened::Source(source) => source.tokenizer(),
        }
    }

    /// Leaves the tokenizer out: the engine takes and gives token ids only.
    pub fn leave_tokenizer(&mut self) {
        match self {
            Opened::Plan(plan) => plan.leave_tokenizer(),
            Opened::Source(source) => source.leave_tokenizer(),
        }
    }

    /// A note about the tokenizer for the user, in one sentence, if there is something to know.
    pub fn tokenizer_note(&self) -> Option<String> {
        match self {
            Opened::Plan(_) => None,
            Opened::Source(source) => source.tokenizer_note(),
        }
    }

    /// A note for a user who gives the model a text, in one sentence, if it was trained to converse.
    pub fn chat_note(&self) -> Option<&'static str> {
        let templates = match self {
            Opened::Plan(plan) => plan.image().chat_templates(),
            Opened::Source(source) => source.chat_templates(),
        };
        (self.example().is_none() && !templates.templates.is_empty()).then_some(
            "the model has a form for conversations, in which `kernmill chat MODEL` answers; here \
                the text goes on",
        )
    }

    /// Ids of the tokens that end a text of this model.
    ///
    /// # Errors
    /// When a file that names them is wrong.
    pub fn end_tokens(&self) -> Result<Vec<u32>> {
        match self {
            Opened::Plan(plan) => Ok(plan.plan().metadata().end_tokens.clone()),
            Opened::Source(source) => source.end_tokens(),
        }
    }

    /// Compiles the model, unless it is a plan.
    ///
    /// # Errors
    /// When the model cannot be compiled, its plan cannot be written to `options.compile.plan_cache`, or
    /// [`Options::chat_template`] is no template.
    pub fn prepare(self, options: &Options) -> Result<Prepared> {
        let own = match &self {
            Opened::Plan(plan) => plan.image().chat_templates(),
            Opened::Source(source) => source.chat_templates(),
        };
        let mut chat_templates = given_or(options.chat_template.as_deref(), own)?;
        if let Some(prompt) = &options.prompt {
            chat_templates.prompts.text(Some(prompt)).map_err(Error::bad_input)?;
            chat_templates.prompts.default = Some(prompt.clone());
        }
        let (kind, times) = self.compiled(options)?;
        Ok(Prepared { kind, times, chat_templates })
    }

    fn compiled(self, options: &Options) -> Result<(PreparedCode, Times)> {
        match self {
            Opened::Plan(plan) => {
                let (compile, open) = plan.times();
                Ok((PreparedCode::Plan(plan), Times { compile, open, ..Times::default() }))
            }
            Opened::Source(source) => {
                let (made, [choose, compile]) = source.compile(options)?;
                let kind = match made {
                    Made::Compiled(model) => PreparedCode::Compiled(model),
                    Made::Kept(plan) => PreparedCode::Plan(plan),
                };
                Ok((kind, Times { choose, compile, ..Times::default() }))
            }
        }
    }
}

/// A model whose code has been generated or taken from a plan. Its weights have not been read.
pub struct Prepared {
    kind: PreparedCode,
    times: Times,
    /// The model's chat templates, or the user's one.
    chat_templates: ChatTemplates,
}

enum PreparedCode {
    Plan(Box<PlanModel>),
    Compiled(Box<CompiledModel>),
}

/// Where the code of a [`Prepared`] model came from.
pub enum Origin<'a> {
    /// A plan file.
    Plan(&'a PlanModel),
    /// A compilation in this process: the model's files, and what the compiler made of them.
    Compiled(&'a SourceModel, &'a Compiled),
}

/// How many seconds each part of opening a model took; 0 where there was nothing to do.
#[derive(Clone, Copy, Debug, Default)]
pub struct Times {
    /// Choosing formats by the weights (preset `fast`).
    pub choose: f64,
    /// Generating code.
    pub compile: f64,
    /// Packing weights.
    pub pack: f64,
    /// Reading and checking a plan.
    pub open: f64,
}

impl Prepared {
    /// Where the model's code came from.
    pub fn origin(&self) -> Origin<'_> {
        match &self.kind {
            PreparedCode::Plan(plan) => Origin::Plan(plan),
            PreparedCode::Compiled(model) => {
                let (source, compiled) = model.origin();
                Origin::Compiled(source, compiled)
            }
        }
    }

    /// The program of the model: its kernels, steps and buffers.
    pub fn program(&self) -> &Program {
        match &self.kind {
            PreparedCode::Plan(plan) => plan.program(),
            PreparedCode::Compiled(model) => model.program(),
        }
    }

    /// Reads the weights and starts an engine of this shape.
    pub(crate) fn load_with(self, options: &Options, shape: KvShape) -> Result<Loaded> {
        let store = open_store(options)?;
        let (image, times) = self.into_parts(options)?;
        engine(image, shape, options, times, store)
    }

    /// Reads the weights; what an engine, or a stage, is made of.
    ///
    /// # Errors
    /// When they cannot be read or used.
    pub(crate) fn into_image(self, options: &Options) -> Result<PlanImage> {
        Ok(self.into_parts(options)?.0)
    }

    fn into_parts(self, options: &Options) -> Result<(PlanImage, Times)> {
        match self.kind {
            PreparedCode::Plan(plan) => {
                Ok((plan.image().clone().with_chat_templates(self.chat_templates), self.times))
            }
            PreparedCode::Compiled(model) => {
                let (image, pack) = model.into_image(self.chat_templates, options)?;
                Ok((image, Times { pack, ..self.times }))
            }
        }
    }
}

/// A model in memory, with the engine that runs it.
pub struct Loaded {
    /// The engine, which runs sequences of token ids.
    pub engine: Engine,
    /// The program and the packed weights that the engine runs.
    pub image: PlanImage,
    /// How long the parts of opening took.
    pub times: Times,
}

impl Loaded {
    /// The name of the model's rows in sessions and stores of KV blocks; `None` for a model that was compiled
    /// in this process without [`Options::sessions`] or [`Options::kv_disk`].
    pub(crate) fn kv_layout(&self) -> Option<PayloadLayout> {
        self.image.identity().map(|identity| self.engine.kv_layout(&identity))
    }

    /// Reads the adapters of `options` and puts them into the engine.
    ///
    /// # Errors
    /// When an adapter cannot be read or does not fit, or memory is short.
    pub fn load_adapters(&mut self, options: &Options) -> Result<Vec<LoadedAdapter>> {
        adapters::load(&options.adapters, &mut self.engine, &*options.observer)
    }

    /// The engine behind a scheduler, with the model's tokenizer.
    ///
    /// # Errors
    /// When an option of the configuration is out of its range.
    pub fn into_serving(self, config: SchedulerConfig) -> Result<Serving> {
        let (layout, tokenizer) = (self.kv_layout(), self.image.tokenizer().cloned());
        let mut serving = Serving::new(self.engine, config)?.with_tokenizer(tokenizer);
        serving.keep_sessions(layout);
        Ok(serving)
    }
}

fn engine(
    image: PlanImage,
    shape: KvShape,
    options: &Options,
    times: Times,
    store: Option<Store>,
) -> Result<Loaded> {
    let pool = options.pool();
    let (context, sequences, chunk) = (Some(shape.context), shape.sequences, Some(shape.chunk));
    let config =
        EngineConfig { pool, context, sequences, chunk, kv: shape.budget, ..EngineConfig::default() };
    let engine = match &options.stage {
        None => Engine::new(&image, config)?,
        Some(stage) => Engine::with_stages(&image, config, &stage.config())?,
    };
    if options.mlock {
        lock(image.weights())?;
    }
    engine.laid_weights().unwrap_or_default().notes().iter().for_each(|note| options.observer.note(note));
    let code = &image.program().code;
    let failed = |(path, error): (PathBuf, std::io::Error)| Error::write(&path)(error);
    vtune::announce(engine.code_address(), &code.symbols);
    if options.perf_map {
        perf::write_map(&engine, &code.symbols).map_err(failed)?;
    }
    if let Some(dir) = &options.perf_jit {
        perf::write_dump(dir, &engine, code).map_err(failed)?;
    }
    let mut loaded = Loaded { engine, image, times };
    if let (Some(store), Some(layout)) = (store, loaded.kv_layout()) {
        loaded.engine.keep_on_disk(store, layout);
    }
    Ok(loaded)
}

/// Opens the store of KV blocks that the options ask for.
fn open_store(options: &Options) -> Result<Option<Store>> {
    let Some(dir) = &options.kv_disk else { return Ok(None) };
    let opened = Store::open(dir, StoreOptions { limit: options.kv_disk_limit, ..Default::default() });
    opened.map(Some).map_err(|error| Error::told(format!("--kv-disk: {error}"), error))
}
