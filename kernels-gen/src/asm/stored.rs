//! Formats without blocks as assembled code tells them apart.

use kernmill_plan::format::{Decode, PlainDecode, WeightFormat};

/// Whether its elements are bf16 numbers.
pub fn is_bf16(format: WeightFormat) -> bool {
    format.decode() == Decode::Plain(PlainDecode::Bf16)
}
