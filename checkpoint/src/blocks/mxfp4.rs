//! Blocks of 32 E2M1 codes with an E8M0 scale (OCP Microscaling Formats, version 1.0).

use super::nibble;
use kernmill_plan::format::mxfp4::{E2M1, scale_value};

/// `value * scale`: the scale's byte, 16 bytes of nibbles. GGUF readers know one zero: code 8 is not -0.
pub(super) fn mxfp4(block: &[u8; 17], out: &mut [f32; 32]) {
    let [scale, codes @ ..] = block;
    let scale = scale_value(*scale);
    for (i, x) in out.iter_mut().enumerate() {
        let code = nibble(codes, i);
        *x = if code == 8 { 0.0 } else { E2M1[usize::from(code)] } * scale;
    }
}

/// The step: E2M1 values are multiples of a half.
pub(super) fn step(block: &[u8; 17], out: &mut [f32; 2]) {
    *out = [0.5 * scale_value(block[0]); 2];
}
