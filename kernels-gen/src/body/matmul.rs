//! Dense matrices: units of rows are shared out among workers; each unit runs over all input rows.

use crate::body::{Cx, epilogue, gemm};
use crate::emit::Emit;
use crate::kernel::{Domain, Part, RowType, Tiling, ValId};
use crate::leaf::Leaf;
use crate::scratch::Scratch;
use crate::stage::dot_leaf;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value};
use kernmill_plan::format::TILE_ROWS;

struct Areas {
    /// Results of one unit for the largest token group: `[tokens][mats][unit]` f32.
    results: usize,
    gemm: Option<gemm::Areas>,
    total: usize,
}

fn areas(input: RowType, parts: &[Part], max_rows: usize, tiling: Tiling) -> Areas {
    let mut scratch = Scratch::default();
    let largest = parts.iter().map(unit_bytes).max().unwrap_or(0);
    let results = scratch.take(largest * group_sizes(input)[0]);
    let gemm = tiling.least_rows().map(|_| gemm::areas(&mut scratch, max_rows, input.len(), largest));
    Areas { results, gemm, total: scratch.used() }
}

/// Bytes of the body's scratch.
pub fn scratch_bytes(input: RowType, parts: &[Part], max_rows: usize, tiling: Tiling) -> usize {
    areas(input, parts, max_rows, tiling).total
}

/// Token group sizes for an input type, descending.
pub fn group_sizes(input: RowType) -> &'static [usize] {
    Leaf::dot_tokens(matches!(input, RowType::Q8(_)))
}

/// Bytes of one row's results of a part's unit.
pub fn unit_bytes(part: &Part) -> usize {
    part.mats.len() * part.unit * 4
}

pub fn emit(
    e: &mut Emit,
    cx: &Cx,
    domain: Domain,
    input: ValId,
    parts: &[Part],
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
    let total = parts.iter().map(Part::items).sum::<usize>();
    let total = e.i64(total as i64);
    let by_dots = |e: &mut Emit| {
        cx.hand_out(e, total, |e, start, end| {
            few(e, cx, row_type, parts, areas.results, rows, (start, end));
        });
    };
    let (Some(gemm_areas), Some(least)) = (&areas.gemm, tiling.least_rows()) else { return by_dots(e) };
    let least = e.i64(least as i64);
    let is_few = e.icmp(IntCC::UnsignedLessThan, rows, least);
    e.if_then(is_few, by_dots);
    let is_many = e.icmp(IntCC::UnsignedGreaterThanOrEqual, rows, least);
    e.if_then(is_many, |e| {
        // The panel is filled for a range of items at once: no tail.
        let share = cx.share(e, total);
        many(e, cx, parts, gemm_areas, rows, share);
    });
}

/// Runs `body(part, item)` over a worker's items.
fn for_items(
    e: &mut Emit,
    parts: &[Part],
    (start, end): (Value, Value),
    mut body: impl FnMut(&mut Emit, &Part, Value),
) {
    let mut first = 0;
    for part in parts {
        // The worker's items that fall into the part, counted from the part's first.
        let lower = clamp_from(e, start, first, part.items());
        let upper = clamp_from(e, end, first, part.items());
        e.for_range(lower, upper, 1, |e, item| body(e, part, item));
        first += part.items();
    }
}

/// By dot leaves.
fn few(
    e: &mut Emit,
    cx: &Cx,
    input: RowType,
    parts: &[Part],
    results: usize,
    rows: Value,
    share: (Value, Value),
) {
    for_items(e, parts, share, |e, part, item| {
        let weights = tile_bases(e, cx, part, item, None);
        for_groups(e, input, rows, |e, group_start, tokens| {
            let results = cx.body_scratch(e, results);
            let list = cx.list(e);
            let rows_ptr = e.at(list, group_start, 8);
            dots(e, cx, part, input, &weights, rows_ptr, results, tokens);
            for t in 0..tokens {
                let row = e.add_imm(group_start, t as i64);
                let results = e.add_imm(results, (t * unit_bytes(part)) as i64);
                epilogue::emit(e, cx, part, item, None, results, row, row);
            }
        });
    });
}

/// By panels, one for each format that parts have in turn.
fn many(e: &mut Emit, cx: &Cx, parts: &[Part], areas: &gemm::Areas, rows: Value, share: (Value, Value)) {
    let mut start = 0;
    for run in parts.chunk_by(|a, b| a.mats[0].format == b.mats[0].format) {
        let list = cx.list(e);
        gemm::fill_panel(e, cx, areas, &run[0].mats[0], list, rows);
        let share = (e.add_imm(share.0, -(start as i64)), e.add_imm(share.1, -(start as i64)));
        for_items(e, run, share, |e, part, item| {
            let weights = tile_bases(e, cx, part, item, None);
            gemm::unit(e, cx, areas, part, &weights, rows);
            let zero = e.i64(0);
            e.for_range(zero, rows, 1, |e, row| {
                let results = cx.body_scratch(e, areas.results);
                let results = e.at(results, row, unit_bytes(part));
                epilogue::emit(e, cx, part, item, None, results, row, row);
            });
        });
        start += run.iter().map(Part::items).sum::<usize>();
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

/// Runs `body(first row, group size)` over `0..rows` in groups of the leaf sizes, largest first.
pub fn for_groups(e: &mut Emit, input: RowType, rows: Value, mut body: impl FnMut(&mut Emit, Value, usize)) {
    let mut start = e.i64(0);
    for size in group_sizes(input) {
        let end = if *size == 1 { rows } else { e.b.ins().band_imm_s(rows, -(*size as i64)) };
        e.for_range(start, end, *size as i64, |e, first| body(e, first, *size));
        start = end;
    }
}

/// Address of the unit's first tile in each matrix.
pub fn tile_bases(e: &mut Emit, cx: &Cx, part: &Part, item: Value, expert: Option<Value>) -> Vec<Value> {
    let tiles = part.unit / TILE_ROWS;
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

/// Dot products of a unit with `tokens` rows: `results[token][mat][unit]`.
#[allow(clippy::too_many_arguments)]
pub fn dots(
    e: &mut Emit,
    cx: &Cx,
    part: &Part,
    input: RowType,
    weights: &[Value],
    rows: Value,
    results: Value,
    tokens: usize,
) {
    let stride = e.i64(unit_bytes(part) as i64);
    // In the order in which tiles lie in memory when matrices are interleaved: leaves prefetch behind their tile's end.
    for tile in 0..part.unit / TILE_ROWS {
        for (m, (mat, base)) in part.mats.iter().zip(weights).enumerate() {
            let leaf = cx.leaf(dot_leaf(mat, input, tokens));
            let weights = e.add_imm(*base, (tile * mat.tile_stride) as i64);
            let out = e.add_imm(results, ((m * part.unit + tile * TILE_ROWS) * 4) as i64);
            e.call(leaf, &[weights, rows, out, stride]);
        }
    }
}
