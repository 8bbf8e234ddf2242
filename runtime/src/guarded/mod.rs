//! Runs a program with every operand between pages that fault: for checks of generated code.
//!
//! Every arena buffer, operand of weights, KV pool, rotary table, worker's scratch and argument array lies in
//! separate memory, of the bytes that the program states, against an inaccessible page on one side. During a
//! step only the buffers that it says to read can be read, and only those that it says to write can be
//! written. Memory that nobody has written holds a pattern that makes floats NaNs and indices absurd. Workers
//! take their turns one after the other in the caller's thread, so that a run is the same every time.
//!
//! Whatever a kernel touches beyond its step's operands ends the process with a signal, or changes the
//! logits: it is for tests, and for processes that are there for nothing else.

mod batch;
mod config;
mod fence;
mod step;

use crate::executor::VocabTiles;
pub use config::GuardedConfig;
use config::PATTERN;
pub use fence::{Fenced, Flush, PageAccess};

use crate::code::ExecutableCode;
use batch::{ClassBuffers, GuardedBatch};
use kernmill_os::tiles;
use kernmill_plan::abi::LOGIT_SLAB;
use kernmill_plan::adapter::{LoraTargetEntry, LoraTargetLayout};
use kernmill_plan::check::check_program;
use kernmill_plan::format::{LINE, TILE_ROWS};
use kernmill_plan::kv::{BLOCK_TOKENS, KvLayer, LayerKind};
use kernmill_plan::program::{Operand, Program};
use std::collections::BTreeMap;

/// A program with its memory.
pub struct Guarded<'p> {
    program: &'p Program,
    config: GuardedConfig,
    code: ExecutableCode,
    classes: Vec<ClassBuffers>,
    /// By offset. Two matrices whose tiles alternate are in one memory.
    weights: BTreeMap<u64, Fenced>,
    ropes: Vec<Fenced>,
    /// By layer.
    pools: Vec<Fenced>,
    /// By worker.
    scratch: Vec<Fenced>,
    /// `[sequence][position / 16]` by layer kind.
    tables: [Fenced; 2],
    /// Tokens of each sequence.
    lengths: Vec<u32>,
    adapter: Option<GuardedAdapter>,
}

/// The adapter of slot 1.
struct GuardedAdapter {
    /// `[slot][lora_target]`.
    table: Fenced,
    /// Tiles of 16 ranks of the largest rank.
    tiles: u32,
    /// LoRA targets at which it has something.
    lora_targets: Vec<u32>,
    // The table's entries point into these.
    _memory: Vec<Fenced>,
}

