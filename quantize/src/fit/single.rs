//! Blocks of 32 weights with a scale of their own: Q4_0, Q5_0 and Q8_0, with a minimum Q4_1 and Q5_1, and
//! those whose codes stand for numbers of a table, IQ4_NL and MXFP4.

use super::part::{FitPart, IntegerRange};
use super::table::NearestCodes;
use half::f16;
use kernmill_plan::format::{BLOCK, FileBlock, SUPERBLOCK};

/// A block of codes, with a scale and a minimum as their bits.
pub(super) fn block(scale: u16, minimum: u16, codes: impl Iterator<Item = u8>) -> FileBlock {
    let mut block = FileBlock { codes: [0; SUPERBLOCK], scale, minimum, scales: [0; 16], minima: [0; 16] };
    block.codes.iter_mut().zip(codes).for_each(|(code, new)| *code = new);
    block
}

/// The f16 nearest to a number, and its neighbours.
fn around(number: f32) -> impl Iterator<Item = f16> {
    let bits = f16::from_f32(number).to_bits();
    let all = [bits, bits.wrapping_sub(1), bits.wrapping_add(1)].map(f16::from_bits);
    all.into_iter().filter(|half| half.is_finite())
}

/// The candidate with the smallest error; the first of several.
fn least<T: Copy>(candidates: impl Iterator<Item = T>, error: impl Fn(T) -> f32) -> Option<T> {
    let smaller = |best: Option<(f32, T)>, (of, next): (f32, T)| match best {
        Some((error, _)) if error <= of => best,
        _ => Some((of, next)),
    };
    candidates.map(|next| (error(next), next)).fold(None, smaller).map(|(_, best)| best)
}

/// Integers with a scale, whose codes are greater by `bias`.
pub(super) fn linear(part: FitPart<'_>, range: IntegerRange, bias: i32) -> FileBlock {
    let line = part.linear(range);
    let scale = least(around(line.scale), |scale| part.error(scale.to_f32(), 0.0, range));
    let scale = scale.unwrap_or(f16::ZERO);
    let integers = part.integers(scale.to_f32(), 0.0, range);
    block(scale.to_bits(), 0, integers.map(|q| (q + bias) as u8))
}

/// Integers from 0 with a scale and a minimum.
pub(super) fn affine(part: FitPart<'_>, range: IntegerRange) -> FileBlock {
    let line = part.affine(range, false);
    let pairs = around(line.scale).flat_map(|scale| {
        let sums = part.sums(scale.to_f32(), line.minimum, range);
        let minimum = (sums.x - scale.to_f32() * sums.q) / sums.counts;
        around(minimum).map(move |minimum| (scale, minimum))
    });
    let best = least(pairs, |(scale, minimum)| part.error(scale.to_f32(), minimum.to_f32(), range));
    let (scale, minimum) = best.unwrap_or_default();
    let integers = part.integers(scale.to_f32(), minimum.to_f32(), range);
    block(scale.to_bits(), minimum.to_bits(), integers.map(|q| q as u8))
}

/// Numbers of a table with an f16 scale.
pub(super) fn table(part: FitPart<'_>, codes: &NearestCodes) -> FileBlock {
    let scale = codes.best_scale(part);
    let scale = least(around(scale), |scale| codes.error(part, scale.to_f32())).unwrap_or(f16::ZERO);
    block(scale.to_bits(), 0, codes.codes(part.x, scale.to_f32()))
}

/// Numbers of a table, twice those of E2M1, with a power of two, which `2^(byte - 128)` is half of.
pub(super) fn power_of_two(part: FitPart<'_>, codes: &NearestCodes) -> FileBlock {
    let largest = part.x.iter().fold(0.0f32, |far, x| if x.abs() > far { x.abs() } else { far });
    // The exponent by which the largest weight is below 8; E2M1 ends at 6.
    let exponent = (largest.to_bits() >> 23) as i32 - 127 - 2;
    let bytes = (exponent - 1..=exponent + 1).map(|exponent| (exponent + 127).clamp(1, 254));
    let scale = |byte: i32| f32::from_bits((byte as u32) << 23) * 0.5;
    let byte = least(bytes, |byte| codes.error(part, scale(byte))).unwrap_or(1);
    block(byte as u16, 0, codes.codes(&part.x[..BLOCK], scale(byte)))
}
