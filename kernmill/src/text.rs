//! [`Model`]: texts from texts.

use crate::adapters::LoadedAdapter;
use crate::constrain;
use crate::error::{Error, Result};
use crate::locate::{Located, locate};
use crate::model::{Loaded, Opened, Times};
use crate::options::Options;
use kernmill_constrain::{Constraint, Lexicon, Rule};
use kernmill_runtime::engine::DEFAULT_CONTEXT;
use kernmill_runtime::{AdapterUse, MemoryNeed, PlanImage, SamplerParams, TokenizerHandle};
use kernmill_serve::{Request, SchedulerConfig, ServingThread, Text};
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// Texts of a [`Model`] that run at once, if its memory allows; more of them wait.
const TEXTS: u32 = 8;

/// A model that is ready to make texts, many at once. The engine lives on a separate thread. Clones share
/// it, and any number of threads may use one.
///
/// ```
/// # fn main() -> Result<(), kernmill::Error> {
/// let model = kernmill::Model::nano()?; // or Model::open("gpt-oss-20b.plan")?
/// for piece in model.generate("A slice is", &kernmill::Sampling::default().max_tokens(8))? {
///     print!("{}", piece?);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Model {
    thread: ServingThread,
    about: Arc<About>,
}

/// Facts that do not change while a model is loaded.
#[non_exhaustive]
pub struct About {
    image: PlanImage,
    /// How long the parts of opening took.
    pub times: Times,
    /// Tokens that a text with its prompt may have.
    pub context: u32,
    /// Most tokens of a step.
    pub chunk: u32,
    /// Worker threads.
    pub threads: usize,
    /// The memory that is taken besides weights and code.
    pub memory: MemoryNeed,
    /// Tokens that end a text.
    pub end_tokens: Vec<u32>,
    /// The adapters that were loaded with the model. All of them add to every text of [`Model::generate`].
    pub adapters: Vec<LoadedAdapter>,
    /// Made when the first text is held to a form.
    lexicon: OnceLock<Lexicon>,
    /// The adapters of all texts.
    pub(crate) uses: Vec<AdapterUse>,
}

/// How a text is made: length, randomness, and where it ends. The default is temperature 0.6, top-p 0.9, seed
/// 0 and at most 200 tokens.
///
/// ```
/// use kernmill::Sampling;
///
/// let one_line = Sampling::default().seed(7).max_tokens(50).stop("\n");
/// let always_the_same = Sampling::greedy();
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Sampling {
    /// The largest number of tokens to generate.
    pub max_tokens: usize,
    /// How the next token is chosen: temperature, top-k, top-p, min-p, penalties, seed.
    pub sampler: SamplerParams,
    /// Strings that end the text. They are not part of it.
    pub stop: Vec<String>,
    /// Whether special tokens, such as the end token, are part of the text.
    pub shows_special: bool,
    /// The form that the text must have: JSON of a schema, for example. A text that `max_tokens` or a stop
    /// string cuts off is the beginning of one.
    pub rule: Option<Rule>,
    /// Whether steps may check guesses of how the text goes on, so that several tokens come at once where it
    /// repeats something. The text is the same.
    pub drafts: bool,
}

impl Default for Sampling {
    fn default() -> Sampling {
        let sampler =
            SamplerParams { temperature: 0.6, top_p: 0.9, seed: Some(0), ..SamplerParams::default() };
        Sampling {
            max_tokens: 200,
            sampler,
            stop: Vec::new(),
            shows_special: false,
            rule: None,
            drafts: true,
        }
    }
}

impl Sampling {
    /// Takes the likeliest token each time; no randomness.
    pub fn greedy() -> Sampling {
        let sampler = SamplerParams { temperature: 0.0, ..Sampling::default().sampler };
        Sampling { sampler, ..Sampling::default() }
    }

    /// Sets the largest number of tokens to generate.
    #[must_use]
    pub fn max_tokens(mut self, tokens: usize) -> Sampling {
        self.max_tokens = tokens;
        self
    }

