//! Half-split rotation of one head.

use crate::emit::{Emit, LANES};
use cranelift_codegen::ir::Value;
use cranelift_codegen::ir::types::F32X4;

/// Rotates `head_dim` f32 (a multiple of 8) at `x` into `out`, which may be `x`. `table` is `[cos; half][sin;
/// half]`.
pub fn emit(e: &mut Emit, x: Value, table: Value, out: Value, head_dim: usize) {
    let half = head_dim / 2;
    e.for_count(half / LANES, |e, i| {
        let (x, table, out) = (e.at(x, i, 16), e.at(table, i, 16), e.at(out, i, 16));
        let (lo, hi) = (e.load(F32X4, x, 0), e.load(F32X4, x, half * 4));
        let (cos, sin) = (e.load(F32X4, table, 0), e.load(F32X4, table, half * 4));
        let (lo_cos, hi_sin) = (e.fmul(lo, cos), e.fmul(hi, sin));
        let (hi_cos, lo_sin) = (e.fmul(hi, cos), e.fmul(lo, sin));
        let new_lo = e.fsub(lo_cos, hi_sin);
        let new_hi = e.fadd(hi_cos, lo_sin);
        e.store(new_lo, out, 0);
        e.store(new_hi, out, half * 4);
    });
}
