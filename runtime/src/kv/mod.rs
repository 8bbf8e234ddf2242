//! The paged KV cache's bookkeeping: which block holds which tokens of which sequence.
//!
//! There is one block table per sequence and layer kind, indexed by absolute position / 16. Blocks are shared
//! between sequences with the same prefix and copied when one of them writes. Sliding layers give blocks back
//! once every key in them is behind the window of all queries to come. The bytes themselves are the
//! executor's.

mod blocks;

#[cfg(test)]
mod tests;

use blocks::BlockPool;
use kernmill_plan::kv::{BLOCK_TOKENS, KvLayers, LayerKind};
use std::ops::Range;

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
    /// Memory that the blocks may take.
    pub budget: KvBudget,
}

/// Memory of a KV cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KvBudget {
    /// As much memory as all sequences take when each is as long as the context: blocks never run out.
    #[default]
    WorstCase,
    /// At most so many bytes, shared out among the layers as the worst case would be; and at least one block
    /// for each kind of layers.
    Bytes(u64),
}

/// How much of a KV cache is in use, in blocks of 16 tokens, by layer kind ([`LayerKind::index`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KvUsage {
    /// Blocks there are.
    pub blocks: [usize; 2],
    /// Blocks that no sequence uses.
    pub free: [usize; 2],
    /// Bytes of a block in all layers of the kind.
    pub block_bytes: [u64; 2],
}

impl KvShape {
    /// Blocks of each kind; 0 for a kind that no layer has.
    pub fn blocks(&self, layers: &KvLayers) -> [u32; 2] {
        let most = self.worst_case(layers);
        let KvBudget::Bytes(budget) = self.budget else { return most };
        let block_bytes = block_bytes(layers);
        let bytes: u128 =
            most.iter().zip(block_bytes).map(|(n, bytes)| u128::from(*n) * u128::from(bytes)).sum();
        most.map(|count| match u128::from(budget) < bytes {
            true => ((u128::from(count) * u128::from(budget) / bytes) as u32).max(count.min(1)),
            false => count,
        })
    }

