//! A whole packed tile back as f32: many elements at once, where `pack::value` takes one.

use super::value;
use crate::format::{BLOCK, LINE, TILE_ROWS, WeightFormat};
use half::f16;

/// Sixteen rows of one k.
pub type Column = [f32; TILE_ROWS];

/// Elements of a tile by k, then row; of `out`, one column for each k.
///
/// # Panics
/// If the tile is shorter than [`WeightFormat::tile`] says.
pub fn unpack_tile(format: WeightFormat, tile: &[u8], out: &mut [Column]) {
    let k = out.len();
    let data = &tile[format.tile(k).scale_bytes..];
    match format {
        WeightFormat::F32 => {
            for (column, line) in out.iter_mut().zip(lines(data)) {
                *column = line.map(f32::from_bits);
            }
        }
        WeightFormat::Bf16 => {
            for (columns, line) in out.chunks_mut(2).zip(lines(data)) {
                columns[0] = line.map(|x| f32::from_bits(x << 16));
                if let Some(second) = columns.get_mut(1) {
                    *second = line.map(|x| f32::from_bits(x & 0xffff_0000));
                }
            }
        }
        WeightFormat::Int8 => {
            for (block, (columns, lines)) in blocks(out, data, 8).enumerate() {
                let scale = scales(tile, block);
                for (columns, line) in columns.as_chunks_mut::<4>().0.iter_mut().zip(lines) {
                    for (j, column) in columns.iter_mut().enumerate() {
                        *column = scaled(line, 8 * j, 0xff, 128, &scale);
                    }
                }
            }
        }
        WeightFormat::Int4 => {
            for (block, (columns, lines)) in blocks(out, data, 4).enumerate() {
                let scale = scales(tile, block);
                for (columns, line) in columns.as_chunks_mut::<8>().0.iter_mut().zip(lines) {
                    for (j, column) in columns.iter_mut().enumerate() {
                        *column = scaled(line, 8 * (j % 4) + 4 * (j / 4), 0xf, 8, &scale);
                    }
                }
            }
        }
        WeightFormat::Mxfp4 => {
            for (index, column) in out.iter_mut().enumerate() {
                *column = std::array::from_fn(|row| value(format, k, tile, row, index));
            }
        }
    }
}

/// The lines of a data plane, 4 bytes of each row.
fn lines(data: &[u8]) -> impl Iterator<Item = [u32; TILE_ROWS]> + '_ {
    let lines = data.as_chunks::<LINE>().0.iter();
    lines
        .map(|line| std::array::from_fn(|row| u32::from_le_bytes(std::array::from_fn(|i| line[4 * row + i]))))
}

/// Columns of each block with its `count` lines.
fn blocks<'a>(
    out: &'a mut [Column],
    data: &'a [u8],
    count: usize,
) -> impl Iterator<Item = (&'a mut [Column], impl Iterator<Item = [u32; TILE_ROWS]> + 'a)> + 'a {
    out.chunks_mut(BLOCK).zip(data.chunks(count * LINE).map(lines))
}

/// A block's scales, one per row.
fn scales(tile: &[u8], block: usize) -> Column {
    let plane = &tile[block * 2 * TILE_ROWS..][..2 * TILE_ROWS];
    std::array::from_fn(|row| f16::from_le_bytes([plane[2 * row], plane[2 * row + 1]]).to_f32())
}

fn scaled(line: [u32; TILE_ROWS], shift: usize, mask: u32, zero: i32, scale: &Column) -> Column {
    std::array::from_fn(|row| ((line[row] >> shift & mask) as i32 - zero) as f32 * scale[row])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pack::{mxfp4, pack_f32_tile};

    #[test]
    fn whole_tiles_are_their_elements() {
        for format in WeightFormat::ALL {
            let k = if format.is_blocked() { 96 } else { 27 };
            let mut tile = vec![0; format.tile(k).bytes()];
            match format {
                WeightFormat::Mxfp4 => {
                    tile.iter_mut().enumerate().for_each(|(i, byte)| *byte = (i * 31 % 127) as u8);
                    assert!(tile.iter().all(|byte| *byte <= mxfp4::MAX_SCALE));
                }
                _ => {
                    let rows: Vec<f32> = (0..13 * k).map(|i| (i * 7919 % 255) as f32 - 127.0).collect();
                    pack_f32_tile(format, k, &rows, &mut tile).unwrap();
                }
            }
            let mut out = vec![[f32::NAN; TILE_ROWS]; k];
            unpack_tile(format, &tile, &mut out);
            for (index, column) in out.iter().enumerate() {
                for (row, x) in column.iter().enumerate() {
                    assert_eq!(*x, value(format, k, &tile, row, index), "{format:?} [{row}, {index}]");
                }
            }
        }
    }
}