    /// Sets the seed. The same seed gives the same text.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Sampling {
        self.sampler.seed = Some(seed);
        self
    }

    /// Holds the text to a form.
    ///
    /// ```
    /// # fn main() -> Result<(), kernmill::Error> {
    /// use kernmill::{Rule, Sampling};
    ///
    /// let model = kernmill::Model::nano()?;
    /// let sampling = Sampling::default().rule(Rule::Regex("(yes|no), [a-z]{1,8}".to_owned()));
    /// let text = model.generate("Is it?", &sampling)?.collect::<Result<String, _>>()?;
    /// assert!(text.starts_with("yes, ") || text.starts_with("no, "));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn rule(mut self, rule: Rule) -> Sampling {
        self.rule = Some(rule);
        self
    }

    /// This sampling, as `set` changes it.
    ///
    /// ```
    /// use kernmill::Sampling;
    ///
    /// let sampling = Sampling::default().with(|sampling| sampling.sampler.top_k = Some(40));
    /// ```
    #[must_use]
    pub fn with(mut self, set: impl FnOnce(&mut Sampling)) -> Sampling {
        set(&mut self);
        self
    }

    /// Adds a string that ends the text.
    #[must_use]
    pub fn stop(mut self, text: impl Into<String>) -> Sampling {
        self.stop.push(text.into());
        self
    }
}

impl Model {
    /// Opens a plan, a checkpoint's directory, a GGUF file, or a spec whose weights lie beside it. Plans
    /// start at once; other models are compiled for this CPU first. The context is the model's longest, at
    /// most 4096 tokens.
    ///
    /// # Errors
    /// When a file is wrong, memory is short, or this CPU cannot run the model.
    pub fn open(path: impl AsRef<Path>) -> Result<Model> {
        Model::open_with(path, &Options::default(), None)
    }

    /// Opens a model as [`Model::open`] does, with options, and with room for texts of `context` tokens.
    ///
    /// # Errors
    /// When a file is wrong, memory is short, this CPU cannot run the model, the context is longer than the
    /// model's longest, or an adapter cannot be loaded.
    pub fn open_with(path: impl AsRef<Path>, options: &Options, context: Option<u32>) -> Result<Model> {
        Model::start(locate(path.as_ref())?, options, context)
    }

    /// The embedded model: a GPT-OSS in miniature that writes in the manner of the Rust documentation.
    ///
    /// # Errors
    /// When memory is short, or this CPU lacks AVX2.
    pub fn nano() -> Result<Model> {
        Model::nano_with(&Options::default())
    }

    /// Opens the embedded model as [`Model::nano`] does, with options.
    ///
    /// # Errors
    /// When memory is short, this CPU cannot run the target, or an adapter cannot be loaded.
    pub fn nano_with(options: &Options) -> Result<Model> {
        Model::start(crate::locate::nano(), options, None)
    }

    fn start(located: Located, options: &Options, context: Option<u32>) -> Result<Model> {
        // Memory that is not used is not taken.
        let options = Options { kv_yields: true, ..options.clone() };
        let mut opened = Opened::open(located, &options)?;
        let longest = opened.longest_context();
        let context = context.unwrap_or(longest.min(DEFAULT_CONTEXT));
        if !(1..=longest).contains(&context) {
            let what = format!("the context is {context}, expected 1 to {longest}, the model's longest");
            return Err(Error::bad_input(what));
        }
        // It is read while the code is generated.
        opened.tokenizer();
        let end_tokens = opened.end_tokens()?;
        let mut loaded = opened.prepare(&options)?.load(&options, context, TEXTS)?;
        let adapters = loaded.load_adapters(&options)?;
        let config = SchedulerConfig {
            max_queue: u32::MAX / 4,
            max_wait: [None; 3],
            ..SchedulerConfig::default().with_sequences(TEXTS)
        };
        Model::of(loaded, config, end_tokens, adapters)
    }

    /// A loaded model, whose texts a scheduler runs as `config` says. `end_tokens` are the model's;
    /// `adapters` have been loaded into it, and belong to all texts of [`Model::generate`].
    ///
    /// # Errors
    /// When an option of the configuration is out of its range.
    pub fn of(
        loaded: Loaded,
        config: SchedulerConfig,
        end_tokens: Vec<u32>,
        adapters: Vec<LoadedAdapter>,
    ) -> Result<Model> {
        let engine = &loaded.engine;
        let about = About {
            image: loaded.image.clone(),
            times: loaded.times,
            context: engine.context(),
            chunk: engine.chunk(),
            threads: engine.threads(),
            memory: engine.memory(),
            end_tokens,
            lexicon: OnceLock::new(),
            uses: adapters.iter().map(|adapter| AdapterUse::of(&adapter.name)).collect(),
            adapters,
        };
        let thread = ServingThread::anywhere(loaded.into_serving(config)?);
        Ok(Model { thread, about: Arc::new(about) })
    }

