//! Roundings of whole heads, to the bit (docs/dev/numerics.md).

use crate::numeric::ROUND_MAGIC;

/// `quantize_head`: a head of f32 as integers from -127 to 127, and their scale. Queries of layers with
/// integer scores are rounded so too.
pub fn to_int8(head: &[f32]) -> (Vec<i8>, f32) {
    // The bits of |x| order like |x|, and a NaN above everything.
    let largest = head.iter().map(|x| x.to_bits() & 0x7fff_ffff).max().unwrap_or(0);
    let largest = f32::from_bits(largest);
    let inverse = if largest == 0.0 { 0.0 } else { 127.0 / largest };
    let integer = |x: &f32| {
        let shifted = x * inverse + ROUND_MAGIC;
        let integer = (shifted.to_bits() as i32).wrapping_sub(ROUND_MAGIC.to_bits() as i32);
        integer.clamp(-127, 127) as i8
    };
    (head.iter().map(integer).collect(), largest / 127.0)
}
