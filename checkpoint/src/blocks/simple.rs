//! Blocks of 32 elements with one scale, and for some types one minimum.

use super::{half, nibble};

/// The step of blocks that begin with an f16 d and have elements at distances of d.
pub(super) fn step<const BYTES: usize>(block: &[u8; BYTES], out: &mut [f32; 2]) {
    *out = [half(block[0], block[1]); 2];
}

/// `(q - 8) * d`: f16 d, 16 bytes of nibbles.
pub(super) fn q4_0(block: &[u8; 18], out: &mut [f32; 32]) {
    let [d0, d1, codes @ ..] = block;
    let d = half(*d0, *d1);
    for (i, x) in out.iter_mut().enumerate() {
        *x = (f32::from(nibble(codes, i)) - 8.0) * d;
    }
}

/// `q * d + m`: f16 d, f16 m, 16 bytes of nibbles.
pub(super) fn q4_1(block: &[u8; 20], out: &mut [f32; 32]) {
    let [d0, d1, m0, m1, codes @ ..] = block;
    let (d, m) = (half(*d0, *d1), half(*m0, *m1));
    for (i, x) in out.iter_mut().enumerate() {
        *x = f32::from(nibble(codes, i)) * d + m;
    }
}

/// `(q - 16) * d`: f16 d, 32 fifth bits, 16 bytes of nibbles.
pub(super) fn q5_0(block: &[u8; 22], out: &mut [f32; 32]) {
    let [d0, d1, h0, h1, h2, h3, codes @ ..] = block;
    let (d, fifth) = (half(*d0, *d1), u32::from_le_bytes([*h0, *h1, *h2, *h3]));
    for (i, x) in out.iter_mut().enumerate() {
        *x = (f32::from(five_bits(codes, fifth, i)) - 16.0) * d;
    }
}

/// `q * d + m`: f16 d, f16 m, 32 fifth bits, 16 bytes of nibbles.
pub(super) fn q5_1(block: &[u8; 24], out: &mut [f32; 32]) {
    let [d0, d1, m0, m1, h0, h1, h2, h3, codes @ ..] = block;
    let (d, m) = (half(*d0, *d1), half(*m0, *m1));
    let fifth = u32::from_le_bytes([*h0, *h1, *h2, *h3]);
    for (i, x) in out.iter_mut().enumerate() {
        *x = f32::from(five_bits(codes, fifth, i)) * d + m;
    }
}

/// `q * d`: f16 d, 32 signed bytes.
pub(super) fn q8_0(block: &[u8; 34], out: &mut [f32; 32]) {
    let [d0, d1, codes @ ..] = block;
    let d = half(*d0, *d1);
    for (x, q) in out.iter_mut().zip(codes) {
        *x = f32::from(q.cast_signed()) * d;
    }
}

/// Code of element `i`, whose highest bit is bit `i` of `fifth`.
fn five_bits(codes: &[u8], fifth: u32, i: usize) -> u8 {
    nibble(codes, i) | ((fifth >> i & 1) as u8) << 4
}
