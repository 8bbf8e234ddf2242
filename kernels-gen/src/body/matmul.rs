//! Dense matrices: work items of some rows each are shared out among workers; each runs over all input rows.

use crate::body::panels::{Panels, many_or_few, with_tiles};
use crate::body::term_lists::TermLists;
use crate::body::{epilogue, listed};
use crate::cx::Cx;
use crate::emit::Emit;
use crate::kernel::{Domain, Kernel, Mat, MatrixPart, RowType, ValId, listed_part};
use crate::row_op::linear::dot_ukernel;
use crate::run::{ItemRun, RowsOf, for_runs, run_of, run_of_all};
use crate::scratch::Scratch;
use crate::ukernel::{MicroKernel, TILES_PER_CALL, TileOrder};
use cranelift_codegen::ir::{FuncRef, InstBuilder, Value};
use kernmill_plan::format::TILE_ROWS;

/// Rows that the micro-kernel for adjacent tiles takes at most.
const X4_TOKENS: usize = 2;

struct MatmulScratch {
    /// Results of a run for the largest token group: `[tokens][mats][columns]` f32.
    results: usize,
    panels: Vec<Panels>,
    total: usize,
}

fn areas(kernel: &Kernel, input: RowType, parts: &[MatrixPart]) -> MatmulScratch {
    let mut scratch = Scratch::default();
    let together = parts.iter().map(|part| part.result_bytes() * run_of(part)).max().unwrap_or(0);
    let results = scratch.take(together * group_sizes(input)[0]);
    let panels = Panels::take(&mut scratch, kernel, parts);
    MatmulScratch { results, panels, total: scratch.used() }
}

/// Bytes of the body's scratch.
pub fn scratch_bytes(kernel: &Kernel, input: RowType, parts: &[MatrixPart]) -> usize {
    areas(kernel, input, parts).total
}

/// Token group sizes for an input type, descending.
pub fn group_sizes(input: RowType) -> &'static [usize] {
    MicroKernel::dot_tokens(input.is_q8())
}

pub fn emit(e: &mut Emit, cx: &Cx, kernel: &Kernel, domain: Domain, input: ValId, parts: &[MatrixPart]) {
    let row_type = cx.vals[input];
    let areas = areas(kernel, row_type, parts);
    let rows = cx.rows(e, domain);
    let lists = TermLists::new(cx, input, kernel.max_rows);
    let zero = e.i64(0);
    lists.fill(e, cx, (zero, rows));
    let all = |e: &mut Emit| every_item(e, cx, (row_type, lists), parts, &areas, rows);
    let Some(part) = listed_part(domain, parts) else { return all(e) };
    let tile = |e: &mut Emit, tile| run_by_dots(e, cx, (row_type, lists), &part, areas.results, rows, tile);
    listed::emit(e, cx, tile, all);
}

