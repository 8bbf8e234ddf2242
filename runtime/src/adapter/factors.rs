//! Where A and B come from: the tensors of a PEFT directory (of packed adapters: `combine.rs`); and back from
//! packed tiles.

use super::error::AdapterError;
use super::packed::PackedAdapter;
use super::pieces::{Mixed, PartA, PartB};
use kernmill_checkpoint::peft::{PeftAdapter, PeftPart};
use kernmill_checkpoint::tensor_file::TensorEntry;
use kernmill_plan::adapter::{Adapters, LoraTargetLayout, LoraTargetShape};
use kernmill_plan::format::unpack_tile;
use kernmill_plan::format::{TILE_ROWS, WeightFormat};
use std::ops::Range;
use std::sync::Arc;

/// The factors of an adapter, by LoRA target of the program.
pub(super) trait Factors: Send {
    /// What the adapter has at each LoRA target.
    fn shapes(&self) -> Vec<Option<LoraTargetShape>>;

    /// Which factors of a LoRA target have elements of all experts side by side, so that they are read for
    /// all of them at once.
    fn mixed(&self, lora_target: usize) -> Mixed;

    /// `[experts][ranks][columns]`.
    fn a(&self, lora_target: usize, part: &PartA) -> Result<Vec<f32>, AdapterError>;

    /// `[experts][rows][rank]`.
    fn b(&self, lora_target: usize, part: &PartB) -> Result<Vec<f32>, AdapterError>;

    /// `[rank]`.
    fn scales(&self, lora_target: usize) -> Vec<f32>;

    /// DoRA's `[rows]` in the checkpoint's order.
    fn magnitude(&self, lora_target: usize) -> Result<Option<Vec<f32>>, AdapterError>;
}

/// Factors of a PEFT directory, every scale times `scale`.
pub(super) struct FromPeft {
    adapters: Arc<Adapters>,
    adapter: PeftAdapter,
    scale: f32,
    /// By LoRA target, the index of its part, and of the LoRA target in the part's target.
    lora_targets: Vec<Option<(usize, usize)>>,
}

impl FromPeft {
    pub(super) fn new(adapters: Arc<Adapters>, adapter: PeftAdapter, scale: f32) -> FromPeft {
        let mut of_lora_target = vec![None; adapters.lora_targets.len()];
        for (index, part) in adapter.parts.iter().enumerate() {
            for (n, lora_target) in part.target.parts.iter().enumerate() {
                of_lora_target[lora_target.lora_target] = Some((index, n));
            }
        }
        FromPeft { adapters, adapter, scale, lora_targets: of_lora_target }
    }

    /// What the directory has for a LoRA target, and which of the target's rows are the LoRA target's: the
    /// first, and the step between them.
    fn part(&self, lora_target: usize) -> (&PeftPart, usize, usize) {
        let (index, n) = self.lora_targets[lora_target].expect("asked for LoRA targets that the adapter has");
        let part = &self.adapter.parts[index];
        let rows = part.target.parts[n];
        (part, rows.first, rows.step)
    }

    fn floats(&self, tensor: &TensorEntry, range: Range<usize>) -> Result<Vec<f32>, AdapterError> {
        Ok(self.adapter.file.floats(tensor, range)?)
    }
}

impl Factors for FromPeft {
    fn shapes(&self) -> Vec<Option<LoraTargetShape>> {
        let shape = |(index, _): (usize, usize)| {
            let part = &self.adapter.parts[index];
            LoraTargetShape { rank: part.rank, factors: part.magnitude.is_some() }
        };
        self.lora_targets.iter().map(|lora_target| lora_target.map(shape)).collect()
    }

    fn mixed(&self, lora_target: usize) -> Mixed {
        let (part, ..) = self.part(lora_target);
        let experts = part.target.experts > 0;
        Mixed { a: experts && part.swapped, b: experts && !part.swapped }
    }

    fn a(&self, lora_target: usize, wanted: &PartA) -> Result<Vec<f32>, AdapterError> {
        let (part, ..) = self.part(lora_target);
        let (rank, k, experts) = (part.rank, part.target.k, part.target.experts);
        let PartA { experts: chosen, ranks, columns } = wanted;
        if !part.swapped {
            // [expert, rank][k]: the part's ranks, of one expert, lie one after the other.
            let first = chosen.start * rank;
            return self.floats(&part.a, (first + ranks.start) * k..(first + ranks.end) * k);
        }
        // [k][rank, expert]
        let row = rank * experts;
        let all = self.floats(&part.b, columns.start * row..columns.end * row)?;
        let mut a = Vec::with_capacity(wanted.elements());
        for (expert, r) in chosen.clone().flat_map(|expert| ranks.clone().map(move |r| (expert, r))) {
            a.extend(all.chunks_exact(row).map(|column| column[r * experts + expert]));
        }
        Ok(a)
    }

