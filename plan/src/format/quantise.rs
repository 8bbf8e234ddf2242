//! Quantisation of a block of 32 f32 weights to integers with an f16 scale, as docs/dev/numerics.md defines
//! it.

use super::error::{PackError, blame, largest_bits};
use super::layout::BLOCK;
use crate::numeric::ROUND_MAGIC;
use half::f16;

/// A quantised block: integers and their scale.
pub(super) struct QuantisedBlock {
    /// Integers in [-levels, levels].
    pub q: [i32; BLOCK],
    /// The smallest f16 not below amax/levels.
    pub scale: f16,
}

/// Quantises one block to integers in [-levels, levels]; `format`, `row` and `k` are for the error.
pub(super) fn quantise(
    format: &'static str,
    levels: f32,
    weights: &[f32; BLOCK],
    row: usize,
    k: usize,
) -> Result<QuantisedBlock, PackError> {
    let amax = f32::from_bits(largest_bits(weights) as u32);
    let scale = round_up(amax / levels);
    if !scale.is_finite() {
        return Err(blame(format, f16::MAX.to_f32() * levels, weights, row, k));
    }
    let wide = scale.to_f32();
    // A zero scale means |w| < 2^-142: divided by 1 that rounds to q = 0.
    let divisor = if wide == 0.0 { 1.0 } else { wide };
    let mut q = [0; BLOCK];
    for (q, &w) in q.iter_mut().zip(weights) {
        // The quotient is at most a hair above `levels`, so adding the magic number rounds it to nearest
        // even. Clamping before or after that is the same, because the limits are integers.
        let rounded = (w / divisor).clamp(-levels, levels) + ROUND_MAGIC;
        *q = (rounded.to_bits() as i32).wrapping_sub(ROUND_MAGIC.to_bits() as i32);
    }
    Ok(QuantisedBlock { q, scale })
}

/// The smallest f16 not below `x >= 0`; infinity when it is too large, NaN for NaN.
pub(super) fn round_up(x: f32) -> f16 {
    let nearest = f16::from_f32(x);
    if nearest.to_f32() < x { f16::from_bits(nearest.to_bits() + 1) } else { nearest }
}
