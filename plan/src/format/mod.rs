//! Packed weight formats: how a matrix `[n, k]` lies in memory.
//!
//! One layout serves every instruction set: tiles of 16 output rows; a 64-byte line holds 16 rows x 4
//! bytes, so a vector lane is a row and no kernel ever reduces horizontally. A tile is a scale plane
//! (padded to 64 bytes), then a data plane, so that no line is split. Tiles follow each other in ascending
//! row order; the experts of a grouped matrix follow each other too. Rows past `n` in the last tile hold
//! elements of value zero (code 128 in int8, 8 in int4) and zero scales; padding is zero bytes.
//!
//! A format is a file here: its [`Descriptor`], and how blocks of a file or rows of f32 weights are taken
//! apart. Formats with blocks share one layout, which `blocks.rs` defines. A tile holds up to [`TILE_ROWS`]
//! rows of `k` elements; packing writes all of its [`WeightFormat::tile`] bytes, missing rows and padding
//! included.

pub mod bf16;
mod blocks;
mod descriptor;
mod error;
pub mod f32;
mod fit;
mod gguf;
pub mod int4;
pub mod int4_zero;
pub mod int8;
mod layout;
pub mod mxfp4;
mod parts;
mod quantise;
mod read;

pub use descriptor::{Decode, Descriptor, FileType, PackTile, PlainDecode, Quantise};
pub use error::{MAX_E8M0, PackError, Problem};
pub use layout::{BLOCK, Column, LINE, Q8Row, SUPERBLOCK, TILE_ROWS, TileLayout, f32_row_stride};
pub use parts::{BlockElement, BlockParts, CodeMap, Codes, FileBlock, Minimum, Scale, half_e4m3};

use serde::{Deserialize, Serialize};

macro_rules! formats {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $descriptor:path;)*) => {
        /// Storage format of a packed matrix.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum WeightFormat {
            $($(#[$doc])* #[serde(rename = $name)] $variant,)*
        }

        impl WeightFormat {
            /// Every format, for tests and listings.
            pub const ALL: [WeightFormat; [$($name),*].len()] = [$(WeightFormat::$variant),*];

            /// The description of the format.
            pub fn descriptor(self) -> &'static Descriptor {
                match self {
                    $(WeightFormat::$variant => &$descriptor,)*
                }
            }
        }
    };
}

formats! {
    /// OCP MXFP4 ([`mxfp4`]).
    Mxfp4 = "mxfp4", mxfp4::FORMAT;
    /// Integers in [-127, 127] ([`int8`]).
    Int8 = "int8", int8::FORMAT;
    /// Integers in [-8, 7] ([`int4`]).
    Int4 = "int4", int4::FORMAT;
    /// [`bf16`] elements.
    Bf16 = "bf16", bf16::FORMAT;
    /// [`f32`](mod@f32) elements.
    F32 = "f32", f32::FORMAT;
    /// Blocks of GGUF's Q4_1.
    Q4_1 = "q4_1", gguf::q4_1::FORMAT;
    /// Blocks of GGUF's Q5_0.
    Q5_0 = "q5_0", gguf::q5_0::FORMAT;
    /// Blocks of GGUF's Q5_1.
    Q5_1 = "q5_1", gguf::q5_1::FORMAT;
    /// Blocks of GGUF's Q2_K.
    Q2K = "q2_k", gguf::q2_k::FORMAT;
    /// Blocks of GGUF's Q3_K.
    Q3K = "q3_k", gguf::q3_k::FORMAT;
    /// Blocks of GGUF's Q4_K.
    Q4K = "q4_k", gguf::q4_k::FORMAT;
    /// Blocks of GGUF's Q5_K.
    Q5K = "q5_k", gguf::q5_k::FORMAT;
    /// Blocks of GGUF's Q6_K.
    Q6K = "q6_k", gguf::q6_k::FORMAT;
    /// Blocks of GGUF's IQ4_NL.
    Iq4Nl = "iq4_nl", gguf::iq4_nl::FORMAT;
    /// Blocks of GGUF's IQ4_XS.
    Iq4Xs = "iq4_xs", gguf::iq4_xs::FORMAT;
    /// Blocks of GGUF's NVFP4.
    Nvfp4 = "nvfp4", gguf::nvfp4::FORMAT;
    /// Blocks of GGUF's TQ1_0.
    Tq1_0 = "tq1_0", gguf::tq1_0::FORMAT;
    /// Blocks of GGUF's TQ2_0.
    Tq2_0 = "tq2_0", gguf::tq2_0::FORMAT;
    /// Integers in [0, 15] less a zero ([`int4_zero`]).
    Int4Zero = "int4_zero", int4_zero::FORMAT;
}

impl WeightFormat {
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

