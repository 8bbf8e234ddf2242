//! OCP MXFP4: E2M1 elements and an E8M0 scale per 32, bit for bit from the checkpoint.
//!
//! Scale plane: per block of 32 k 16 bytes, one per row. Data: per block 4 lines of 8 k; byte `4*row + j`
//! holds k `8*line + j` in the low nibble and k `8*line + 4 + j` in the high one.

use super::descriptor::{BlockDecode, Decode, Descriptor, Quantise, Scale};
use super::error::{MAX_E8M0, PackError, Problem};
use super::layout::{BLOCK, LINE, TILE_ROWS};

/// The format.
pub static FORMAT: Descriptor = Descriptor {
    name: "mxfp4",
    bits: 4,
    decode: Decode::Block(BlockDecode::NibbleTable),
    scale: Scale::E8M0,
    quantise: Quantise::Stored,
    pack: None,
    value: |k, tile, row, index| element(k, tile, row, index).value(),
    unpack: |tile, out| {
        let k = out.len();
        for (index, column) in out.iter_mut().enumerate() {
            *column = std::array::from_fn(|row| element(k, tile, row, index).value());
        }
    },
};

/// Value of each E2M1 code (OCP Microscaling Formats, section 5.3.3).
pub const E2M1: [f32; 16] =
    [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0];

/// Twice the value of each E2M1 code, an integer.
pub const E2M1_TWICE: [i8; 16] = {
    let mut twice = [0; 16];
    let mut code = 0;
    while code < 16 {
        twice[code] = (2.0 * E2M1[code]) as i8;
        code += 1;
    }
    twice
};

/// Bytes of a block of the checkpoint: byte `j` holds k `2*j` in the low nibble and k `2*j + 1` in the high
/// one.
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

/// Largest E8M0 byte that is accepted.
pub const MAX_SCALE: u8 = MAX_E8M0;

/// `2^(scale - 127)`; NaN for 255, as the OCP specification has it. Tiles hold no scale above
/// [`MAX_SCALE`], so kernels may make anything of 255.
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
    let rows = FORMAT.count_rows(k, 2 * blocks.len(), tile);
    assert_eq!(scales.len(), rows * (k / BLOCK), "scales of {rows} rows of {k}");
    check_scales(k, scales)?;
    let (scale_plane, data) = tile.split_at_mut(FORMAT.tile(k).scale_bytes);
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
