//! Blocks whose codes of 4 bits stand for 16 values that lie closer together around 0.

use super::{half, nibble};

/// Value of each code.
const VALUES: [i8; 16] = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];

/// `value * d`: f16 d, 16 bytes of nibbles.
pub(super) fn iq4_nl(block: &[u8; 18], out: &mut [f32; 32]) {
    let [d0, d1, codes @ ..] = block;
    decode(half(*d0, *d1), codes, out);
}

/// `value * (d * scale)`: f16 d, the upper two bits of 8 scales of 6 bits biased by 32, their lower four
/// bits, and for each group of 32 elements 16 bytes of nibbles.
pub(super) fn iq4_xs(block: &[u8; 136], out: &mut [f32; 256]) {
    let groups = block[8..].as_chunks::<16>().0.iter().zip(out.as_chunks_mut::<32>().0);
    for (group, (codes, out)) in groups.enumerate() {
        decode(iq4_xs_scale(block, group), codes, out);
    }
}

/// The steps of IQ4_XS, whose values are whole.
pub(super) fn iq4_xs_steps(block: &[u8; 136], out: &mut [f32; 16]) {
    *out = std::array::from_fn(|i| iq4_xs_scale(block, i / 2));
}

/// `d * scale` of a group of 32.
fn iq4_xs_scale(block: &[u8; 136], group: usize) -> f32 {
    let d = half(block[0], block[1]);
    let (upper, lower) = (u16::from_le_bytes([block[2], block[3]]), &block[4..8]);
    let low = lower[group / 2] >> (group % 2 * 4) & 15;
    let high = (upper >> (group * 2) & 3) as u8;
    d * (f32::from(low | high << 4) - 32.0)
}

fn decode(scale: f32, codes: &[u8; 16], out: &mut [f32; 32]) {
    for (i, x) in out.iter_mut().enumerate() {
        *x = scale * f32::from(VALUES[usize::from(nibble(codes, i))]);
    }
}
