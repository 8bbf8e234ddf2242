//! How the work of loading an adapter is cut into pieces.

use kernmill_plan::adapter::{RANK_STEP, Site, SiteLayout};
use kernmill_plan::format::TILE_ROWS;
use std::ops::Range;

/// Elements of A or B that a piece reads at most, unless the smallest one that can be packed has more: a fraction of a millisecond of work.
pub(super) const ELEMENTS: usize = 1 << 16;

/// Bytes of memory that a piece takes from the system at once, a huge page.
pub(super) const TOUCHED: usize = 2 << 20;

/// The smallest page of memory.
pub(super) const PAGE: usize = 4096;

/// A piece of the work.
#[derive(Clone, Debug)]
pub(super) enum Piece {
    /// Takes [`TOUCHED`] bytes of the adapter's memory from the system, which may have to make room for them. Packing would take it page after
    /// page as well, but parts of all experts lie in many at once.
    Touch {
        at: usize,
    },
    /// Reads and packs some of A.
    A {
        site: usize,
        part: PartA,
    },
    /// The same of B.
    B {
        site: usize,
        part: PartB,
    },
    Scales {
        site: usize,
    },
    /// Begins with the lengths of the site's rows.
    StartLengths {
        site: usize,
    },
    /// Lengths of 16 rows of that site.
    Lengths {
        out: usize,
        tile: usize,
    },
    /// Packs the factors that its lengths gave.
    Factors,
}

/// Some of a site's A: where it is not mixed, all columns of some ranks of one expert.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PartA {
    /// 0 for a dense matrix.
    pub(super) experts: Range<usize>,
    /// They begin with a tile of 16.
    pub(super) ranks: Range<usize>,
    /// They begin with a multiple of [`RANK_STEP`].
    pub(super) columns: Range<usize>,
}

/// Some of a site's B; where it is not mixed, of one expert.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PartB {
    /// 0 for a dense matrix.
    pub(super) experts: Range<usize>,
    /// Which of the site's matrices.
    pub(super) out: usize,
    /// Its rows; they begin with a tile of 16.
    pub(super) rows: Range<usize>,
}

/// Which factors of a site have elements of all experts side by side.
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

/// All the work on a site, in the order in which it is done; `measured` says whether rows are measured where they have factors.
pub(super) fn pieces(
    index: usize,
    site: &Site,
    layout: &SiteLayout,
    mixed: Mixed,
    measured: bool,
) -> Vec<Piece> {
    let (rank, k, experts) = (layout.rank(), site.k as usize, (site.experts as usize).max(1));
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
            pieces.extend(chunks(k, columns).map(|columns| Piece::A { site: index, part: part(columns) }));
        }
    }
    for (out, matrix) in site.outs.iter().enumerate() {
        for experts in chunks(experts, at_once(mixed.b)) {
            // Rows between those of the matrix are read too.
            let rows = fitting(experts.len() * rank * matrix.step as usize, TILE_ROWS);
            let part = |rows| PartB { experts: experts.clone(), out, rows };
            let rows = chunks(matrix.rows as usize, rows);
            pieces.extend(rows.map(|rows| Piece::B { site: index, part: part(rows) }));
        }
    }
    pieces.push(Piece::Scales { site: index });
    if layout.has_factors() {
        pieces.push(Piece::StartLengths { site: index });
        for (out, matrix) in site.outs.iter().enumerate().filter(|_| measured) {
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
