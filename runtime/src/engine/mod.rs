//! The engine: sequences of tokens over one loaded plan.

mod adapters;
mod buffers;
mod disk;
mod error;
mod flight;
mod prefix;
mod random;
mod replay;
mod rows;
mod session;
mod shelf;
mod step;
mod steps;
mod tiles;

pub use error::EngineError;
pub use prefix::BegunSequence;
pub use rows::{LogitRow, LogitRows, RowSink, SequenceTokens, StepStats};
pub use session::SavedSession;
pub use steps::Steps;

use crate::adapter::{AdapterLoader, AdapterStore, AdapterTable};
use crate::executor::{Executor, LaidWeights, MemoryNeed};
use crate::image::PlanImage;
pub use crate::kv::MAX_SEQUENCES;
use crate::kv::{Eviction, KvBudget, KvDemand, KvShape, KvTables, KvUsage};
use crate::pool::{Pool, PoolConfig};
use crate::profile::{Detail, Profile};
use crate::stages::{StagesConfig, Upstream};
use crate::trace::Trace;
use buffers::RunBuffers;
use kernmill_os::float_env::FloatEnv;
use kernmill_plan::program::ModelInfo;
use shelf::EngineStore;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The configuration of an engine.
#[derive(Clone, Copy, Debug)]
pub struct EngineConfig {
    /// Workers and their pinning.
    pub pool: PoolConfig,
    /// Longest sequence in tokens; `None` takes the model's longest or [`DEFAULT_CONTEXT`], whichever is
    /// less. Of a model whose texts run whole it is no more than one run takes.
    pub context: Option<u32>,
    /// Sequences at once.
    pub sequences: u32,
    /// Most tokens per run; `None` takes the program's largest class.
    pub chunk: Option<u32>,
    /// Memory of the KV cache.
    pub kv: KvBudget,
    /// Which blocks of the prefix cache make way for others.
    pub eviction: Eviction,
}

/// Context of an engine that is not asked for one.
pub const DEFAULT_CONTEXT: u32 = 4096;

impl Default for EngineConfig {
    fn default() -> EngineConfig {
        EngineConfig {
            pool: PoolConfig::default(),
            context: None,
            sequences: 1,
            chunk: None,
            kv: KvBudget::WorstCase,
            eviction: Eviction::default(),
        }
    }
}

/// A sequence of an engine. Other engines do not know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SeqId {
    /// Number of the engine.
    engine: u64,
    number: u32,
    /// Tells a number's users apart.
    generation: u64,
}

/// A loaded plan with its KV cache and workers.
pub struct Engine {
    /// Tells engines of this process apart.
    id: u64,
    model: ModelInfo,
    executor: Executor,
    tables: KvTables,
    shape: KvShape,
    need: MemoryNeed,
    adapters: AdapterTable,
    store: AdapterStore,
    /// By number of the sequence: adapter slot of the sequence.
    sequence_adapters: Vec<u32>,
    /// By number of the sequence: generation of its present user.
    generations: Vec<Option<u64>>,
    next_generation: u64,
    run: RunBuffers,
    /// Steps that were begun and have not ended, the oldest first, and buffers for others.
    flights: VecDeque<RunBuffers>,
    spare: Vec<RunBuffers>,
    /// The other stages, if the program is cut.
    upstream: Option<Upstream>,
    eviction: Eviction,
    /// Where blocks go that make way.
    disk: Option<EngineStore>,
}

/// Number of the next engine of this process.
static NEXT_ENGINE: AtomicU64 = AtomicU64::new(0);

impl Engine {
    /// Loads a plan: checks program, host and memory first, then takes the memory.
    ///
    /// # Errors
    /// When anything does not fit; see [`EngineError`].
    pub fn new(image: &PlanImage, config: EngineConfig) -> Result<Engine, EngineError> {
        Engine::of_stage(image, config, None)
    }

    /// Loads a plan as [`Engine::new`] does, and runs its first stage alone in this process. The other ones
    /// ([`crate::stages::StageServer`]) are called from now on; until they are there, steps fail with
    /// [`EngineError::Stage`]. Adapters, stores on disk and sessions cannot be used.
    ///
    /// # Errors
    /// When anything does not fit, or the program cannot be cut so.
    pub fn with_stages(
        image: &PlanImage,
        config: EngineConfig,
        stages: &StagesConfig,
    ) -> Result<Engine, EngineError> {
        Engine::of_stage(image, config, Some(stages))
    }

    fn of_stage(
        image: &PlanImage,
        config: EngineConfig,
        stages: Option<&StagesConfig>,
    ) -> Result<Engine, EngineError> {
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
        let context = if model.whole_texts { context.min(chunk) } else { context };
        let shape = KvShape { context, sequences: config.sequences, chunk, budget: config.kv };
        let cuts = stages.map(|stages| Upstream::cuts(stages, image.program())).transpose()?;
        let first = cuts.clone().map(|cuts| (cuts, 1));
        let executor = Executor::new(image, shape, Pool::new(config.pool)?, first)?;
        let upstream = match stages.zip(cuts) {
            None => None,
            Some((stages, cuts)) => {
                let identity = image.identity().ok_or(EngineError::NoIdentity)?;
                let upstream = Upstream::new(stages, &cuts, image.program(), identity, shape);
                Some(upstream.map_err(EngineError::StageThread)?)
            }
        };
        let need = match &upstream {
            None => MemoryNeed::of(image.program(), shape, executor.threads()),
            Some(upstream) => upstream.first_share().memory(image.program(), shape, executor.threads()),
        };
        let adapters = model.adapters.clone().filter(|_| upstream.is_none());
        let loader = adapters.map(|adapters| {
            AdapterLoader::new(Arc::new(adapters), Arc::clone(image.weights()), model.name.clone())
        });
        let run = || RunBuffers::new(chunk as usize, config.sequences as usize, model.vocab);
        Ok(Engine {
            id: NEXT_ENGINE.fetch_add(1, Ordering::Relaxed),
            need,
            tables: KvTables::new(&model.kv, shape, config.eviction),
            model: model.clone(),
            executor,
            shape,
            adapters: AdapterTable::new(model.adapters.as_ref(), 1),
            store: AdapterStore::new(loader),
            sequence_adapters: vec![0; config.sequences as usize],
            generations: vec![None; config.sequences as usize],
            next_generation: 0,
            run: run(),
            flights: VecDeque::with_capacity(1),
            spare: vec![run()],
            upstream,
            eviction: config.eviction,
            disk: None,
        })
    }

