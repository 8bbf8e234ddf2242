//! Sizes that all weight formats share, and the layout of rows of activations.

/// Output rows per tile: the lanes of one 512-bit vector of f32.
pub const TILE_ROWS: usize = 16;

/// One column of a tile: an f32 for each of its 16 rows.
pub type Column = [f32; TILE_ROWS];
/// Elements along k that share a scale, in weights and in `q8` activations.
pub const BLOCK: usize = 32;
/// Elements along k whose scales may share a unit.
pub const SUPERBLOCK: usize = 256;
/// Bytes of a cache line; planes are padded to it.
pub const LINE: usize = kernmill_os::region::LINE;

/// Sizes in bytes of one packed tile of 16 rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TileLayout {
    /// Units of scales, padded to a line: the first part of the scale plane; 0 for formats without.
    pub unit_bytes: usize,
    /// Scale plane, padded to a line; 0 for unscaled formats.
    pub scale_bytes: usize,
    /// Data plane.
    pub data_bytes: usize,
}

impl TileLayout {
    /// Bytes from one tile to the next.
    pub fn bytes(self) -> usize {
        self.scale_bytes + self.data_bytes
    }
}

/// Layout of one row of `q8` activations: int8 values, then an f32 scale per block, then for each block the
/// sum of the values of its first half and that of its second, two int16.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Q8Row {
    /// Elements, a multiple of [`BLOCK`].
    pub k: usize,
}

impl Q8Row {
    /// Byte offset of the f32 scales `[k/32]`.
    pub fn scales(self) -> usize {
        self.k
    }

    /// Byte offset of the sums of halves, i16 `[k/32][2]`.
    pub fn sums(self) -> usize {
        self.k + self.k / BLOCK * 4
    }

    /// Bytes from one row to the next, a multiple of [`LINE`].
    pub fn stride(self) -> usize {
        (self.k + self.k / BLOCK * 8).next_multiple_of(LINE)
    }
}

/// Bytes from one row of f32 activations `[k]` to the next: padded to a line, so that whole vectors may be
/// read.
pub fn f32_row_stride(k: usize) -> usize {
    (k * 4).next_multiple_of(LINE)
}

/// The lines of a data plane, 4 bytes of each row.
pub(super) fn lines(data: &[u8]) -> impl Iterator<Item = [u32; TILE_ROWS]> + '_ {
    let lines = data.as_chunks::<LINE>().0.iter();
    lines
        .map(|line| std::array::from_fn(|row| u32::from_le_bytes(std::array::from_fn(|i| line[4 * row + i]))))
}
