//! Scales of int8 blocks whose weights lie on a grid, because a file had them in few bits:
//! `docs/dev/numerics.md` defines which are tried.
//!
//! A scale that divides the grid's step puts all levels equally far from integers, and of several such
//! scales one puts them near. Plain scaling by the largest weight would round every level differently.

use super::error::largest_bits;
use super::fit::{Levels, TRIED, integers, smallest};
use super::layout::BLOCK;
use super::quantise::QuantisedBlock;
use half::f16;
use half::slice::HalfFloatSliceExt;

/// Elements that share a step.
pub(super) const STEP_ELEMENTS: usize = BLOCK / 2;
/// Integers of int8.
pub(super) const INT8_LEVELS: Levels = [-127.0, 127.0];
/// Scales that are tried: the plain one, then quotients of the steps.
const SCALES: usize = 2 * TRIED;
/// The largest weight over the smallest scale, beyond which it would be rounded to more than 127.
const REACH: f32 = 127.5;

/// The block with the smallest squared error, `plain` being that of plain scaling. `steps` are those of its
/// halves; `errors` is one of `fit`'s for [`INT8_LEVELS`].
#[inline(always)]
pub(super) fn fit(
    weights: &[f32; BLOCK],
    steps: [f32; 2],
    plain: QuantisedBlock,
    errors: impl Fn(&[f32; BLOCK], &[f32; TRIED]) -> [f32; TRIED],
) -> QuantisedBlock {
    let amax = f32::from_bits(largest_bits(weights) as u32);
    let exact = scales(steps, amax, plain.scale.to_f32());
    let (mut halves, mut scales) = ([f16::ZERO; SCALES], [0.0; SCALES]);
    halves.convert_from_f32_slice(&exact);
    halves.convert_to_f32_slice(&mut scales);
    let mut all = [0.0; SCALES];
    for (errors_of, scales) in all.as_chunks_mut::<TRIED>().0.iter_mut().zip(scales.as_chunks().0) {
        *errors_of = errors(weights, scales);
    }
    match smallest(&all) {
        0 => plain,
        best => QuantisedBlock { q: integers(weights, scales[best], INT8_LEVELS), scale: halves[best] },
    }
}

/// The plain scale, and quotients of the steps by whole numbers, for each step the smallest that reach
/// `amax`. Places without one have 0, which makes every integer 0.
#[inline(always)]
fn scales(steps: [f32; 2], amax: f32, plain: f32) -> [f32; SCALES] {
    let mut scales = [0.0; SCALES];
    scales[0] = plain;
    let [first, second] = steps.map(f32::abs);
    let (of_first, of_second) = if first == second { (SCALES - 1, 0) } else { (TRIED, TRIED - 1) };
    let (left, right) = scales[1..].split_at_mut(of_first);
    for (step, places) in [(first, left), (second, &mut right[..of_second])] {
        // Not for zeros, infinities and what is neither: comparisons with a NaN do not hold.
        let most = (REACH * step / amax).floor();
        for (less, scale) in places.iter_mut().enumerate() {
            let divisor = most - less as f32;
            if (1.0..=REACH).contains(&divisor) {
                *scale = step / divisor;
            }
        }
    }
    scales
}

#[cfg(test)]
mod tests;
