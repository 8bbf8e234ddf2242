//! Packed weight formats: how a matrix `[n, k]` lies in memory.
//!
//! One layout serves every instruction set: tiles of 16 output rows; a 64-byte line holds 16 rows x 4
//! bytes, so a vector lane is a row and no kernel ever reduces horizontally. A tile is a scale plane
//! (padded to 64 bytes), then a data plane, so that no line is split. Tiles follow each other in ascending
//! row order; the experts of a grouped matrix follow each other too. Rows past `n` in the last tile hold
//! elements of value zero (code 128 in int8, 8 in int4) and zero scales; padding is zero bytes.
//!
//! A format is a file here: its [`Descriptor`], how rows are packed into a tile, and how single elements
//! and whole tiles come back out of it. A tile holds up to [`TILE_ROWS`] rows of `k` elements; packing
//! writes all of its [`WeightFormat::tile`] bytes, missing rows and padding included.

pub mod bf16;
mod descriptor;
mod error;
pub mod f32;
mod fit;
mod grid;
pub mod int4;
pub mod int8;
mod layout;
pub mod mxfp4;
mod quantise;
mod unpack;

pub use descriptor::{BlockDecode, Decode, Descriptor, PackTile, PlainDecode, Quantise, Scale};
pub use error::{MAX_E8M0, PackError, Problem};
pub use layout::{BLOCK, Column, LINE, Q8Row, TILE_ROWS, TileLayout, f32_row_stride};
pub use unpack::Scaled;

use serde::{Deserialize, Serialize};

/// Storage format of a packed matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WeightFormat {
    /// OCP MXFP4 ([`mxfp4`]).
    Mxfp4,
    /// Integers in [-127, 127] ([`int8`]).
    Int8,
    /// Integers in [-8, 7] ([`int4`]).
    Int4,
    /// [`bf16`] elements.
    Bf16,
    /// [`f32`](mod@f32) elements.
    F32,
}

impl WeightFormat {
    /// Every format, for tests and listings.
    pub const ALL: [WeightFormat; 5] =
        [WeightFormat::Mxfp4, WeightFormat::Int8, WeightFormat::Int4, WeightFormat::Bf16, WeightFormat::F32];

    /// The description of the format.
    pub fn descriptor(self) -> &'static Descriptor {
        match self {
            WeightFormat::Mxfp4 => &mxfp4::FORMAT,
            WeightFormat::Int8 => &int8::FORMAT,
            WeightFormat::Int4 => &int4::FORMAT,
            WeightFormat::Bf16 => &bf16::FORMAT,
            WeightFormat::F32 => &f32::FORMAT,
        }
    }

    /// The name used in specs, listings and symbols.
    pub fn name(self) -> &'static str {
        self.descriptor().name
    }

    /// The format of that name.
    pub fn from_name(name: &str) -> Option<WeightFormat> {
        WeightFormat::ALL.into_iter().find(|format| format.name() == name)
    }

    /// Formats with blocks, in the order of [`WeightFormat::ALL`].
    pub fn blocked() -> impl Iterator<Item = WeightFormat> {
        WeightFormat::ALL.into_iter().filter(|format| format.is_blocked())
    }

    /// How elements of the format become numbers.
    pub fn decode(self) -> Decode {
        self.descriptor().decode
    }

    /// Whether elements share a scale per [`BLOCK`] along k; such a matrix needs `k % 32 == 0`.
    pub fn is_blocked(self) -> bool {
        self.descriptor().is_blocked()
    }

    /// Whether its elements are taken bit for bit from a checkpoint, which has a tensor of scales beside
    /// that of elements.
    pub fn is_stored(self) -> bool {
        self.descriptor().quantise == Quantise::Stored
    }

    /// Whether f32 weights are rounded to integers of the format.
    pub fn is_quantised(self) -> bool {
        match self.descriptor().quantise {
            Quantise::Symmetric { .. } | Quantise::Fitted => true,
            Quantise::Stored | Quantise::Exact => false,
        }
    }

    /// Layout of a tile of 16 rows x `k`.
    ///
    /// # Panics
    /// If the format is blocked and `k` is not a multiple of [`BLOCK`]; specs are checked for that before.
    pub fn tile(self, k: usize) -> TileLayout {
        self.descriptor().tile(k)
    }

    /// Bytes of a packed matrix `[n, k]`.
    pub fn matrix_bytes(self, n: usize, k: usize) -> usize {
        n.div_ceil(TILE_ROWS) * self.tile(k).bytes()
    }
}

/// Packs rows given as f32 into one tile.
///
/// `rows` is `[1..=16][k]`, `tile` has `format.tile(k).bytes()` bytes.
///
/// # Errors
/// A weight that the format cannot hold.
///
/// # Panics
/// If the lengths are not that, or the format is packed from stored blocks ([`WeightFormat::is_stored`]).
pub fn pack_f32_tile(format: WeightFormat, k: usize, rows: &[f32], tile: &mut [u8]) -> Result<(), PackError> {
    let pack = format.descriptor().pack;
    pack.unwrap_or_else(|| panic!("{} tiles are packed from blocks, not from f32", format.name()))(
        k, rows, tile,
    )
}

/// Element `[row, index]` of a tile as f32, by the definition of docs/dev/numerics.md.
pub fn value(format: WeightFormat, k: usize, tile: &[u8], row: usize, index: usize) -> f32 {
    (format.descriptor().value)(k, tile, row, index)
}

/// Elements of a tile by k, then row; of `out`, one column for each k. Many elements at once, where
/// [`value`] takes one.
///
/// # Panics
/// If the tile is shorter than [`WeightFormat::tile`] says.
pub fn unpack_tile(format: WeightFormat, tile: &[u8], out: &mut [Column]) {
    (format.descriptor().unpack)(tile, out);
}

#[cfg(test)]
mod tests;
