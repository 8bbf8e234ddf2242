//! Facts of the block formats that every leaf reading them shares; the layout itself is `kernmill_plan::format`'s.

use kernmill_plan::format::WeightFormat;

/// Twice the E2M1 values plus 12, by code.
pub const MXFP4_TABLE: [u8; 16] = [12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0];

/// Lines of a block's data plane.
pub fn data_lines(format: WeightFormat) -> usize {
    if format == WeightFormat::Int8 { 8 } else { 4 }
}

/// Bytes of a block's scales.
pub fn scale_bytes(format: WeightFormat) -> usize {
    if format == WeightFormat::Mxfp4 { 16 } else { 32 }
}

/// What an unsigned stored element is above the signed one.
pub fn bias(format: WeightFormat) -> i32 {
    match format {
        WeightFormat::Mxfp4 => 12,
        WeightFormat::Int4 => 8,
        _ => 128,
    }
}
