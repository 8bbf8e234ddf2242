//! Facts of the block formats that every micro-kernel reading them shares; the layout itself is `kernmill_plan::format`'s.

use kernmill_plan::format::WeightFormat;

/// Twice the E2M1 values plus 12, by code.
pub const MXFP4_TABLE: [u8; 16] = [12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0];

/// 1.5 * 2^23 * 2^-128, as f32, which makes a float of a block's sum n without conversion. With the byte s of an MXFP4 scale added to its exponent it is
/// the anchor; the anchor's bits and n added up are those of (1.5 * 2^23 + n) * 2^(s - 128), and what that is above the anchor is n times half
/// the scale, exactly. Sums of table entries are twice those of values.
pub const ANCHOR: u32 = (22 << 23) | 0x0040_0000;

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
