//! Why a weight cannot be packed.

use thiserror::Error;

/// Largest E8M0 byte that is accepted: 2^105. Kernels multiply half a scale by 1.5 * 2^23, which must stay
/// a finite f32; a trained weight is some thirty orders of magnitude smaller. So 255, which stands for NaN,
/// never reaches a kernel.
pub const MAX_E8M0: u8 = 232;

/// A weight that cannot be packed, and where it is.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
#[error("row {row}, k {k}: {problem}")]
pub struct PackError {
    /// Row in the tile.
    pub row: usize,
    /// Element along k; for a scale, the first element of its block.
    pub k: usize,
    /// The weight's problem.
    pub problem: Problem,
}

/// A problem of a weight.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum Problem {
    /// NaN or an infinity.
    #[error("the weight is {0}, expected a finite number")]
    NotFinite(f32),
    /// An E8M0 code above [`MAX_E8M0`], or that of NaN.
    #[error("the MXFP4 scale byte is {0}, expected 0 to {limit}", limit = MAX_E8M0)]
    ScaleByte(u8),
    /// A scale or a minimum of a stored block that is NaN or an infinity.
    #[error("the block's scale or minimum is {0}, expected a finite number")]
    ScaleNotFinite(f32),
    /// The integer -128 of a stored block of 8 bits.
    #[error(
        "the block has the integer -128, expected -127 to 127; `format = \"f32\"` of the tensor in a spec rounds \
         its weights anew"
    )]
    LeastInteger,
    /// The block needs a scale above f16's largest number.
    #[error("the weight {amax} is too large for {format} with an f16 scale, expected at most {limit}")]
    ScaleOverflow {
        /// The block's largest magnitude.
        amax: f32,
        /// The largest magnitude that the format represents.
        limit: f32,
        /// The format's name.
        format: &'static str,
    },
    /// An f32 that bf16 would round.
    #[error("the weight {0:e} is not a bf16 number")]
    NotBf16(f32),
}

/// Error unless all elements of rows of `k` are finite.
pub(super) fn check_finite(k: usize, rows: &[f32]) -> Result<(), PackError> {
    // A branchless pass first: looking for the culprit is for the rare case.
    if largest_bits(rows) < f32::INFINITY.to_bits() as i32 {
        return Ok(());
    }
    let at = rows.iter().position(|w| !w.is_finite()).expect("one has an exponent of all ones");
    Err(PackError { row: at / k, k: at % k, problem: Problem::NotFinite(rows[at]) })
}

/// The largest magnitude's bits; NaN and infinity are the largest. Signed, because that comparison
/// vectorises everywhere.
pub(super) fn largest_bits(values: &[f32]) -> i32 {
    values.iter().fold(0, |largest, w| largest.max(w.abs().to_bits() as i32))
}

/// Why a block of 32 weights has no finite scale; `row` and `k` are its place, `limit` is the largest
/// magnitude of the format.
#[cold]
pub(super) fn blame(format: &'static str, limit: f32, weights: &[f32], row: usize, k: usize) -> PackError {
    if let Some(at) = weights.iter().position(|w| !w.is_finite()) {
        return PackError { row, k: k + at, problem: Problem::NotFinite(weights[at]) };
    }
    let amax = f32::from_bits(largest_bits(weights) as u32);
    let at = weights.iter().position(|w| w.abs() == amax).expect("the largest is one of them");
    let problem = Problem::ScaleOverflow { amax, limit, format };
    PackError { row, k: k + at, problem }
}

/// Whether fitting can be compiled for a CPU with fused multiply-add, without which it is a library call
/// (of the same bits) per element.
#[cfg(target_arch = "x86_64")]
pub(super) fn has_fma() -> bool {
    std::is_x86_feature_detected!("avx2")
        && std::is_x86_feature_detected!("fma")
        && std::is_x86_feature_detected!("f16c")
}
