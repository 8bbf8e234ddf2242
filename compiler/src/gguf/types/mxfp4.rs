//! Blocks of 32 E2M1 codes with an E8M0 scale (OCP Microscaling Formats, version 1.0).

use super::nibble;
use crate::checkpoint::{FP4_VALUES, e8m0};

/// `value * scale`: the scale's byte, 16 bytes of nibbles. GGUF readers know one zero: code 8 is not -0.
pub(super) fn mxfp4(block: &[u8; 17], out: &mut [f32; 32]) {
    let [scale, codes @ ..] = block;
    let scale = e8m0(*scale);
    for (i, x) in out.iter_mut().enumerate() {
        let code = nibble(codes, i);
        *x = if code == 8 { 0.0 } else { FP4_VALUES[usize::from(code)] } * scale;
    }
}

/// The step: E2M1 values are multiples of a half.
pub(super) fn step(block: &[u8; 17], out: &mut [f32; 2]) {
    *out = [0.5 * e8m0(block[0]); 2];
}
