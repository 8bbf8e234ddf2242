//! Which format holds a quantised matrix, if one does.

use super::matrix::{CodeLayout, Quantised, Zeros};
use crate::encoding::Encoding;
use crate::mapped::Shard;
use kernmill_plan::format::{BLOCK, WeightFormat};

/// Quantised matrices that no format holds as they are, for one reason; they count as f32.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Converted {
    /// The reason, as the end of "matrices ...": such as `in FP8`.
    pub what: &'static str,
    /// How many they are.
    pub count: usize,
    /// The name of one.
    pub first: String,
}

/// The encoding of a matrix's rows, and what it has that no format holds.
pub(super) fn encoding_of(
    matrix: &Quantised,
    shards: &[Shard],
    codes: &[u8],
    rows: usize,
) -> (Encoding, &'static str) {
    let (group, is_f16) = (matrix.group(), || matrix.scales.are_f16(shards));
    let kept = |format| (Encoding::Blocks(format), "");
    let plain = |what| (Encoding::Plain, what);
    if matrix.codes == CodeLayout::E4m3 {
        return plain("in FP8");
    }
    if !matrix.columns.is_multiple_of(BLOCK) || (group < matrix.columns && !group.is_multiple_of(BLOCK)) {
        return plain("with groups that are no multiple of 32");
    }
    if !is_f16() {
        return plain("with scales that are no f16");
    }
    match (&matrix.zeros, matrix.codes.bits()) {
        (Zeros::Biases(biases), 4) if biases.are_f16(shards) => kept(WeightFormat::Q4_1),
        (Zeros::Biases(_), 4) => plain("with biases that are no f16"),
        (Zeros::Biases(_), _) => plain("with biases in 8 bits"),
        (_, 4) if matrix.has_zero(shards, rows, 8) => kept(WeightFormat::Int4),
        (_, 4) => kept(WeightFormat::Int4Zero),
        _ if !matrix.has_zero(shards, rows, 128) => plain("with zeros in 8 bits"),
        _ => {
            // Products need the negative of an integer.
            let least = if matrix.codes == CodeLayout::Bytes { 0x80 } else { 0 };
            if codes.contains(&least) { plain("with the integer -128") } else { kept(WeightFormat::Int8) }
        }
    }
}
