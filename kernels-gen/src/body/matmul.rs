//! Dense matrices: units of rows are shared out among workers; each unit runs over all input rows.

use crate::body::{Cx, epilogue};
use crate::emit::Emit;
use crate::kernel::{Domain, Part, RowType, ValId};
use crate::leaf::Leaf;
use crate::stage::dot_leaf;
use cranelift_codegen::ir::{InstBuilder, Value};
use kernmill_plan::format::TILE_ROWS;

/// Results of one unit for the largest token group: `[tokens][mats][unit]` f32.
pub fn scratch_bytes(input: RowType, parts: &[Part]) -> usize {
    let tokens = group_sizes(input)[0];
    parts.iter().map(|part| unit_bytes(part) * tokens).max().unwrap_or(0)
}

/// Token group sizes for an input type, descending.
pub fn group_sizes(input: RowType) -> &'static [usize] {
    Leaf::dot_tokens(matches!(input, RowType::Q8(_)))
}

/// Bytes of one row's results of a part's unit.
pub fn unit_bytes(part: &Part) -> usize {
    part.mats.len() * part.unit * 4
}

pub fn emit(e: &mut Emit, cx: &Cx, domain: Domain, input: ValId, parts: &[Part]) {
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
    let (start, end) = cx.share(e, total);
    let mut first = 0;
    for part in parts {
        // This worker's items that fall into the part, counted from the part's first.
        let lower = clamp_from(e, start, first, part.items());
        let upper = clamp_from(e, end, first, part.items());
        e.for_range(lower, upper, 1, |e, item| {
            let weights = tile_bases(e, cx, part, item, None);
            for_groups(e, cx.vals[input], rows, |e, group_start, tokens| {
                let results = cx.body_scratch(e, 0);
                let rows_ptr = e.at(list, group_start, 8);
                dots(e, cx, part, cx.vals[input], &weights, rows_ptr, results, tokens);
                for t in 0..tokens {
                    let row = e.add_imm(group_start, t as i64);
                    let results = e.add_imm(results, (t * unit_bytes(part)) as i64);
                    epilogue::emit(e, cx, part, item, None, results, row, row);
                }
            });
        });
        first += part.items();
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
    for (m, (mat, base)) in part.mats.iter().zip(weights).enumerate() {
        let leaf = cx.leaf(dot_leaf(mat, input, tokens));
        for tile in 0..part.unit / TILE_ROWS {
            let weights = e.add_imm(*base, (tile * mat.tile_stride) as i64);
            let out = e.add_imm(results, ((m * part.unit + tile * TILE_ROWS) * 4) as i64);
            e.call(leaf, &[weights, rows, out, stride]);
        }
    }
}
