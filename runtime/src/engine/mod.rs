//! The engine: sequences of tokens over one loaded plan.

mod adapters;

use crate::adapter::{AdapterError, AdapterLoader, AdapterStore, AdapterTable};
use crate::code::CodeError;
use crate::error_kind::ErrorKind;
use crate::executor::{Batch, BatchError, Executor, LoadError, MemoryNeed};
use crate::image::PlanImage;
use crate::kv::{KvError, KvShape, KvTables};
use crate::pool::{Pool, PoolConfig, PoolError};
use crate::profile::{Detail, Profile};
use crate::sampler::SamplerError;
use crate::tokenizer::{Tokenizer, TokenizerError};
use crate::tokenizer_handle::TokenizerHandle;
use kernmill_os::float_env::FloatEnv;
use kernmill_plan::program::ModelInfo;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What an engine is made with.
#[derive(Clone, Copy, Debug)]
pub struct EngineConfig {
    /// Workers and their pinning.
    pub pool: PoolConfig,
    /// Longest sequence in tokens; `None` takes the model's longest or [`DEFAULT_CONTEXT`], whichever is less.
    pub context: Option<u32>,
    /// Sequences at once.
    pub sequences: u32,
    /// Most tokens per run; `None` takes the program's largest class.
    pub chunk: Option<u32>,
}

/// Context of an engine that is not asked for one.
pub const DEFAULT_CONTEXT: u32 = 4096;
/// Most sequences of an engine.
pub const MAX_SEQUENCES: u32 = 4096;

impl Default for EngineConfig {
    fn default() -> EngineConfig {
        EngineConfig { pool: PoolConfig::default(), context: None, sequences: 1, chunk: None }
    }
}

/// Why an engine cannot be made or a request not be served.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// A number of the configuration is out of range.
    #[error("{name} is {found}, expected 1 to {max}")]
    Config {
        /// Which one.
        name: &'static str,
        /// Its value.
        found: u32,
        /// Largest legal value.
        max: u32,
    },
    /// The plan cannot be executed here.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The workers could not be started.
    #[error(transparent)]
    Pool(#[from] PoolError),
    /// The tokenizer is missing, unfit, or failed.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    /// Text was asked of a plan without a tokenizer.
    #[error("the plan has no tokenizer: give and take token ids instead of text")]
    NoTokenizer,
    /// A token id past the vocabulary.
    #[error("token {index} of the input has id {token}, expected less than {vocab}")]
    Token {
        /// Place in the input.
        index: usize,
        /// The id.
        token: u32,
        /// Vocabulary size.
        vocab: u32,
    },
    /// A prompt without tokens.
    #[error("the prompt has no tokens: at least one is needed to start from")]
    EmptyPrompt,
    /// A prompt that leaves no room.
    #[error("the prompt has {tokens} tokens, the context holds {context}")]
    PromptTooLong {
        /// Its tokens.
        tokens: usize,
        /// Tokens a sequence may have.
        context: u32,
    },
    /// A handle of a sequence that is gone.
    #[error("there is no such sequence: it was dropped, or belongs to another engine")]
    NoSequence,
    /// An adapter slot that holds nothing.
    #[error("there is no adapter in slot {slot}")]
    NoAdapterSlot {
        /// The slot.
        slot: u32,
    },
    /// One sequence twice in a step.
    #[error("a sequence occurs twice in one step")]
    Repeated,
    /// The KV cache has no room.
    #[error(transparent)]
    Kv(#[from] KvError),
    /// An adapter cannot be used.
    #[error(transparent)]
    Adapter(#[from] AdapterError),
    /// No token could be sampled.
    #[error(transparent)]
    Sampler(#[from] SamplerError),
    /// An entry of a step with several cannot be served; the others are not at fault.
    #[error("entry {entry} of the step: {source}")]
    Entry {
        /// Its index.
        entry: usize,
        /// What is wrong with it.
        source: Box<EngineError>,
    },
    /// The process was forked after the engine was made.
    #[error(
        "this process was forked after its engine was made, and has none of the engine's threads: make the engine in the process that runs it, or with one thread"
    )]
    Forked,
    /// The runtime made a batch that its own checks refuse.
    #[error(transparent)]
    Batch(#[from] BatchError),
}

impl EngineError {
    /// The kind of fault.
    pub fn kind(&self) -> ErrorKind {
        match self {
            EngineError::Batch(_) => ErrorKind::Bug,
            EngineError::Pool(PoolError::Spawn { .. } | PoolError::Pin { .. })
            | EngineError::Load(LoadError::Cpu { .. } | LoadError::Tiles(_) | LoadError::Region(_))
            | EngineError::Load(LoadError::Code(CodeError::Map { .. } | CodeError::Forbidden(_))) => {
                ErrorKind::Unsupported
            }
            EngineError::Adapter(error) => error.kind(),
            EngineError::Entry { source, .. } => source.kind(),
            _ => ErrorKind::BadInput,
        }
    }
}

/// A sequence of an engine. Other engines do not know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SeqId {
    /// Number of the engine.
    engine: u64,
    slot: u32,
    /// Tells a slot's users apart.
    generation: u64,
}

/// Which logits a step hands out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// Those after the last token of each entry.
    Last,
    /// Those after every token.
    All,
    /// None.
    None,
}