/// All items of all parts.
fn every_item(
    e: &mut Emit,
    cx: &Cx,
    input: (RowType, TermLists),
    parts: &[MatrixPart],
    areas: &MatmulScratch,
    rows: Value,
) {
    let zero = e.i64(0);
    for panels in &areas.panels {
        if let Some(own) = panels.own() {
            let first = panels.group(e, cx, zero);
            for (term, panel) in panels.of_terms(e, first).into_iter().enumerate() {
                let list = input.1.list(e, cx, term);
                own.rows(e, panel, list, rows, (zero, rows));
            }
        }
    }
    let total = parts.iter().map(MatrixPart::items).sum::<usize>();
    let total = e.i64(total as i64);
    cx.distribute_items(e, total, run_of_all(parts), |e, start, end| {
        let many = |e: &mut Emit, _: &Panels| many(e, cx, parts, &areas.panels, rows, (start, end));
        many_or_few(e, areas.panels.first(), rows, many, |e| {
            few(e, cx, input, parts, areas.results, rows, (start, end));
        });
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
        let (before, items) = (e.i64(first as i64), e.i64(part.items() as i64));
        let [lower, upper] = [start, end].map(|item| e.clamp_from(item, before, items));
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
    let served = input.is_q8() && tokens <= X4_TOKENS && part.terms() == 1;
    (served && part.mats.iter().all(alike)).then_some(MicroKernel::DotQ8x4 { format, k, tokens, order })
}

/// By dot micro-kernels.
fn few(
    e: &mut Emit,
    cx: &Cx,
    input: (RowType, TermLists),
    parts: &[MatrixPart],
    results: usize,
    rows: Value,
    share: (Value, Value),
) {
    for_items(e, parts, share, run_of, |e, part, run| {
        run_by_dots(e, cx, input, part, results, rows, run);
    });
}

/// A run of items by dot micro-kernels, for all rows.
fn run_by_dots(
    e: &mut Emit,
    cx: &Cx,
    (input, lists): (RowType, TermLists),
    part: &MatrixPart,
    results: usize,
    rows: Value,
    run: ItemRun,
) {
    let weights = tile_bases(e, cx, part, run.first, None);
    epilogue::fetch_biases(e, cx, part, run, None);
    for_groups(e, cx, (part, input), rows, |e, group_start, tokens| {
        let results = cx.body_scratch(e, results);
        let rows: Vec<Value> = lists.all(e, cx).into_iter().map(|list| e.at(list, group_start, 8)).collect();
        dots(e, cx, part, input, &weights, &rows, results, tokens, run);
        let tokens = e.i64(tokens as i64);
        epilogue::emit(e, cx, part, run, None, results, tokens, RowsOf::From(group_start));
    });
}

/// By panels, a run of parts after the other.
fn many(
    e: &mut Emit,
    cx: &Cx,
    parts: &[MatrixPart],
    panels: &[Panels],
    rows: Value,
    (start, end): (Value, Value),
) {
    let (mut rest, mut before) = (parts, 0);
    for panels in panels {
        let (run, behind) = rest.split_at(panels.parts);
        with_tiles(e, cx, Some(panels), |e| {
            let share = [start, end].map(|item| e.add_imm(item, -before));
            let first = e.i64(0);
            let panel = panels.group(e, cx, first);
            for_items(
                e,
                run,
                share.into(),
                |_| 1,
                |e, part, item| {
                    let weights = tile_bases(e, cx, part, item.first, None);
                    panels.item(e, cx, part, &weights, (panel, rows));
                    let results = cx.body_scratch(e, panels.results());
                    epilogue::emit(e, cx, part, item, None, results, rows, RowsOf::From(first));
                },
            );
        });
        before += run.iter().map(MatrixPart::items).sum::<usize>() as i64;
        rest = behind;
    }
}

/// Runs `body(first row, group size)` over `0..rows` in groups of the sizes in which the part's dot
/// micro-kernels come, largest first.
pub fn for_groups(
    e: &mut Emit,
    cx: &Cx,
    (part, input): (&MatrixPart, RowType),
    rows: Value,
    mut body: impl FnMut(&mut Emit, Value, usize),
) {
    let mut start = e.i64(0);
    let has = |mat: &Mat, tokens| cx.try_ukernel(dot_ukernel(mat, input, tokens)).is_some();
    for size in group_sizes(input).iter().filter(|size| part.mats.iter().all(|mat| has(mat, **size))) {
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

/// Dot products of a run with `tokens` rows: `results[token][mat][column]`. `rows` are the addresses of their
/// pointers in each term's list.
#[allow(clippy::too_many_arguments)]
pub fn dots(
    e: &mut Emit,
    cx: &Cx,
    part: &MatrixPart,
    input: RowType,
    weights: &[Value],
    rows: &[Value],
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
            e.call(ukernel, &[weights, rows[mat.term], out, stride]);
        };
        match adjacent.filter(|_| tiles.len() == TILES_PER_CALL) {
            Some(ukernel) => call(tiles[0], Some(ukernel)),
            None => tiles.iter().for_each(|tile| call(*tile, None)),
        }
    }
}
