//! Dense matrices: work items of some rows each are shared out among workers; each runs over all input rows.

use crate::body::epilogue;
use crate::body::panels::{Panels, RowLimits, with_tiles};
use crate::cx::Cx;
use crate::emit::Emit;
use crate::kernel::{Domain, Mat, MatrixPart, RowType, Tiling, ValId};
use crate::row_op::dot_ukernel;
use crate::run::{ItemRun, RowsOf, for_runs, run_of, run_of_all};
use crate::scratch::Scratch;
use crate::ukernel::{MicroKernel, TILES_PER_CALL, TileOrder};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{FuncRef, InstBuilder, Value};
use kernmill_plan::format::TILE_ROWS;

/// Rows that the micro-kernel for adjacent tiles takes at most.
const X4_TOKENS: usize = 2;

struct MatmulScratch {
    /// Results of a run for the largest token group: `[tokens][mats][columns]` f32.
    results: usize,
    panels: Option<Panels>,
    total: usize,
}

fn areas(input: RowType, parts: &[MatrixPart], max_rows: usize, tiling: Tiling) -> MatmulScratch {
    let mut scratch = Scratch::default();
    let together = parts.iter().map(|part| part.result_bytes() * run_of(part)).max().unwrap_or(0);
    let results = scratch.take(together * group_sizes(input)[0]);
    let panels = Panels::take(&mut scratch, RowLimits { max: max_rows, tiling }, input, parts);
    MatmulScratch { results, panels, total: scratch.used() }
}

/// Bytes of the body's scratch.
pub fn scratch_bytes(input: RowType, parts: &[MatrixPart], max_rows: usize, tiling: Tiling) -> usize {
    areas(input, parts, max_rows, tiling).total
}

/// Token group sizes for an input type, descending.
pub fn group_sizes(input: RowType) -> &'static [usize] {
    MicroKernel::dot_tokens(matches!(input, RowType::Q8(_)))
}

pub fn emit(
    e: &mut Emit,
    cx: &Cx,
    domain: Domain,
    input: ValId,
    parts: &[MatrixPart],
    max_rows: usize,
    tiling: Tiling,
) {
    let row_type = cx.vals[input];
    let areas = areas(row_type, parts, max_rows, tiling);
    let rows = cx.rows(e, domain);
    let list = cx.list(e);
    let zero = e.i64(0);
    e.for_range(zero, rows, 1, |e, row| {
        let source = cx.row(e, input, row);
        let entry = e.at(list, row, 8);
        e.store(source, entry, 0);
    });
    let total = parts.iter().map(MatrixPart::items).sum::<usize>();
    let total = e.i64(total as i64);
    let by_dots = |e: &mut Emit| {
        cx.distribute_items(e, total, run_of_all(parts), |e, start, end| {
            few(e, cx, row_type, parts, areas.results, rows, (start, end));
        });
    };
    let Some((panels, least)) = areas.panels.zip(tiling.least_rows()) else { return by_dots(e) };
    let least = e.i64(least as i64);
    let is_few = e.icmp(IntCC::UnsignedLessThan, rows, least);
    e.if_then(is_few, by_dots);
    let is_many = e.icmp(IntCC::UnsignedGreaterThanOrEqual, rows, least);
    e.if_then(is_many, |e| {
        // The panel is filled for a range of items at once: no tail.
        let share = cx.share(e, total);
        many(e, cx, parts, (panels, tiling), rows, share);
    });
}

/// Runs `body` over a worker's items; `run` says how many at once at most.
fn for_items(
    e: &mut Emit,
    parts: &[MatrixPart],
    (start, end): (Value, Value),
    run: impl Fn(&MatrixPart) -> usize,
    mut body: impl FnMut(&mut Emit, &MatrixPart, ItemRun),
) {
    let mut first = 0;
    for part in parts {
        // The worker's items that fall into the part, counted from the part's first.
        let lower = clamp_from(e, start, first, part.items());
        let upper = clamp_from(e, end, first, part.items());
        for_runs(e, lower, upper, run(part), |e, run| body(e, part, run));
        first += part.items();
    }
}

/// The micro-kernel that multiplies adjacent tiles of a part with `tokens` rows, if there can be one: the
/// tiles of an item, or of a run of items, lie one behind the other, or alternate between two matrices, the
/// first one's first, and are exactly those of an item.
pub fn x4_ukernel(part: &MatrixPart, input: RowType, tokens: usize) -> Option<MicroKernel> {
    let Mat { format, k, .. } = part.mats[0];
    let alike = |mat: &Mat| {
        (mat.format, mat.k) == (format, k) && mat.tile_stride == part.mats.len() * format.tile(k).bytes()
    };
    let tiles = part.mats.len() * part.rows_per_item / TILE_ROWS;
    let order = match part.mats.len() {
        1 if tiles >= TILES_PER_CALL || run_of(part) * tiles == TILES_PER_CALL => TileOrder::Straight,
        2 if tiles == TILES_PER_CALL && part.interleaved => TileOrder::Pairs,
        _ => return None,
    };
    let served = matches!(input, RowType::Q8(_)) && tokens <= X4_TOKENS;
    (served && part.mats.iter().all(alike)).then_some(MicroKernel::DotQ8x4 { format, k, tokens, order })
}

