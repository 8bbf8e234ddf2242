//! int8 tiles: per block of 32 k, 16 f16 scales in the scale plane, and 8 lines of 4 k x 16 rows of `q + 128`.

use super::quantise::quantise;
use super::{PackError, Scaled, count_rows};
use crate::format::{BLOCK, LINE, TILE_ROWS, WeightFormat};
use half::f16;

/// Bytes of a block's scales.
const SCALES: usize = TILE_ROWS * 2;
/// Bytes of a block's data.
const DATA: usize = 8 * LINE;

/// Quantises and packs `rows [1..=16][k]`.
///
/// # Panics
/// If `rows` or `tile` have the wrong length, or k is not a multiple of 32.
pub fn pack_tile(k: usize, rows: &[f32], tile: &mut [u8]) -> Result<(), PackError> {
    count_rows(WeightFormat::Int8, k, rows.len(), tile);
    let (scales, data) = tile.split_at_mut(WeightFormat::Int8.tile(k).scale_bytes);
    scales.fill(0);
    let (scales, _) = scales.as_chunks_mut::<SCALES>();
    let (data, _) = data.as_chunks_mut::<DATA>();
    for (block, (data, scales)) in data.iter_mut().zip(scales).enumerate() {
        let mut codes = [[128; BLOCK]; TILE_ROWS];
        for (row, (weights, codes)) in rows.chunks_exact(k).zip(&mut codes).enumerate() {
            let weights = &weights.as_chunks::<BLOCK>().0[block];
            let quantised = quantise(WeightFormat::Int8, 127.0, weights, row, block * BLOCK)?;
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
