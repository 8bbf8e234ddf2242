//! How the work of loading an adapter is cut into pieces.

use kernmill_plan::adapter::{LoraTarget, LoraTargetLayout, RANK_STEP};
use kernmill_plan::format::TILE_ROWS;
use std::ops::Range;

/// Elements of A or B that a piece reads at most, unless the smallest one that can be packed has more: a
/// fraction of a millisecond of work.
pub(super) const ELEMENTS: usize = 1 << 16;

/// Bytes of memory that a piece takes from the system at once, a huge page.
pub(super) const TOUCHED: usize = 2 << 20;

/// The smallest page of memory.
pub(super) const PAGE: usize = 4096;

/// A piece of the work.
#[derive(Clone, Debug)]
pub(super) enum Piece {
    /// Takes [`TOUCHED`] bytes of the adapter's memory from the system, which may have to make room for them.
    /// Packing would take it page after page as well, but parts of all experts lie in many at once.
    Touch {
        at: usize,
    },
    /// Reads and packs some of A.
    A {
        lora_target: usize,
        part: PartA,
    },
    /// Reads and packs some of B.
    B {
        lora_target: usize,
        part: PartB,
    },
    Scales {
        lora_target: usize,
    },
    /// Begins with the lengths of the LoRA target's rows.
    StartLengths {
        lora_target: usize,
    },
    /// Lengths of 16 rows of that LoRA target.
    Lengths {
        out: usize,
        tile: usize,
    },
    /// Packs the factors that its lengths gave.
    Factors,
}

/// Some of a LoRA target's A: where it is not mixed, all columns of some ranks of one expert.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PartA {
    /// 0 for a dense matrix.
    pub(super) experts: Range<usize>,
    /// Ranks, which begin with a tile of 16.
    pub(super) ranks: Range<usize>,
    /// Columns, which begin with a multiple of [`RANK_STEP`].
    pub(super) columns: Range<usize>,
}

/// Some of a LoRA target's B; where it is not mixed, of one expert.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PartB {
    /// 0 for a dense matrix.
    pub(super) experts: Range<usize>,
    /// Which of the LoRA target's matrices.
    pub(super) out: usize,
    /// Rows of that matrix, which begin with a tile of 16.
    pub(super) rows: Range<usize>,
}

/// Which factors of a LoRA target have elements of all experts side by side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mixed {
    pub(super) a: bool,
    pub(super) b: bool,
}

impl PartA {
    /// Elements.
    pub(super) fn elements(&self) -> usize {
        self.experts.len() * self.ranks.len() * self.columns.len()
    }
}

impl PartB {
    /// Elements.
    pub(super) fn elements(&self, rank: usize) -> usize {
        self.experts.len() * self.rows.len() * rank
    }
}

/// All the work on a LoRA target, in the order in which it is done; `measured` says whether rows are measured
/// where they have factors.
pub(super) fn pieces(
    index: usize,
    lora_target: &LoraTarget,
    layout: &LoraTargetLayout,
    mixed: Mixed,
    measured: bool,
) -> Vec<Piece> {
    let (rank, k, experts) = (layout.rank(), lora_target.k as usize, (lora_target.experts as usize).max(1));
    let mut pieces = Vec::new();
    let at_once = |mixed: bool| if mixed { experts } else { 1 };

    for experts in chunks(experts, at_once(mixed.a)) {
        // Of all experts: some columns of every rank. Of one: some ranks, which lie one after the other.
        let (ranks, columns) = match mixed.a {
            true => (rank, fitting(experts.len() * rank, RANK_STEP)),
            false => (fitting(k, TILE_ROWS), k),
        };
        for ranks in chunks(rank, ranks) {
            let part = |columns| PartA { experts: experts.clone(), ranks: ranks.clone(), columns };
            pieces.extend(
                chunks(k, columns).map(|columns| Piece::A { lora_target: index, part: part(columns) }),
            );
        }
    }
    for (out, matrix) in lora_target.outs.iter().enumerate() {
        for experts in chunks(experts, at_once(mixed.b)) {
            // Rows between those of the matrix are read too.
            let rows = fitting(experts.len() * rank * matrix.step as usize, TILE_ROWS);
            let part = |rows| PartB { experts: experts.clone(), out, rows };
            let rows = chunks(matrix.rows as usize, rows);
            pieces.extend(rows.map(|rows| Piece::B { lora_target: index, part: part(rows) }));
        }
    }
    pieces.push(Piece::Scales { lora_target: index });
    if layout.has_factors() {
        pieces.push(Piece::StartLengths { lora_target: index });
        for (out, matrix) in lora_target.outs.iter().enumerate().filter(|_| measured) {
            let tiles = (matrix.rows as usize).div_ceil(TILE_ROWS);
            pieces.extend((0..tiles).map(|tile| Piece::Lengths { out, tile }));
        }
        pieces.push(Piece::Factors);
    }
    pieces
}

/// The most rows of `width` elements, a multiple of `step`, at least one, that a piece may have.
fn fitting(width: usize, step: usize) -> usize {
    (ELEMENTS / width / step).max(1) * step
}

/// `0..all` in ranges of `size`, the last of which may be shorter.
fn chunks(all: usize, size: usize) -> impl Iterator<Item = Range<usize>> {
    (0..all).step_by(size).map(move |start| start..all.min(start + size))
}
