//! f32 to bf16.

use crate::emit::{Emit, LANES};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{F32X4, I32X4};
use cranelift_codegen::ir::{InstBuilder, Value};

/// Rounds `n` f32 (a multiple of 8) at `x` to bf16 at `out`.
pub fn emit(e: &mut Emit, x: Value, out: Value, n: usize) {
    e.for_count(n / (2 * LANES), |e, i| {
        let (x, out) = (e.at(x, i, 2 * LANES * 4), e.at(out, i, 2 * LANES * 2));
        let halves = [0, 1].map(|half| {
            let value = e.load(F32X4, x, half * LANES * 4);
            rounded(e, value)
        });
        let both = e.b.ins().unarrow(halves[0], halves[1]);
        e.store(both, out, 0);
    });
}

/// The bits of each lane's bf16, as i32x4.
pub(super) fn rounded(e: &mut Emit, x: Value) -> Value {
    let bits = e.cast(I32X4, x);
    let magnitude = e.splat_i32(0x7fff_ffff);
    let magnitude = e.b.ins().band(bits, magnitude);
    let sign = e.b.ins().bxor(bits, magnitude);
    // Half to even by adding 0x7fff and the lowest kept bit.
    let one = e.splat_i32(1);
    let odd = e.b.ins().ushr_imm_u(magnitude, 16);
    let odd = e.b.ins().band(odd, one);
    let half = e.splat_i32(0x7fff);
    let up = e.b.ins().iadd(magnitude, half);
    let up = e.b.ins().iadd(up, odd);
    let normal = e.splat_i32(0x007f_ffff);
    let is_normal = e.icmp(IntCC::SignedGreaterThan, magnitude, normal);
    let finite = e.b.ins().band(up, is_normal);
    let infinity = e.splat_i32(0x7f80_0000);
    let is_nan = e.icmp(IntCC::SignedGreaterThan, magnitude, infinity);
    let quiet = e.splat_i32(0x0040_0000);
    let nan = e.b.ins().bor(magnitude, quiet);
    let magnitude = e.b.ins().bitselect(is_nan, nan, finite);
    let all = e.b.ins().bor(magnitude, sign);
    e.b.ins().ushr_imm_u(all, 16)
}
