//! The packed form of an adapter at one LoRA target: A, B, scales and factors in one piece of memory.

use super::{LoraTarget, LoraTargetEntry, MAX_RANK, RANK_STEP};
use crate::format::{Decode, LINE, PackError, PlainDecode, TILE_ROWS, WeightFormat, pack_f32_tile};
use std::ops::Range;

/// The shape of an adapter at a LoRA target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoraTargetShape {
    /// Rank, 1 to [`MAX_RANK`].
    pub rank: usize,
    /// Whether rows have factors (DoRA).
    pub factors: bool,
}

/// Where the parts of an adapter's LoRA target lie. Offsets are multiples of 64 and count from the adapter's
/// first byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoraTargetLayout {
    format: WeightFormat,
    k: usize,
    experts: usize,
    /// `(rows, first, step)` of each out.
    outs: Vec<(usize, usize, usize)>,
    rank: usize,
    a: usize,
    b: usize,
    scale: usize,
    factor: Option<usize>,
    end: usize,
}

impl LoraTargetLayout {
    /// The layout at byte `start`, a multiple of 64.
    ///
    /// # Panics
    /// When the rank is not 1 to [`MAX_RANK`].
    pub fn new(
        lora_target: &LoraTarget,
        format: WeightFormat,
        shape: LoraTargetShape,
        start: usize,
    ) -> LoraTargetLayout {
        assert!((1..=MAX_RANK).contains(&shape.rank), "rank {} is not 1 to {MAX_RANK}", shape.rank);
        assert!(start.is_multiple_of(LINE), "{start} is not a multiple of {LINE}");
        let outs =
            lora_target.outs.iter().map(|o| (o.rows as usize, o.first as usize, o.step as usize)).collect();
        let mut layout = LoraTargetLayout {
            format,
            k: lora_target.k as usize,
            experts: (lora_target.experts as usize).max(1),
            outs,
            rank: shape.rank,
            a: start,
            b: 0,
            scale: 0,
            factor: None,
            end: 0,
        };
        layout.b = layout.a + layout.experts * layout.a_expert();
        layout.scale = layout.b + layout.experts * layout.b_expert();
        layout.end = layout.scale + layout.rank_tiles() * LINE;
        if shape.factors {
            layout.factor = Some(layout.end);
            layout.end += layout.row_tiles() * LINE;
        }
        layout
    }

    /// Whether this is a layout for that LoRA target with elements in that format.
    pub fn fits(&self, lora_target: &LoraTarget, format: WeightFormat) -> bool {
        let shape = LoraTargetShape { rank: self.rank, factors: self.has_factors() };
        *self == LoraTargetLayout::new(lora_target, format, shape, self.a)
    }

    /// The rank, without padding.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Whether rows have factors.
    pub fn has_factors(&self) -> bool {
        self.factor.is_some()
    }

    /// Offset of the first byte behind the layout, a multiple of 64.
    pub fn end(&self) -> usize {
        self.end
    }

    /// Ranks with their padding: columns of B.
    fn ranks(&self) -> usize {
        self.rank.next_multiple_of(RANK_STEP)
    }

    fn rank_tiles(&self) -> usize {
        self.rank.div_ceil(TILE_ROWS)
    }

    fn row_tiles(&self) -> usize {
        self.outs.iter().map(|(rows, ..)| rows.div_ceil(TILE_ROWS)).sum()
    }

    fn a_expert(&self) -> usize {
        self.rank_tiles() * self.format.tile(self.k).bytes()
    }

    fn b_expert(&self) -> usize {
        self.row_tiles() * self.format.tile(self.ranks()).bytes()
    }

    /// Where an expert's (0 for a dense matrix) packed A lies: tiles of 16 ranks by k.
    pub fn a(&self, expert: usize) -> Range<usize> {
        let start = self.a + expert * self.a_expert();
        start..start + self.a_expert()
    }

    /// Where an expert's (0 for a dense matrix) packed B lies: by out, tiles of 16 rows by
    /// [`LoraTargetLayout::padded_rank`].
    pub fn b(&self, expert: usize) -> Range<usize> {
        let start = self.b + expert * self.b_expert();
        start..start + self.b_expert()
    }

    /// The rank with its padding, which is the k of B's tiles.
    pub fn padded_rank(&self) -> usize {
        self.ranks()
    }

    /// The entry that kernels read, when the adapter's first byte, at a multiple of 64, is at `base`.
    pub fn entry(&self, base: *const u8) -> LoraTargetEntry {
        let at = |offset: usize| base.wrapping_add(offset);
        LoraTargetEntry {
            a: at(self.a),
            b: at(self.b),
            scale: at(self.scale).cast(),
            factor: self.factor.map_or(std::ptr::null(), |factor| at(factor).cast()),
            a_expert: self.a_expert() as u64,
            b_expert: self.b_expert() as u64,
            ranks: self.ranks() as u64,
        }
    }

