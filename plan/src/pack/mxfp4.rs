//! MXFP4 tiles, bit for bit from the checkpoint: per block of 32 k, 16 scale bytes in the scale plane, and 4 lines of
//! 8 k x 16 rows of nibbles.

use super::{PackError, Problem, count_rows};
use crate::format::{BLOCK, LINE, TILE_ROWS, WeightFormat};

/// Value of each E2M1 code.
pub const E2M1: [f32; 16] =
    [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0];

/// Bytes of a block of the checkpoint: byte `j` holds k `2*j` in the low nibble and k `2*j + 1` in the high one.
const BLOCK_BYTES: usize = BLOCK / 2;
/// Bytes of a block's data in a tile.
const DATA: usize = 4 * LINE;

/// An element of a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mxfp4 {
    /// E2M1 code, 0 to 15.
    pub code: u8,
    /// E8M0 scale, power of two with bias 127.
    pub scale: u8,
}

impl Mxfp4 {
    /// `E2M1[code] * 2^(scale - 127)`.
    pub fn value(self) -> f32 {
        E2M1[usize::from(self.code)] * scale_value(self.scale)
    }
}

/// Largest E8M0 byte that is accepted: 2^105. Kernels multiply half a scale by 1.5 * 2^23, which must stay a finite f32; a
/// trained weight is some thirty orders of magnitude smaller.
pub const MAX_SCALE: u8 = 232;

/// `2^(scale - 127)`; NaN for 255.
pub fn scale_value(scale: u8) -> f32 {
    match scale {
        // The only one that is not a normal f32.
        0 => f32::from_bits(0x0040_0000),
        255 => f32::NAN,
        _ => f32::from_bits(u32::from(scale) << 23),
    }
}

/// Packs `blocks [1..=16][k/32][16]` and `scales [1..=16][k/32]` as the checkpoint has them.
///
/// # Panics
/// If `blocks`, `scales` or `tile` have the wrong length, or k is not a multiple of 32.
pub fn pack_tile(k: usize, blocks: &[u8], scales: &[u8], tile: &mut [u8]) -> Result<(), PackError> {
    let rows = count_rows(WeightFormat::Mxfp4, k, 2 * blocks.len(), tile);
    assert_eq!(scales.len(), rows * (k / BLOCK), "scales of {rows} rows of {k}");
    check_scales(k, scales)?;
    let (scale_plane, data) = tile.split_at_mut(WeightFormat::Mxfp4.tile(k).scale_bytes);
    scale_plane.fill(0);
    for (row, scales) in scales.chunks_exact(k / BLOCK).enumerate() {
        for (out, &scale) in scale_plane.as_chunks_mut::<TILE_ROWS>().0.iter_mut().zip(scales) {
            out[row] = scale;
        }
    }
    for (block, data) in data.as_chunks_mut::<DATA>().0.iter_mut().enumerate() {
        // Per row, its 4 groups of 8 k.
        let mut groups = [[0u32; 4]; TILE_ROWS];
        for (row, out) in blocks.chunks_exact(k / 2).zip(&mut groups) {
            let block = &row.as_chunks::<BLOCK_BYTES>().0[block];
            for (out, group) in out.iter_mut().zip(block.as_chunks::<4>().0) {
                *out = interleave(u32::from_le_bytes(*group));
            }
        }
        for (index, line) in data.as_chunks_mut::<LINE>().0.iter_mut().enumerate() {
            for (out, groups) in line.as_chunks_mut::<4>().0.iter_mut().zip(&groups) {
                *out = groups[index].to_le_bytes();
            }
        }
    }
    Ok(())
}

/// Element `[row, index]`.
pub fn element(k: usize, tile: &[u8], row: usize, index: usize) -> Mxfp4 {
    assert!(row < TILE_ROWS && index < k, "[{row}, {index}] of a tile of k = {k}");
    let data = (16 * (k / 32)).next_multiple_of(64);
    let byte = tile[data + 64 * (index / 8) + 4 * row + index % 4];
    let code = if index % 8 < 4 { byte % 16 } else { byte / 16 };
    Mxfp4 { code, scale: tile[16 * (index / 32) + row] }
}

/// Nibbles 0 1 2 3 4 5 6 7, lowest first, to 0 4 1 5 2 6 3 7.
fn interleave(x: u32) -> u32 {
    let swapped = (x ^ (x >> 8)) & 0x0000_ff00;
    let x = x ^ swapped ^ (swapped << 8);
    let swapped = (x ^ (x >> 4)) & 0x00f0_00f0;
    x ^ swapped ^ (swapped << 4)
}

/// Error when a scale is above [`MAX_SCALE`].
fn check_scales(k: usize, scales: &[u8]) -> Result<(), PackError> {
    let largest = scales.iter().fold(0, |largest, &scale| largest.max(scale));
    if largest <= MAX_SCALE {
        return Ok(());
    }
    let at = scales.iter().position(|&scale| scale == largest).expect("it is one of them");
    let per_row = k / BLOCK;
    Err(PackError { row: at / per_row, k: at % per_row * BLOCK, problem: Problem::ScaleByte(largest) })
}
