//! [`Model`]: text from text.

use crate::adapters::{self, LoadedAdapter};
use crate::constrain::{self, Constraint, Lexicon, Rule};
use crate::error::{Error, Result};
use crate::locate::{Located, locate};
use crate::model::{Loaded, Opened};
use crate::options::Options;
use kernmill_runtime::engine::DEFAULT_CONTEXT;
use kernmill_runtime::{
    AdapterUse, EngineError, EngineThread, GenerateParams, Generation, SamplerParams, SuffixDrafter, Summary,
    ThreadError, TokenizerHandle,
};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::sync::{Arc, OnceLock};

/// A model that is ready to make text. The engine lives on a thread of its own. Clones share it, and several
/// threads may use one clone. Texts are made one after the other.
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
    engine: EngineThread,
    tokenizer: Option<TokenizerHandle>,
    context: u32,
    end_tokens: Vec<u32>,
    vocab: usize,
    /// Made when the first text is held to a form.
    lexicon: Arc<OnceLock<Lexicon>>,
    adapters: Vec<LoadedAdapter>,
    uses: Vec<AdapterUse>,
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
pub struct Sampling {
    /// The largest number of tokens to generate.
    pub max_tokens: usize,
    /// How the next token is chosen: temperature, top-k, top-p, min-p, penalties, seed.
    pub sampler: SamplerParams,
    /// Strings that end the text. They are not part of it.
    pub stop: Vec<String>,
    /// Whether special tokens, such as the end token, are part of the text.
    pub shows_special: bool,
    /// What the text must be: JSON of a schema, for example. A text that `max_tokens` or a stop string cuts
    /// off is the beginning of one.
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
    /// use kernmill::{Sampling, constrain::Rule};
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
    #[cfg(feature = "compiler")]
    pub fn nano() -> Result<Model> {
        Model::nano_with(&Options::default())
    }

    /// Opens the embedded model as [`Model::nano`] does, with options.
    ///
    /// # Errors
    /// When memory is short, this CPU cannot run the target, or an adapter cannot be loaded.
    #[cfg(feature = "compiler")]
    pub fn nano_with(options: &Options) -> Result<Model> {
        Model::start(crate::locate::nano(), options, None)
    }

    fn start(located: Located, options: &Options, context: Option<u32>) -> Result<Model> {
        let mut opened = Opened::open(located, options)?;
        let longest = opened.longest_context();
        let context = context.unwrap_or(longest.min(DEFAULT_CONTEXT));
        if !(1..=longest).contains(&context) {
            let what = format!("the context is {context}, expected 1 to {longest}, the model's longest");
            return Err(Error::BadInput(what));
        }
        // It is read while the code is generated.
        let tokenizer = opened.tokenizer();
        let (end_tokens, vocab) = (opened.end_tokens()?, opened.vocab());
        let mut loaded = opened.prepare(options)?.load(options, context, 1)?;
        let adapters = loaded.load_adapters(options)?;
        let Loaded { engine, .. } = loaded;
        let uses = adapters::together(&options.adapters);
        let (engine, lexicon) = (EngineThread::of(engine)?, Arc::default());
        Ok(Model { engine, tokenizer, context, end_tokens, vocab, lexicon, adapters, uses })
    }

    /// The engine's thread, for work on token ids: several sequences at once, logits, adapters that come and
    /// go.
    ///
    /// ```
    /// # fn main() -> Result<(), kernmill::Error> {
    /// use kernmill::{EngineError, Entry};
    ///
    /// let model = kernmill::Model::nano()?;
    /// let length = model.engine().run(|engine| -> Result<u32, EngineError> {
    ///     let sequence = engine.create()?;
    ///     engine.step(&[Entry::silent(sequence, &[1, 2, 3])], &())?;
    ///     engine.length(sequence)
    /// })??;
    /// assert_eq!(length, 3);
    /// # Ok(())
    /// # }
    /// ```
    pub fn engine(&self) -> &EngineThread {
        &self.engine
    }

    /// The adapters that were loaded with the model. All of them add to every text.
    pub fn adapters(&self) -> &[LoadedAdapter] {
        &self.adapters
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
        let tokenizer = self.tokenizer.as_ref().ok_or_else(|| {
            Error::BadInput("the model has no tokenizer: use token ids by way of the engine".to_owned())
        })?;
        Ok(tokenizer.get()?.encode_within(text, true, self.context as usize)?)
    }

