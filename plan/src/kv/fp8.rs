//! `fp8`: E4M3 of OCP's "8-bit Floating Point Specification", without scales and without its NaN: what is
//! larger than 448, and a NaN, becomes 448 of its sign.
//!
//! An element is an f16 whose exponent and mantissa have been cut short, times 2^-8.

use super::descriptor::{KeyLayout, KvDescriptor, KvElements};
use half::f16;

pub const FORMAT: KvDescriptor = KvDescriptor {
    name: "fp8",
    bits: 8,
    scaled: false,
    rotated: false,
    head_multiple: 1,
    keys: KeyLayout::Elements,
    round: |head| KvElements::plain(head.iter().map(|x| value(code(*x))).collect()),
    encode: |values, out| out.extend(values.iter().map(|x| code(*x))),
    decode: |bytes| bytes.iter().map(|code| value(*code)).collect(),
};

/// The largest number.
const MAX: f32 = 448.0;

fn code(x: f32) -> u8 {
    let sign = (x.to_bits() >> 24) as u8 & 0x80;
    // A NaN is not smaller.
    let size = if x.abs() < MAX { x.abs() } else { MAX };
    // Steps of 2^-9 below 2^-6, of an eighth of the power of two above.
    let steps = if size < 1.0 / 64.0 {
        (size * 512.0).round_ties_even() as u8
    } else {
        let bits = size.to_bits();
        let half = 0x7_ffff + (bits >> 20 & 1);
        (((bits + half) >> 20) - (120 << 3)) as u8
    };
    sign | steps
}

fn value(code: u8) -> f32 {
    let code = u16::from(code);
    f16::from_bits((code & 0x7f) << 7 | (code & 0x80) << 8).to_f32() * 256.0
}
