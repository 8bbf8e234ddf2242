//! From a path to an engine that serves, and what is known of the model.

use crate::error::Failure;
use kernmill::adapters::AdapterSource;
use kernmill::chat::format_of;
use kernmill::lexicon;
use kernmill::locate::{Located, locate, nano, of_parts};
use kernmill::observe::Observer;
use kernmill::{ModelMakes, Opened, Options, Target};
use kernmill_chat::Format;
use kernmill_compiler::passes::quant::Preset;
use kernmill_constrain::{Constraint, Lexicon, Rule};
use kernmill_plan::target::Level;
use kernmill_plan::vectors::Pooling;
use kernmill_runtime::{Tokenizer, TokenizerHandle};
use kernmill_serve::{SchedulerConfig, Serving};
use pyo3::FromPyObject;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Tokens that a text may have unless the caller says another number, as far as the model can.
const CONTEXT: usize = 8192;

/// How a model is loaded; `LLM.__init__` explains the fields.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Loading {
    model: Option<PathBuf>,
    spec: Option<PathBuf>,
    preset: String,
    target: String,
    threads: Option<usize>,
    context: Option<u32>,
    kv_bytes: Option<u64>,
    max_memory: Option<u64>,
    max_sequences: u32,
    max_queue: Option<u32>,
    adapters: Vec<(String, PathBuf, f32)>,
    sessions: bool,
    kv_disk: Option<PathBuf>,
    plan_cache: Option<PathBuf>,
    chat_template: Option<PathBuf>,
    vectors: Option<String>,
}

/// Facts that do not change while a model is loaded.
pub struct ModelInfo {
    /// The model's own name.
    pub name: String,
    /// Most tokens of a text with its prompt.
    pub context: u32,
    /// Number of logits.
    pub vocab: u32,
    /// Bytes of the packed weights.
    pub weight_bytes: u64,
    /// Instruction set of the code.
    pub level: &'static str,
    /// Tokens that end a text.
    pub end_tokens: Vec<u32>,
    /// Notes on what the user may not have meant: sentences without their full stops.
    pub notes: Vec<String>,
    tokenizer: Option<TokenizerHandle>,
    format: Option<Format>,
    /// Made for the first text that is held to a form.
    lexicon: OnceLock<Lexicon>,
}

impl ModelInfo {
    /// The model's tokenizer.
    ///
    /// # Errors
    /// When the model has none, or it cannot be read.
    pub fn tokenizer(&self) -> Result<&Tokenizer, Failure> {
        self.tokenizer.as_ref().ok_or_else(none)?.get().map_err(Failure::input)
    }

    /// The model's form of conversations.
    ///
    /// # Errors
    /// As [`ModelInfo::tokenizer`].
    pub fn format(&self) -> Result<&Format, Failure> {
        self.tokenizer()?;
        self.format
            .as_ref()
            .ok_or_else(|| Failure::Input("the model has no format of conversations".to_owned()))
    }

    /// The constraint that holds a text to a rule.
    ///
    /// # Errors
    /// When the rule has a mistake, or the model has no tokenizer.
    pub fn constraint(&self, rule: &Rule) -> Result<Constraint, Failure> {
        Constraint::new(self.lexicon()?, rule).map_err(Failure::input)
    }

    /// The vocabulary made ready for constraints, which is done for the first of them.
    ///
    /// # Errors
    /// When the model has no tokenizer.
    pub fn lexicon(&self) -> Result<&Lexicon, Failure> {
        if let Some(lexicon) = self.lexicon.get() {
            return Ok(lexicon);
        }
        let ends = match &self.format {
            Some(format) => format.stop_tokens(self.tokenizer()?, &self.end_tokens),
            None => self.end_tokens.clone(),
        };
        let Some(handle) = &self.tokenizer else { return Err(none()) };
        let made = lexicon(Some(handle), self.vocab as usize, &ends)?;
        Ok(self.lexicon.get_or_init(|| made))
    }
}

fn none() -> Failure {
    let what = "the model has no tokenizer: give token ids, or put its tokenizer.json beside the weights";
    Failure::Input(what.to_owned())
}

/// Keeps the notes of a load.
#[derive(Default)]
struct Notes(Mutex<Vec<String>>);

impl Observer for Notes {
    fn note(&self, text: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(text.to_owned());
    }
}

/// The model that `path` names; without one the embedded model. `spec` describes it in place of its own.
///
/// # Errors
/// When there is no model.
pub fn find(path: Option<&Path>, spec: Option<&Path>) -> Result<Located, Failure> {
    match (path, spec) {
        (None, None) => Ok(nano()),
        (Some(path), None) => Ok(locate(path)?),
        (weights, Some(spec)) => Ok(Located::Source(of_parts(Some(spec), weights)?)),
    }
}

/// The preset of that name.
///
/// # Errors
/// When no preset has the name.
pub fn preset(name: &str) -> Result<Preset, Failure> {
    let all = || Preset::ALL.map(Preset::name).join(", ");
    Preset::from_name(name).ok_or_else(|| Failure::Input(format!("preset is \"{name}\", expected {}", all())))
}

