//! The executor: walks a program's steps over a batch of tokens, step by step on all workers.
//!
//! Operands are resolved to addresses once. A run wakes the workers once per slab of logits (the first slab
//! rides along with the batch) and allocates nothing.

mod alone;
mod batch;
mod cut;
mod dispatch;
mod error;
mod memory;
mod meter;
mod narrowed;
mod need;
mod nodes;
mod portion;
mod prefetch;
mod record;
mod replay;
mod resolve;
mod rope;
mod rows;
mod vocab_tiles;

pub(crate) use batch::Batch;
pub use batch::BatchError;
pub use cut::CutError;
pub(crate) use cut::Cuts;
pub use error::LoadError;
pub use need::MemoryNeed;
pub use nodes::LaidWeights;
pub(crate) use portion::{Portion, RowsIn, RowsOut};
pub use replay::Replay;
pub(crate) use replay::Replayed;
pub(crate) use rope::{fill as fill_rope, row_len as rope_row};
pub(crate) use rows::WorkersTake;
pub(crate) use vocab_tiles::VocabTiles;

use crate::adapter::{AdapterTable, LoraTargetSet};
use crate::code::ExecutableCode;
use crate::image::PlanImage;
use crate::kv::{BlockTables, KvShape};
use crate::pool::Pool;
use crate::profile::{Detail, Profile};
use crate::trace::Trace;
use dispatch::DispatchState;
use kernmill_os::region::WeightRegion;
use kernmill_os::tiles;
use kernmill_plan::abi::Args;
use kernmill_plan::kv::{BLOCK_TOKENS, KvLayers, LayerKind};
use memory::{ExecutorMemory, pools};
use meter::{ExpertCounts, StepMeter};
use narrowed::Narrowed;
use nodes::lay_weights;
use prefetch::Fetch;
use record::Recorder;
use resolve::{Bases, ResolvedClass};
use std::sync::Arc;

/// A loaded program with its memory.
pub(crate) struct Executor {
    // The first to be given up: a worker that is late may still fetch what the classes name.
    pool: Pool<Fetch<'static>>,
    classes: Vec<ResolvedClass>,
    memory: ExecutorMemory,
    limits: OwnLimits,
    dispatching: DispatchState,
    /// By layer that routes, how often each expert was chosen.
    chosen: Vec<ExpertCounts>,
    /// Batches run so far.
    runs: u64,
    /// LoRA targets at which the batch has adapters; kept from run to run for its memory.
    lora_targets_in_use: LoraTargetSet,
    /// The wanted rows of the present batch.
    narrowed: Narrowed,
    /// Whether all rows are computed up to the last step.
    all_rows: bool,
    /// Whether all logits of wanted rows are computed.
    all_logits: bool,
    /// While runs are metered.
    meter: Option<StepMeter>,
    /// While what workers do is recorded.
    recorder: Option<Recorder>,
    /// Where the weights came to lie, if there are several nodes.
    laid: Option<LaidWeights>,
    /// Where the program is cut, if only a stage of it runs here.
    cuts: Option<Cuts>,
    // The steps' addresses point into these.
    code: ExecutableCode,
    _weights: Arc<WeightRegion>,
}

struct OwnLimits {
    vocab: u32,
    row_width: usize,
    shape: KvShape,
    layers: KvLayers,
}

// SAFETY: the raw addresses in `classes` point into memory that the executor owns or shares immutably.
unsafe impl Send for Executor {}