    /// The parts of a format with blocks.
    ///
    /// # Panics
    /// For a plain format.
    pub fn parts(self) -> &'static BlockParts {
        self.descriptor().parts()
    }

    /// Whether elements share a scale per [`BLOCK`] along k; such a matrix needs whole blocks.
    pub fn is_blocked(self) -> bool {
        self.descriptor().is_blocked()
    }

    /// The format that keeps the blocks of a type of GGUF tensors, by the type's number.
    pub fn of_file(number: u32) -> Option<WeightFormat> {
        let keeps =
            |format: &WeightFormat| format.descriptor().file.is_some_and(|file| file.number == Some(number));
        WeightFormat::ALL.into_iter().find(keeps)
    }

    /// Bytes of `k` elements in blocks as a file of [`Descriptor::file`]'s type has them.
    ///
    /// # Panics
    /// If no file has such blocks.
    pub fn stored_bytes(self, k: usize) -> usize {
        let file = self.descriptor().file.unwrap_or_else(|| panic!("no file has blocks of {}", self.name()));
        k / file.elements * file.bytes
    }

    /// Whether its elements are taken bit for bit from a checkpoint only: no f32 weights are rounded to it.
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
    /// If `k` is not whole blocks ([`Descriptor::columns`]); specs are checked for that before.
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

/// Packs rows of blocks as a file of [`Descriptor::file`]'s type has them, one row after the other, into one
/// tile of `k` columns.
///
/// # Errors
/// A block that a tile cannot hold: its scale is no finite number, or the format has no such code.
///
/// # Panics
/// If the lengths are not that, or no file has such blocks.
pub fn pack_stored_tile(
    format: WeightFormat,
    k: usize,
    rows: &[u8],
    tile: &mut [u8],
) -> Result<(), PackError> {
    let descriptor = format.descriptor();
    let file = descriptor.file.unwrap_or_else(|| panic!("no file has blocks of {}", format.name()));
    assert!(k >= file.elements, "rows of {k} hold no block of {}", file.name);
    let row_bytes = k / file.elements * file.bytes;
    let count = rows.len() / row_bytes;
    assert_eq!(rows.len(), count * row_bytes, "bytes of rows of {k} in {}", file.name);
    blocks::pack(descriptor, (k, count, file.elements), tile, |row, place, block| {
        let at = row * row_bytes + place / file.elements * file.bytes;
        (file.read)(&rows[at..at + file.bytes], block);
        Ok(())
    })
}

/// Appends the elements of whole blocks as a file of [`Descriptor::file`]'s type has them.
///
/// # Panics
/// If no file has such blocks.
pub fn read_stored(format: WeightFormat, bytes: &[u8], out: &mut Vec<f32>) {
    each_stored(format, bytes, |element| out.push(element.value()));
}

/// Integer, scale and minimum of each element of whole blocks as a file of [`Descriptor::file`]'s type has
/// them, in the order of the rows.
///
/// # Panics
/// If no file has such blocks.
pub fn each_stored(format: WeightFormat, bytes: &[u8], take: impl FnMut(BlockElement)) {
    let descriptor = format.descriptor();
    let file = descriptor.file.as_ref().unwrap_or_else(|| panic!("no file has blocks of {}", format.name()));
    blocks::each_element(descriptor, file, bytes, take);
}

/// Integer, scale and minimum of element `[row, index]` of a tile in a format with blocks.
///
/// # Panics
/// If the format has none, or the element is not of the tile.
pub fn element(format: WeightFormat, k: usize, tile: &[u8], row: usize, index: usize) -> BlockElement {
    blocks::element(format.descriptor(), k, tile, row, index)
}

/// Element `[row, index]` of a tile as f32, by the definition of docs/dev/numerics.md.
pub fn value(format: WeightFormat, k: usize, tile: &[u8], row: usize, index: usize) -> f32 {
    match format.decode() {
        Decode::Block(_) => blocks::element(format.descriptor(), k, tile, row, index).value(),
        Decode::Plain(PlainDecode::Bf16) => bf16::element(k, tile, row, index).to_f32(),
        Decode::Plain(PlainDecode::F32) => f32::element(k, tile, row, index),
    }
}

/// Elements of a tile by k, then row; of `out`, one column for each k. Many elements at once, where
/// [`value`] takes one.
///
/// # Panics
/// If the tile is shorter than [`WeightFormat::tile`] says.
pub fn unpack_tile(format: WeightFormat, tile: &[u8], out: &mut [Column]) {
    match format.decode() {
        Decode::Block(_) => blocks::unpack(format.descriptor(), tile, out),
        Decode::Plain(PlainDecode::Bf16) => bf16::unpack(tile, out),
        Decode::Plain(PlainDecode::F32) => f32::unpack(tile, out),
    }
}

#[cfg(test)]
mod tests;
