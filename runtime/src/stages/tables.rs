//! Block tables away from where they are kept: what a stage knows of them, and what the first stage knows
//! that it knows.

use super::wire::Update;
use crate::executor::Batch;
use crate::kv::{BlockTables, KvShape, UNMAPPED};
use kernmill_plan::kv::{BLOCK_TOKENS, KvLayers, LayerKind};

/// A copy of the block tables.
pub(super) struct TablesCopy {
    tables: [Vec<u32>; 2],
    stride: u32,
    blocks: [u32; 2],
    /// The widest window of each kind's layers.
    windows: [Option<u32>; 2],
}

const KINDS: [LayerKind; 2] = [LayerKind::Full, LayerKind::Sliding];

impl TablesCopy {
    /// Tables that map nothing.
    pub(super) fn new(layers: &KvLayers, shape: KvShape) -> TablesCopy {
        let stride = shape.context.div_ceil(BLOCK_TOKENS as u32);
        let blocks = shape.blocks(layers);
        let window =
            |kind| layers.layers.iter().filter(|layer| layer.kind == kind).filter_map(|l| l.window).max();
        let entries = stride as usize * shape.sequences as usize;
        TablesCopy {
            tables: KINDS.map(|_| vec![UNMAPPED; entries]),
            stride,
            blocks,
            windows: KINDS.map(window),
        }
    }

    /// Entries of both tables.
    pub(super) fn entries(&self) -> usize {
        self.tables.iter().map(Vec::len).sum()
    }

    /// Maps nothing any more.
    pub(super) fn clear(&mut self) {
        self.tables.iter_mut().for_each(|table| table.fill(UNMAPPED));
    }

    /// The tables, for kernels.
    pub(super) fn view(&self) -> BlockTables<'_> {
        BlockTables::new([&self.tables[0], &self.tables[1]], self.stride)
    }

    /// Whether there is such a block.
    pub(super) fn has(&self, kind: u32, block: u32) -> bool {
        self.blocks.get(kind as usize).is_some_and(|blocks| block < *blocks)
    }

    /// Takes entries over; whether they are entries of these tables, and name blocks that there are.
    pub(super) fn apply(&mut self, update: &Update) -> bool {
        let known = |id: &u32| *id == UNMAPPED || self.has(update.kind, *id);
        if !update.ids.iter().all(known) {
            return false;
        }
        let table = self.tables.get_mut(update.kind as usize);
        let own = table.and_then(|table| table.get_mut(update.at as usize..)?.get_mut(..update.ids.len()));
        own.map(|own| own.copy_from_slice(&update.ids)).is_some()
    }

    /// The entries that a batch's tokens see and that are others here; they are noted as known.
    pub(super) fn differences(&mut self, batch: &Batch, tables: BlockTables<'_>) -> Vec<Update> {
        let mut updates: Vec<Update> = Vec::new();
        for kind in KINDS {
            let n = kind.index();
            if self.blocks[n] == 0 {
                continue;
            }
            let (table, stride) = tables.table(kind);
            for (row, blocks) in batch.blocks_in_view(self.windows[n]) {
                let base = batch.sequences[row] as usize * stride as usize;
                let seen = base + blocks.start..base + blocks.end;
                let pairs = self.tables[n][seen.clone()].iter_mut().zip(&table[seen.clone()]);
                for (at, (known, id)) in seen.zip(pairs).filter(|(_, (known, id))| *known != *id) {
                    *known = *id;
                    match updates.last_mut() {
                        Some(last) if last.kind == n as u32 && last.at as usize + last.ids.len() == at => {
                            last.ids.push(*id);
                        }
                        _ => updates.push(Update { kind: n as u32, at: at as u32, ids: vec![*id] }),
                    }
                }
            }
        }
        updates
    }
}
