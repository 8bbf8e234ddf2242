//! Block tables of all sequences.

use super::blocks::BlockPool;
use super::kind::{KindTables, Span};
use super::prefix::{Eviction, PrefixCache, PrefixStats};
use super::sequence::{Cached, Sequence};
use super::shape::{CHECKPOINT_TOKENS, KvShape, block_bytes, window};
use super::{BLOCK, BlockChange, BlockTables, KINDS, KvError, UNMAPPED};
use kernmill_plan::kv::{KvLayers, LayerKind};

/// How much of a KV cache is in use, in blocks, by layer kind ([`LayerKind::index`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KvUsage {
    /// Blocks there are.
    pub blocks: [usize; 2],
    /// Blocks that no sequence uses: those that nobody uses, and `cached` ones.
    pub free: [usize; 2],
    /// Blocks that only the prefix cache uses; they make way when a sequence needs them.
    pub cached: [usize; 2],
    /// Bytes of a block in all layers of the kind.
    pub block_bytes: [u64; 2],
    /// Tokens of a block.
    pub block_tokens: u32,
}

/// Free blocks that a sequence takes and gives back, by layer kind ([`LayerKind::index`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KvDemand {
    /// Blocks taken.
    pub takes: [usize; 2],
    /// Blocks given back before any is taken.
    pub frees: [usize; 2],
}

/// Block tables of all sequences, and the prefix cache.
#[derive(Debug)]
pub struct KvTables {
    pub(super) context: u32,
    block_bytes: [u64; 2],
    pub(super) kinds: [KindTables; 2],
    pub(super) pools: [BlockPool; 2],
    pub(super) prefixes: PrefixCache,
    /// By number of the sequence.
    pub(super) sequences: Vec<Option<Sequence>>,
}

/// The new tokens of a sequence.
fn span_of(sequences: &[Option<Sequence>], sequence: u32, tokens: u32) -> Span {
    let (length, first_block) =
        sequences[sequence as usize].as_ref().map_or((0, [0; 2]), |s| (s.length, s.first_block));
    Span { sequence, first_block, length, end: length + tokens }
}

impl KvTables {
    /// Tables and free lists; nothing is allocated later, but for the tokens of sequences that take part in
    /// the prefix cache, when they begin.
    pub fn new(layers: &KvLayers, shape: KvShape, eviction: Eviction) -> KvTables {
        let blocks = shape.blocks(layers);
        let stride = shape.context.div_ceil(BLOCK) as usize;
        let kinds = KINDS.map(|kind| KindTables {
            kind,
            used: blocks[kind.index()] > 0,
            window: window(layers, kind),
            stride,
            tables: vec![UNMAPPED; stride * shape.sequences as usize],
        });
        let sliding = if kinds[1].used { kinds[1].window } else { None };
        KvTables {
            context: shape.context,
            block_bytes: block_bytes(layers),
            kinds,
            pools: blocks.map(BlockPool::new),
            prefixes: PrefixCache::new(blocks, sliding, shape.context, shape.sequences, eviction),
            sequences: std::iter::repeat_with(|| None).take(shape.sequences as usize).collect(),
        }
    }

    /// Takes a number for an empty sequence, which the prefix cache ignores.
    ///
    /// # Errors
    /// [`KvError::NoFreeSequence`].
    pub fn create(&mut self) -> Result<u32, KvError> {
        let limit = self.sequences.len() as u32;
        let sequence =
            self.sequences.iter().position(Option::is_none).ok_or(KvError::NoFreeSequence { limit })?;
        self.sequences[sequence] = Some(Sequence::default());
        Ok(sequence as u32)
    }

    /// Gives a sequence's number and its blocks back. Blocks of them in the prefix cache stay there.
    pub fn release(&mut self, sequence: u32) {
        self.leave_cache(sequence);
        if let Some(state) = self.sequences[sequence as usize].take() {
            for kind in &mut self.kinds {
                let n = kind.kind.index();
                kind.unmap(sequence, state.first_block[n]..kind.stride as u32, &mut self.pools[n]);
            }
        }
    }

    /// Tokens stored in a sequence.
    pub fn length(&self, sequence: u32) -> u32 {
        self.sequences[sequence as usize].as_ref().map_or(0, |sequence| sequence.length)
    }

