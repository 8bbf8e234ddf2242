//! Code that products of many rows share, whatever their activations and instructions: panels of q8 or of
//! bf16 rows, and tiles around their products.

use crate::body::{gemm, gemm_bf16, gemm_tiles};
use crate::cx::Cx;
use crate::emit::Emit;
use crate::kernel::{Mat, MatrixPart, RowType, Tiling};
use crate::scratch::Scratch;
use crate::ukernel::MicroKernel;
use crate::ukernel::gemm_bf16::PANEL_ROWS;
use crate::ukernel::gemm_tiles::TileElement;
use cranelift_codegen::ir::Value;
use cranelift_codegen::ir::condcodes::IntCC;

/// How many rows there can be, and how they are multiplied.
#[derive(Clone, Copy)]
pub struct RowLimits {
    /// Slots of the largest batch.
    pub max: usize,
    /// The kernel's.
    pub tiling: Tiling,
}

/// Panels of activations, by their type.
#[derive(Clone, Copy)]
pub enum Panels {
    /// For GemmQ8 micro-kernels; from `least_rows` rows on.
    Q8 { areas: gemm::GemmScratch, least_rows: usize },
    /// For GemmBf16 micro-kernels.
    Bf16(gemm_bf16::Bf16GemmScratch),
    /// For GemmTiles micro-kernels; from `least_rows` rows on.
    Tiles { areas: gemm_tiles::TileGemmScratch, least_rows: usize },
}

impl Panels {
    /// Takes room for the panels, if the kernel multiplies by panels, and for results of an item of any of
    /// the parts.
    pub fn take(
        scratch: &mut Scratch,
        rows: RowLimits,
        input: RowType,
        parts: &[MatrixPart],
    ) -> Option<Panels> {
        match (input, rows.tiling) {
            (RowType::Bf16(k), _) => {
                let result_bytes = parts.iter().map(MatrixPart::result_bytes).max().unwrap_or(0);
                Some(Panels::Bf16(gemm_bf16::areas(scratch, rows.max, k, result_bytes)))
            }
            (_, Tiling::Gemm { least_rows, products }) => {
                let areas = gemm::areas(scratch, rows.max, parts, products);
                Some(Panels::Q8 { areas, least_rows })
            }
            (_, Tiling::Tiles { least_rows }) => {
                let areas = gemm_tiles::areas(scratch, rows.max, input.len(), parts);
                Some(Panels::Tiles { areas, least_rows })
            }
            (_, Tiling::Dot) => None,
        }
    }

    /// Fewer rows than this are left to dot micro-kernels, which bf16 does not have.
    fn least_rows(self) -> Option<usize> {
        match self {
            Panels::Q8 { least_rows, .. } | Panels::Tiles { least_rows, .. } => Some(least_rows),
            Panels::Bf16(_) => None,
        }
    }

    /// Whether filling them with up to `rows` rows takes so long that it is not done for every few columns.
    /// Rows of bf16 are copied as they are.
    pub fn are_costly(self, rows: usize) -> bool {
        match self {
            Panels::Q8 { .. } | Panels::Tiles { .. } => true,
            Panels::Bf16(_) => rows > PANEL_ROWS,
        }
    }

    /// Offset of the results in the body's scratch.
    pub fn results(self) -> usize {
        match self {
            Panels::Q8 { areas, .. } => areas.results,
            Panels::Bf16(areas) => areas.results,
            Panels::Tiles { areas, .. } => areas.results,
        }
    }

    /// Gathers `count` rows from entry `first` of the pointer list.
    pub fn gather(self, e: &mut Emit, cx: &Cx, mat: &Mat, first: Value, count: Value) {
        let list = cx.list(e);
        let list = e.at(list, first, 8);
        self.fill(e, cx, mat, list, count);
    }

    /// Gathers the `count` rows that the pointers at `list` name.
    pub fn fill(self, e: &mut Emit, cx: &Cx, mat: &Mat, list: Value, count: Value) {
        match self {
            Panels::Q8 { areas, .. } => gemm::fill_panel(e, cx, &areas, mat, list, count),
            Panels::Bf16(areas) => gemm_bf16::fill_panel(e, cx, &areas, mat.k, list, count),
            Panels::Tiles { areas, .. } => gemm_tiles::fill_panel(e, cx, &areas, mat, list, count),
        }
    }

    /// Results of an item for the gathered rows.
    pub fn item(self, e: &mut Emit, cx: &Cx, part: &MatrixPart, weights: &[Value], count: Value) {
        match self {
            Panels::Q8 { areas, .. } => gemm::item(e, cx, &areas, part, weights, count),
            Panels::Bf16(areas) => gemm_bf16::item(e, cx, &areas, part, weights, count),
            Panels::Tiles { areas, .. } => gemm_tiles::item(e, cx, &areas, part, weights, count),
        }
    }
}

/// Emits `body`, with tiles configured for matrices like `mat` where there are any and panels are for them.
pub fn with_tiles(e: &mut Emit, cx: &Cx, panels: Option<Panels>, mat: &Mat, body: impl FnOnce(&mut Emit)) {
    let element = match panels {
        Some(Panels::Bf16(_)) => Some(TileElement::Bf16),
        Some(Panels::Tiles { .. }) => Some(TileElement::of(mat.format)),
        Some(Panels::Q8 { .. }) | None => None,
    };
    if let Some(element) = element {
        e.call(cx.ukernel(MicroKernel::TilesOn(element)), &[]);
    }
    body(e);
    if element.is_some() {
        e.call(cx.ukernel(MicroKernel::TilesOff), &[]);
    }
}

/// Runs `many` when the kernel has panels and there are rows enough for them, `few` otherwise.
pub fn many_or_few(
    e: &mut Emit,
    panels: Option<Panels>,
    count: Value,
    many: impl FnOnce(&mut Emit, Panels),
    few: impl FnOnce(&mut Emit),
) {
    let Some(panels) = panels else { return few(e) };
    let Some(least) = panels.least_rows() else { return many(e, panels) };
    let least = e.i64(least as i64);
    let is_many = e.icmp(IntCC::UnsignedGreaterThanOrEqual, count, least);
    e.if_else(is_many, |e| many(e, panels), few);
}