    /// Packs an expert's (0 for a dense matrix) `a [rank][k]` into the adapter's `bytes`.
    ///
    /// # Errors
    /// An element that is not finite, or not any more as bf16; its row is counted within its tile of 16.
    ///
    /// # Panics
    /// When a length or the expert is wrong.
    pub fn pack_a(&self, expert: usize, a: &[f32], bytes: &mut [u8]) -> Result<(), PackError> {
        assert!(expert < self.experts, "outside of A");
        assert_eq!(a.len(), self.rank * self.k, "A is [{}][{}]", self.rank, self.k);
        let tiles = bytes[self.a(expert)].chunks_exact_mut(self.format.tile(self.k).bytes());
        a.chunks(TILE_ROWS * self.k)
            .zip(tiles)
            .try_for_each(|(a, tile)| self.pack_tile(self.k, a.to_vec(), tile))
    }

    /// Packs an expert's (0 for a dense matrix) `b [rows][rank]`, rows in the checkpoint's order, into the
    /// adapter's `bytes`.
    ///
    /// # Errors
    /// As [`LoraTargetLayout::pack_a`].
    ///
    /// # Panics
    /// As [`LoraTargetLayout::pack_a`].
    pub fn pack_b(&self, expert: usize, b: &[f32], bytes: &mut [u8]) -> Result<(), PackError> {
        let all: usize = self.outs.iter().map(|(rows, ..)| rows).sum();
        assert!(expert < self.experts, "outside of B");
        assert_eq!(b.len(), all * self.rank, "B is [{all}][rank {}]", self.rank);
        let ranks = self.ranks();
        let mut tiles = bytes[self.b(expert)].chunks_exact_mut(self.format.tile(ranks).bytes());
        for &(rows, first, step) in &self.outs {
            for start in (0..rows).step_by(TILE_ROWS) {
                let mut padded = vec![0.0; TILE_ROWS.min(rows - start) * ranks];
                for (row, padded) in (start..).zip(padded.chunks_mut(ranks)) {
                    padded[..self.rank].copy_from_slice(&b[(first + row * step) * self.rank..][..self.rank]);
                }
                self.pack_tile(ranks, padded, tiles.next().expect("every tile of rows has its place"))?;
            }
        }
        Ok(())
    }

    /// Writes the factor of every rank (alpha over rank, the request's weight) into the adapter's `bytes`.
    ///
    /// # Panics
    /// When there are not as many as ranks.
    pub fn pack_scales(&self, scales: &[f32], bytes: &mut [u8]) {
        assert_eq!(scales.len(), self.rank, "one scale for each rank");
        store(scales, &mut bytes[self.scale..self.scale + self.rank_tiles() * LINE]);
    }

    /// Writes the factor of every row, rows in the checkpoint's order, into the adapter's `bytes`.
    ///
    /// # Panics
    /// When the layout has no factors, or there are not as many as rows.
    pub fn pack_factors(&self, factors: &[f32], bytes: &mut [u8]) {
        let mut at = self.factor.expect("the layout has factors");
        assert_eq!(factors.len(), self.outs.iter().map(|(rows, ..)| rows).sum::<usize>());
        for (rows, first, step) in &self.outs {
            let of_out: Vec<f32> = (0..*rows).map(|row| factors[first + row * step]).collect();
            let end = at + rows.div_ceil(TILE_ROWS) * LINE;
            store(&of_out, &mut bytes[at..end]);
            at = end;
        }
    }

    /// A tile of rows of `k`, rounded to the format.
    fn pack_tile(&self, k: usize, mut rows: Vec<f32>, tile: &mut [u8]) -> Result<(), PackError> {
        match self.format.decode() {
            Decode::Plain(PlainDecode::Bf16) => round_to_bf16(&mut rows),
            Decode::Plain(PlainDecode::F32) | Decode::Block(_) => {}
        }
        pack_f32_tile(self.format, k, &rows, tile)
    }
}

/// To the nearest bf16 numbers, ties to even; as it is if an element is not finite, which packing then
/// reports.
fn round_to_bf16(values: &mut [f32]) {
    let finite = values.iter().fold(true, |finite, x| finite & x.is_finite());
    if finite {
        for x in values {
            let bits = x.to_bits();
            *x = f32::from_bits((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff_0000);
        }
    }
}

/// Values, then zeros.
fn store(values: &[f32], bytes: &mut [u8]) {
    bytes.fill(0);
    for (out, value) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(values) {
        *out = value.to_le_bytes();
    }
}