/// Which token a row of logits comes after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogitsOf {
    /// Index of the step's entry.
    pub entry: usize,
    /// Index of the token among the entry's.
    pub token: usize,
}

/// A loaded plan with its KV cache and workers.
pub struct Engine {
    /// Tells engines of this process apart.
    number: u64,
    model: ModelInfo,
    tokenizer: Option<TokenizerHandle>,
    chat_template: Option<String>,
    executor: Executor,
    tables: KvTables,
    shape: KvShape,
    need: MemoryNeed,
    adapters: AdapterTable,
    store: AdapterStore,
    /// By slot: adapter slot of the sequence.
    sequence_adapters: Vec<u32>,
    /// By slot: generation of its present user.
    generations: Vec<Option<u64>>,
    next_generation: u64,
    run: RunBuffers,
}

/// Number of the next engine of this process.
static NEXT_ENGINE: AtomicU64 = AtomicU64::new(0);

/// What a run is put together in; reused, so that a step allocates nothing once they have grown.
struct RunBuffers {
    batch: Batch,
    /// Batch rows whose logits are wanted, and whose they are.
    wanted: Vec<u32>,
    origins: Vec<LogitsOf>,
    /// Slot and tokens of each part of a sequence in the batch.
    parts: Vec<(u32, u32)>,
}

impl Engine {
    /// Loads a plan: checks program, host and memory first, then takes the memory.
    ///
    /// # Errors
    /// When anything does not fit; see [`EngineError`].
    pub fn new(image: &PlanImage, config: EngineConfig) -> Result<Engine, EngineError> {
        let _env = FloatEnv::standard();
        let model = &image.program().model;
        let in_range = |name, found: u32, max: u32| {
            if (1..=max).contains(&found) { Ok(()) } else { Err(EngineError::Config { name, found, max }) }
        };
        let context = config.context.unwrap_or(model.max_context.min(DEFAULT_CONTEXT));
        in_range("context", context, model.max_context)?;
        in_range("sequences", config.sequences, MAX_SEQUENCES)?;
        let largest = image.program().classes.last().map_or(1, |class| class.max_tokens.max(1));
        let chunk = config.chunk.unwrap_or(largest).min(largest);
        in_range("chunk", chunk, largest)?;
        let shape = KvShape { context, sequences: config.sequences, chunk };
        let executor = Executor::new(image, shape, Pool::new(config.pool)?)?;
        let loader = model.adapters.clone().map(|adapters| {
            AdapterLoader::new(Arc::new(adapters), Arc::clone(image.weights()), model.name.clone())
        });
        let rows = chunk as usize;
        Ok(Engine {
            number: NEXT_ENGINE.fetch_add(1, Ordering::Relaxed),
            need: MemoryNeed::of(image.program(), shape, executor.threads()),
            tables: KvTables::new(&model.kv, shape),
            model: model.clone(),
            tokenizer: image.tokenizer().cloned(),
            chat_template: image.chat_template().map(str::to_owned),
            executor,
            shape,
            adapters: AdapterTable::new(model.adapters.as_ref(), 1),
            store: AdapterStore::new(loader),
            sequence_adapters: vec![0; config.sequences as usize],
            generations: vec![None; config.sequences as usize],
            next_generation: 0,
            run: RunBuffers {
                batch: Batch::with_capacity(rows),
                wanted: Vec::with_capacity(rows),
                origins: Vec::with_capacity(rows),
                parts: Vec::with_capacity(rows),
            },
        })
    }

    /// Model facts.
    pub fn model(&self) -> &ModelInfo {
        &self.model
    }

