//! Adapters' parts of the results of matrices.

use crate::adapter::{self, ResultRows};
use crate::cx::Cx;
use crate::emit::Emit;
use crate::kernel::MatrixPart;
use crate::run::{ItemRun, RowsOf};
use cranelift_codegen::ir::Value;
use kernmill_plan::format::TILE_ROWS;

/// Adds the adapters' parts to the results of a run: `results` is `[rows][mats][columns]` f32.
#[allow(clippy::too_many_arguments)]
pub fn expand(
    e: &mut Emit,
    cx: &Cx,
    part: &MatrixPart,
    items: ItemRun,
    expert: Option<Value>,
    results: Value,
    rows: Value,
    rows_of: RowsOf,
) {
    if part.mats.iter().all(|mat| mat.adapter.is_none()) {
        return;
    }
    let (tiles, stride) = (items.columns(part) / TILE_ROWS, items.row_bytes(part));
    cx.if_adapters(e, |e| {
        for (m, mat) in part.mats.iter().enumerate() {
            let Some(branch) = &mat.adapter else { continue };
            let results = e.add_imm(results, (m * items.columns(part) * 4) as i64);
            let first_tile = e.mul_imm(items.first, (part.rows_per_item / TILE_ROWS) as i64);
            let first_tile = e.add_imm(first_tile, branch.first_tile as i64);
            let zero = e.i64(0);
            e.for_next(zero, rows, |e, row| {
                let (token, shrunk_row, run) = match rows_of {
                    RowsOf::From(first) => {
                        let (token, end) = (e.add(first, row), e.add(first, rows));
                        (token, token, Some(cx.adapter_run(e, token, end)))
                    }
                    RowsOf::Each(each) => {
                        let (token, slot) = each(e, row);
                        (token, slot, None)
                    }
                };
                let entry = cx.adapter(e, branch.lora_target, token);
                e.if_nonzero(entry.ranks, |e| {
                    let b = entry.b(e, expert);
                    let shrunk = cx.row(e, branch.shrunk, shrunk_row);
                    let y = e.at(results, row, stride);
                    let to = ResultRows { shrunk, y, stride, tiles, rows: run };
                    adapter::add(e, cx, branch, &entry, b, first_tile, &to);
                });
                match run {
                    Some(run) => e.add(row, run),
                    None => e.add_imm(row, 1),
                }
            });
        }
    });
}