impl Executor {
    /// Checks the program and the host, takes the memory, resolves the operands. With `stage`, the program is
    /// cut, and only the stage of that number has memory here.
    pub(crate) fn new(
        image: &PlanImage,
        shape: KvShape,
        mut pool: Pool<Fetch<'static>>,
        stage: Option<(Cuts, u32)>,
    ) -> Result<Executor, LoadError> {
        let program = image.program();
        kernmill_plan::check::check_program(program)?;
        let missing = program.level.missing();
        if !missing.is_empty() {
            return Err(LoadError::Cpu { level: program.level.name(), missing });
        }
        if program.level.has_tiles() {
            tiles::request().map_err(LoadError::Tiles)?;
        }
        let found = image.weights().len() as u64;
        if found < program.weight_bytes {
            return Err(LoadError::Weights { expected: program.weight_bytes, found });
        }
        let hash =
            image.code_hash().map_or_else(|| blake3::hash(&program.code.bytes), blake3::Hash::from_bytes);
        let code = ExecutableCode::load(&program.code.bytes, &hash)?;
        let all = 0..program.model.kv.layers.len();
        let own = stage.as_ref().map_or(all, |(cuts, number)| cuts.layers(*number));
        let (mut memory, ropes) = ExecutorMemory::new(image, shape, &pool, &own)?;
        let spare = MemoryNeed::of_layers(program, shape, pool.count(), own).total();
        let laid = (!pool.nodes().is_empty()).then(|| lay_weights(&mut pool, image, spare, stage.is_none()));
        let arena = memory.arena.as_mut_ptr();
        let kv = memory.kv.as_mut_ptr();
        let bases = Bases {
            weights: image.weights().as_ptr() as u64,
            arena: arena as u64,
            // Steps of layers that have no pool here do not run.
            kv: memory.kv_offsets.iter().map(|offset| kv as u64 + offset.unwrap_or(0) as u64).collect(),
            ropes,
            workers: pool.by_node(),
        };
        let routings = program.classes.first().map_or(&[][..], |class| &class.routings);
        let chosen = routings.iter().map(|routing| ExpertCounts::new(routing.experts)).collect();
        let resolve = |class| ResolvedClass::resolve(class, program, &code, &bases);
        let classes: Vec<ResolvedClass> = program.classes.iter().map(resolve).collect();
        let steps = classes.iter().map(|class| class.steps.len() + class.logit_steps.len()).max();
        Ok(Executor {
            dispatching: DispatchState::new(steps.unwrap_or(0), bases.workers),
            classes,
            memory,
            limits: OwnLimits {
                vocab: program.model.vocab,
                row_width: program.model.row_width(),
                shape,
                layers: program.model.kv.clone(),
            },
            pool,
            chosen,
            runs: 0,
            lora_targets_in_use: LoraTargetSet::default(),
            narrowed: Narrowed::new(program.classes.last().map_or(0, |class| class.max_tokens)),
            all_rows: false,
            all_logits: false,
            meter: None,
            recorder: None,
            laid,
            cuts: stage.map(|(cuts, _)| cuts),
            code,
            _weights: Arc::clone(image.weights()),
        })
    }

    /// Address of the program's first byte of code.
    pub fn code_address(&self) -> usize {
        self.code.address(0) as usize
    }

    /// Workers.
    pub(crate) fn threads(&self) -> usize {
        self.pool.count()
    }

    /// Where the weights came to lie, if there are several nodes.
    pub(crate) fn laid_weights(&self) -> Option<LaidWeights> {
        self.laid
    }

    /// Whether its workers are in this process.
    pub(crate) fn is_here(&self) -> bool {
        self.pool.is_here()
    }

    /// By layer that routes, how often each expert was chosen so far.
    pub(crate) fn chosen_experts(&self) -> Vec<Vec<u64>> {
        self.chosen.iter().map(ExpertCounts::counts).collect()
    }

    /// Computes all rows from now on, or those of the last layer only that are wanted.
    pub(crate) fn compute_all_rows(&mut self, all: bool) {
        self.all_rows = all;
    }

    /// Computes all logits of wanted rows from now on, or those only that masks leave.
    pub(crate) fn compute_all_logits(&mut self, all: bool) {
        self.all_logits = all;
    }

    /// Meters runs from now on, from zero.
    pub(crate) fn start_meter(&mut self, detail: Detail) {
        self.meter = Some(StepMeter::new(detail, &self.classes, self.pool.count()));
    }

    /// Ends the metering; what was metered.
    pub(crate) fn stop_meter(&mut self) -> Profile {
        self.meter.take().map(|meter| meter.profile(&self.classes)).unwrap_or_default()
    }

