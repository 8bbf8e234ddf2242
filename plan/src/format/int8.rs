//! int8: symmetric integers q in [-127, 127], stored as `q + 128`, with an f16 scale per 32.
//!
//! Scale plane: per block of 32 k 16 f16, one per row. Data: per block 8 lines of 4 k; byte `4*row + j`
//! holds k `4*line + j`.

use super::descriptor::{BlockDecode, Decode, Descriptor, Quantise, Scale};
use super::error::{PackError, has_fma};
use super::fit::{self, TRIED};
use super::grid::{self, INT8_LEVELS, STEP_ELEMENTS};
use super::layout::{BLOCK, LINE, TILE_ROWS};
use super::quantise::{QuantisedBlock, quantise};
use super::unpack::{Scaled, unpack_scaled};
use half::f16;

/// The largest integer.
const LEVELS: f32 = 127.0;

/// The format.
pub static FORMAT: Descriptor = Descriptor {
    name: "int8",
    bits: 8,
    decode: Decode::Block(BlockDecode::Bytes),
    scale: Scale::F16,
    quantise: Quantise::Symmetric { levels: LEVELS },
    pack: Some(pack_tile),
    value: |k, tile, row, index| element(k, tile, row, index).value(),
    unpack: |tile, out| {
        unpack_scaled(&FORMAT, tile, out, |bytes, j| (bytes >> (8 * j) & 0xff) as i32 - 128);
    },
};

/// Bytes of a block's scales.
const SCALES: usize = TILE_ROWS * 2;
/// Bytes of a block's data.
const DATA: usize = 8 * LINE;

/// Quantises and packs `rows [1..=16][k]`.
///
/// # Panics
/// If `rows` or `tile` have the wrong length, or k is not a multiple of 32.
pub fn pack_tile(k: usize, rows: &[f32], tile: &mut [u8]) -> Result<(), PackError> {
    FORMAT.count_rows(k, rows.len(), tile);
    pack_blocks(k, rows, tile, |weights, row, block| {
        quantise(FORMAT.name, LEVELS, weights, row, block * BLOCK)
    })
}

/// Packs `rows [1..=16][k]` that lie on grids: `steps [rows][k/16]` has, for each 16 elements, what the
/// distances between them are multiples of. A block's scale is the one, of those that steps suggest, with
/// the smallest squared error.
///
/// # Panics
/// If `rows`, `steps` or `tile` have the wrong length, or k is not a multiple of 32.
pub fn pack_tile_on_grid(k: usize, rows: &[f32], steps: &[f32], tile: &mut [u8]) -> Result<(), PackError> {
    FORMAT.count_rows(k, rows.len(), tile);
    assert_eq!(steps.len() * STEP_ELEMENTS, rows.len(), "steps of rows of {k}");
    #[cfg(target_arch = "x86_64")]
    if has_fma() {
        // SAFETY: the features that it is compiled for were detected.
        return unsafe { pack_on_grid_fma(k, rows, steps, tile) };
    }
    pack_on_grid(k, rows, steps, tile, |weights, scales| fit::errors(weights, scales, INT8_LEVELS))
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c")]
fn pack_on_grid_fma(k: usize, rows: &[f32], steps: &[f32], tile: &mut [u8]) -> Result<(), PackError> {
    pack_on_grid(k, rows, steps, tile, |weights, scales| fit::errors_fma(weights, scales, INT8_LEVELS))
}

#[inline(always)]
fn pack_on_grid(
    k: usize,
    rows: &[f32],
    steps: &[f32],
    tile: &mut [u8],
    errors: impl Fn(&[f32; BLOCK], &[f32; TRIED]) -> [f32; TRIED],
) -> Result<(), PackError> {
    let (steps, _) = steps.as_chunks::<2>();
    pack_blocks(k, rows, tile, |weights, row, block| {
        let plain = quantise(FORMAT.name, LEVELS, weights, row, block * BLOCK)?;
        Ok(grid::fit(weights, steps[row * (k / BLOCK) + block], plain, &errors))
    })
}

/// Packs rows whose blocks `quantise` makes of 32 weights, the row and the block's number.
#[inline(always)]
fn pack_blocks(
    k: usize,
    rows: &[f32],
    tile: &mut [u8],
    quantise: impl Fn(&[f32; BLOCK], usize, usize) -> Result<QuantisedBlock, PackError>,
) -> Result<(), PackError> {
    let (scales, data) = tile.split_at_mut(FORMAT.tile(k).scale_bytes);
    scales.fill(0);
    let (scales, _) = scales.as_chunks_mut::<SCALES>();
    let (data, _) = data.as_chunks_mut::<DATA>();
    for (block, (data, scales)) in data.iter_mut().zip(scales).enumerate() {
        let mut codes = [[128; BLOCK]; TILE_ROWS];
        for (row, (weights, codes)) in rows.chunks_exact(k).zip(&mut codes).enumerate() {
            let weights = &weights.as_chunks::<BLOCK>().0[block];
            let quantised = quantise(weights, row, block)?;
            *codes = quantised.q.map(|q| (q + 128) as u8);
            scales[2 * row..][..2].copy_from_slice(&quantised.scale.to_le_bytes());
        }
        for (index, line) in data.as_chunks_mut::<LINE>().0.iter_mut().enumerate() {
            for (out, codes) in line.as_chunks_mut::<4>().0.iter_mut().zip(&codes) {
                *out = codes.as_chunks::<4>().0[index];
            }
        }
    }
    Ok(())
}

/// Element `[row, index]`.
pub fn element(k: usize, tile: &[u8], row: usize, index: usize) -> Scaled {
    assert!(row < TILE_ROWS && index < k, "[{row}, {index}] of a tile of k = {k}");
    let block = index / 32;
    let scale = 2 * (16 * block + row);
    let data = (32 * (k / 32)).next_multiple_of(64);
    let code = tile[data + 64 * (index / 4) + 4 * row + index % 4];
    Scaled { q: (i32::from(code) - 128) as i8, scale: f16::from_le_bytes([tile[scale], tile[scale + 1]]) }
}
