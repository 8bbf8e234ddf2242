//! int4: integers q in [-8, 7], stored as nibbles `q + 8`, with an f16 scale of either sign per 32, fitted.
//!
//! Scale plane: per block of 32 k 16 f16, one per row. Data: per block 4 lines of 8 k; byte `4*row + j`
//! holds k `8*line + j` in the low nibble and k `8*line + 4 + j` in the high one.

use super::descriptor::{BlockDecode, Decode, Descriptor, Quantise, Scale};
use super::error::{PackError, has_fma};
use super::fit::{self, INT4_LEVELS, TRIED, fit};
use super::layout::{BLOCK, LINE, TILE_ROWS};
use super::unpack::{Scaled, unpack_scaled};
use half::f16;

/// The format.
pub static FORMAT: Descriptor = Descriptor {
    name: "int4",
    bits: 4,
    decode: Decode::Block(BlockDecode::Nibbles),
    scale: Scale::F16,
    quantise: Quantise::Fitted,
    pack: Some(pack_tile),
    value: |k, tile, row, index| element(k, tile, row, index).value(),
    unpack: |tile, out| {
        unpack_scaled(&FORMAT, tile, out, |bytes, j| (bytes >> (8 * (j % 4) + 4 * (j / 4)) & 0xf) as i32 - 8);
    },
};

/// Bytes of a block's scales.
const SCALES: usize = TILE_ROWS * 2;
/// Bytes of a block's data.
const DATA: usize = 4 * LINE;

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
    let (scales, data) = tile.split_at_mut(FORMAT.tile(k).scale_bytes);
    scales.fill(0);
    let (scales, _) = scales.as_chunks_mut::<SCALES>();
    let (data, _) = data.as_chunks_mut::<DATA>();
    for (block, (data, scales)) in data.iter_mut().zip(scales).enumerate() {
        let mut codes = [[8; BLOCK]; TILE_ROWS];
        for (row, (weights, codes)) in rows.chunks_exact(k).zip(&mut codes).enumerate() {
            let weights = &weights.as_chunks::<BLOCK>().0[block];
            let fitted = fit(weights, row, block * BLOCK, &errors)?;
            *codes = fitted.q.map(|q| (q + 8) as u8);
            scales[2 * row..][..2].copy_from_slice(&fitted.scale.to_le_bytes());
        }
        for (index, line) in data.as_chunks_mut::<LINE>().0.iter_mut().enumerate() {
            for (out, codes) in line.as_chunks_mut::<4>().0.iter_mut().zip(&codes) {
                let codes = &codes.as_chunks::<8>().0[index];
                *out = std::array::from_fn(|j| codes[j] | codes[4 + j] << 4);
            }
        }
    }
    Ok(())
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

/// Element `[row, index]`.
pub fn element(k: usize, tile: &[u8], row: usize, index: usize) -> Scaled {
    assert!(row < TILE_ROWS && index < k, "[{row}, {index}] of a tile of k = {k}");
    let block = index / 32;
    let scale = 2 * (16 * block + row);
    let data = (32 * (k / 32)).next_multiple_of(64);
    let byte = tile[data + 64 * (index / 8) + 4 * row + index % 4];
    let code = if index % 8 < 4 { byte % 16 } else { byte / 16 };
    Scaled { q: code as i8 - 8, scale: f16::from_le_bytes([tile[scale], tile[scale + 1]]) }
}
