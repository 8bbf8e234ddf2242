//! Roundings of whole heads, to the bit (docs/dev/numerics.md).

use crate::numeric::{INT4_DIVISORS, INT4_MAX, INT4_MIN, LEAST_WEIGHT, ROUND_MAGIC, WEIGHT_MAX};

/// `quantize_head`: a head of f32 as integers from -127 to 127, and their scale. Queries of layers with
/// integer scores are rounded so too.
pub fn to_int8(head: &[f32]) -> (Vec<i8>, f32) {
    // The bits of |x| order like |x|, and a NaN above everything.
    let largest = head.iter().map(|x| x.to_bits() & 0x7fff_ffff).max().unwrap_or(0);
    let largest = f32::from_bits(largest);
    let inverse = if largest == 0.0 { 0.0 } else { 127.0 / largest };
    let integer = |x: &f32| {
        let shifted = x * inverse + ROUND_MAGIC;
        let integer = (shifted.to_bits() as i32).wrapping_sub(ROUND_MAGIC.to_bits() as i32);
        integer.clamp(-127, 127) as i8
    };
    (head.iter().map(integer).collect(), largest / 127.0)
}

/// `quantize_weights`: the weights of a segment's values as integers from -16383 to 16383, and the factor
/// that makes weights of them again.
pub fn to_weights(weights: &[f32]) -> (Vec<i16>, f32) {
    let largest = weights.iter().map(|x| x.to_bits() & 0x7fff_ffff).max().unwrap_or(0);
    let largest = f32::from_bits(largest);
    let inverse = if largest < LEAST_WEIGHT { 0.0 } else { WEIGHT_MAX / largest };
    let integer = |x: &f32| {
        let shifted = x * inverse + ROUND_MAGIC;
        let integer = (shifted.to_bits() as i32).wrapping_sub(ROUND_MAGIC.to_bits() as i32);
        integer.clamp(-(WEIGHT_MAX as i32), WEIGHT_MAX as i32) as i16
    };
    (weights.iter().map(integer).collect(), largest / WEIGHT_MAX)
}

/// A head of f32 as integers from -8 to 7, and the scale with which they lose least, of some that make the
/// element farthest from 0 an end of the range or nearly.
pub fn to_int4(head: &[f32]) -> (Vec<i8>, f32) {
    let largest = head.iter().map(|x| x.to_bits() & 0x7fff_ffff).max().unwrap_or(0);
    // Where two elements are equally far from zero, the positive one counts.
    let positive = head.iter().any(|x| x.to_bits() == largest);
    let farthest = f32::from_bits(largest);
    let negated = if positive { -farthest } else { farthest };
    let inverse_of = |scale: f32| if scale == 0.0 { 0.0 } else { 1.0 / scale };
    let integer = |x: f32, inverse: f32| {
        let scaled = x * inverse;
        let least = if scaled > INT4_MIN { scaled } else { INT4_MIN };
        let clamped = if least < INT4_MAX { least } else { INT4_MAX };
        clamped + ROUND_MAGIC - ROUND_MAGIC
    };
    let error_of = |scale: f32| {
        let (mut sums, inverse) = ([0f32; 4], inverse_of(scale));
        for (i, x) in head.iter().enumerate() {
            let error = (-integer(*x, inverse)).mul_add(scale, *x);
            sums[i % 4] = error.mul_add(error, sums[i % 4]);
        }
        (sums[0] + sums[1]) + (sums[2] + sums[3])
    };
    let mut scale = negated / INT4_DIVISORS[0];
    let mut best = error_of(scale);
    for divisor in &INT4_DIVISORS[1..] {
        let (other, error) = (negated / divisor, error_of(negated / divisor));
        if error < best {
            (scale, best) = (other, error);
        }
    }
    let inverse = inverse_of(scale);
    (head.iter().map(|x| integer(*x, inverse) as i8).collect(), scale)
}

/// Elements of a block of the Hadamard transform of heads of so many elements, a multiple of 32.
pub fn hadamard_block(head_dim: usize) -> usize {
    if head_dim.is_multiple_of(64) { 64 } else { 32 }
}
