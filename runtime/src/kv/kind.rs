//! The block tables of one layer kind.

use super::blocks::BlockPool;
use super::prefix::PrefixCache;
use super::{BLOCK, BlockChange, KvError, UNMAPPED};
use kernmill_plan::kv::LayerKind;
use std::ops::Range;

#[derive(Debug)]
pub(super) struct KindTables {
    pub kind: LayerKind,
    /// Whether the model has such layers; the other kind's tables stay empty.
    pub used: bool,
    pub window: Option<u32>,
    /// Entries per sequence.
    pub stride: usize,
    /// `[sequence][position / 16]`.
    pub tables: Vec<u32>,
}

/// New tokens of a sequence.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub sequence: u32,
    /// By kind: the first block that is still mapped.
    pub first_block: [u32; 2],
    /// Tokens before the new ones.
    pub length: u32,
    /// Tokens with the new ones.
    pub end: u32,
}

impl Span {
    /// Indices of the blocks that the new tokens are written to.
    pub(super) fn written(&self) -> Range<u32> {
        self.length / BLOCK..self.end.div_ceil(BLOCK)
    }
}

impl KindTables {
    pub(super) fn entry(&self, sequence: u32, index: u32) -> usize {
        sequence as usize * self.stride + index as usize
    }

    /// First key that a query at `position` sees.
    pub(super) fn lowest_key(&self, position: u32) -> u32 {
        self.window.map_or(0, |window| (position + 1).saturating_sub(window))
    }

    pub(super) fn unmap(&mut self, sequence: u32, indices: Range<u32>, pool: &mut BlockPool) {
        for index in indices {
            let entry = self.entry(sequence, index);
            let id = std::mem::replace(&mut self.tables[entry], UNMAPPED);
            if id != UNMAPPED {
                pool.give_back(id);
            }
        }
    }

    /// The ids mapped at some indices of a sequence's table.
    pub(super) fn blocks(&self, sequence: u32, indices: Range<u32>) -> impl Iterator<Item = u32> + '_ {
        indices.map(move |index| self.tables[self.entry(sequence, index)])
    }

    /// Indices of the mapped blocks that no query from the first new token on sees.
    pub(super) fn behind(&self, span: &Span) -> Range<u32> {
        let first = span.first_block[self.kind.index()];
        first..(self.lowest_key(span.length) / BLOCK).max(first)
    }

    /// Whether there are blocks for all spans, one after the other; changes nothing.
    pub(super) fn try_out(
        &self,
        spans: impl Iterator<Item = Span>,
        pool: &mut BlockPool,
    ) -> Result<(), (usize, KvError)> {
        if !self.used {
            return Ok(());
        }
        let mut free = pool.available();
        let mut result = Ok(());
        for (n, span) in spans.enumerate() {
            for id in self.blocks(span.sequence, self.behind(&span)) {
                free += usize::from(id != UNMAPPED && pool.try_give_back(id));
            }
            let mut needed = 0;
            for id in self.blocks(span.sequence, span.written()) {
                if id == UNMAPPED {
                    needed += 1;
                } else if pool.is_still_shared(id) {
                    // If the cache alone has it besides, it need not be copied where there is no room.
                    free += usize::from(pool.try_give_back(id));
                    needed += 1;
                }
            }
            if needed > free {
                result = Err((n, KvError::OutOfBlocks { kind: self.kind, needed, free }));
                break;
            }
            free -= needed;
        }
        pool.end_of_trial();
        result
    }

    /// Maps a block at `index` that is the sequence's own.
    pub(super) fn make_own(
        &mut self,
        sequence: u32,
        index: u32,
        pools: &mut [BlockPool; 2],
        prefixes: &mut PrefixCache,
        on_change: &mut dyn FnMut(BlockChange<'_>),
    ) {
        let n = self.kind.index();
        let entry = self.entry(sequence, index);
        let old = self.tables[entry];
        if old != UNMAPPED && !pools[n].is_shared(old) {
            return;
        }
        if pools[n].free() == 0 && !prefixes.evict(n, pools) && old != UNMAPPED {
            prefixes.give_up(n, old, pools);
            if !pools[n].is_shared(old) {
                return;
            }
        }
        // `try_out` has counted the blocks.
        let Some(id) = pools[n].take() else { return };
        self.tables[entry] = id;
        if old != UNMAPPED {
            // The copy may take the place of one that has left.
            prefixes.hand_over(&mut |block| on_change(BlockChange::Leaves(block)));
            on_change(BlockChange::Copy { kind: self.kind, from: old, to: id });
            pools[n].give_back(old);
        }
    }
}
