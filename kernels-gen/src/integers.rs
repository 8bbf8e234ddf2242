//! A head of f32 as integers of 8 bits with one scale (`quantize_head` of docs/dev/numerics.md).

use crate::emit::{Emit, LANES};
use cranelift_codegen::ir::condcodes::FloatCC;
use cranelift_codegen::ir::types::{F32X4, I8X16, I32X4};
use cranelift_codegen::ir::{InstBuilder, Value};
use kernmill_plan::numeric::ROUND_MAGIC;

/// What a head's largest element makes of it.
#[derive(Clone, Copy)]
pub struct Rounding {
    /// f32: what an integer stands for.
    pub scale: Value,
    /// Four copies of what elements are multiplied with.
    inverse: Value,
}

impl Rounding {
    /// Of the f32 `[head_dim]` at `x`.
    pub fn of_head(e: &mut Emit, x: Value, head_dim: usize) -> Rounding {
        // The bits of |x| order like |x|, and a NaN above everything.
        let magnitude = e.splat_i32(0x7fff_ffff);
        let (start, end, none) = (e.i64(0), e.i64((head_dim / LANES) as i64), e.splat_i32(0));
        let largest = e.for_carry(start, end, 1, &[none], |e, four, largest| {
            let x = e.at(x, four, LANES * 4);
            let bits = e.load(I32X4, x, 0);
            let bits = e.b.ins().band(bits, magnitude);
            vec![e.b.ins().smax(largest[0], bits)]
        })[0];
        let swapped = e.swap_halves(largest);
        let largest = e.b.ins().smax(largest, swapped);
        let swapped = e.swap_pairs(largest);
        let largest = e.b.ins().smax(largest, swapped);
        let largest = e.cast(F32X4, largest);
        let largest = e.b.ins().extractlane(largest, 0);
        let (limit, zero) = (e.b.ins().f32const(127.0), e.b.ins().f32const(0.0));
        let scale = e.fdiv(largest, limit);
        let inverse = e.fdiv(limit, largest);
        let is_zero = e.b.ins().fcmp(FloatCC::Equal, largest, zero);
        let inverse = e.select(is_zero, zero, inverse);
        Rounding { scale, inverse: e.splat(inverse) }
    }

    /// Four elements as i32x4 of integers from -127 to 127.
    pub fn integers(&self, e: &mut Emit, elements: Value) -> Value {
        let magic = e.splat_f32(ROUND_MAGIC);
        let scaled = e.fmul(elements, self.inverse);
        let shifted = e.fadd(scaled, magic);
        let bits = e.cast(I32X4, shifted);
        let magic = e.splat_i32(ROUND_MAGIC.to_bits() as i32);
        let integers = e.b.ins().isub(bits, magic);
        let (least, most) = (e.splat_i32(-127), e.splat_i32(127));
        let integers = e.b.ins().smax(integers, least);
        e.b.ins().smin(integers, most)
    }
}

/// Four integers of 8 bits as the bytes of an i32.
pub fn bytes(e: &mut Emit, integers: Value) -> Value {
    let words = e.b.ins().snarrow(integers, integers);
    let bytes = e.b.ins().snarrow(words, words);
    debug_assert_eq!(e.b.func.dfg.value_type(bytes), I8X16);
    let four = e.cast(I32X4, bytes);
    e.b.ins().extractlane(four, 0)
}

/// The sum of four i32.
pub fn sum(e: &mut Emit, integers: Value) -> Value {
    let swapped = e.swap_halves(integers);
    let sum = e.b.ins().iadd(integers, swapped);
    let swapped = e.swap_pairs(sum);
    let sum = e.b.ins().iadd(sum, swapped);
    e.b.ins().extractlane(sum, 0)
}