    /// The thread that makes the texts: it takes requests of token ids, and does other work between steps.
    ///
    /// ```
    /// # fn main() -> Result<(), kernmill::Error> {
    /// use kernmill::Request;
    ///
    /// let model = kernmill::Model::nano()?;
    /// let answer = model.thread().text(Request::greedy(vec![1, 2, 3], 5))?.whole()?;
    /// assert_eq!(answer.tokens.len(), 5);
    /// let steps = model.thread().run(|serving| serving.stats().steps)?;
    /// assert!(steps >= 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn thread(&self) -> &ServingThread {
        &self.thread
    }

    /// The program, the packed weights, and the tokenizer.
    pub fn image(&self) -> &PlanImage {
        &self.about.image
    }

    /// The model's tokenizer, if it has one.
    pub fn tokenizer(&self) -> Option<&TokenizerHandle> {
        self.about.image.tokenizer()
    }

    /// The facts that do not change while the model is loaded.
    pub fn about(&self) -> &About {
        &self.about
    }

    pub(crate) fn vocab(&self) -> usize {
        self.about.image.program().model.vocab as usize
    }

    pub(crate) fn context(&self) -> u32 {
        self.about.context
    }

    pub(crate) fn end_tokens(&self) -> &[u32] {
        &self.about.end_tokens
    }

    /// The token ids of a text, with the tokens that the tokenizer puts at the start.
    ///
    /// ```
    /// # fn main() -> Result<(), kernmill::Error> {
    /// let ids = kernmill::Model::nano()?.encode("A slice is")?;
    /// assert!(!ids.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When the model has no tokenizer, the tokenizer cannot be used, or the text has more tokens than the
    /// context.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>> {
        let tokenizer = self.tokenizer().ok_or_else(no_tokenizer)?;
        Ok(tokenizer.get()?.encode_within(text, true, self.context() as usize)?)
    }

    /// Continues a text. The iterator gives it piece by piece, and ends at an end token, a stop string, the
    /// limit of tokens, or when the context is full. The text is made while the caller does something else,
    /// beside the others that are asked for; dropping the iterator ends it.
    ///
    /// ```
    /// # fn main() -> Result<(), kernmill::Error> {
    /// let model = kernmill::Model::nano()?;
    /// let sampling = kernmill::Sampling::greedy().max_tokens(8);
    /// let texts = ["A slice is", "The borrow checker"].map(|prompt| model.generate(prompt, &sampling));
    /// for text in texts {
    ///     println!("{}", text?.collect::<Result<String, _>>()?);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When the prompt is empty or too long, a sampling parameter is out of range, or the rule has a mistake.
    pub fn generate(&self, prompt: &str, sampling: &Sampling) -> Result<Text> {
        Ok(self.thread.text(self.request(self.encode(prompt)?, sampling)?)?)
    }

    /// The request that continues token ids, for the model's thread.
    ///
    /// # Errors
    /// When the rule has a mistake, or there is one and the model has no tokenizer.
    pub fn request(&self, prompt: Vec<u32>, sampling: &Sampling) -> Result<Request> {
        let constraint = sampling.rule.as_ref().map(|rule| self.constraint(rule)).transpose()?;
        Ok(Request {
            adapters: self.about.uses.clone(),
            sampler: sampling.sampler.clone(),
            stop: sampling.stop.clone(),
            stop_tokens: self.about.end_tokens.clone(),
            shows_special: sampling.shows_special,
            drafts: sampling.drafts,
            constraint,
            ..Request::greedy(prompt, u32::try_from(sampling.max_tokens).unwrap_or(u32::MAX))
        })
    }

    /// The constraint that holds a text of this model to a rule. Making it takes a moment, which is the
    /// calling thread's.
    fn constraint(&self, rule: &Rule) -> Result<Constraint> {
        Constraint::new(self.lexicon()?, rule).map_err(|error| Error::bad_input(error.to_string()))
    }

    /// The vocabulary as forms need it.
    pub(crate) fn lexicon(&self) -> Result<&Lexicon> {
        let About { lexicon, end_tokens, .. } = &*self.about;
        if let Some(lexicon) = lexicon.get() {
            return Ok(lexicon);
        }
        let made = constrain::lexicon(self.tokenizer(), self.vocab(), end_tokens)?;
        Ok(lexicon.get_or_init(|| made))
    }
}

pub(crate) fn no_tokenizer() -> Error {
    Error::bad_input("the model has no tokenizer: give token ids to its thread")
}
