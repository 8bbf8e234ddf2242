//! The books of one sequence.

use super::prefix::CacheScope;

#[derive(Debug, Default)]
pub(super) struct Sequence {
    /// Tokens stored.
    pub length: u32,
    /// By kind: blocks before this index have been given back.
    pub first_block: [u32; 2],
    /// The prefix cache's view of it, if it takes part.
    pub cached: Option<Cached>,
}

/// A sequence's part in the prefix cache.
#[derive(Clone, Debug)]
pub(super) struct Cached {
    pub scope: CacheScope,
    /// All tokens stored.
    pub tokens: Vec<u32>,
    /// Node of the last block that the cache has, or the root.
    pub tail: u32,
    /// Blocks that the cache has.
    pub blocks: u32,
}
