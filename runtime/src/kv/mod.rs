//! The paged KV cache's bookkeeping: which block holds which tokens of which sequence.
//!
//! There is one block table per sequence and layer kind, indexed by absolute position / 16. Blocks are shared between
//! sequences with the same prefix and copied when one of them writes. Sliding layers give blocks back once every key in
//! them is behind the window of all queries to come. The bytes themselves are the executor's.

mod blocks;

#[cfg(test)]
mod tests;

use blocks::BlockPool;
use kernmill_plan::kv::{BLOCK_TOKENS, KvLayers, LayerKind};

/// Table entry without a block.
pub const UNMAPPED: u32 = u32::MAX;
const BLOCK: u32 = BLOCK_TOKENS as u32;
const KINDS: [LayerKind; 2] = [LayerKind::Full, LayerKind::Sliding];

/// Why a sequence cannot go on as asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KvError {
    /// Every slot is taken.
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

/// How much the cache must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KvShape {
    /// Longest sequence, in tokens.
    pub context: u32,
    /// Sequences at once.
    pub sequences: u32,
    /// Most tokens that enter a sequence in one run.
    pub chunk: u32,
}

impl KvShape {
    /// Blocks of each kind that this takes; 0 for a kind that no layer has.
    pub fn blocks(&self, layers: &KvLayers) -> [u32; 2] {
        KINDS.map(|kind| {
            if !layers.layers.iter().any(|layer| layer.kind == kind) {
                return 0;
            }
            let all = self.context.div_ceil(BLOCK);
            let per_sequence = match window(layers, kind) {
                None => all,
                Some(window) => all.min(window.saturating_add(self.chunk) / BLOCK + 2),
            };
            per_sequence.saturating_mul(self.sequences)
        })
    }
}

/// The widest window of a kind's layers.
fn window(layers: &KvLayers, kind: LayerKind) -> Option<u32> {
    layers.layers.iter().filter(|layer| layer.kind == kind).filter_map(|layer| layer.window).max()
}

/// Block tables of all sequences.
#[derive(Debug)]
pub struct KvTables {
    context: u32,
    kinds: [Kind; 2],
    /// By slot.
    sequences: Vec<Option<Sequence>>,
}

#[derive(Debug)]
struct Kind {
    kind: LayerKind,
    /// Whether the model has such layers; the other kind's tables stay empty.
    used: bool,
    window: Option<u32>,
    pool: BlockPool,
    /// Entries per sequence.
    stride: usize,
    /// `[sequence][position / 16]`.
    tables: Vec<u32>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sequence {
    /// Tokens stored.
    length: u32,
    /// By kind: blocks before this index have been given back.
    first_block: [u32; 2],
}

impl KvTables {
    /// Tables and free lists; nothing is allocated later.
    pub fn new(layers: &KvLayers, shape: KvShape) -> KvTables {
        let blocks = shape.blocks(layers);
        let stride = shape.context.div_ceil(BLOCK) as usize;
        let kinds = KINDS.map(|kind| {
            let count = blocks[kind.index()];
            Kind {
                kind,
                used: count > 0,
                window: window(layers, kind),
                pool: BlockPool::new(count),
                stride,
                tables: vec![UNMAPPED; stride * shape.sequences as usize],
            }
        });
        KvTables { context: shape.context, kinds, sequences: vec![None; shape.sequences as usize] }
    }

    /// Takes a slot for an empty sequence.
    ///
    /// # Errors
    /// [`KvError::NoFreeSequence`].
    pub fn create(&mut self) -> Result<u32, KvError> {
        let limit = self.sequences.len() as u32;
        let slot =
            self.sequences.iter().position(Option::is_none).ok_or(KvError::NoFreeSequence { limit })?;
        self.sequences[slot] = Some(Sequence::default());
        Ok(slot as u32)
    }

    /// Gives a slot and its blocks back.
    pub fn release(&mut self, slot: u32) {
        if let Some(sequence) = self.sequences[slot as usize].take() {
            for kind in &mut self.kinds {
                let from = sequence.first_block[kind.kind.index()];
                kind.unmap(slot, from, kind.stride as u32);
            }
        }
    }

    /// Tokens stored in a sequence.
    pub fn length(&self, slot: u32) -> u32 {
        self.sequences[slot as usize].map_or(0, |sequence| sequence.length)
    }

    /// A second sequence that starts with the first `at` tokens of `slot`. Whole blocks and a partial last one are shared
    /// until either sequence writes into them.
    ///
    /// # Errors
    /// When `at` is past the end, its window is no longer cached, or no slot is free.
    pub fn fork(&mut self, slot: u32, at: u32) -> Result<u32, KvError> {
        self.check_return(slot, at)?;
        let copy = self.create()?;
        let mut sequence = Sequence { length: at, first_block: [0; 2] };
        for kind in &mut self.kinds {
            let end = at.div_ceil(BLOCK);
            let start = (kind.lowest_key(at) / BLOCK).min(end);
            sequence.first_block[kind.kind.index()] = start;
            for index in start..end {
                let id = kind.tables[kind.entry(slot, index)];
                if id != UNMAPPED {
                    kind.pool.share(id);
                    let entry = kind.entry(copy, index);
                    kind.tables[entry] = id;
                }
            }
        }
        self.sequences[copy as usize] = Some(sequence);
        Ok(copy)
    }

