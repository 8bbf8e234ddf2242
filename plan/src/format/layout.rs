//! Sizes that all weight formats share, and the layout of rows of activations.

/// Output rows per tile: the lanes of one 512-bit vector of f32.
pub const TILE_ROWS: usize = 16;

/// One column of a tile: an f32 for each of its 16 rows.
pub type Column = [f32; TILE_ROWS];
/// Elements along k that share a scale, in weights and in `q8` activations.
pub const BLOCK: usize = 32;
/// Bytes of a cache line; planes are padded to it.
pub const LINE: usize = kernmill_os::region::LINE;

/// Sizes in bytes of one packed tile of 16 rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TileLayout {
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

/// Layout of one row of `q8` activations: int8 values, then an f32 scale per block, then the int32 sum of
/// each block's values.
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

    /// Byte offset of the i32 sums `[k/32]`.
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