    /// A second sequence that starts with the first `at` tokens of another. Whole blocks and a partial last
    /// one are shared until either sequence writes into them.
    ///
    /// # Errors
    /// When `at` is past the end, its window is no longer cached, or all sequences are in use.
    pub fn fork(&mut self, sequence: u32, at: u32) -> Result<u32, KvError> {
        self.check_return(sequence, at)?;
        let copy = self.create()?;
        let mut first_block = [0; 2];
        for kind in &mut self.kinds {
            let n = kind.kind.index();
            let end = at.div_ceil(BLOCK);
            first_block[n] = (kind.lowest_key(at) / BLOCK).min(end);
            for index in first_block[n]..end {
                let id = kind.tables[kind.entry(sequence, index)];
                if id != UNMAPPED {
                    self.pools[n].share(id);
                    let entry = kind.entry(copy, index);
                    kind.tables[entry] = id;
                }
            }
        }
        let cached = self.sequences[sequence as usize].as_ref().and_then(|of| of.cached.as_ref());
        let cached = cached.map(|of| {
            let (tail, blocks) = self.prefixes.up_to(of.tail, of.blocks, at / BLOCK);
            let mut tokens = Vec::with_capacity(self.context as usize);
            tokens.extend_from_slice(&of.tokens[..at as usize]);
            Cached { scope: of.scope, tokens, tail, blocks }
        });
        if let Some(cached) = &cached {
            self.prefixes.hold(cached.tail);
        }
        self.sequences[copy as usize] = Some(Sequence { length: at, first_block, cached });
        Ok(copy)
    }

    /// Forgets the tokens from `length` on.
    ///
    /// # Errors
    /// When `length` is past the end or its window is no longer cached.
    pub fn truncate(&mut self, sequence: u32, length: u32) -> Result<(), KvError> {
        self.check_return(sequence, length)?;
        for kind in &mut self.kinds {
            let range = length.div_ceil(BLOCK)..kind.stride as u32;
            kind.unmap(sequence, range, &mut self.pools[kind.kind.index()]);
        }
        let Some(state) = &mut self.sequences[sequence as usize] else { return Ok(()) };
        state.length = length;
        for first in &mut state.first_block {
            // Later blocks may be mapped again from here on.
            *first = (*first).min(length / BLOCK);
        }
        if let Some(cached) = &mut state.cached {
            cached.tokens.truncate(length as usize);
            let before = cached.tail;
            (cached.tail, cached.blocks) = self.prefixes.up_to(before, cached.blocks, length / BLOCK);
            self.prefixes.hold(cached.tail);
            self.prefixes.release(before);
        }
        Ok(())
    }

    pub(super) fn check_return(&self, sequence: u32, position: u32) -> Result<(), KvError> {
        let Span { length, first_block, .. } = span_of(&self.sequences, sequence, 0);
        if position > length {
            return Err(KvError::PastEnd { position, length });
        }
        for kind in &self.kinds {
            let kept = first_block[kind.kind.index()] * BLOCK;
            let lowest = kind.lowest_key(position);
            // Everything before the blocks kept is gone, unless nothing before `position` is needed.
            if lowest < position && lowest / BLOCK * BLOCK < kept {
                return Err(KvError::Forgotten { position, length, lowest, kept });
            }
        }
        Ok(())
    }

    /// The blocks that appending `tokens` tokens to a sequence takes from the free ones, and gives back to
    /// them.
    ///
    /// # Errors
    /// [`KvError::Context`] when the sequence would be longer than the context.
    pub fn demand(&self, sequence: u32, tokens: u32) -> Result<KvDemand, KvError> {
        let span = self.span(sequence, tokens)?;
        let mut demand = KvDemand::default();
        for kind in self.kinds.iter().filter(|kind| kind.used) {
            let n = kind.kind.index();
            let pool = &self.pools[n];
            let behind = kind.blocks(sequence, kind.behind(&span)).filter(|id| *id != UNMAPPED);
            demand.frees[n] = behind.filter(|id| pool.has_one_sequence(*id)).count();
            let written = kind.blocks(sequence, span.written());
            for id in written.filter(|id| *id == UNMAPPED || pool.is_shared(*id)) {
                demand.takes[n] += 1;
                // Others may then have the copied block, if the cache alone has it besides.
                demand.frees[n] += usize::from(id != UNMAPPED && pool.has_one_sequence(id));
            }
        }
        Ok(demand)
    }