    /// Model facts.
    pub fn model(&self) -> &ModelInfo {
        &self.model
    }

    /// Tokens a sequence may have.
    pub fn context(&self) -> u32 {
        self.shape.context
    }

    /// Sequences that there can be at once.
    pub fn sequences(&self) -> u32 {
        self.shape.sequences
    }

    /// Blocks of sliding layers that one sequence maps at most.
    pub fn most_sliding_blocks(&self) -> u64 {
        let alone = KvShape { sequences: 1, budget: KvBudget::WorstCase, ..self.shape };
        u64::from(alone.blocks(&self.model.kv)[1])
    }

    /// Most tokens per run.
    pub fn chunk(&self) -> u32 {
        self.shape.chunk
    }

    /// Workers.
    pub fn threads(&self) -> usize {
        self.executor.threads()
    }

    /// Where the weights came to lie, on systems with several nodes.
    pub fn laid_weights(&self) -> Option<LaidWeights> {
        self.executor.laid_weights()
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

    /// Computes all rows of the last layer from now on, or only those whose logits are wanted, which is what
    /// an engine does by itself: for benches that compare both. The logits are the same.
    #[doc(hidden)]
    pub fn compute_all_rows(&mut self, all: bool) {
        self.executor.compute_all_rows(all);
    }

    /// Computes all logits of wanted rows from now on, or only those that masks leave, which is what an
    /// engine does by itself: for benches and tests that compare both. What is chosen is the same.
    #[doc(hidden)]
    pub fn compute_all_logits(&mut self, all: bool) {
        self.executor.compute_all_logits(all);
    }

    /// Meters all steps from now on, from zero.
    pub fn start_meter(&mut self, detail: Detail) {
        self.executor.start_meter(detail);
    }

    /// Ends the metering; what was metered, which is nothing if it was off.
    pub fn stop_meter(&mut self) -> Profile {
        self.executor.stop_meter()
    }

    /// Records from now on what every worker does and when, of the next `batches` batches at most; all memory
    /// for it is taken now.
    pub fn start_trace(&mut self, batches: usize) {
        self.executor.start_trace(batches);
    }

    /// Ends the recording; what was recorded, or nothing if it was off.
    pub fn stop_trace(&mut self) -> Option<Trace> {
        self.executor.stop_trace()
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
        let number = self.number_of(id)?;
        let copy = self.tables.fork(number, at)?;
        let name = self.name(copy);
        let adapter = self.sequence_adapters[number as usize];
        let _ = self.store.share(adapter);
        self.sequence_adapters[copy as usize] = adapter;
        Ok(name)
    }

    /// Forgets a sequence's tokens from `length` on.
    ///
    /// # Errors
    /// When `length` is past the end or its window no longer cached.
    pub fn truncate(&mut self, id: SeqId, length: u32) -> Result<(), EngineError> {
        let number = self.number_of(id)?;
        Ok(self.tables.truncate(number, length)?)
    }

    /// Ends a sequence. A handle that is gone already is ignored.
    pub fn drop_sequence(&mut self, id: SeqId) {
        if let Ok(number) = self.number_of(id) {
            self.tables.release(number);
            self.store.release(self.sequence_adapters[number as usize], &mut self.adapters);
            self.generations[number as usize] = None;
        }
    }

    /// Tokens in a sequence.
    ///
    /// # Errors
    /// When there is no such sequence.
    pub fn length(&self, id: SeqId) -> Result<u32, EngineError> {
        self.number_of(id).map(|number| self.tables.length(number))
    }

    /// The KV blocks that appending `tokens` tokens to a sequence takes from the free ones, and gives back to
    /// them.
    ///
    /// # Errors
    /// When there is no such sequence, or it would be longer than the context.
    pub fn blocks_for(&self, id: SeqId, tokens: u32) -> Result<KvDemand, EngineError> {
        Ok(self.tables.demand(self.number_of(id)?, tokens)?)
    }

    /// How much of the KV cache is in use.
    pub fn kv(&self) -> KvUsage {
        self.tables.usage()
    }

    fn name(&mut self, number: u32) -> SeqId {
        self.next_generation += 1;
        self.generations[number as usize] = Some(self.next_generation);
        self.sequence_adapters[number as usize] = 0;
        SeqId { engine: self.id, number, generation: self.next_generation }
    }

    fn number_of(&self, id: SeqId) -> Result<u32, EngineError> {
        let generation = self.generations.get(id.number as usize).copied().flatten();
        match id.engine == self.id && generation == Some(id.generation) {
            true => Ok(id.number),
            false => Err(EngineError::NoSequence),
        }
    }
}
