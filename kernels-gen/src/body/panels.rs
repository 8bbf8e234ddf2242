//! Code that products of many rows share, whatever their activations and instructions: panels of q8 or of
//! bf16 rows, and tiles around their products.

use crate::body::{gemm, gemm_bf16, gemm_tiles};
use crate::cx::Cx;
use crate::emit::Emit;
use crate::kernel::{Kernel, MatrixPart, OperandId, Tiling};
use crate::panel_kind::PanelKind;
use crate::panel_runs::PanelRun;
use crate::scratch::Scratch;
use crate::ukernel::MicroKernel;
use crate::ukernel::gemm_tiles::TileShapes;
use cranelift_codegen::ir::Value;
use cranelift_codegen::ir::condcodes::IntCC;

/// The panels of a run of parts, and what multiplying by them takes in scratch.
#[derive(Clone, Copy)]
pub struct Panels {
    kind: PanelKind,
    /// Elements of a row.
    k: usize,
    home: PanelHome,
    /// Rows of q8 of each input row that there are panels of, and bytes from one's panels to the next's.
    terms: (usize, usize),
    areas: PanelAreas,
    /// Parts of the run.
    pub parts: usize,
    /// Fewer rows than this are left to dot micro-kernels, which bf16 does not have.
    least_rows: Option<usize>,
}

/// Where panels are.
#[derive(Clone, Copy)]
enum PanelHome {
    /// In a buffer that a step before has filled.
    Operand(OperandId),
    /// At an offset in the body's scratch, for the worker alone.
    Scratch(usize),
}

/// Scratch for products.
#[derive(Clone, Copy)]
enum PanelAreas {
    Q8(gemm::GemmScratch),
    Bf16(gemm_bf16::Bf16GemmScratch),
    Tiles(gemm_tiles::TileGemmScratch),
}

impl Panels {
    /// Takes room for the panels of a kernel whose body has these parts, as far as no buffer holds them, and
    /// for results of an item of any of the parts; none where the kernel multiplies by dots.
    pub fn take(scratch: &mut Scratch, kernel: &Kernel, parts: &[MatrixPart]) -> Vec<Panels> {
        let (runs, rows) = (kernel.panel_runs(), kernel.max_rows);
        let Some(PanelRun { kind, .. }) = runs.first() else { return Vec::new() };
        let areas = match (kind, kernel.tiling) {
            (PanelKind::Q8 { products, .. }, _) => {
                PanelAreas::Q8(gemm::areas(scratch, rows, parts, *products))
            }
            (PanelKind::Bf16, _) => {
                let result_bytes = parts.iter().map(MatrixPart::result_bytes).max().unwrap_or(0);
                PanelAreas::Bf16(gemm_bf16::areas(scratch, rows, result_bytes))
            }
            (PanelKind::Tiles(_), _) => PanelAreas::Tiles(gemm_tiles::areas(scratch, rows, parts)),
        };
        let one = |(index, run): (usize, PanelRun)| Panels {
            kind: run.kind,
            k: run.k,
            terms: (run.terms, run.bytes / run.terms),
            home: match kernel.panels.get(index) {
                Some(operand) => PanelHome::Operand(*operand),
                None => PanelHome::Scratch(scratch.take(run.bytes)),
            },
            areas,
            parts: run.parts,
            least_rows: least_rows(run.kind, kernel.tiling),
        };
        runs.into_iter().enumerate().map(one).collect()
    }

    /// Rows of a group of the panels.
    pub fn group_rows(&self) -> usize {
        self.kind.group_rows()
    }

    /// Where the worker itself has to fill them.
    pub fn own(&self) -> Option<PanelFill> {
        match self.home {
            PanelHome::Operand(_) => None,
            PanelHome::Scratch(_) => {
                Some(PanelFill { kind: self.kind, k: self.k, least_rows: self.least_rows })
            }
        }
    }

    /// Addresses of the panels of all terms, where the first term's begin at `first`.
    pub fn of_terms(&self, e: &mut Emit, first: Value) -> Vec<Value> {
        let (terms, bytes) = self.terms;
        (0..terms).map(|term| e.add_imm(first, (term * bytes) as i64)).collect()
    }

    /// Address of group number `group`.
    pub fn group(&self, e: &mut Emit, cx: &Cx, group: Value) -> Value {
        let base = match self.home {
            PanelHome::Operand(operand) => cx.operand(e, operand),
            PanelHome::Scratch(offset) => cx.body_scratch(e, offset),
        };
        e.at(base, group, self.kind.group_bytes(self.k))
    }