    /// Blocks that a sequence could give to others by ending now, by layer kind.
    pub fn held(&self, sequence: u32) -> [usize; 2] {
        let Span { first_block, .. } = span_of(&self.sequences, sequence, 0);
        [0, 1].map(|n| {
            let (kind, pool) = (&self.kinds[n], &self.pools[n]);
            let mapped =
                kind.blocks(sequence, first_block[n]..kind.stride as u32).filter(|id| *id != UNMAPPED);
            mapped.filter(|id| pool.has_one_sequence(*id)).count()
        })
    }

    /// Makes room for more tokens in several sequences, given as (sequence, tokens), no sequence twice. All
    /// blocks of the new tokens are then mapped and the sequence's own; `on_change` is told what must be done
    /// with the bytes of blocks. Blocks behind the window of a sequence's first new token are given
    /// back. Cached blocks make way where there are no free ones.
    ///
    /// # Errors
    /// When the context or the free blocks do not suffice: the index of the part at fault, and why. Nothing
    /// has changed then.
    pub fn reserve(
        &mut self,
        parts: &[(u32, u32)],
        on_change: &mut dyn FnMut(BlockChange<'_>),
    ) -> Result<(), (usize, KvError)> {
        for (n, (sequence, tokens)) in parts.iter().enumerate() {
            self.span(*sequence, *tokens).map_err(|error| (n, error))?;
        }
        // Everything is tried on the counts of users before anything is done: a failure must leave no trace.
        for (kind, pool) in self.kinds.iter().zip(&mut self.pools) {
            let spans = parts.iter().map(|(sequence, tokens)| span_of(&self.sequences, *sequence, *tokens));
            kind.try_out(spans, pool)?;
        }
        for (sequence, tokens) in parts {
            let span = span_of(&self.sequences, *sequence, *tokens);
            for kind in self.kinds.iter_mut().filter(|kind| kind.used) {
                let n = kind.kind.index();
                let behind = kind.behind(&span);
                kind.unmap(*sequence, behind.clone(), &mut self.pools[n]);
                for index in span.written() {
                    kind.make_own(*sequence, index, &mut self.pools, &mut self.prefixes, on_change);
                }
                if let Some(state) = &mut self.sequences[*sequence as usize] {
                    let first = &mut state.first_block[n];
                    *first = behind.end.max(*first);
                }
            }
        }
        self.prefixes.hand_over(&mut |block| on_change(BlockChange::Leaves(block)));
        Ok(())
    }

    /// The new tokens of a sequence, if the context holds them.
    fn span(&self, sequence: u32, tokens: u32) -> Result<Span, KvError> {
        let length = self.length(sequence);
        match length.checked_add(tokens) {
            Some(end) if end <= self.context => Ok(span_of(&self.sequences, sequence, tokens)),
            _ => Err(KvError::Context { length, more: tokens as usize, context: self.context }),
        }
    }

    /// Counts reserved tokens as stored, and gives the blocks that they fill to the prefix cache.
    pub fn advance(&mut self, sequence: u32, tokens: &[u32]) {
        let Some(state) = &mut self.sequences[sequence as usize] else { return };
        let before = state.length;
        state.length += tokens.len() as u32;
        let after = state.length;
        let Some(cached) = &mut state.cached else { return };
        // The context is reserved: no growth.
        cached.tokens.extend_from_slice(tokens);
        self.publish(sequence);
        let first = before / CHECKPOINT_TOKENS + 1;
        for checkpoint in first..=after / CHECKPOINT_TOKENS {
            self.keep_window(sequence, checkpoint * CHECKPOINT_TOKENS);
        }
    }

    /// A kind's tables `[sequence][position / 16]` and the entries per sequence.
    pub fn table(&self, kind: LayerKind) -> (&[u32], u32) {
        let kind = &self.kinds[kind.index()];
        (&kind.tables, kind.stride as u32)
    }

    /// All of them, for kernels.
    pub(crate) fn view(&self) -> BlockTables<'_> {
        BlockTables::new([&self.kinds[0].tables, &self.kinds[1].tables], self.kinds[0].stride as u32)
    }

    /// How much is in use.
    pub fn usage(&self) -> KvUsage {
        let of = |count: fn(&BlockPool) -> usize| [count(&self.pools[0]), count(&self.pools[1])];
        KvUsage {
            block_tokens: BLOCK,
            blocks: of(BlockPool::count),
            free: of(BlockPool::available),
            cached: of(BlockPool::idle),
            block_bytes: self.block_bytes,
        }
    }

    /// Counts of the prefix cache.
    pub fn prefix_stats(&self) -> PrefixStats {
        self.prefixes.stats()
    }
}
