//! int4: integers q in [-8, 7], stored as nibbles `q + 8`, with an f16 scale of either sign per 32, fitted.
//!
//! Tiles are laid out as `blocks.rs` says.

use super::blocks;
use super::descriptor::{Decode, Descriptor, FileType, Quantise};
use super::error::{PackError, has_fma};
use super::fit::{self, INT4_LEVELS, TRIED, fit};
use super::layout::BLOCK;
use super::parts::{BlockParts, CodeMap, Codes, FileBlock, Minimum, Scale};
use super::read;

/// The format. Blocks of GGUF's type Q4_0 are its own.
pub static FORMAT: Descriptor = Descriptor {
    name: "int4",
    decode: Decode::Block(BlockParts {
        codes: Codes { low: 4, high: 0 },
        map: CodeMap::Linear { bias: 8 },
        scale: Scale::F16,
        minimum: Minimum::None,
    }),
    quantise: Quantise::Fitted,
    pack: Some(pack_tile),
    file: Some(FileType { name: "Q4_0", number: Some(2), elements: 32, bytes: 18, read }),
};

/// An f16 scale, 16 bytes of nibbles.
fn read(bytes: &[u8], block: &mut FileBlock) {
    block.scale = u16::from_le_bytes([bytes[0], bytes[1]]);
    read::nibbles(&bytes[2..], &mut block.codes);
}

/// Fits and packs `rows [1..=16][k]`.
///
/// # Panics
/// If `rows` or `tile` have the wrong length, or k is not a multiple of 32.
pub fn pack_tile(k: usize, rows: &[f32], tile: &mut [u8]) -> Result<(), PackError> {
    FORMAT.count_rows(k, rows.len(), tile);
    #[cfg(target_arch = "x86_64")]
    if has_fma() {
        // SAFETY: the features that it is compiled for were detected.
        return unsafe { pack_tile_fma(k, rows, tile) };
    }
    pack_tile_body(k, rows, tile, |weights, scales| fit::errors(weights, scales, INT4_LEVELS))
}

/// Errors of int4 for some weights: sums of squares over all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Squares {
    /// Sum of squares of the differences between the weights and what int4 has in their place.
    pub error: f64,
    /// Sum of squares of the weights.
    pub weights: f64,
}

impl Squares {
    /// `||W - Q|| / ||W||`; 0 when all weights are 0.
    pub fn relative_error(self) -> f64 {
        if self.weights == 0.0 { 0.0 } else { (self.error / self.weights).sqrt() }
    }
}

impl std::ops::AddAssign for Squares {
    fn add_assign(&mut self, other: Squares) {
        self.error += other.error;
        self.weights += other.weights;
    }
}

/// Fits `rows [n][k]` without packing them.
///
/// # Panics
/// If `rows` is not whole rows, or k is not a multiple of 32.
pub fn squares(k: usize, rows: &[f32]) -> Result<Squares, PackError> {
    assert!(
        k > 0 && k.is_multiple_of(BLOCK) && rows.len().is_multiple_of(k),
        "rows of {k}, not {}",
        rows.len()
    );
    #[cfg(target_arch = "x86_64")]
    if has_fma() {
        // SAFETY: the features that it is compiled for were detected.
        return unsafe { squares_fma(k, rows) };
    }
    squares_body(k, rows, |weights, scales| fit::errors(weights, scales, INT4_LEVELS))
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c")]
fn pack_tile_fma(k: usize, rows: &[f32], tile: &mut [u8]) -> Result<(), PackError> {
    pack_tile_body(k, rows, tile, |weights, scales| fit::errors_fma(weights, scales, INT4_LEVELS))
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c")]
fn squares_fma(k: usize, rows: &[f32]) -> Result<Squares, PackError> {
    squares_body(k, rows, |weights, scales| fit::errors_fma(weights, scales, INT4_LEVELS))
}

#[inline(always)]
fn pack_tile_body(
    k: usize,
    rows: &[f32],
    tile: &mut [u8],
    errors: impl Fn(&[f32; BLOCK], &[f32; TRIED]) -> [f32; TRIED],
) -> Result<(), PackError> {
    blocks::pack(&FORMAT, (k, rows.len() / k, BLOCK), tile, |row, place, block| {
        let weights = &rows[row * k + place..].as_chunks::<BLOCK>().0[0];
        let fitted = fit(weights, row, place, &errors)?;
        block.scale = fitted.scale.to_bits();
        block.codes.iter_mut().zip(fitted.q).for_each(|(code, q)| *code = (q + 8) as u8);
        Ok(())
    })
}

#[inline(always)]
fn squares_body(
    k: usize,
    rows: &[f32],
    errors: impl Fn(&[f32; BLOCK], &[f32; TRIED]) -> [f32; TRIED],
) -> Result<Squares, PackError> {
    let mut squares = Squares::default();
    for (row, weights) in rows.chunks_exact(k).enumerate() {
        for (block, weights) in weights.as_chunks::<BLOCK>().0.iter().enumerate() {
            let fitted = fit(weights, row, block * BLOCK, &errors)?;
            let mut lanes = [0.0f32; 8];
            for eight in weights.as_chunks::<8>().0 {
                for (lane, w) in lanes.iter_mut().zip(eight) {
                    *lane = w.mul_add(*w, *lane);
                }
            }
            let sum = lanes.iter().map(|lane| f64::from(*lane)).sum();
            squares += Squares { error: f64::from(fitted.error), weights: sum };
        }
    }
    Ok(squares)
}
