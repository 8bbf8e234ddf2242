//! Blocks that leave the cache, for whoever keeps their rows elsewhere.

use super::super::{BLOCK, CHECKPOINT_TOKENS};
use super::node::{BlockKey, Nodes};
use kernmill_plan::kv::LayerKind;

/// A cached block: which rows it has, and where they are.
#[derive(Clone, Copy, Debug)]
pub struct CachedBlock {
    /// Layers whose rows these are.
    pub kind: LayerKind,
    /// Number of the block in the pool of its kind.
    pub block: u32,
    /// Name of the block: a hash of its tokens and of everything else that decides its bits, but for the
    /// model.
    pub key: [u8; 32],
    /// Name of the block before it; zeros for the first one.
    pub parent: [u8; 32],
    /// Tokens of the block. The first `len` of them count.
    pub tokens: [u32; BLOCK as usize],
    /// Tokens in the block.
    pub len: u32,
    /// The cost of computing the rows anew, in tokens at the start of a text.
    pub cost: f64,
}

impl CachedBlock {
    /// The block that a node holds.
    pub(super) fn of(nodes: &Nodes, id: u32, kind: LayerKind, window: u32) -> CachedBlock {
        let node = &nodes[id];
        let parent = &nodes[node.parent];
        CachedBlock {
            kind,
            block: node.blocks[kind.index()],
            key: node.key,
            parent: if parent.is_root() { BlockKey::default() } else { parent.key },
            tokens: node.tokens,
            len: node.len,
            cost: cost(kind, node.index, node.len, window),
        }
    }

    /// The tokens of the block.
    pub fn tokens(&self) -> &[u32] {
        &self.tokens[..self.len as usize]
    }
}

/// The cost of computing a block: attention of full layers reads everything before it. Without a window, all
/// tokens since the checkpoint before are run.
pub(super) fn cost(kind: LayerKind, index: u32, len: u32, window: u32) -> f64 {
    match kind {
        LayerKind::Full => f64::from(len) * (1024.0 + 2.0 * f64::from(index)) / 1024.0,
        LayerKind::Sliding => f64::from(CHECKPOINT_TOKENS) / f64::from(window.div_ceil(BLOCK).max(1)),
    }
}

/// Blocks that have left the cache, and whose rows are still in place.
#[derive(Debug, Default)]
pub(super) struct Leaving {
    /// Whether anybody wants to know.
    pub is_wanted: bool,
    pub window: u32,
    blocks: Vec<CachedBlock>,
}

impl Leaving {
    /// Nothing has left a cache with sliding layers of that window.
    pub(super) fn new(window: u32) -> Leaving {
        Leaving { window, ..Leaving::default() }
    }

    /// Notes that a node's block of a kind leaves the cache.
    pub(super) fn note(&mut self, nodes: &Nodes, id: u32, kind: LayerKind) {
        if self.is_wanted {
            self.blocks.push(CachedBlock::of(nodes, id, kind, self.window));
        }
    }

    /// Whether a block is among those that have left.
    pub(super) fn has(&self, kind: LayerKind, key: &[u8; 32]) -> bool {
        self.blocks.iter().any(|block| block.kind == kind && block.key == *key)
    }

    /// Hands out what has left.
    pub(super) fn hand_over(&mut self, take: &mut dyn FnMut(&CachedBlock)) {
        self.blocks.iter().for_each(take);
        self.blocks.clear();
    }
}
