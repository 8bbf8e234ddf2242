//! `fn(x: *const f32, values: *mut i8, scales: *mut f32, sums: *mut [i16; 2], blocks: u64)`: `blocks` blocks
//! of 32 f32 to q8 (`quantize_q8` of docs/dev/numerics.md): 32 values, a scale and the sums of both halves
//! each.

use super::param::{Amount, Param, Region};
use crate::emit::{Emit, LANES};
use cranelift_codegen::ir::condcodes::FloatCC;
use cranelift_codegen::ir::types::{F32, F32X4, I32X4};
use cranelift_codegen::ir::{InstBuilder, Value};
use kernmill_plan::format::BLOCK;
use kernmill_plan::numeric::ROUND_MAGIC;

pub fn contract() -> Vec<Param> {
    let blocks = |bytes: usize| Region::new(Amount::times(4, bytes));
    vec![
        Param::Read(blocks(BLOCK * 4)),
        Param::Write(blocks(BLOCK)),
        Param::Write(blocks(4)),
        Param::Write(blocks(4)),
        Param::Number,
    ]
}

pub fn emit(e: &mut Emit, params: &[Value]) {
    let (x, values, scales, sums, blocks) = (params[0], params[1], params[2], params[3], params[4]);
    let zero = e.i64(0);
    e.for_range(zero, blocks, 1, |e, block| {
        let x = e.at(x, block, BLOCK * 4);
        let (scale, sum) = (e.at(scales, block, 4), e.at(sums, block, 4));
        let out = e.at(values, block, BLOCK);
        one_block(e, x, out, scale, sum);
    });
}

fn one_block(e: &mut Emit, x: Value, out: Value, scale_out: Value, sum_out: Value) {
    let values: Vec<Value> = (0..BLOCK / LANES).map(|i| e.load(F32X4, x, i * 16)).collect();
    // The bits of |x| order like |x|, and a NaN above everything.
    let magnitude = e.splat_i32(0x7fff_ffff);
    let bits: Vec<Value> = values
        .iter()
        .map(|v| {
            let bits = e.cast(I32X4, *v);
            e.b.ins().band(bits, magnitude)
        })
        .collect();
    let largest = bits.into_iter().reduce(|a, b| e.b.ins().smax(a, b)).expect("eight vectors");
    let swapped = e.swap_halves(largest);
    let largest = e.b.ins().smax(largest, swapped);
    let swapped = e.swap_pairs(largest);
    let largest = e.b.ins().smax(largest, swapped);
    let largest = e.cast(F32X4, largest);
    let amax = e.b.ins().extractlane(largest, 0);
    let limit = e.b.ins().f32const(127.0);
    let scale = e.fdiv(amax, limit);
    let inverse = e.fdiv(limit, amax);
    let zero = e.b.ins().f32const(0.0);
    let is_zero = e.b.ins().fcmp(FloatCC::Equal, amax, zero);
    let inverse = e.select(is_zero, zero, inverse);
    debug_assert_eq!(e.b.func.dfg.value_type(scale), F32);
    e.store(scale, scale_out, 0);

    let inverse = e.splat(inverse);
    let magic = e.splat_f32(ROUND_MAGIC);
    let magic_bits = e.splat_i32(ROUND_MAGIC.to_bits() as i32);
    let (least, most) = (e.splat_i32(-128), e.splat_i32(127));
    let ints: Vec<Value> = values
        .iter()
        .map(|v| {
            let scaled = e.fmul(*v, inverse);
            let shifted = e.fadd(scaled, magic);
            let bits = e.cast(I32X4, shifted);
            let int = e.b.ins().isub(bits, magic_bits);
            // The sum is of the saturated values.
            let int = e.b.ins().smax(int, least);
            e.b.ins().smin(int, most)
        })
        .collect();
    let words: Vec<Value> = ints.chunks(2).map(|p| e.b.ins().snarrow(p[0], p[1])).collect();
    let bytes: Vec<Value> = words.chunks(2).map(|p| e.b.ins().snarrow(p[0], p[1])).collect();
    for (i, b) in bytes.iter().enumerate() {
        e.store(*b, out, i * 16);
    }
    let (left, right) = ints.split_at(ints.len() / 2);
    let mut half =
        |ints: &[Value]| ints.iter().copied().reduce(|a, b| e.b.ins().iadd(a, b)).expect("four vectors");
    let (left, right) = (half(left), half(right));
    let both = e.b.ins().iadd_pairwise(left, right);
    let both = e.b.ins().iadd_pairwise(both, both);
    let both = e.b.ins().snarrow(both, both);
    let both = e.cast(I32X4, both);
    let both = e.b.ins().extractlane(both, 0);
    e.store(both, sum_out, 0);
}