impl<'p> Guarded<'p> {
    /// Checks the program and takes memory for it; `weights` is the region that its operands refer to.
    ///
    /// # Safety
    /// The program's code is what this process's compiler made, or the process is there for nothing but to
    /// run it.
    ///
    /// # Errors
    /// What keeps the program from running here, as text.
    ///
    /// # Panics
    /// When the system has no memory left.
    pub unsafe fn new(
        program: &'p Program,
        weights: &[u8],
        config: GuardedConfig,
    ) -> Result<Guarded<'p>, String> {
        check_program(program).map_err(|error| error.to_string())?;
        let missing = program.level.missing();
        if !missing.is_empty() {
            return Err(format!("this CPU lacks {}", missing.join(", ")));
        }
        if program.level.has_tiles() {
            tiles::request().map_err(|error| error.to_string())?;
        }
        let bytes = &program.code.bytes;
        let code = ExecutableCode::load(bytes, &blake3::hash(bytes)).map_err(|error| error.to_string())?;
        let layers = &program.model.kv;
        let blocks = config.context as usize / BLOCK_TOKENS * config.sequences as usize;
        let pool = |layer: &KvLayer| config.filled(blocks * layers.geometry(layer.kind).block_bytes());
        let table = || config.filled(blocks * 4);
        let scratch = |_| config.filled(program.scratch_bytes as usize);
        Ok(Guarded {
            code,
            classes: program.classes.iter().map(|class| ClassBuffers::new(class, &config)).collect(),
            weights: config.weights(program, weights)?,
            ropes: program.model.ropes.iter().map(|table| config.rope(table)).collect(),
            pools: layers.layers.iter().map(pool).collect(),
            scratch: (0..config.workers).map(scratch).collect(),
            tables: [table(), table()],
            lengths: vec![0; config.sequences as usize],
            adapter: None,
            program,
            config,
        })
    }

    /// Most tokens of a batch.
    pub fn chunk(&self) -> usize {
        self.program.classes.last().map_or(0, |class| class.max_tokens as usize)
    }

    /// Gives all sequences an adapter: its layouts by LoRA target, and its packed bytes.
    ///
    /// # Panics
    /// When it is packed for other LoRA targets.
    pub fn use_adapter(&mut self, layouts: &[Option<LoraTargetLayout>], bytes: &[u8]) {
        let lora_targets =
            self.program.model.adapters.as_ref().map_or(0, |adapters| adapters.lora_targets.len());
        assert_eq!(layouts.len(), lora_targets, "the adapter is packed for other LoRA targets");
        let (mut memory, mut entries) = (Vec::new(), vec![LoraTargetEntry::NONE; 2 * lora_targets]);
        for (entry, layout) in entries[lora_targets..].iter_mut().zip(layouts) {
            let Some(layout) = layout else { continue };
            let (start, end) = (layout.a(0).start, layout.end());
            let lora_target = self.config.holding(&bytes[start..end], LINE);
            *entry = layout.entry((lora_target.address() as *const u8).wrapping_sub(start));
            memory.push(lora_target);
        }
        let mut table = self.config.filled(size_of_val(&entries[..]));
        // SAFETY: the table has exactly the bytes of the entries, which are plain data.
        unsafe {
            let from = entries.as_ptr().cast::<u8>();
            std::ptr::copy_nonoverlapping(from, table.bytes_mut().as_mut_ptr(), table.len());
        }
        table.read_only();
        let ranks = entries.iter().map(|entry| entry.ranks).max().unwrap_or(0);
        let with = |(lora_target, layout): (usize, &Option<LoraTargetLayout>)| {
            layout.as_ref().map(|_| lora_target as u32)
        };
        self.adapter = Some(GuardedAdapter {
            table,
            tiles: ranks.div_ceil(16) as u32,
            lora_targets: layouts.iter().enumerate().filter_map(with).collect(),
            _memory: memory,
        });
    }

    /// Runs one batch: the next tokens of some sequences. The rows after every token, `[tokens][row_width]`.
    ///
    /// # Errors
    /// What a step wrote that it says not to write.
    ///
    /// # Panics
    /// When the batch is empty, larger than [`Guarded::chunk`], or names what is not there.
    pub fn run(&mut self, entries: &[(u32, &[u32])]) -> Result<Vec<f32>, String> {
        let vocab = self.program.model.vocab;
        let mut rows = Vec::new();
        for (sequence, tokens) in entries {
            let length = &mut self.lengths[*sequence as usize];
            for token in *tokens {
                assert!(
                    *length < self.config.context && *token < vocab,
                    "past the context or the vocabulary"
                );
                rows.push((*token, *length, *sequence));
                *length += 1;
            }
        }
        rows.iter().for_each(|(_, position, sequence)| self.map_block(*sequence, *position));
        let count = rows.len();
        let at = self.program.classes.iter().position(|class| class.max_tokens as usize >= count);
        let at = at.filter(|_| count > 0).expect("the batch has 1 to `chunk` tokens");
        let batch = GuardedBatch::new(&rows, self.adapter.is_some(), &self.config);
        let program = self.program;
        let class = &program.classes[at];
        self.classes[at].forget();
        self.steps(at, 0..class.steps.len(), &batch, &[], None)?;
        let width = program.model.row_width();
        let mut out = Vec::with_capacity(count * width);
        let wanted: Vec<u32> = (0..count as u32).collect();
        for slab in wanted.chunks(LOGIT_SLAB.min(class.max_tokens as usize)) {
            let all = class.steps.len()..class.steps.len() + class.logit_steps.len();
            self.steps(at, all, &batch, slab, None)?;
            let from = out.len();
            self.classes[at].logits(class, slab.len(), width, &mut out);
            self.some_tiles(at, &batch, slab, &out[from..])?;
        }
        Ok(out)
    }

    /// Computes some tiles of a slab's logits once more, if the last step takes a list of them: their logits
    /// are the same, and others are left alone.
    fn some_tiles(
        &mut self,
        at: usize,
        batch: &GuardedBatch,
        slab: &[u32],
        all: &[f32],
    ) -> Result<(), String> {
        let program = self.program;
        let (class, vocab) = (&program.classes[at], program.model.row_width());
        let Some(tiles) = VocabTiles::of(class, program) else { return Ok(()) };
        let last = class.steps.len() + class.logit_steps.len() - 1;
        // The last tile, which may not be whole, is among them.
        let listed: Vec<u32> =
            (0..tiles.count).rev().step_by(3).collect::<Vec<_>>().into_iter().rev().collect();
        for listed in [&listed[..], &[]] {
            self.classes[at].forget_logits(class);
            self.steps(at, last..last + 1, batch, slab, Some(listed))?;
            let mut some = Vec::with_capacity(all.len());
            self.classes[at].logits(class, slab.len(), vocab, &mut some);
            let unwritten = f32::from_bits(u32::from_le_bytes([PATTERN; 4]));
            for (n, (found, logit)) in some.iter().zip(all).enumerate() {
                let tile = (n % vocab / TILE_ROWS) as u32;
                let expected = if listed.contains(&tile) { logit } else { &unwritten };
                if found.to_bits() != expected.to_bits() {
                    let row = n / vocab;
                    return Err(format!(
                        "logit {} of row {row}: {found} by a list of tiles, expected {expected}",
                        n % vocab
                    ));
                }
            }
        }
        Ok(())
    }

    /// The block of a position is there from now on; blocks of sequences alternate, the last ones first.
    fn map_block(&mut self, sequence: u32, position: u32) {
        let index = position / BLOCK_TOKENS as u32;
        let stride = self.config.context / BLOCK_TOKENS as u32;
        let id = stride * self.config.sequences - 1 - (index * self.config.sequences + sequence);
        let entry = 4 * (sequence * stride + index) as usize;
        for table in &mut self.tables {
            table.bytes_mut()[entry..entry + 4].copy_from_slice(&id.to_le_bytes());
        }
    }

    /// Address of an operand of a step of class number `at`.
    fn address(&self, at: usize, operand: &Operand) -> u64 {
        match *operand {
            Operand::Weights { offset, .. } => {
                let (start, memory) =
                    self.weights.range(..=offset).next_back().expect("every operand is in one");
                memory.address() + (offset - start)
            }
            Operand::Buffer(id) => self.classes[at].buffers[id as usize].address(),
            Operand::Kv { layer, .. } => self.pools[layer as usize].address(),
            Operand::Rope(table) => self.ropes[table as usize].address(),
            Operand::LoraTarget(lora_target) => u64::from(lora_target) * size_of::<LoraTargetEntry>() as u64,
        }
    }

    fn table(&self, kind: LayerKind) -> *const u32 {
        self.tables[kind.index()].address() as *const u32
    }
}
