//! f32 elements: per line 1 k.

use super::descriptor::{Decode, Descriptor, PlainDecode, Quantise};
use super::error::{PackError, check_finite};
use super::layout::{Column, LINE, TILE_ROWS, lines};

/// The format.
pub static FORMAT: Descriptor = Descriptor {
    name: "f32",
    decode: Decode::Plain(PlainDecode::F32),
    quantise: Quantise::Exact,
    pack: Some(pack_tile),
    file: None,
};

/// Packs `rows [1..=16][k]`; every element must be finite.
///
/// # Panics
/// If `rows` or `tile` have the wrong length.
pub fn pack_tile(k: usize, rows: &[f32], tile: &mut [u8]) -> Result<(), PackError> {
    let count = FORMAT.count_rows(k, rows.len(), tile);
    check_finite(k, rows)?;
    let (lines, _) = tile.as_chunks_mut::<LINE>();
    for (index, line) in lines.iter_mut().enumerate() {
        let mut column = [0.0; TILE_ROWS];
        for (row, out) in column[..count].iter_mut().enumerate() {
            *out = rows[row * k + index];
        }
        for (out, value) in line.as_chunks_mut::<4>().0.iter_mut().zip(column) {
            *out = value.to_le_bytes();
        }
    }
    Ok(())
}

/// Writes finite f32 row-major, 4 bytes each.
///
/// # Panics
/// If `out` is not `4 * row.len()` long.
pub fn store_row(row: &[f32], out: &mut [u8]) -> Result<(), PackError> {
    assert_eq!(out.len(), 4 * row.len(), "bytes for {} f32", row.len());
    check_finite(row.len().max(1), row)?;
    for (out, value) in out.as_chunks_mut::<4>().0.iter_mut().zip(row) {
        *out = value.to_le_bytes();
    }
    Ok(())
}

/// Element `[row, index]`.
pub fn element(k: usize, tile: &[u8], row: usize, index: usize) -> f32 {
    assert!(row < TILE_ROWS && index < k, "[{row}, {index}] of a tile of k = {k}");
    let at = LINE * index + 4 * row;
    f32::from_le_bytes([tile[at], tile[at + 1], tile[at + 2], tile[at + 3]])
}

/// All elements of a tile.
pub(super) fn unpack(tile: &[u8], out: &mut [Column]) {
    for (column, line) in out.iter_mut().zip(lines(tile)) {
        *column = line.map(f32::from_bits);
    }
}
