//! bf16 elements: per line 2 k; the u16 at `2*row + j` holds k `2*line + j`. k is padded to a multiple of 2
//! with zeros.

use super::descriptor::{Decode, Descriptor, PlainDecode, Quantise};
use super::error::{PackError, Problem, check_finite};
use super::layout::{Column, LINE, TILE_ROWS, lines};
use half::bf16;

/// The format.
pub static FORMAT: Descriptor = Descriptor {
    name: "bf16",
    decode: Decode::Plain(PlainDecode::Bf16),
    quantise: Quantise::Exact,
    pack: Some(pack_tile),
    file: None,
};

/// Packs `rows [1..=16][k]`; every element must be finite and a bf16 number: nothing is rounded.
///
/// # Panics
/// If `rows` or `tile` have the wrong length.
pub fn pack_tile(k: usize, rows: &[f32], tile: &mut [u8]) -> Result<(), PackError> {
    let count = FORMAT.count_rows(k, rows.len(), tile);
    check_finite(k, rows)?;
    check_exact(k, rows)?;
    let (lines, _) = tile.as_chunks_mut::<LINE>();
    for (pair, line) in lines.iter_mut().enumerate() {
        let mut column = [0u32; TILE_ROWS];
        for (row, out) in column[..count].iter_mut().enumerate() {
            let row = &rows[row * k..(row + 1) * k];
            let high = row.get(2 * pair + 1).map_or(0, |w| w.to_bits());
            *out = row[2 * pair].to_bits() >> 16 | high;
        }
        for (out, value) in line.as_chunks_mut::<4>().0.iter_mut().zip(column) {
            *out = value.to_le_bytes();
        }
    }
    Ok(())
}

/// Writes finite f32 that are bf16 numbers row-major, 2 bytes each.
///
/// # Panics
/// If `out` is not `2 * row.len()` long.
pub fn store_row(row: &[f32], out: &mut [u8]) -> Result<(), PackError> {
    assert_eq!(out.len(), 2 * row.len(), "bytes for {} bf16", row.len());
    check_finite(row.len().max(1), row)?;
    check_exact(row.len().max(1), row)?;
    for (out, value) in out.as_chunks_mut::<2>().0.iter_mut().zip(row) {
        *out = ((value.to_bits() >> 16) as u16).to_le_bytes();
    }
    Ok(())
}

/// Element `[row, index]`.
pub fn element(k: usize, tile: &[u8], row: usize, index: usize) -> bf16 {
    assert!(row < TILE_ROWS && index < k, "[{row}, {index}] of a tile of k = {k}");
    let at = LINE * (index / 2) + 2 * (2 * row + index % 2);
    bf16::from_le_bytes([tile[at], tile[at + 1]])
}

/// All elements of a tile.
pub(super) fn unpack(tile: &[u8], out: &mut [Column]) {
    for (columns, line) in out.chunks_mut(2).zip(lines(tile)) {
        columns[0] = line.map(|x| f32::from_bits(x << 16));
        if let Some(second) = columns.get_mut(1) {
            *second = line.map(|x| f32::from_bits(x & 0xffff_0000));
        }
    }
}

/// Error unless all elements are bf16 numbers.
fn check_exact(k: usize, rows: &[f32]) -> Result<(), PackError> {
    let lost = rows.iter().fold(0, |lost, w| lost | w.to_bits() & 0xffff);
    if lost == 0 {
        return Ok(());
    }
    let at = rows.iter().position(|w| w.to_bits() & 0xffff != 0).expect("one has low bits");
    Err(PackError { row: at / k, k: at % k, problem: Problem::NotBf16(rows[at]) })
}
