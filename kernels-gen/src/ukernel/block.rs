//! Facts of the block formats that every micro-kernel reading them shares; the layout itself is
//! `kernmill_plan::format`'s.

use kernmill_plan::format::WeightFormat;

/// 1.5 * 2^23 * 2^-128, as f32, which makes a float of a block's sum n without conversion. With the byte s
/// of an MXFP4 scale added to its exponent it is the anchor; the anchor's bits and n added up are those of
/// (1.5 * 2^23 + n) * 2^(s - 128), and what that is above the anchor is n times half the scale, exactly.
/// Sums of table entries are twice those of values.
pub const ANCHOR: u32 = (22 << 23) | 0x0040_0000;

/// Lines of a block's data plane.
pub fn data_lines(format: WeightFormat) -> usize {
    format.parts().codes.bits()
}

/// Bytes of a block's scales and minima, units left out.
pub fn scale_bytes(format: WeightFormat) -> usize {
    format.parts().scale_bytes()
}

/// The difference of an unsigned stored element to the signed one.
pub fn bias(format: WeightFormat) -> i32 {
    format.parts().bias()
}

/// The factors of the sums of a block's two halves, as two int16, that make the sum of activations which part
/// `part` of a block multiplies.
pub fn part_factors(format: WeightFormat, part: usize, factor: i32) -> u32 {
    let (low, high) = match (format.parts().parts(), part) {
        (1, _) => (factor, factor),
        (_, 0) => (factor, 0),
        _ => (0, factor),
    };
    (low as u32 & 0xffff) | (high as u32) << 16
}