    /// Offset of the results in the body's scratch.
    pub fn results(&self) -> usize {
        match self.areas {
            PanelAreas::Q8(areas) => areas.results,
            PanelAreas::Bf16(areas) => areas.results,
            PanelAreas::Tiles(areas) => areas.results,
        }
    }

    /// Results of an item for the `count` rows whose first group lies at `panel`; of rows of several terms at
    /// the first one's.
    pub fn item(
        &self,
        e: &mut Emit,
        cx: &Cx,
        part: &MatrixPart,
        weights: &[Value],
        (panel, count): (Value, Value),
    ) {
        let panels = self.of_terms(e, panel);
        match &self.areas {
            PanelAreas::Q8(areas) => gemm::item(e, cx, areas, part, weights, (&panels, count)),
            PanelAreas::Bf16(areas) => gemm_bf16::item(e, cx, areas, part, weights, (panel, count)),
            PanelAreas::Tiles(areas) => gemm_tiles::item(e, cx, areas, part, weights, (&panels, count)),
        }
    }
}

/// From how many rows on panels are used; `None` where there is nothing else.
fn least_rows(kind: PanelKind, tiling: Tiling) -> Option<usize> {
    tiling.least_rows().filter(|_| kind != PanelKind::Bf16)
}

/// Filling panels of a kind with rows of `k`.
#[derive(Clone, Copy)]
pub struct PanelFill {
    kind: PanelKind,
    k: usize,
    least_rows: Option<usize>,
}

impl PanelFill {
    /// Panels for a kernel of a tiling.
    pub fn new(kind: PanelKind, k: usize, tiling: Tiling) -> PanelFill {
        PanelFill { kind, k, least_rows: least_rows(kind, tiling) }
    }

    /// Rows of a group.
    pub fn group_rows(self) -> usize {
        self.kind.group_rows()
    }

    /// Bytes of a group.
    pub fn group_bytes(self) -> usize {
        self.kind.group_bytes(self.k)
    }

    /// Copies those of the `count` rows at `list` that lie in `range` to the panels that begin at `panel`, if
    /// there are rows enough for panels to be used.
    pub fn rows(self, e: &mut Emit, panel: Value, list: Value, count: Value, range: (Value, Value)) {
        let fill = |e: &mut Emit| match self.kind {
            PanelKind::Q8 { format, products } => {
                gemm::fill_panel(e, (format, products), self.k, panel, list, count, range);
            }
            PanelKind::Bf16 => gemm_bf16::fill_panel(e, self.k, panel, list, range),
            PanelKind::Tiles(element) => gemm_tiles::fill_panel(e, element, self.k, panel, list, range),
        };
        if_many(e, self.least_rows, count, fill, |_| {});
    }
}

/// Emits `body`, with tiles configured for the panels where these are for tiles.
pub fn with_tiles(e: &mut Emit, cx: &Cx, panels: Option<&Panels>, body: impl FnOnce(&mut Emit)) {
    let shapes = panels.and_then(|panels| match panels.kind {
        PanelKind::Bf16 => Some(TileShapes::Whole),
        PanelKind::Tiles(element) => Some(TileShapes::Strip(element)),
        PanelKind::Q8 { .. } => None,
    });
    if let Some(shapes) = shapes {
        e.call(cx.ukernel(MicroKernel::TilesOn(shapes)), &[]);
    }
    body(e);
    if shapes.is_some() {
        e.call(cx.ukernel(MicroKernel::TilesOff), &[]);
    }
}

/// Runs `many` when the kernel has panels and there are rows enough for them, `few` otherwise.
pub fn many_or_few(
    e: &mut Emit,
    panels: Option<&Panels>,
    count: Value,
    many: impl FnOnce(&mut Emit, &Panels),
    few: impl FnOnce(&mut Emit),
) {
    match panels {
        Some(panels) => if_many(e, panels.least_rows, count, |e| many(e, panels), few),
        None => few(e),
    }
}

/// Runs `many` for at least `least` rows, `few` otherwise.
fn if_many(
    e: &mut Emit,
    least: Option<usize>,
    count: Value,
    many: impl FnOnce(&mut Emit),
    few: impl FnOnce(&mut Emit),
) {
    let Some(least) = least else { return many(e) };
    let least = e.i64(least as i64);
    let is_many = e.icmp(IntCC::UnsignedGreaterThanOrEqual, count, least);
    e.if_else(is_many, many, few);
}