    fn worst_case(&self, layers: &KvLayers) -> [u32; 2] {
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

/// Bytes of a block in all layers of each kind.
fn block_bytes(layers: &KvLayers) -> [u64; 2] {
    KINDS.map(|kind| {
        let count = layers.layers.iter().filter(|layer| layer.kind == kind).count();
        count as u64 * layers.geometry.block_bytes() as u64
    })
}

/// The widest window of a kind's layers.
fn window(layers: &KvLayers, kind: LayerKind) -> Option<u32> {
    layers.layers.iter().filter(|layer| layer.kind == kind).filter_map(|layer| layer.window).max()
}

/// Block tables of all sequences.
#[derive(Debug)]
pub struct KvTables {
    context: u32,
    block_bytes: [u64; 2],
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

/// Free blocks that a sequence takes and gives back, by layer kind ([`LayerKind::index`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KvDemand {
    /// Blocks taken.
    pub takes: [usize; 2],
    /// Blocks given back before any is taken.
    pub frees: [usize; 2],
}

/// New tokens of a sequence.
#[derive(Clone, Copy, Debug)]
struct Span {
    slot: u32,
    /// By kind: the first block that is still mapped.
    first_block: [u32; 2],
    /// Tokens before the new ones.
    length: u32,
    /// Tokens with the new ones.
    end: u32,
}

impl Span {
    fn of(sequences: &[Option<Sequence>], slot: u32, tokens: u32) -> Span {
        let Sequence { length, first_block } = sequences[slot as usize].unwrap_or_default();
        Span { slot, first_block, length, end: length + tokens }
    }

    /// Indices of the blocks that the new tokens are written to.
    fn written(&self) -> Range<u32> {
        self.length / BLOCK..self.end.div_ceil(BLOCK)
    }
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
        let sequences = vec![None; shape.sequences as usize];
        KvTables { context: shape.context, block_bytes: block_bytes(layers), kinds, sequences }
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

    /// A second sequence that starts with the first `at` tokens of `slot`. Whole blocks and a partial last
    /// one are shared until either sequence writes into them.
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

    /// What appending `tokens` tokens to a sequence takes from the free blocks, and gives back to them.
    ///
    /// # Errors
    /// [`KvError::Context`] when the sequence would be longer than the context.
    pub fn demand(&self, slot: u32, tokens: u32) -> Result<KvDemand, KvError> {
        let span = self.span(slot, tokens)?;
        let mut demand = KvDemand::default();
        for kind in self.kinds.iter().filter(|kind| kind.used) {
            let n = kind.kind.index();
            let behind = kind.blocks(slot, kind.behind(&span)).filter(|id| *id != UNMAPPED);
            demand.frees[n] = behind.filter(|id| !kind.pool.is_shared(*id)).count();
            let written = kind.blocks(slot, span.written());
            demand.takes[n] = written.filter(|id| *id == UNMAPPED || kind.pool.is_shared(*id)).count();
        }
        Ok(demand)
    }

    /// Makes room for more tokens in several sequences, given as (slot, tokens), no slot twice. All blocks of
    /// the new tokens are then mapped and the sequence's own; `copy` is told which shared blocks must be
    /// copied (kind, from, to). Blocks behind the window of a sequence's first new token are given back.
    ///
    /// # Errors
    /// When the context or the free blocks do not suffice: the index of the part at fault, and why. Nothing
    /// has changed then.
    pub fn reserve(
        &mut self,
        parts: &[(u32, u32)],
        copy: &mut dyn FnMut(LayerKind, u32, u32),
    ) -> Result<(), (usize, KvError)> {
        for (n, (slot, tokens)) in parts.iter().enumerate() {
            self.span(*slot, *tokens).map_err(|error| (n, error))?;
        }
        // Everything is tried on the counts of users before anything is done: a failure must leave no trace.
        for at in KINDS.map(LayerKind::index) {
            let spans = parts.iter().map(|(slot, tokens)| Span::of(&self.sequences, *slot, *tokens));
            self.kinds[at].try_out(spans)?;
        }
        for (slot, tokens) in parts {
            let span = Span::of(&self.sequences, *slot, *tokens);
            for kind in self.kinds.iter_mut().filter(|kind| kind.used) {
                let behind = kind.behind(&span);
                kind.unmap(*slot, behind.start, behind.end);
                span.written().for_each(|index| kind.make_own(*slot, index, copy));
                if let Some(sequence) = &mut self.sequences[*slot as usize] {
                    let first = &mut sequence.first_block[kind.kind.index()];
                    *first = behind.end.max(*first);
                }
            }
        }
        Ok(())
    }

    /// The new tokens of a sequence, if the context holds them.
    fn span(&self, slot: u32, tokens: u32) -> Result<Span, KvError> {
        let length = self.length(slot);
        match length.checked_add(tokens) {
            Some(end) if end <= self.context => Ok(Span::of(&self.sequences, slot, tokens)),
            _ => Err(KvError::Context { length, more: tokens as usize, context: self.context }),
        }
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

    /// How much is in use.
    pub fn usage(&self) -> KvUsage {
        let of = |count: fn(&BlockPool) -> usize| [count(&self.kinds[0].pool), count(&self.kinds[1].pool)];
        KvUsage {
            blocks: of(BlockPool::count),
            free: of(BlockPool::available),
            block_bytes: self.block_bytes,
        }
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

    /// The ids mapped at some indices of a sequence's table.
    fn blocks(&self, slot: u32, indices: Range<u32>) -> impl Iterator<Item = u32> + '_ {
        indices.map(move |index| self.tables[self.entry(slot, index)])
    }

    /// Indices of the mapped blocks that no query from the first new token on sees.
    fn behind(&self, span: &Span) -> Range<u32> {
        let first = span.first_block[self.kind.index()];
        first..(self.lowest_key(span.length) / BLOCK).max(first)
    }

    /// Whether there are blocks for all spans, one after the other; changes nothing.
    fn try_out(&mut self, spans: impl Iterator<Item = Span>) -> Result<(), (usize, KvError)> {
        if !self.used {
            return Ok(());
        }
        let mut free = self.pool.available();
        let mut result = Ok(());
        for (n, span) in spans.enumerate() {
            for index in self.behind(&span) {
                let id = self.tables[self.entry(span.slot, index)];
                free += usize::from(id != UNMAPPED && self.pool.try_give_back(id));
            }
            let mut needed = 0;
            for index in span.written() {
                let id = self.tables[self.entry(span.slot, index)];
                if id == UNMAPPED {
                    needed += 1;
                } else if self.pool.is_still_shared(id) {
                    self.pool.try_give_back(id);
                    needed += 1;
                }
            }
            if needed > free {
                result = Err((n, KvError::OutOfBlocks { kind: self.kind, needed, free }));
                break;
            }
            free -= needed;
        }
        self.pool.end_of_trial();
        result
    }

    /// Maps a block at `index` that is the sequence's own.
    fn make_own(&mut self, slot: u32, index: u32, copy: &mut dyn FnMut(LayerKind, u32, u32)) {
        let entry = self.entry(slot, index);
        let old = self.tables[entry];
        if old != UNMAPPED && !self.pool.is_shared(old) {
            return;
        }
        // `try_out` has counted the free blocks.
        let Some(id) = self.pool.take() else { return };
        self.tables[entry] = id;
        if old != UNMAPPED {
            copy(self.kind, old, id);
            self.pool.give_back(old);
        }
    }
}
