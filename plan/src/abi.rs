//! The kernel ABI: `extern "C" fn(args: *const Args, worker: *const Worker)`.
//!
//! A kernel is independent of the layer it serves: which weights, arena buffers, KV pools and tables it works
//! on comes through [`Worker::operands`], absolute addresses in the order that the step lists them.

use crate::adapter::LoraTargetEntry;
use std::sync::atomic::AtomicU32;

/// Inputs of one run over a batch of tokens; the same for all steps and workers.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Args {
    /// Tokens T in this batch, at least 1 and at most the class's maximum.
    pub tokens: u32,
    /// Rows R of the current slab of logits, at most [`LOGIT_SLAB`].
    pub logit_rows: u32,
    /// `[T]` token ids, each below the vocabulary size.
    pub token_ids: *const u32,
    /// `[T]` absolute position of each token in its sequence.
    pub positions: *const u32,
    /// `[T]` row of the block tables that each token's sequence uses.
    pub sequences: *const u32,
    /// `[T]` adapter slot of each token; 0 is no adapter.
    pub adapters: *const u32,
    /// `[R]` batch row (0..T) of each wanted row of logits in this slab.
    pub logit_index: *const u32,
    /// Block tables by [`crate::kv::LayerKind`]: `[sequence][position / 16]` -> block id.
    pub block_tables: [*const u32; 2],
    /// Entries per sequence in each block table.
    pub block_table_stride: [u32; 2],
    /// `[slot][lora_target]`: what each adapter has at each LoRA target of the program
    /// ([`crate::program::ModelInfo::adapters`]). Null when no token of the batch has an adapter at a LoRA
    /// target that the step looks at.
    pub adapter_table: *const LoraTargetEntry,
    /// Bytes from one slot's entries to the next's.
    pub adapter_stride: u64,
    /// `[T]` how many tokens from each one on, itself included, have its slot.
    pub adapter_runs: *const u32,
    /// Tiles of 16 ranks of the largest rank that any token's adapter has at any LoRA target.
    pub adapter_tiles: u32,
    /// Tiles that `logit_tiles` lists.
    pub logit_tile_count: u32,
    /// Tiles of 16 rows that a matrix of logits is multiplied by, ascending; null when it is multiplied by
    /// all. Only a step gets a list whose kernel has as many tiles
    /// ([`crate::contract::Contract::listed_tiles`]) as the vocabulary.
    pub logit_tiles: *const u32,
    /// `[T]` last position of each token's sequence in this batch, for attention that sees what follows.
    pub last_positions: *const u32,
}

/// The inputs of one worker's part of a step.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Worker {
    /// Number of this worker, `0..count`.
    pub index: u32,
    /// Workers that take part.
    pub count: u32,
    /// Scratch of this worker alone, [`crate::program::Program::scratch_bytes`] long, 64-byte aligned.
    pub scratch: *mut u8,
    /// `[nodes][COUNTERS]`, all 0 at the step's start. The first of a node hands out its work, or that of all
    /// nodes; the others of the first node count what the kernel likes.
    pub counters: *const AtomicU32,
    /// Absolute addresses of the step's operands.
    pub operands: *const u64,
    /// Worker 0's scratch: parts that its kernel leaves to all workers hold what they write for each other
    /// within a step.
    pub first_scratch: *mut u8,
    /// `[nodes + 1]`: the first worker of each node of memory, and `count`.
    pub node_starts: *const u32,
    /// Nodes of memory that workers are of, at least 1.
    pub nodes: u32,
    /// Number of this worker's node, `0..nodes`.
    pub node: u32,
}

/// Rows of logits computed at once; a run that wants more repeats the logits steps slab by slab, which read
/// the whole unembedding. As many as the longest draft has, so that one pass checks it.
pub const LOGIT_SLAB: usize = 64;

/// Counters of a step, by node: a cache line of them.
pub const COUNTERS: usize = 16;
/// Workers of a node share its items of a step that cost alike: all but `items >> TAIL_SHIFT` are split
/// evenly, and these are taken from the node's counter.
pub const TAIL_SHIFT: u32 = 2;

/// A generated kernel.
pub type KernelFn = unsafe extern "C" fn(args: *const Args, worker: *const Worker);

/// Version of everything a kernel and its caller agree on: bump on any change of [`Args`], [`Worker`],
/// layouts or contracts.
pub const ABI_VERSION: u32 = 8;

/// One entry of a routing row: a token's chosen expert. A row is `[top_k]` of these in order of choice.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChosenExpert {
    /// Expert id.
    pub expert: u32,
    /// Weight of the expert in the sum.
    pub weight: f32,
}
