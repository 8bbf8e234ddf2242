//! A head of f32 as integers with one scale (`quantize_head` and `fit_head` of docs/dev/numerics.md).

use crate::emit::{Emit, LANES};
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::types::{F32X4, I8X16, I32X4};
use cranelift_codegen::ir::{InstBuilder, Value};
use kernmill_plan::numeric::{INT4_DIVISORS, INT4_MAX, INT4_MIN, ROUND_MAGIC};

/// How the elements of one head are rounded.
#[derive(Clone, Copy)]
pub struct Rounding {
    /// f32: what an integer stands for.
    pub scale: Value,
    /// Four copies of what elements are multiplied with.
    inverse: Value,
    bits: usize,
}

impl Rounding {
    /// Rounds the f32 `[head_dim]` at `x` to integers of 8 or of 4 bits.
    pub fn of_head(e: &mut Emit, x: Value, head_dim: usize, bits: usize) -> Rounding {
        match bits {
            4 => fitted(e, x, head_dim),
            _ => scaled(e, x, head_dim),
        }
    }

    /// Four elements as i32x4 of integers.
    pub fn integers(&self, e: &mut Emit, elements: Value) -> Value {
        let scaled = e.fmul(elements, self.inverse);
        let scaled = if self.bits == 4 { clamped(e, scaled) } else { scaled };
        let magic = e.splat_f32(ROUND_MAGIC);
        let shifted = e.fadd(scaled, magic);
        let bits = e.cast(I32X4, shifted);
        let magic = e.splat_i32(ROUND_MAGIC.to_bits() as i32);
        let integers = e.b.ins().isub(bits, magic);
        if self.bits == 4 {
            return integers;
        }
        let (least, most) = (e.splat_i32(-127), e.splat_i32(127));
        let integers = e.b.ins().smax(integers, least);
        e.b.ins().smin(integers, most)
    }
}

/// To the range of int4.
fn clamped(e: &mut Emit, scaled: Value) -> Value {
    let (least, most) = (e.splat_f32(INT4_MIN), e.splat_f32(INT4_MAX));
    let scaled = e.fmax(scaled, least);
    e.fmin(scaled, most)
}

/// f32 of the largest size among the elements; and an i8 that says whether it is one of them.
fn largest(e: &mut Emit, x: Value, head_dim: usize) -> (Value, Value) {
    // The bits of |x| order like |x|, and a NaN above everything.
    let magnitude = e.splat_i32(0x7fff_ffff);
    let (start, end, none) = (e.i64(0), e.i64((head_dim / LANES) as i64), e.splat_i32(0));
    let found = e.for_carry(start, end, 1, &[none, none], |e, four, found| {
        let x = e.at(x, four, LANES * 4);
        let bits = e.load(I32X4, x, 0);
        let positive = e.b.ins().smax(found[1], bits);
        let bits = e.b.ins().band(bits, magnitude);
        vec![e.b.ins().smax(found[0], bits), positive]
    });
    let [largest, positive] = [found[0], found[1]].map(|lanes| {
        let swapped = e.swap_halves(lanes);
        let lanes = e.b.ins().smax(lanes, swapped);
        let swapped = e.swap_pairs(lanes);
        let lanes = e.b.ins().smax(lanes, swapped);
        e.b.ins().extractlane(lanes, 0)
    });
    let is_positive = e.icmp(IntCC::Equal, largest, positive);
    let lanes = e.b.ins().splat(I32X4, largest);
    let lanes = e.cast(F32X4, lanes);
    (e.b.ins().extractlane(lanes, 0), is_positive)
}

/// `limit / scale`, or 0 for a scale of 0.
fn inverse(e: &mut Emit, limit: f32, scale: Value) -> Value {
    let (limit, zero) = (e.b.ins().f32const(limit), e.b.ins().f32const(0.0));
    let inverse = e.fdiv(limit, scale);
    let is_zero = e.b.ins().fcmp(FloatCC::Equal, scale, zero);
    let inverse = e.select(is_zero, zero, inverse);
    e.splat(inverse)
}

fn scaled(e: &mut Emit, x: Value, head_dim: usize) -> Rounding {
    let (largest, _) = largest(e, x, head_dim);
    let limit = e.b.ins().f32const(127.0);
    let scale = e.fdiv(largest, limit);
    Rounding { scale, inverse: inverse(e, 127.0, largest), bits: 8 }
}

fn fitted(e: &mut Emit, x: Value, head_dim: usize) -> Rounding {
    let (farthest, is_positive) = largest(e, x, head_dim);
    let negated = e.b.ins().fneg(farthest);
    let negated = e.select(is_positive, negated, farthest);
    let mut best: Option<(Value, Value)> = None;
    for divisor in INT4_DIVISORS {
        let divisor = e.b.ins().f32const(divisor);
        let scale = e.fdiv(negated, divisor);
        let error = error(e, x, head_dim, scale);
        best = Some(match best {
            None => (scale, error),
            Some((known, least)) => {
                let smaller = e.b.ins().fcmp(FloatCC::LessThan, error, least);
                (e.select(smaller, scale, known), e.select(smaller, error, least))
            }
        });
    }
    let (scale, _) = best.expect("there are divisors");
    Rounding { scale, inverse: inverse(e, 1.0, scale), bits: 4 }
}

/// Sum of the squares of what a scale loses.
fn error(e: &mut Emit, x: Value, head_dim: usize, scale: Value) -> Value {
    let inverse = inverse(e, 1.0, scale);
    let scale = e.splat(scale);
    let (start, end, none) = (e.i64(0), e.i64((head_dim / LANES) as i64), e.splat_f32(0.0));
    let sums = e.for_carry(start, end, 1, &[none], |e, four, sums| {
        let x = e.at(x, four, LANES * 4);
        let elements = e.load(F32X4, x, 0);
        let scaled = e.fmul(elements, inverse);
        let scaled = clamped(e, scaled);
        let magic = e.splat_f32(ROUND_MAGIC);
        let shifted = e.fadd(scaled, magic);
        let integers = e.fsub(shifted, magic);
        let negated = e.b.ins().fneg(integers);
        let lost = e.fma(negated, scale, elements);
        vec![e.fma(lost, lost, sums[0])]
    })[0];
    let lanes: Vec<Value> = (0..LANES).map(|lane| e.b.ins().extractlane(sums, lane as u8)).collect();
    let (a, b) = (e.fadd(lanes[0], lanes[1]), e.fadd(lanes[2], lanes[3]));
    e.fadd(a, b)
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