    /// The plan's tokenizer; waits until it has been read.
    ///
    /// # Errors
    /// When it could not be read.
    pub fn tokenizer(&self) -> Result<Option<&Tokenizer>, EngineError> {
        Ok(self.tokenizer.as_ref().map(TokenizerHandle::get).transpose()?)
    }

    /// Whether the plan has a tokenizer; does not wait.
    pub fn has_tokenizer(&self) -> bool {
        self.tokenizer.is_some()
    }

    /// The plan's chat template.
    pub fn chat_template(&self) -> Option<&str> {
        self.chat_template.as_deref()
    }

    /// Tokens a sequence may have.
    pub fn context(&self) -> u32 {
        self.shape.context
    }

    /// Most tokens per run.
    pub fn chunk(&self) -> u32 {
        self.shape.chunk
    }

    /// Workers.
    pub fn threads(&self) -> usize {
        self.executor.threads()
    }

    /// Address of the program's first byte of code, for profilers.
    pub fn code_address(&self) -> usize {
        self.executor.code_address()
    }

    /// Memory taken besides weights and code.
    pub fn memory(&self) -> MemoryNeed {
        self.need
    }

    /// By layer with experts, how often each expert was chosen since the engine was made.
    pub fn chosen_experts(&self) -> Vec<Vec<u64>> {
        self.executor.chosen_experts()
    }

    /// Meters all steps from now on, from zero.
    pub fn start_meter(&mut self, detail: Detail) {
        self.executor.start_meter(detail);
    }

    /// Ends the metering; what was metered, which is nothing if it was off.
    pub fn stop_meter(&mut self) -> Profile {
        self.executor.stop_meter()
    }

    /// Starts an empty sequence.
    ///
    /// # Errors
    /// When all are in use.
    pub fn create(&mut self) -> Result<SeqId, EngineError> {
        self.create_with(&[])
    }

    /// A sequence that starts with the first `at` tokens of another one and shares their cache.
    ///
    /// # Errors
    /// When `at` is past the end or its window no longer cached, or all sequences are in use.
    pub fn fork(&mut self, id: SeqId, at: u32) -> Result<SeqId, EngineError> {
        let slot = self.slot(id)?;
        let copy = self.tables.fork(slot, at)?;
        let name = self.name(copy);
        let adapter = self.sequence_adapters[slot as usize];
        let _ = self.store.share(adapter);
        self.sequence_adapters[copy as usize] = adapter;
        Ok(name)
    }

    /// Forgets a sequence's tokens from `length` on.
    ///
    /// # Errors
    /// When `length` is past the end or its window no longer cached.
    pub fn truncate(&mut self, id: SeqId, length: u32) -> Result<(), EngineError> {
        let slot = self.slot(id)?;
        Ok(self.tables.truncate(slot, length)?)
    }

    /// Ends a sequence. A handle that is gone already is ignored.
    pub fn drop_sequence(&mut self, id: SeqId) {
        if let Ok(slot) = self.slot(id) {
            self.tables.release(slot);
            self.store.release(self.sequence_adapters[slot as usize], &mut self.adapters);
            self.generations[slot as usize] = None;
        }
    }

    /// Tokens in a sequence.
    ///
    /// # Errors
    /// When there is no such sequence.
    pub fn length(&self, id: SeqId) -> Result<u32, EngineError> {
        self.slot(id).map(|slot| self.tables.length(slot))
    }

    fn name(&mut self, slot: u32) -> SeqId {
        self.next_generation += 1;
        self.generations[slot as usize] = Some(self.next_generation);
        self.sequence_adapters[slot as usize] = 0;
        SeqId { engine: self.number, slot, generation: self.next_generation }
    }

    fn slot(&self, id: SeqId) -> Result<u32, EngineError> {
        let generation = self.generations.get(id.slot as usize).copied().flatten();
        match id.engine == self.number && generation == Some(id.generation) {
            true => Ok(id.slot),
            false => Err(EngineError::NoSequence),
        }
    }

    /// Appends tokens to sequences and hands the wanted logits (`[vocab]` each) to `out`, entry by entry in order.
    ///
    /// The tokens of all entries are run together, at most [`Engine::chunk`] at a time.
    ///
    /// # Errors
    /// Bad input is found before anything runs. When KV blocks run out halfway, the chunks before are stored. Where there are several
    /// entries, [`EngineError::Entry`] says which one is at fault.
    pub fn step(
        &mut self,
        work: &[(SeqId, &[u32])],
        want: Want,
        out: &mut dyn FnMut(LogitsOf, &[f32]),
    ) -> Result<(), EngineError> {
        if !self.executor.is_here() {
            return Err(EngineError::Forked);
        }
        self.check_work(work)?;
        let mut entry = 0;
        let mut done = 0;
        while entry < work.len() {
            (entry, done) = self.gather(work, entry, done, want)?;
            if self.run.batch.len() > 0 {
                self.run_batch(out)?;
            }
        }
        Ok(())
    }

