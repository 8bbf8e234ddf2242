//! Code that formats share to turn a whole packed tile back into f32.

use super::descriptor::Descriptor;
use super::layout::{BLOCK, Column, LINE, TILE_ROWS};
use half::f16;

/// An element of a tile of integers with f16 scales.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scaled {
    /// Integer, in the format's range.
    pub q: i8,
    /// Scale of the block.
    pub scale: f16,
}

impl Scaled {
    /// `f32(q) * f32(scale)`.
    pub fn value(self) -> f32 {
        f32::from(self.q) * self.scale.to_f32()
    }
}

/// The lines of a data plane, 4 bytes of each row.
pub(super) fn lines(data: &[u8]) -> impl Iterator<Item = [u32; TILE_ROWS]> + '_ {
    let lines = data.as_chunks::<LINE>().0.iter();
    lines
        .map(|line| std::array::from_fn(|row| u32::from_le_bytes(std::array::from_fn(|i| line[4 * row + i]))))
}

/// Unpacks a tile of blocks with f16 scales, whose lines each have some separate columns: `integer`
/// gives the integer of a row's 4 bytes of a line and of the line's `j`-th column.
pub(super) fn unpack_scaled(
    format: &Descriptor,
    tile: &[u8],
    out: &mut [Column],
    integer: impl Fn(u32, usize) -> i32,
) {
    let data = &tile[format.tile(out.len()).scale_bytes..];
    let per_line = BLOCK / format.data_lines();
    let blocks = out.chunks_mut(BLOCK).zip(data.chunks(format.data_lines() * LINE));
    for (block, (columns, data)) in blocks.enumerate() {
        let scale = scales(tile, block);
        for (columns, line) in columns.chunks_mut(per_line).zip(lines(data)) {
            for (j, column) in columns.iter_mut().enumerate() {
                *column = std::array::from_fn(|row| integer(line[row], j) as f32 * scale[row]);
            }
        }
    }
}

/// A block's scales, one per row.
fn scales(tile: &[u8], block: usize) -> Column {
    let plane = &tile[block * 2 * TILE_ROWS..][..2 * TILE_ROWS];
    std::array::from_fn(|row| f16::from_le_bytes([plane[2 * row], plane[2 * row + 1]]).to_f32())
}
