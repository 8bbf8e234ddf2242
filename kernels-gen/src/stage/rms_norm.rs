//! RMS norm of one row.

use crate::emit::Emit;
use cranelift_codegen::ir::types::{F32, F32X4};
use cranelift_codegen::ir::{InstBuilder, Value};

/// `out = (x * (1 / sqrt(mean(x^2) + eps))) * weight` over `n` elements, a multiple of 16.
pub fn emit(e: &mut Emit, x: Value, weight: Value, out: Value, n: usize, eps: f32) {
    let zero = e.splat_f32(0.0);
    let (start, end) = (e.i64(0), e.i64((n * 4) as i64));
    let lanes = e.for_carry(start, end, 64, &[zero; 4], |e, offset, lanes| {
        let ptr = e.add(x, offset);
        lanes
            .iter()
            .enumerate()
            .map(|(i, lane)| {
                let v = e.load(F32X4, ptr, i * 16);
                e.fma(v, v, *lane)
            })
            .collect()
    });
    let sum = e.lane_tree([lanes[0], lanes[1], lanes[2], lanes[3]]);
    let count = e.b.ins().f32const(n as f32);
    let mean = e.fdiv(sum, count);
    let eps = e.b.ins().f32const(eps);
    let shifted = e.fadd(mean, eps);
    let root = e.b.ins().sqrt(shifted);
    let one = e.b.ins().f32const(1.0);
    let r = e.fdiv(one, root);
    debug_assert_eq!(e.b.func.dfg.value_type(r), F32);
    let r = e.splat(r);
    super::elementwise::vectors(e, n, |e, offset| {
        let (x, weight, out) = (e.add(x, offset), e.add(weight, offset), e.add(out, offset));
        let (v, w) = (e.load(F32X4, x, 0), e.load(F32X4, weight, 0));
        let scaled = e.fmul(v, r);
        let y = e.fmul(scaled, w);
        e.store(y, out, 0);
    });
}
