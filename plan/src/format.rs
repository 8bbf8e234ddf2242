//! Packed weight formats: how a matrix `[n, k]` lies in memory.
//!
//! One layout serves every instruction set: tiles of 16 output rows; a 64-byte line holds 16 rows x 4 bytes, so a vector
//! lane is a row and no kernel ever reduces horizontally. A tile is a scale plane (padded to 64 bytes), then a data
//! plane, so that no line is split. Tiles follow each other in ascending row order; the experts of a grouped matrix
//! follow each other too. Rows past `n` in the last tile hold elements of value zero (code 128 in int8, 8 in int4) and
//! zero scales; padding is zero bytes.

use serde::{Deserialize, Serialize};

/// Output rows per tile: the lanes of one 512-bit vector of f32.
pub const TILE_ROWS: usize = 16;
/// Elements along k that share a scale, in weights and in `q8` activations.
pub const BLOCK: usize = 32;
/// Bytes of a cache line; planes are padded to it.
pub const LINE: usize = kernmill_os::region::LINE;

/// Storage format of a packed matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WeightFormat {
    /// OCP MXFP4 (E2M1 elements, E8M0 scale per 32). Scale plane: per block 16 bytes, one per row. Data: per block 4 lines
    /// of 8 k; byte `4*row + j` holds k `8*line + j` in the low nibble and k `8*line + 4 + j` in the high one.
    Mxfp4,
    /// Symmetric int8, q in [-127, 127] stored as q+128, f16 scale per 32. Scale plane: per block 16 f16, one per row. Data:
    /// per block 8 lines of 4 k; byte `4*row + j` holds k `4*line + j`.
    Int8,
    /// int4, q in [-8, 7] stored as q+8, f16 scale of either sign per 32, fitted; scale plane as `Int8`, data plane as `Mxfp4`.
    Int4,
    /// bf16 elements: per line 2 k; the u16 at `2*row + j` holds k `2*line + j`. k is padded to a multiple of 2 with zeros.
    Bf16,
    /// f32 elements: per line 1 k.
    F32,
}

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

impl WeightFormat {
    /// Every format, for tests and listings.
    pub const ALL: [WeightFormat; 5] =
        [WeightFormat::Mxfp4, WeightFormat::Int8, WeightFormat::Int4, WeightFormat::Bf16, WeightFormat::F32];

    /// The name used in specs, listings and symbols.
    pub fn name(self) -> &'static str {
        match self {
            WeightFormat::Mxfp4 => "mxfp4",
            WeightFormat::Int8 => "int8",
            WeightFormat::Int4 => "int4",
            WeightFormat::Bf16 => "bf16",
            WeightFormat::F32 => "f32",
        }
    }

    /// Whether elements share a scale per [`BLOCK`] along k; such a matrix needs `k % 32 == 0`.
    pub fn is_blocked(self) -> bool {
        matches!(self, WeightFormat::Mxfp4 | WeightFormat::Int8 | WeightFormat::Int4)
    }

    /// Layout of a tile of 16 rows x `k`.
    ///
    /// # Panics
    /// If the format is blocked and `k` is not a multiple of [`BLOCK`]; specs are checked for that before.
    pub fn tile(self, k: usize) -> TileLayout {
        assert!(!self.is_blocked() || k.is_multiple_of(BLOCK), "k = {k} is not a multiple of {BLOCK}");
        let blocks = k / BLOCK;
        let (scale, data) = match self {
            WeightFormat::Mxfp4 => (blocks * TILE_ROWS, blocks * 4 * LINE),
            WeightFormat::Int8 => (blocks * TILE_ROWS * 2, blocks * 8 * LINE),
            WeightFormat::Int4 => (blocks * TILE_ROWS * 2, blocks * 4 * LINE),
            WeightFormat::Bf16 => (0, k.div_ceil(2) * LINE),
            WeightFormat::F32 => (0, k * LINE),
        };
        TileLayout { scale_bytes: scale.next_multiple_of(LINE), data_bytes: data }
    }

    /// Bytes of a packed matrix `[n, k]`.
    pub fn matrix_bytes(self, n: usize, k: usize) -> usize {
        n.div_ceil(TILE_ROWS) * self.tile(k).bytes()
    }
}

/// Layout of one row of `q8` activations: int8 values, then an f32 scale per block, then the int32 sum of each block's values.
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

/// Bytes from one row of f32 activations `[k]` to the next: padded to a line, so that whole vectors may be read.
pub fn f32_row_stride(k: usize) -> usize {
    (k * 4).next_multiple_of(LINE)
}
