//! Fitting a block: of several scales the one with the smallest squared error, as docs/dev/numerics.md
//! defines it.
//!
//! int4 has one more level below zero than above, so a scale's sign is such that the block's largest
//! magnitude falls on -8.

use super::error::{PackError, blame, largest_bits};
use super::layout::BLOCK;
use crate::numeric::{INT4_DIVISORS, INT4_MAX, INT4_MIN, ROUND_MAGIC};
use half::f16;
use half::slice::HalfFloatSliceExt;

/// Scales that are tried at once.
pub(super) const TRIED: usize = INT4_DIVISORS.len();
/// The largest magnitude that -8 times an f16 reaches.
const LIMIT: f32 = 65504.0 * 8.0;

/// The lowest and the highest integer of a format.
pub(super) type Levels = [f32; 2];
/// Integers of int4.
pub(super) const INT4_LEVELS: Levels = [INT4_MIN, INT4_MAX];

/// A fitted block.
pub(super) struct Fitted {
    /// Integers in [-8, 7].
    pub q: [i32; BLOCK],
    /// Scale of either sign; +0 in a block whose elements are all 0.
    pub scale: f16,
    /// Sum of the squared differences between the weights and `q * scale`.
    pub error: f32,
}

/// Fits one int4 block; `row` and `k` are for the error, `errors` is one of this module's.
#[inline(always)]
pub(super) fn fit(
    weights: &[f32; BLOCK],
    row: usize,
    k: usize,
    errors: impl Fn(&[f32; BLOCK], &[f32; TRIED]) -> [f32; TRIED],
) -> Result<Fitted, PackError> {
    if largest_bits(weights) > LIMIT.to_bits() as i32 {
        return Err(blame("int4", LIMIT, weights, row, k));
    }
    let (halves, scales) = scales(farthest(weights));
    let errors = errors(weights, &scales);
    let best = smallest(&errors);
    let q = integers(weights, scales[best], INT4_LEVELS);
    let scale = if scales[best] == 0.0 { f16::ZERO } else { halves[best] };
    Ok(Fitted { q, scale, error: errors[best] })
}

/// The element farthest from zero; of two that are equally far, the positive one.
#[inline(always)]
fn farthest(weights: &[f32; BLOCK]) -> f32 {
    let (mut high, mut low) = ([f32::NEG_INFINITY; 8], [f32::INFINITY; 8]);
    for eight in weights.as_chunks::<8>().0 {
        for lane in 0..8 {
            high[lane] = if eight[lane] > high[lane] { eight[lane] } else { high[lane] };
            low[lane] = if eight[lane] < low[lane] { eight[lane] } else { low[lane] };
        }
    }
    let high = high.into_iter().fold(f32::NEG_INFINITY, |a, b| if b > a { b } else { a });
    let low = low.into_iter().fold(f32::INFINITY, |a, b| if b < a { b } else { a });
    if high >= -low { high } else { low }
}

/// The scales to try, as f16 and as f32.
#[inline(always)]
fn scales(farthest: f32) -> ([f16; TRIED], [f32; TRIED]) {
    let exact = INT4_DIVISORS.map(|divisor| -farthest / divisor);
    let (mut halves, mut scales) = ([f16::ZERO; TRIED], [0.0; TRIED]);
    halves.convert_from_f32_slice(&exact);
    halves.convert_to_f32_slice(&mut scales);
    (halves, scales)
}

/// Place of the first of the smallest errors. A scale past f16's range gives NaN, which is never smaller.
#[inline(always)]
pub(super) fn smallest(errors: &[f32]) -> usize {
    let mut best = 0;
    for (tried, error) in errors.iter().enumerate() {
        if *error < errors[best] || errors[best].is_nan() {
            best = tried;
        }
    }
    best
}

/// The integers of a block by a scale.
#[inline(always)]
pub(super) fn integers(weights: &[f32; BLOCK], scale: f32, [low, high]: Levels) -> [i32; BLOCK] {
    let inverse = inverse(scale);
    weights.map(|w| {
        let rounded = (w * inverse).clamp(low, high) + ROUND_MAGIC;
        (rounded.to_bits() as i32).wrapping_sub(ROUND_MAGIC.to_bits() as i32)
    })
}

#[inline(always)]
fn inverse(scale: f32) -> f32 {
    if scale == 0.0 { 0.0 } else { 1.0 / scale }
}

/// Each scale's squared error: the scales are the lanes, so that every sum is in ascending order of the
/// elements.
#[inline(always)]
pub(super) fn errors(weights: &[f32; BLOCK], scales: &[f32; TRIED], [low, high]: Levels) -> [f32; TRIED] {
    let inverses = scales.map(inverse);
    let mut errors = [0.0f32; TRIED];
    for &w in weights {
        for ((error, &scale), &inverse) in errors.iter_mut().zip(scales).zip(&inverses) {
            let limited = w * inverse;
            let limited = if limited > low { limited } else { low };
            let limited = if limited < high { limited } else { high };
            let q = (limited + ROUND_MAGIC) - ROUND_MAGIC;
            let difference = (-q).mul_add(scale, w);
            *error = difference.mul_add(difference, *error);
        }
    }
    errors
}

/// Each scale's squared error as of [`errors`], in vectors: compilers do not find them in its loops.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn errors_fma(weights: &[f32; BLOCK], scales: &[f32; TRIED], [low, high]: Levels) -> [f32; TRIED] {
    use std::arch::x86_64::*;
    let vector = |x: &[f32; TRIED]| _mm256_setr_ps(x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]);
    let (scale, inverse) = (vector(scales), vector(&scales.map(inverse)));
    let (low, high, magic) = (_mm256_set1_ps(low), _mm256_set1_ps(high), _mm256_set1_ps(ROUND_MAGIC));
    let mut errors = _mm256_setzero_ps();
    for &w in weights {
        let w = _mm256_set1_ps(w);
        let limited = _mm256_min_ps(_mm256_max_ps(_mm256_mul_ps(w, inverse), low), high);
        let q = _mm256_sub_ps(_mm256_add_ps(limited, magic), magic);
        let difference = _mm256_fnmadd_ps(q, scale, w);
        errors = _mm256_fmadd_ps(difference, difference, errors);
    }
    // SAFETY: both are 32 bytes of f32.
    unsafe { std::mem::transmute(errors) }
}

#[cfg(test)]
mod tests;
