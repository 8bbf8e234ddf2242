//! Expressions, copies and additions over f32 rows. Rows are padded to whole tiles, so a short last vector is
//! computed whole.

use crate::cx::Cx;
use crate::emit::{Emit, LANES};
use crate::expr::Expr;
use crate::math;
use crate::ukernel::MicroKernel;
use crate::ukernel::map::{MAX_INPUTS, Map};
use cranelift_codegen::ir::Value;
use cranelift_codegen::ir::types::F32X4;
use kernmill_plan::format::TILE_ROWS;

/// The map of an expression over one row, if it has not too many inputs.
pub fn map(expr: &Expr, inputs: usize, n: usize) -> Option<Map> {
    (inputs <= MAX_INPUTS).then(|| Map::new(expr.clone(), n.next_multiple_of(TILE_ROWS), &vec![0; inputs], 0))
}

/// `out[i] = expr(inputs[..][i])` for i < n. `out` may be one of the inputs.
pub fn emit(e: &mut Emit, cx: &Cx, expr: &Expr, inputs: &[Value], out: Value, n: usize) {
    if let Some(map) = map(expr, inputs.len(), n) {
        let rows = e.i64(1);
        e.call(cx.ukernel(MicroKernel::Map(map)), &[&[out], inputs, &[rows]].concat());
        return;
    }
    vectors(e, n, |e, offset| {
        let values: Vec<Value> = inputs
            .iter()
            .map(|x| {
                let ptr = e.add(*x, offset);
                e.load(F32X4, ptr, 0)
            })
            .collect();
        let result = math::expr(e, expr, &values);
        let ptr = e.add(out, offset);
        e.store(result, ptr, 0);
    });
}

/// `x[i] = x[i] + y[i]`.
pub fn add_in_place(e: &mut Emit, x: Value, y: Value, n: usize) {
    vectors(e, n, |e, offset| {
        let (x, y) = (e.add(x, offset), e.add(y, offset));
        let (a, b) = (e.load(F32X4, x, 0), e.load(F32X4, y, 0));
        let sum = e.fadd(a, b);
        e.store(sum, x, 0);
    });
}

/// `out[i] = x[i]`.
pub fn copy(e: &mut Emit, x: Value, out: Value, n: usize) {
    vectors(e, n, |e, offset| {
        let (x, out) = (e.add(x, offset), e.add(out, offset));
        let value = e.load(F32X4, x, 0);
        e.store(value, out, 0);
    });
}

/// Sets `n` floats to +0.
pub fn zero(e: &mut Emit, out: Value, n: usize) {
    vectors(e, n, |e, offset| {
        let out = e.add(out, offset);
        let zero = e.splat_f32(0.0);
        e.store(zero, out, 0);
    });
}

/// Calls `body` with the byte offset of each vector of four that covers `0..n`.
pub fn vectors(e: &mut Emit, n: usize, body: impl FnOnce(&mut Emit, Value)) {
    let (start, end) = (e.i64(0), e.i64((n.next_multiple_of(LANES) * 4) as i64));
    e.for_range(start, end, (LANES * 4) as i64, body);
}
