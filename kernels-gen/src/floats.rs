//! Loops over f32: copies, sums, zeros. Rows are padded to whole tiles, so a short last vector is computed
//! whole.

use crate::emit::{Emit, LANES};
use cranelift_codegen::ir::Value;
use cranelift_codegen::ir::types::F32X4;

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
    let zero = e.splat_f32(0.0);
    fill(e, out, zero, n);
}

/// Sets `n` floats to the lanes of a vector.
pub fn fill(e: &mut Emit, out: Value, lanes: Value, n: usize) {
    vectors(e, n, |e, offset| {
        let out = e.add(out, offset);
        e.store(lanes, out, 0);
    });
}

/// Calls `body` with the byte offset of each vector of four that covers `0..n`.
pub fn vectors(e: &mut Emit, n: usize, body: impl FnOnce(&mut Emit, Value)) {
    let (start, end) = (e.i64(0), e.i64((n.next_multiple_of(LANES) * 4) as i64));
    e.for_range(start, end, (LANES * 4) as i64, body);
}