/// By dot micro-kernels.
fn few(
    e: &mut Emit,
    cx: &Cx,
    input: RowType,
    parts: &[MatrixPart],
    results: usize,
    rows: Value,
    share: (Value, Value),
) {
    for_items(e, parts, share, run_of, |e, part, run| {
        let weights = tile_bases(e, cx, part, run.first, None);
        epilogue::fetch_biases(e, cx, part, run, None);
        for_groups(e, input, rows, |e, group_start, tokens| {
            let results = cx.body_scratch(e, results);
            let list = cx.list(e);
            let rows_ptr = e.at(list, group_start, 8);
            dots(e, cx, part, input, &weights, rows_ptr, results, tokens, run);
            let tokens = e.i64(tokens as i64);
            epilogue::emit(e, cx, part, run, None, results, tokens, RowsOf::From(group_start));
        });
    });
}

/// By panels, filled anew where the next part needs others.
fn many(
    e: &mut Emit,
    cx: &Cx,
    parts: &[MatrixPart],
    (panels, tiling): (Panels, Tiling),
    rows: Value,
    share: (Value, Value),
) {
    let mut start = 0;
    for run in parts.chunk_by(|a, b| tiling.shares_panels(a.mats[0].format, b.mats[0].format)) {
        let mat = &run[0].mats[0];
        with_tiles(e, cx, Some(panels), mat, |e| {
            let list = cx.list(e);
            panels.fill(e, cx, mat, list, rows);
            let share = (e.add_imm(share.0, -(start as i64)), e.add_imm(share.1, -(start as i64)));
            let one = |_: &MatrixPart| 1;
            for_items(e, run, share, one, |e, part, item| {
                let weights = tile_bases(e, cx, part, item.first, None);
                panels.item(e, cx, part, &weights, rows);
                let results = cx.body_scratch(e, panels.results());
                let first = e.i64(0);
                epilogue::emit(e, cx, part, item, None, results, rows, RowsOf::From(first));
            });
        });
        start += run.iter().map(MatrixPart::items).sum::<usize>();
    }
}

/// `clamp(value - first, 0, items)`.
fn clamp_from(e: &mut Emit, value: Value, first: usize, items: usize) -> Value {
    let relative = e.add_imm(value, -(first as i64));
    let zero = e.i64(0);
    let floor = e.b.ins().smax(relative, zero);
    let limit = e.i64(items as i64);
    e.b.ins().smin(floor, limit)
}

/// Runs `body(first row, group size)` over `0..rows` in groups of the micro-kernel sizes, largest first.
pub fn for_groups(e: &mut Emit, input: RowType, rows: Value, mut body: impl FnMut(&mut Emit, Value, usize)) {
    let mut start = e.i64(0);
    for size in group_sizes(input) {
        let left = e.b.ins().isub(rows, start);
        let left_over = match *size {
            1 => e.i64(0),
            size if size.is_power_of_two() => e.b.ins().band_imm_s(left, size as i64 - 1),
            size => e.b.ins().urem_imm_u(left, size as i64),
        };
        let end = e.b.ins().isub(rows, left_over);
        e.for_range(start, end, *size as i64, |e, first| body(e, first, *size));
        start = end;
    }
}

/// Address of the item's first tile in each matrix.
pub fn tile_bases(
    e: &mut Emit,
    cx: &Cx,
    part: &MatrixPart,
    item: Value,
    expert: Option<Value>,
) -> Vec<Value> {
    let tiles = part.rows_per_item / TILE_ROWS;
    part.mats
        .iter()
        .map(|mat| {
            let mut base = cx.operand(e, mat.operand);
            if let Some(expert) = expert {
                base = e.at(base, expert, mat.expert_stride);
            }
            e.at(base, item, tiles * mat.tile_stride)
        })
        .collect()
}

/// Dot products of a run with `tokens` rows: `results[token][mat][column]`.
#[allow(clippy::too_many_arguments)]
pub fn dots(
    e: &mut Emit,
    cx: &Cx,
    part: &MatrixPart,
    input: RowType,
    weights: &[Value],
    rows: Value,
    results: Value,
    tokens: usize,
    run: ItemRun,
) {
    let stride = e.i64(run.row_bytes(part) as i64);
    // In the order in which tiles lie in memory when matrices are interleaved: micro-kernels prefetch behind
    // their tile's end.
    let mut tiles = Vec::new();
    for tile in 0..run.columns(part) / TILE_ROWS {
        for (m, (mat, base)) in part.mats.iter().zip(weights).enumerate() {
            let out = (m * run.columns(part) + tile * TILE_ROWS) * 4;
            tiles.push((mat, *base, tile * mat.tile_stride, out));
        }
    }
    let adjacent = x4_ukernel(part, input, tokens).and_then(|ukernel| cx.try_ukernel(ukernel));
    for tiles in tiles.chunks(TILES_PER_CALL) {
        let mut call = |(mat, base, at, out): (&Mat, Value, usize, usize), ukernel: Option<FuncRef>| {
            let ukernel = ukernel.unwrap_or_else(|| cx.ukernel(dot_ukernel(mat, input, tokens)));
            let (weights, out) = (e.add_imm(base, at as i64), e.add_imm(results, out as i64));
            e.call(ukernel, &[weights, rows, out, stride]);
        };
        match adjacent.filter(|_| tiles.len() == TILES_PER_CALL) {
            Some(ukernel) => call(tiles[0], Some(ukernel)),
            None => tiles.iter().for_each(|tile| call(*tile, None)),
        }
    }
}