    /// Forgets the tokens from `length` on.
    ///
    /// # Errors
    /// When `length` is past the end or its window is no longer cached.
    pub fn truncate(&mut self, slot: u32, length: u32) -> Result<(), KvError> {
        self.check_return(slot, length)?;
        for kind in &mut self.kinds {
            kind.unmap(slot, length.div_ceil(BLOCK), kind.stride as u32);
        }
        if let Some(sequence) = &mut self.sequences[slot as usize] {
            sequence.length = length;
            for first in &mut sequence.first_block {
                // What follows may be mapped again from here on.
                *first = (*first).min(length / BLOCK);
            }
        }
        Ok(())
    }

    fn check_return(&self, slot: u32, position: u32) -> Result<(), KvError> {
        let sequence = self.sequences[slot as usize].unwrap_or_default();
        let length = sequence.length;
        if position > length {
            return Err(KvError::PastEnd { position, length });
        }
        for kind in &self.kinds {
            let kept = sequence.first_block[kind.kind.index()] * BLOCK;
            let lowest = kind.lowest_key(position);
            // Everything before the blocks kept is gone, unless nothing before `position` is needed.
            if lowest < position && lowest / BLOCK * BLOCK < kept {
                return Err(KvError::Forgotten { position, length, lowest, kept });
            }
        }
        Ok(())
    }

    /// Makes room for `tokens` more tokens, all blocks of theirs mapped and this sequence's own. `copy` is told which
    /// shared blocks must be copied (kind, from, to). Blocks behind the window of the first new token are given back.
    ///
    /// # Errors
    /// When the context or the blocks do not suffice; then nothing is mapped.
    pub fn reserve(
        &mut self,
        slot: u32,
        tokens: usize,
        copy: &mut dyn FnMut(LayerKind, u32, u32),
    ) -> Result<(), KvError> {
        let length = self.length(slot);
        let end = match u32::try_from(tokens).ok().and_then(|tokens| length.checked_add(tokens)) {
            Some(end) if end <= self.context => end,
            _ => return Err(KvError::Context { length, more: tokens, context: self.context }),
        };
        let (first, last) = (length / BLOCK, end.div_ceil(BLOCK));
        for kind in self.kinds.iter_mut().filter(|kind| kind.used) {
            if let Some(sequence) = &mut self.sequences[slot as usize] {
                let behind = kind.lowest_key(length) / BLOCK;
                let kept = &mut sequence.first_block[kind.kind.index()];
                kind.unmap(slot, *kept, behind);
                *kept = behind.max(*kept);
            }
        }
        for kind in self.kinds.iter().filter(|kind| kind.used) {
            let needed = (first..last).filter(|index| kind.must_take(slot, *index)).count();
            let free = kind.pool.available();
            if needed > free {
                return Err(KvError::OutOfBlocks { kind: kind.kind, needed, free });
            }
        }
        for kind in self.kinds.iter_mut().filter(|kind| kind.used) {
            for index in first..last {
                kind.make_own(slot, index, copy);
            }
        }
        Ok(())
    }

    /// Counts `tokens` reserved tokens as stored.
    pub fn advance(&mut self, slot: u32, tokens: u32) {
        if let Some(sequence) = &mut self.sequences[slot as usize] {
            sequence.length += tokens;
        }
    }

    /// A kind's tables `[sequence][position / 16]` and the entries per sequence.
    pub fn table(&self, kind: LayerKind) -> (&[u32], u32) {
        let kind = &self.kinds[kind.index()];
        (&kind.tables, kind.stride as u32)
    }

    /// Free blocks by kind.
    pub fn free_blocks(&self) -> [usize; 2] {
        [self.kinds[0].pool.available(), self.kinds[1].pool.available()]
    }
}

impl Kind {
    fn entry(&self, slot: u32, index: u32) -> usize {
        slot as usize * self.stride + index as usize
    }

    /// First key that a query at `position` sees.
    fn lowest_key(&self, position: u32) -> u32 {
        self.window.map_or(0, |window| (position + 1).saturating_sub(window))
    }

    fn unmap(&mut self, slot: u32, from: u32, to: u32) {
        for index in from..to {
            let entry = self.entry(slot, index);
            let id = std::mem::replace(&mut self.tables[entry], UNMAPPED);
            if id != UNMAPPED {
                self.pool.give_back(id);
            }
        }
    }

    /// Whether writing there takes a free block.
    fn must_take(&self, slot: u32, index: u32) -> bool {
        let id = self.tables[self.entry(slot, index)];
        id == UNMAPPED || self.pool.is_shared(id)
    }

    fn make_own(&mut self, slot: u32, index: u32, copy: &mut dyn FnMut(LayerKind, u32, u32)) {
        if !self.must_take(slot, index) {
            return;
        }
        let entry = self.entry(slot, index);
        // `reserve` has counted the free blocks.
        let Some(id) = self.pool.take() else { return };
        let old = std::mem::replace(&mut self.tables[entry], id);
        if old != UNMAPPED {
            copy(self.kind, old, id);
            self.pool.give_back(old);
        }
    }
}
