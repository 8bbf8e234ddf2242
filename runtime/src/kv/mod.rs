//! The paged KV cache's bookkeeping: which block holds which tokens of which sequence.
//!
//! There is one block table per sequence and layer kind, indexed by absolute position / 16. Blocks are shared
//! between sequences with the same prefix and copied when one of them writes. Sliding layers give blocks back
//! once every key in them is behind the window of all queries to come. The prefix cache keeps blocks for
//! sequences to come, as long as nobody else wants the room. The bytes themselves are the executor's.

mod blocks;
mod cached;
mod error;
mod kind;
mod prefix;
mod restore;
mod sequence;
mod shape;
mod tables;
mod view;

#[cfg(test)]
mod tests;

pub use error::KvError;
pub use prefix::{CacheScope, CachedBlock, EVERYBODY, Eviction, PrefixStats, Tenant};
pub use restore::BlockSource;
pub use shape::{CHECKPOINT_TOKENS, KvBudget, KvShape, MAX_SEQUENCES};
pub use tables::{KvDemand, KvTables, KvUsage};
pub(crate) use view::BlockTables;

use kernmill_plan::kv::{BLOCK_TOKENS, LayerKind};

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