    /// Records from now on what every worker does, up to `batches` batches.
    pub(crate) fn start_trace(&mut self, batches: usize) {
        self.recorder = Some(Recorder::new(batches, &self.classes, self.pool.count()));
    }

    /// Ends the recording; what was recorded, if anything was.
    pub(crate) fn stop_trace(&mut self) -> Option<Trace> {
        self.recorder.take().map(Recorder::finish)
    }

    /// Copies a block's contents in every layer of a kind.
    pub(crate) fn copy_block(&mut self, kind: LayerKind, from: u32, to: u32) {
        let bytes = self.limits.layers.geometry(kind).block_bytes();
        for base in pools(&self.limits.layers, &self.memory.kv_offsets, kind) {
            let start = base + from as usize * bytes;
            self.memory.kv.as_mut_slice().copy_within(start..start + bytes, base + to as usize * bytes);
        }
    }

    /// Writes a block's contents in every layer of a kind.
    ///
    /// # Panics
    /// When the block has another number of bytes.
    pub(crate) fn write_block(&mut self, kind: LayerKind, block: u32, contents: &[u8]) {
        let bytes = self.limits.layers.geometry(kind).block_bytes();
        for base in pools(&self.limits.layers, &self.memory.kv_offsets, kind) {
            self.memory.kv.as_mut_slice()[base + block as usize * bytes..][..bytes].copy_from_slice(contents);
        }
    }

    /// Appends a block's contents in every layer of a kind, one layer behind the other: its first `tokens`
    /// tokens, and zeros for the others.
    pub(crate) fn block_rows(&self, kind: LayerKind, block: u32, tokens: u32, rows: &mut Vec<u8>) {
        let geometry = self.limits.layers.geometry(kind);
        let bytes = geometry.block_bytes();
        for base in pools(&self.limits.layers, &self.memory.kv_offsets, kind) {
            let from = rows.len();
            rows.extend_from_slice(&self.memory.kv.as_slice()[base + block as usize * bytes..][..bytes]);
            if (tokens as usize) < BLOCK_TOKENS {
                geometry.clear_behind(&mut rows[from..], tokens as usize);
            }
        }
    }

    /// Writes a block's contents in every layer of a kind, as [`Executor::block_rows`] gives them.
    ///
    /// # Panics
    /// When there are fewer bytes.
    pub(crate) fn set_block_rows(&mut self, kind: LayerKind, block: u32, rows: &[u8]) {
        let bytes = self.limits.layers.geometry(kind).block_bytes();
        let places = pools(&self.limits.layers, &self.memory.kv_offsets, kind);
        for (base, rows) in places.zip(rows.chunks_exact(bytes)) {
            self.memory.kv.as_mut_slice()[base + block as usize * bytes..][..bytes].copy_from_slice(rows);
        }
    }
}

/// `adapters`: the table and the tiles of its largest rank, if any token has an adapter.
fn arguments(batch: &Batch, tables: BlockTables<'_>, adapters: Option<(&AdapterTable, u32)>) -> Args {
    let (full, full_stride) = tables.table(LayerKind::Full);
    let (sliding, sliding_stride) = tables.table(LayerKind::Sliding);
    Args {
        tokens: batch.len() as u32,
        logit_rows: 0,
        token_ids: batch.token_ids.as_ptr(),
        positions: batch.positions.as_ptr(),
        sequences: batch.sequences.as_ptr(),
        adapters: batch.adapters.as_ptr(),
        logit_index: std::ptr::null(),
        block_tables: [full.as_ptr(), sliding.as_ptr()],
        block_table_stride: [full_stride, sliding_stride],
        adapter_table: adapters.map_or(std::ptr::null(), |(table, _)| table.as_ptr()),
        adapter_stride: adapters.map_or(0, |(table, _)| table.stride()),
        adapter_runs: batch.adapter_runs.as_ptr(),
        adapter_tiles: adapters.map_or(0, |(_, tiles)| tiles),
        logit_tile_count: 0,
        logit_tiles: std::ptr::null(),
        last_positions: batch.last_positions.as_ptr(),
    }
}
