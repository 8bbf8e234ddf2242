//! Facts of the block formats that every micro-kernel reading them shares; the layout itself is
//! `kernmill_plan::format`'s.

use kernmill_plan::format::mxfp4::E2M1_TWICE;
use kernmill_plan::format::{BlockDecode, WeightFormat};

/// Twice the E2M1 values plus the bias, by code: what unsigned products take.
pub const MXFP4_TABLE: [u8; 16] = {
    let mut table = [0; 16];
    let mut code = 0;
    while code < 16 {
        table[code] = (E2M1_TWICE[code] + 12) as u8;
        code += 1;
    }
    table
};

/// Twice the E2M1 values as int8, by code.
pub const MXFP4_SIGNED: [u8; 16] = {
    let mut table = [0; 16];
    let mut code = 0;
    while code < 16 {
        table[code] = E2M1_TWICE[code] as u8;
        code += 1;
    }
    table
};

/// 1.5 * 2^23 * 2^-128, as f32, which makes a float of a block's sum n without conversion. With the byte s
/// of an MXFP4 scale added to its exponent it is the anchor; the anchor's bits and n added up are those of
/// (1.5 * 2^23 + n) * 2^(s - 128), and what that is above the anchor is n times half the scale, exactly.
/// Sums of table entries are twice those of values.
pub const ANCHOR: u32 = (22 << 23) | 0x0040_0000;

/// How a block's lines become bytes.
///
/// # Panics
/// For a format without blocks, which no micro-kernel that asks is made for.
pub fn decode_of(format: WeightFormat) -> BlockDecode {
    format.decode().block().unwrap_or_else(|| panic!("{} has no blocks", format.name()))
}

/// Lines of a block's data plane.
pub fn data_lines(format: WeightFormat) -> usize {
    format.descriptor().data_lines()
}

/// Bytes of a block's scales.
pub fn scale_bytes(format: WeightFormat) -> usize {
    format.descriptor().scale_bytes()
}

/// The difference of an unsigned stored element to the signed one.
pub fn bias(format: WeightFormat) -> i32 {
    decode_of(format).bias()
}
