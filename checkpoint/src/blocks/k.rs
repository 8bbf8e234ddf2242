//! Blocks of 256 elements in groups of 16 or 32, each with a scale, and for some types a minimum, of a few
//! bits.
//!
//! An f16 `d` is the unit of the scales, an f16 `dmin` that of the minima.

use super::half;

/// `q * (d * scale) - dmin * min`: 16 bytes with a group's scale in the low nibble and its minimum in the
/// high one, 64 bytes of codes of 2 bits, d, dmin.
pub(super) fn q2_k(block: &[u8; 84], out: &mut [f32; 256]) {
    let (factors, codes) = (&block[..16], &block[16..80]);
    let (d, dmin) = (half(block[80], block[81]), half(block[82], block[83]));
    for (group, out) in out.as_chunks_mut::<16>().0.iter_mut().enumerate() {
        let scale = d * f32::from(factors[group] & 15);
        let min = dmin * f32::from(factors[group] >> 4);
        for (i, x) in out.iter_mut().enumerate() {
            *x = scale * f32::from(two_bits(codes, group * 16 + i)) - min;
        }
    }
}

/// The steps of Q2_K: `d * scale`.
pub(super) fn q2_k_steps(block: &[u8; 84], out: &mut [f32; 16]) {
    let d = half(block[80], block[81]);
    *out = std::array::from_fn(|group| d * f32::from(block[group] & 15));
}

/// `q * (d * scale)`: 32 bytes of the codes' third bits, 64 of their lower two, 12 with 16 scales of 6 bits
/// biased by 32, d. A third bit that is not set takes 4 off.
pub(super) fn q3_k(block: &[u8; 110], out: &mut [f32; 256]) {
    let (third, codes) = (&block[..32], &block[32..96]);
    for (group, out) in out.as_chunks_mut::<16>().0.iter_mut().enumerate() {
        let scale = q3_k_scale(block, group);
        for (i, x) in out.iter_mut().enumerate() {
            let at = group * 16 + i;
            let set = third[at % 32] >> (at / 32) & 1;
            *x = scale * (f32::from(two_bits(codes, at) | set << 2) - 4.0);
        }
    }
}

/// The steps of Q3_K.
pub(super) fn q3_k_steps(block: &[u8; 110], out: &mut [f32; 16]) {
    *out = std::array::from_fn(|group| q3_k_scale(block, group));
}

/// `d * scale` of a group of 16.
fn q3_k_scale(block: &[u8; 110], group: usize) -> f32 {
    let (factors, d) = (&block[96..108], half(block[108], block[109]));
    let low = factors[group % 8] >> (group / 8 * 4) & 15;
    let high = factors[8 + group % 4] >> (group / 4 * 2) & 3;
    d * (f32::from(low | high << 4) - 32.0)
}

/// `q * (d * scale) - dmin * min`: d, dmin, 12 bytes with 8 scales and minima of 6 bits, 128 bytes of
/// nibbles.
pub(super) fn q4_k(block: &[u8; 144], out: &mut [f32; 256]) {
    let (head, codes) = (&block[..16], &block[16..]);
    for (group, out) in out.as_chunks_mut::<32>().0.iter_mut().enumerate() {
        let (scale, min) = scale_and_min(head, group);
        for (i, x) in out.iter_mut().enumerate() {
            *x = scale * f32::from(four_bits(codes, group, i)) - min;
        }
    }
}

/// A block as of Q4_K, with 32 bytes of the codes' fifth bits before the nibbles.
pub(super) fn q5_k(block: &[u8; 176], out: &mut [f32; 256]) {
    let (head, fifth, codes) = (&block[..16], &block[16..48], &block[48..]);
    for (group, out) in out.as_chunks_mut::<32>().0.iter_mut().enumerate() {
        let (scale, min) = scale_and_min(head, group);
        for (i, x) in out.iter_mut().enumerate() {
            let code = four_bits(codes, group, i) | (fifth[i] >> group & 1) << 4;
            *x = scale * f32::from(code) - min;
        }
    }
}

/// The steps of Q4_K and Q5_K, whose blocks begin alike: `d * scale`.
pub(super) fn q45_k_steps<const BYTES: usize>(block: &[u8; BYTES], out: &mut [f32; 16]) {
    *out = std::array::from_fn(|i| scale_and_min(block, i / 2).0);
}

/// `(q - 32) * (d * scale)`: 128 bytes of the codes' lower four bits, 64 of their upper two, 16 scales as
/// signed bytes, d.
pub(super) fn q6_k(block: &[u8; 210], out: &mut [f32; 256]) {
    let (low, high, factors) = (&block[..128], &block[128..192], &block[192..208]);
    let d = half(block[208], block[209]);
    for (group, out) in out.as_chunks_mut::<16>().0.iter_mut().enumerate() {
        let scale = d * f32::from(factors[group].cast_signed());
        for (i, x) in out.iter_mut().enumerate() {
            let (part, at) = ((group * 16 + i) / 128, (group * 16 + i) % 128);
            let nibble = low[part * 64 + at % 64] >> (at / 64 * 4) & 15;
            let upper = high[part * 32 + at % 32] >> (at / 32 * 2) & 3;
            *x = scale * (f32::from(nibble | upper << 4) - 32.0);
        }
    }
}

/// The steps of Q6_K.
pub(super) fn q6_k_steps(block: &[u8; 210], out: &mut [f32; 16]) {
    let d = half(block[208], block[209]);
    *out = std::array::from_fn(|group| d * f32::from(block[192 + group].cast_signed()));
}

/// Element `at` of 256 in 64 bytes: 32 bytes have elements 0 to 127, their lowest two bits the first 32.
fn two_bits(codes: &[u8], at: usize) -> u8 {
    codes[at / 128 * 32 + at % 32] >> (at % 128 / 32 * 2) & 3
}

/// Element `i` of group `group`: 32 bytes have an even group in the low nibbles and the next in the high
/// ones.
fn four_bits(codes: &[u8], group: usize, i: usize) -> u8 {
    codes[group / 2 * 32 + i] >> (group % 2 * 4) & 15
}

/// Scale and minimum of a group of 32. The first 4 groups have theirs in the lower six bits of bytes 0 to 3
/// and 4 to 7; the others have four bits in bytes 8 to 11 and the upper two bits of those.
fn scale_and_min(head: &[u8], group: usize) -> (f32, f32) {
    let (d, dmin, packed) = (half(head[0], head[1]), half(head[2], head[3]), &head[4..]);
    let (scale, min) = if group < 4 {
        (packed[group] & 63, packed[group + 4] & 63)
    } else {
        let lower = packed[group + 4];
        (lower & 15 | packed[group - 4] >> 6 << 4, lower >> 4 | packed[group] >> 6 << 4)
    };
    (d * f32::from(scale), dmin * f32::from(min))
}
