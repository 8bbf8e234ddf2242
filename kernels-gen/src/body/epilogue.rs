//! What becomes of one unit of results for one row: bias, then the part's epilogue in order.

use crate::body::Cx;
use crate::emit::Emit;
use crate::kernel::{Epilogue, Part};
use crate::stage::{bf16, elementwise, kv, quantize, rope};
use cranelift_codegen::ir::Value;
use kernmill_plan::format::{BLOCK, f32_row_stride};

/// `results` is `[mats][unit]` f32 in scratch, for item `item`. `row` is the batch row (positions, sequences), `out_row` the row of
/// outputs and residuals.
#[allow(clippy::too_many_arguments)]
pub fn emit(
    e: &mut Emit,
    cx: &Cx,
    part: &Part,
    item: Value,
    expert: Option<Value>,
    results: Value,
    row: Value,
    out_row: Value,
) {
    let unit = part.unit;
    let units: Vec<Value> = (0..part.mats.len()).map(|m| e.add_imm(results, (m * unit * 4) as i64)).collect();
    for (mat, values) in part.mats.iter().zip(&units) {
        if let Some(bias) = mat.bias {
            let mut bias = cx.operand(e, bias);
            if let Some(expert) = expert {
                bias = e.at(bias, expert, f32_row_stride(mat.n));
            }
            let bias = e.at(bias, item, unit * 4);
            elementwise::add_in_place(e, *values, bias, unit);
        }
    }
    for step in &part.epilogue {
        match step {
            Epilogue::Combine { expr } => elementwise::emit(e, expr, &units, results, unit),
            Epilogue::Rope { table } => {
                let table = cx.rope_row(e, *table, unit, row);
                rope::emit(e, results, table, results, unit);
            }
            Epilogue::Add { x } => {
                let x = cx.row(e, *x, out_row);
                let x = e.at(x, item, unit * 4);
                elementwise::add_in_place(e, results, x, unit);
            }
            Epilogue::Store { out } => {
                let out = cx.row(e, *out, out_row);
                let out = e.at(out, item, unit * 4);
                elementwise::copy(e, results, out, unit);
            }
            Epilogue::Quantize { out } => {
                let target = cx.row(e, *out, out_row);
                let target = quantize::Q8Ptr::of_row(e, target, cx.len(*out));
                let block = e.mul_imm(item, (unit / BLOCK) as i64);
                let target = target.skip(e, block);
                quantize::emit(e, results, target, unit);
            }
            Epilogue::Bf16Cast { out } => {
                let out = cx.row(e, *out, out_row);
                let out = e.at(out, item, unit * 2);
                bf16::emit(e, results, out, unit);
            }
            Epilogue::KvWrite { pool, plane, kind, geometry } => {
                let slot = cx.kv_slot(e, *pool, *kind, geometry, row);
                kv::write_head(e, results, slot, item, *plane, geometry);
            }
        }
    }
}
