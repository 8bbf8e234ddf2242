//! The paged KV cache's bookkeeping: which block holds which tokens of which sequence.
//!
//! There is one block table per sequence and layer kind, indexed by absolute position / 16. Blocks are shared
//! between sequences with the same prefix and copied when one of them writes. Sliding layers give blocks back
//! once every key in them is behind the window of all queries to come. The prefix cache keeps blocks for
//! sequences to come, as long as nobody else wants the room. The bytes themselves are the executor's.
//!
//! Why a sequence cannot go on as asked.

mod blocks;
mod cached;
mod kind;
mod prefix;
mod restore;
mod sequence;
mod shape;
mod tables;
#[cfg(test)]
mod tests;
mod view;

use kernmill_plan::kv::{BLOCK_TOKENS, LayerKind};
pub use prefix::{CacheScope, CachedBlock, EVERYBODY, Eviction, PrefixStats, Tenant};
pub use restore::BlockSource;
pub use shape::{CHECKPOINT_TOKENS, KvBudget, KvShape, MAX_SEQUENCES};
pub use tables::{KvDemand, KvTables, KvUsage};
pub(crate) use view::BlockTables;

/// Table entry without a block.
pub const UNMAPPED: u32 = u32::MAX;
/// An operation on the bytes of blocks that a change of tables asks for. They are done in order.
#[derive(Clone, Copy, Debug)]
pub enum BlockChange<'a> {
    /// A shared block gets a copy.
    Copy {
        /// Kind of layers.
        kind: LayerKind,
        /// The block to copy.
        from: u32,
        /// The block that is written.
        to: u32,
    },
    /// A block has left the prefix cache. Its rows are still there, and may be written over after this.
    Leaves(&'a CachedBlock),
}

const BLOCK: u32 = BLOCK_TOKENS as u32;
const KINDS: [LayerKind; 2] = [LayerKind::Full, LayerKind::Sliding];

/// Why a sequence cannot go on as asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KvError {
    /// All sequences of the engine are in use.
    #[error("all {limit} sequences of this engine are in use: drop one, or make the engine with more")]
    NoFreeSequence {
        /// Sequences of the engine.
        limit: u32,
    },
    /// The tokens would not fit.
    #[error("{length} tokens and {more} more exceed the context of {context}")]
    Context {
        /// Tokens in the sequence.
        length: u32,
        /// Tokens to be added.
        more: usize,
        /// Tokens a sequence may have.
        context: u32,
    },
    /// There are no blocks left.
    #[error("the KV cache needs {needed} more blocks for {kind:?} layers and has {free}")]
    OutOfBlocks {
        /// Which layers.
        kind: LayerKind,
        /// Blocks that this step needs.
        needed: usize,
        /// Blocks that are free.
        free: usize,
    },
    /// A sequence can only go back to where its window is still cached.
    #[error(
        "position {position} of a sequence of {length} tokens cannot be returned to: its window starts at {lowest}, and sliding layers keep keys from {kept} on"
    )]
    Forgotten {
        /// Position asked for.
        position: u32,
        /// Tokens in the sequence.
        length: u32,
        /// First key that a query there sees.
        lowest: u32,
        /// First key still cached.
        kept: u32,
    },
    /// A position past the end.
    #[error("position {position} of a sequence of {length} tokens")]
    PastEnd {
        /// Position asked for.
        position: u32,
        /// Tokens in the sequence.
        length: u32,
    },
}