    /// Continues a text. The iterator gives it piece by piece, and ends at an end token, a stop string, the
    /// limit of tokens, or when the context is full. The text is made while the caller does something else;
    /// dropping the iterator ends it.
    ///
    /// # Errors
    /// When the prompt is empty or too long, a sampling parameter is out of range, or the rule has a mistake.
    pub fn generate(&self, prompt: &str, sampling: &Sampling) -> Result<Pieces> {
        let ids = self.encode(prompt)?;
        let params = GenerateParams {
            max_tokens: sampling.max_tokens,
            adapters: self.uses.clone(),
            sampler: sampling.sampler.clone(),
            written: Vec::new(),
            stop: sampling.stop.clone(),
            stop_tokens: self.end_tokens.clone(),
            shows_special: sampling.shows_special,
            guide: sampling
                .rule
                .as_ref()
                .map(|rule| self.constraint(rule))
                .transpose()?
                .map(constrain::guide),
            drafter: sampling.drafts.then(SuffixDrafter::boxed),
        };
        let (started, has_started) = sync_channel(1);
        let (messages, received) = channel();
        let stop = Arc::new(AtomicBool::new(false));
        let is_stopped = Arc::clone(&stop);
        self.engine.give(move |engine| match engine.start_generation(&ids, &params) {
            Ok(generation) => {
                drop(started.send(Ok(())));
                make(generation, &messages, &is_stopped);
            }
            Err(error) => drop(started.send(Err(error))),
        })?;
        has_started.recv().map_err(|_| ThreadError::Ended)??;
        Ok(Pieces { messages: received, stop, summary: None, ended: false })
    }

    /// What holds a text of this model to a rule. Making it takes a moment, which is the calling thread's.
    fn constraint(&self, rule: &Rule) -> Result<Constraint> {
        let lexicon = match self.lexicon.get() {
            Some(lexicon) => lexicon,
            None => {
                let tokenizer = constrain::needed(self.tokenizer.as_ref())?;
                let made = constrain::lexicon(tokenizer, self.vocab, &self.end_tokens)?;
                self.lexicon.get_or_init(|| made)
            }
        };
        Constraint::new(lexicon, rule).map_err(|error| Error::BadInput(error.to_string()))
    }
}

/// What the engine's thread tells of a text.
enum Message {
    Piece(String),
    Failed(EngineError),
    Done(Summary),
}

/// Makes a text to its end, or until nobody wants it any more.
fn make(mut generation: Generation<'_>, messages: &Sender<Message>, is_stopped: &AtomicBool) {
    loop {
        let message = match generation.next_piece() {
            Ok(Some(piece)) => Message::Piece(piece),
            Ok(None) => break,
            Err(error) => return drop(messages.send(Message::Failed(error))),
        };
        if messages.send(message).is_err() || is_stopped.load(Ordering::Relaxed) {
            generation.stop();
        }
    }
    drop(messages.send(Message::Done(generation.into_summary())));
}

/// A text as it comes: whole characters, nothing that may belong to a stop string.
pub struct Pieces {
    messages: Receiver<Message>,
    /// Set when no more text is wanted.
    stop: Arc<AtomicBool>,
    summary: Option<Summary>,
    ended: bool,
}

impl Pieces {
    /// What was generated, how long it took, and why it ended;
    /// [`StopReason::Caller`](kernmill_runtime::StopReason::Caller) if this call ended it. `None` if it has
    /// failed.
    pub fn summary(mut self) -> Option<Summary> {
        self.stop.store(true, Ordering::Relaxed);
        while !self.ended {
            drop(self.next());
        }
        self.summary
    }
}

impl Iterator for Pieces {
    type Item = Result<String>;

    fn next(&mut self) -> Option<Result<String>> {
        while !self.ended {
            match self.messages.recv() {
                Ok(Message::Piece(piece)) if piece.is_empty() => {}
                Ok(Message::Piece(piece)) => return Some(Ok(piece)),
                Ok(Message::Done(summary)) => {
                    self.summary = Some(summary);
                    self.ended = true;
                }
                Ok(Message::Failed(error)) => {
                    self.ended = true;
                    return Some(Err(error.into()));
                }
                Err(_) => {
                    self.ended = true;
                    return Some(Err(ThreadError::Ended.into()));
                }
            }
        }
        None
    }
}