    fn b(&self, lora_target: usize, wanted: &PartB) -> Result<Vec<f32>, AdapterError> {
        let (part, first, step) = self.part(lora_target);
        let (rank, rows, experts) = (part.rank, part.target.rows, part.target.experts.max(1));
        let out = &self.adapters.lora_targets[lora_target].outs[wanted.out];
        // Rows of the target: `count` of them from `start` on, `step` apart, which are within `span` rows.
        let start = first + (out.first as usize + wanted.rows.start * out.step as usize) * step;
        let (step, count) = (out.step as usize * step, wanted.rows.len());
        let span = (count - 1) * step + 1;
        if part.swapped {
            // [expert, rank][row]
            let mut b = Vec::with_capacity(wanted.elements(rank));
            for expert in wanted.experts.clone() {
                let of_rank = |r: usize| {
                    let at = (expert * rank + r) * rows + start;
                    self.floats(&part.a, at..at + span)
                };
                let all: Vec<Vec<f32>> = (0..rank).map(of_rank).collect::<Result<_, _>>()?;
                (0..count).for_each(|row| b.extend(all.iter().map(|of_rank| of_rank[row * step])));
            }
            return Ok(b);
        }
        // [row][rank, expert]
        let width = rank * experts;
        let all = self.floats(&part.b, start * width..(start + span) * width)?;
        if experts == 1 && step == 1 {
            return Ok(all);
        }
        let mut b = Vec::with_capacity(wanted.elements(rank));
        for expert in wanted.experts.clone() {
            for row in all.chunks_exact(width).step_by(step) {
                b.extend(row.chunks_exact(experts).map(|of_rank| of_rank[expert]));
            }
        }
        Ok(b)
    }

    fn scales(&self, lora_target: usize) -> Vec<f32> {
        let (part, ..) = self.part(lora_target);
        vec![part.scaling * self.scale; part.rank]
    }

    fn magnitude(&self, lora_target: usize) -> Result<Option<Vec<f32>>, AdapterError> {
        let (part, first, step) = self.part(lora_target);
        let Some(tensor) = &part.magnitude else { return Ok(None) };
        let all = self.floats(tensor, 0..part.target.rows)?;
        Ok(Some(all[first..].iter().step_by(step).copied().collect()))
    }
}

/// A of a packed adapter, `[rank][k]`; nothing where it has none.
pub(super) fn unpack_a(
    adapters: &Adapters,
    packed: &PackedAdapter,
    lora_target: usize,
    expert: usize,
) -> Vec<f32> {
    let rank = packed.layouts()[lora_target].as_ref().map_or(0, LoraTargetLayout::rank);
    unpack_ranks(adapters, packed, lora_target, expert, 0..rank)
}

/// Some ranks of the same.
pub(super) fn unpack_ranks(
    adapters: &Adapters,
    packed: &PackedAdapter,
    lora_target: usize,
    expert: usize,
    ranks: Range<usize>,
) -> Vec<f32> {
    let Some(layout) = &packed.layouts()[lora_target] else { return Vec::new() };
    let k = adapters.lora_targets[lora_target].k as usize;
    let tile = adapters.format.tile(k).bytes();
    let first = ranks.start / TILE_ROWS;
    let tiles = &packed.as_slice()[layout.a(expert)][first * tile..];
    let before = ranks.start - first * TILE_ROWS;
    let mut a = unpack_tiles(adapters.format, before + ranks.len(), k, tiles);
    a.drain(..before * k);
    a
}

/// `[rows][k]` of packed tiles.
pub(super) fn unpack_tiles(format: WeightFormat, rows: usize, k: usize, tiles: &[u8]) -> Vec<f32> {
    let mut columns = vec![[0.0; TILE_ROWS]; k];
    let mut out = Vec::with_capacity(rows * k);
    for (first, tile) in (0..rows).step_by(TILE_ROWS).zip(tiles.chunks(format.tile(k).bytes())) {
        unpack_tile(format, tile, &mut columns);
        for row in 0..TILE_ROWS.min(rows - first) {
            out.extend(columns.iter().map(|column| column[row]));
        }
    }
    out
}

/// B of a packed adapter, `[rows][rank]`, rows in the checkpoint's order; nothing where it has none.
pub(super) fn unpack_b(
    adapters: &Adapters,
    packed: &PackedAdapter,
    lora_target: usize,
    expert: usize,
) -> Vec<f32> {
    let rank = packed.layouts()[lora_target].as_ref().map_or(0, LoraTargetLayout::rank);
    let outs = &adapters.lora_targets[lora_target].outs;
    let mut all = vec![0.0; adapters.lora_targets[lora_target].rows() * rank];
    for (index, out) in outs.iter().enumerate().filter(|_| rank > 0) {
        let rows = unpack_rows(adapters, packed, lora_target, expert, index, 0..out.rows as usize);
        for (row, values) in rows.chunks_exact(rank).enumerate() {
            let at = out.first as usize + row * out.step as usize;
            all[at * rank..][..rank].copy_from_slice(values);
        }
    }
    all
}

/// Some rows of an out, which begin with a tile, `[rows][rank]`.
pub(super) fn unpack_rows(
    adapters: &Adapters,
    packed: &PackedAdapter,
    lora_target: usize,
    expert: usize,
    out: usize,
    rows: Range<usize>,
) -> Vec<f32> {
    let Some(layout) = &packed.layouts()[lora_target] else { return Vec::new() };
    let (rank, padded) = (layout.rank(), layout.padded_rank());
    let first = adapters.lora_targets[lora_target].tiles_before(out) + rows.start / TILE_ROWS;
    let tiles = &packed.as_slice()[layout.b(expert)][first * adapters.format.tile(padded).bytes()..];
    let values = unpack_tiles(adapters.format, rows.len(), padded, tiles);
    values.chunks_exact(padded).flat_map(|row| &row[..rank]).copied().collect()
}
