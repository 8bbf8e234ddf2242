//! Nodes of the prefix tree, and their slab.

use super::super::UNMAPPED;
use super::BLOCK;

/// No node, or no checkpoint.
pub(super) const NONE: u32 = u32::MAX;

/// Name of a cached block: a BLAKE3 hash of its tokens, of everything before them, and of what else decides
/// its bits.
pub(super) type BlockKey = [u8; 32];

/// A block of tokens in the tree; or a root, which has no tokens and stands for a model with its adapters.
#[derive(Clone, Debug)]
pub(super) struct PrefixNode {
    pub key: BlockKey,
    pub parent: u32,
    /// Index of its block in a sequence: position / 16.
    pub index: u32,
    /// The tenant that may use it.
    pub tenant: [u8; 32],
    /// The first `len` of them count.
    pub tokens: [u32; BLOCK as usize],
    pub len: u32,
    /// The node's block of full layers, and that of sliding layers; `UNMAPPED` where it has none.
    pub blocks: [u32; 2],
    pub first_child: u32,
    /// Siblings are a list.
    pub before: u32,
    pub after: u32,
    /// Sequences that continue it.
    pub users: u32,
    /// How often it was used.
    pub uses: u32,
    /// The checkpoint that ends in it.
    pub checkpoint: u32,
    /// Checkpoints that need its sliding block.
    pub covered: u32,
}

impl PrefixNode {
    pub(super) fn new(key: BlockKey) -> PrefixNode {
        PrefixNode {
            key,
            parent: NONE,
            index: 0,
            tenant: [0; 32],
            tokens: [0; BLOCK as usize],
            len: 0,
            blocks: [UNMAPPED; 2],
            first_child: NONE,
            before: NONE,
            after: NONE,
            users: 0,
            uses: 0,
            checkpoint: NONE,
            covered: 0,
        }
    }

    pub(super) fn is_root(&self) -> bool {
        self.parent == NONE
    }

    /// The tokens of its block.
    pub(super) fn tokens(&self) -> &[u32] {
        &self.tokens[..self.len as usize]
    }

    /// Position after its last token.
    pub(super) fn end(&self) -> u32 {
        if self.is_root() { 0 } else { self.index * BLOCK + self.len }
    }

    /// Whether nothing needs it but what it holds itself.
    pub(super) fn is_leaf(&self) -> bool {
        self.first_child == NONE && self.users == 0
    }
}

/// Nodes by number. All memory is reserved at once, and touched when it is used.
#[derive(Debug)]
pub(super) struct Nodes {
    slab: Vec<PrefixNode>,
    free: Vec<u32>,
    /// Nodes that there may be.
    most: usize,
}

impl Nodes {
    pub(super) fn new(capacity: usize) -> Nodes {
        Nodes { slab: Vec::with_capacity(capacity), free: Vec::with_capacity(capacity), most: capacity }
    }

    /// A place for a node, if there is one.
    pub(super) fn add(&mut self, node: PrefixNode) -> Option<u32> {
        if let Some(id) = self.free.pop() {
            self.slab[id as usize] = node;
            return Some(id);
        }
        if self.is_full() {
            return None;
        }
        self.slab.push(node);
        Some(self.slab.len() as u32 - 1)
    }

    pub(super) fn remove(&mut self, id: u32) {
        // Each number is there once at most: no growth.
        self.free.push(id);
    }

    /// Makes a node the first child of another.
    pub(super) fn link(&mut self, parent: u32, child: u32) {
        let first = std::mem::replace(&mut self[parent].first_child, child);
        self[child].after = first;
        if first != NONE {
            self[first].before = child;
        }
    }

    /// Takes a node out of its parent's children.
    pub(super) fn unlink(&mut self, child: u32) {
        let PrefixNode { parent, before, after, .. } = self[child];
        match before {
            NONE => self[parent].first_child = after,
            _ => self[before].after = after,
        }
        if after != NONE {
            self[after].before = before;
        }
    }

    /// The children of a node.
    pub(super) fn children(&self, of: u32) -> impl Iterator<Item = u32> + '_ {
        let next = |id: &u32| Some(self[*id].after).filter(|id| *id != NONE);
        std::iter::successors(Some(self[of].first_child).filter(|id| *id != NONE), next)
    }

    /// Whether every place is taken.
    pub(super) fn is_full(&self) -> bool {
        self.free.is_empty() && self.slab.len() == self.most
    }
}

impl std::ops::Index<u32> for Nodes {
    type Output = PrefixNode;

    fn index(&self, id: u32) -> &PrefixNode {
        &self.slab[id as usize]
    }
}

impl std::ops::IndexMut<u32> for Nodes {
    fn index_mut(&mut self, id: u32) -> &mut PrefixNode {
        &mut self.slab[id as usize]
    }
}