    /// The logits after the last of `tokens`, which are appended to one sequence.
    ///
    /// # Errors
    /// As [`Engine::step`]; also when there are no tokens.
    pub fn append(&mut self, id: SeqId, tokens: &[u32], logits: &mut Vec<f32>) -> Result<(), EngineError> {
        if tokens.is_empty() {
            return Err(EngineError::EmptyPrompt);
        }
        self.step(&[(id, tokens)], Want::Last, &mut |_, row| {
            logits.clear();
            logits.extend_from_slice(row);
        })
    }

    fn check_work(&self, work: &[(SeqId, &[u32])]) -> Result<(), EngineError> {
        for (n, (id, tokens)) in work.iter().enumerate() {
            let repeated = work[..n].iter().any(|(other, _)| other == id);
            let checked = if repeated { Err(EngineError::Repeated) } else { self.check_entry(*id, tokens) };
            checked.map_err(|error| of_entry(error, n, work.len()))?;
        }
        Ok(())
    }

    fn check_entry(&self, id: SeqId, tokens: &[u32]) -> Result<(), EngineError> {
        let length = self.length(id)?;
        self.check_tokens(tokens)?;
        let context = self.shape.context;
        match tokens.len() > (context - length) as usize {
            true => Err(KvError::Context { length, more: tokens.len(), context }.into()),
            false => Ok(()),
        }
    }

    /// Checks token ids against the vocabulary.
    pub(crate) fn check_tokens(&self, tokens: &[u32]) -> Result<(), EngineError> {
        let vocab = self.model.vocab;
        match tokens.iter().position(|token| *token >= vocab) {
            Some(index) => Err(EngineError::Token { index, token: tokens[index], vocab }),
            None => Ok(()),
        }
    }

    /// Fills the batch from token `done` of `entry` on; where the next batch goes on.
    fn gather(
        &mut self,
        work: &[(SeqId, &[u32])],
        mut entry: usize,
        mut done: usize,
        want: Want,
    ) -> Result<(usize, usize), EngineError> {
        let run = &mut self.run;
        run.batch.clear();
        run.wanted.clear();
        run.origins.clear();
        run.parts.clear();
        while entry < work.len() {
            let (id, tokens) = work[entry];
            let room = self.shape.chunk as usize - run.batch.len();
            let part = &tokens[done..tokens.len().min(done + room)];
            if !part.is_empty() {
                let executor = &mut self.executor;
                let copy = &mut |kind, from, to| executor.copy_block(kind, from, to);
                let reserved = self.tables.reserve(id.slot, part.len(), copy);
                reserved.map_err(|error| of_entry(error.into(), entry, work.len()))?;
                let start = self.tables.length(id.slot);
                for (n, token) in part.iter().enumerate() {
                    let last = done + n + 1 == tokens.len();
                    if want == Want::All || want == Want::Last && last {
                        run.wanted.push(run.batch.len() as u32);
                        run.origins.push(LogitsOf { entry, token: done + n });
                    }
                    let adapter = self.sequence_adapters[id.slot as usize];
                    run.batch.push(*token, start + n as u32, id.slot, adapter);
                }
                run.parts.push((id.slot, part.len() as u32));
                done += part.len();
            }
            if done < tokens.len() {
                break;
            }
            (entry, done) = (entry + 1, 0);
        }
        Ok((entry, done))
    }

    fn run_batch(&mut self, out: &mut dyn FnMut(LogitsOf, &[f32])) -> Result<(), EngineError> {
        let run = &mut self.run;
        let origins = &run.origins;
        let hand_out = &mut |row: usize, logits: &[f32]| out(origins[row], logits);
        self.executor.run(&mut run.batch, &run.wanted, &self.tables, &self.adapters, hand_out)?;
        for (slot, tokens) in &self.run.parts {
            self.tables.advance(*slot, *tokens);
        }
        Ok(())
    }
}

/// An error with the entry that it belongs to, where there are several.
fn of_entry(error: EngineError, entry: usize, entries: usize) -> EngineError {
    match entries {
        1 => error,
        _ => EngineError::Entry { entry, source: Box::new(error) },
    }
}