/// The target of that name.
///
/// # Errors
/// When no target has the name.
pub fn target(name: &str) -> Result<Target, Failure> {
    let all = || Level::ALL.map(Level::name).join(", ");
    match Level::from_name(name) {
        Some(level) => Ok(Target::Level(level)),
        None if name == "native" => Ok(Target::Native),
        None => Err(Failure::Input(format!("target is \"{name}\", expected native, {}", all()))),
    }
}

/// Texts or vectors, by the name of a pooling; `none` is texts.
fn makes(vectors: Option<&str>) -> Result<ModelMakes, Failure> {
    let Some(name) = vectors else { return Ok(ModelMakes::AsFiles) };
    let pooling = Pooling::from_name(name).map(|pooling| ModelMakes::Vectors(Some(pooling)));
    pooling.or_else(|| (name == "none").then_some(ModelMakes::Texts)).ok_or_else(|| {
        Failure::Input(format!("vectors is \"{name}\", expected {}, none", Pooling::NAMES.join(", ")))
    })
}

/// Checks a number of threads.
///
/// # Errors
/// When the number is 0 or too large.
pub fn check_threads(threads: Option<usize>) -> Result<(), Failure> {
    let most = kernmill_runtime::pool::MAX_THREADS;
    match threads.filter(|threads| !(1..=most).contains(threads)) {
        Some(threads) => Err(Failure::Input(format!("threads is {threads}, expected 1 to {most}"))),
        None => Ok(()),
    }
}

/// Loads a model.
///
/// # Errors
/// When a file is wrong, memory is short, this CPU cannot run the model, or an option is out of its range.
pub fn load(asked: Loading) -> Result<(Serving, ModelInfo), Failure> {
    check_threads(asked.threads)?;
    if !(1..=256).contains(&asked.max_sequences) {
        let found = asked.max_sequences;
        return Err(Failure::Input(format!("max_sequences is {found}, expected 1 to 256")));
    }
    let notes = Arc::new(Notes::default());
    let source = |(name, directory, scale)| AdapterSource { name, directory, scale };
    let mut options = Options::default();
    options.target = target(&asked.target)?;
    options.threads = asked.threads;
    options.max_memory = asked.max_memory;
    options.kv_memory = asked.kv_bytes;
    options.kv_yields = true;
    options.kv_disk = asked.kv_disk;
    options.compile.plan_cache = asked.plan_cache;
    options.chat_template = asked.chat_template;
    options.makes = makes(asked.vectors.as_deref())?;
    options.sessions = asked.sessions;
    options.compile.producer = concat!("kernmill ", env!("CARGO_PKG_VERSION"), ", Python");
    options.adapters = asked.adapters.into_iter().map(source).collect();
    options.observer = notes.clone();
    options.compile.preset = preset(&asked.preset)?;
    let mut opened = Opened::open(find(asked.model.as_deref(), asked.spec.as_deref())?, &options)?;
    let tokenizer = opened.tokenizer();
    let end_tokens = opened.end_tokens()?;
    if let Some(note) = opened.tokenizer_note() {
        notes.note(&note);
    }
    let longest = opened.longest_context();
    if let Some(context) = asked.context.filter(|context| !(1..=longest).contains(context)) {
        let what = format!("context is {context}, expected 1 to {longest}, the model's longest");
        return Err(Failure::Input(what));
    }
    let context = opened.context(asked.context, CONTEXT)?;
    // One more than run at once: logits have a separate sequence.
    let mut loaded = opened.prepare(&options)?.load(&options, context, asked.max_sequences + 1)?;
    loaded.load_adapters(&options)?;
    let format = match &tokenizer {
        Some(handle) => match handle.get() {
            Ok(tokenizer) => {
                let format = format_of(tokenizer, loaded.image.chat_templates(), &end_tokens)?;
                format.note().iter().for_each(|note| notes.note(note));
                Some(format)
            }
            Err(error) => {
                notes.note(&format!("only token ids are taken: {error}"));
                None
            }
        },
        None => None,
    };
    let (level, weight_bytes) = (loaded.image.program().level.name(), loaded.image.program().weight_bytes);
    let info = loaded.engine.model();
    let facts = ModelInfo {
        name: info.name.clone(),
        context,
        vocab: info.vocab,
        weight_bytes,
        level,
        end_tokens,
        notes: std::mem::take(&mut *notes.0.lock().unwrap_or_else(PoisonError::into_inner)),
        tokenizer,
        format,
        lexicon: OnceLock::new(),
    };
    let config = SchedulerConfig {
        max_queue: asked.max_queue.unwrap_or(u32::MAX / 4),
        max_wait: [None; 3],
        ..SchedulerConfig::default().with_sequences(asked.max_sequences)
    };
    Ok((loaded.into_serving(config)?, facts))
}
