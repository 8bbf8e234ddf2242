//! `fn(x: *const f32, weight: *const f32, out: *mut f32)`: RMS norm of one row of `n`, a multiple of 16.
//! `out` may be `x`.

use super::param::{Param, Region};
use crate::emit::{Emit, LANES};
use cranelift_codegen::ir::types::{F32, F32X4};
use cranelift_codegen::ir::{InstBuilder, Value};

pub fn contract(n: usize) -> Vec<Param> {
    let row = || Region::new(n * 4);
    vec![Param::Read(row()), Param::Read(row()), Param::Write(row())]
}

/// `out = (x * (1 / sqrt(mean(x^2) + eps))) * weight`.
pub fn emit(e: &mut Emit, params: &[Value], n: usize, eps: f32) {
    let (x, weight, out) = (params[0], params[1], params[2]);
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
    e.for_count(n / LANES, |e, i| {
        let (x, weight, out) = (e.at(x, i, LANES * 4), e.at(weight, i, LANES * 4), e.at(out, i, LANES * 4));
        let (v, w) = (e.load(F32X4, x, 0), e.load(F32X4, weight, 0));
        let scaled = e.fmul(v, r);
        let y = e.fmul(scaled, w);
        e.store(y, out, 0);
    });
}
