//! Memory that running a program takes.

use super::meter::ExpertCounts;
use super::rope;
use crate::kv::KvShape;
use kernmill_plan::format::LINE;
use kernmill_plan::kv::LayerKind;
use kernmill_plan::program::Program;
use std::ops::Range;

/// Bytes that an executor takes besides weights and code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryNeed {
    /// KV pools of all layers.
    pub kv: u64,
    /// Arena for activations.
    pub arena: u64,
    /// Scratch of all workers.
    pub scratch: u64,
    /// Rotary tables.
    pub ropes: u64,
    /// Counters of how often each expert was chosen.
    pub routings: u64,
}

impl MemoryNeed {
    /// All of it.
    pub fn total(&self) -> u64 {
        [self.kv, self.arena, self.scratch, self.ropes, self.routings]
            .into_iter()
            .fold(0, u64::saturating_add)
    }

    /// The memory that a program needs with this shape and this many workers.
    pub fn of(program: &Program, shape: KvShape, threads: usize) -> MemoryNeed {
        MemoryNeed::of_layers(program, shape, threads, 0..program.model.kv.layers.len())
    }

    /// The memory that a program needs where only some of its attention layers run, by their numbers.
    pub fn of_layers(program: &Program, shape: KvShape, threads: usize, layers: Range<usize>) -> MemoryNeed {
        let model = &program.model;
        let blocks = shape.blocks(&model.kv);
        let layer_bytes = |kind: LayerKind| {
            let block_bytes = model.kv.geometry(kind).block_bytes() as u64;
            u64::from(blocks[kind.index()]).saturating_mul(block_bytes)
        };
        let routings = program.classes.first().map_or(&[][..], |class| &class.routings);
        let rope_bytes = |table| (rope::row_len(table) * 4) as u64 * u64::from(shape.context);
        MemoryNeed {
            kv: model.kv.layers[layers].iter().map(|l| layer_bytes(l.kind)).fold(0, u64::saturating_add),
            arena: program.arena_bytes,
            scratch: scratch_stride(program.scratch_bytes).saturating_mul(threads as u64),
            ropes: model.ropes.iter().map(rope_bytes).fold(0, u64::saturating_add),
            routings: routings.iter().map(|routing| ExpertCounts::bytes(routing.experts)).sum(),
        }
    }
}

/// A worker's scratch starts on a separate line, two lines after the last one's end.
pub(super) fn scratch_stride(bytes: u64) -> u64 {
    let line = LINE as u64;
    bytes.saturating_add(3 * line - 1) / line * line
}
