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
//!
//! Why a weight cannot be packed.

pub mod bf16;
mod descriptor;
pub mod f32;
mod fit;
mod grid;
pub mod int4;
pub mod int8;
mod layout;
pub mod mxfp4;
mod quantise;
#[cfg(test)]
mod tests;
mod unpack;

pub use descriptor::{BlockDecode, Decode, Descriptor, PackTile, PlainDecode, Quantise, Scale};
pub use layout::{BLOCK, Column, LINE, Q8Row, TILE_ROWS, TileLayout, f32_row_stride};
use serde::{Deserialize, Serialize};
use thiserror::Error;
pub use unpack::Scaled;

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

/// Largest E8M0 byte that is accepted: 2^105. Kernels multiply half a scale by 1.5 * 2^23, which must stay
/// a finite f32; a trained weight is some thirty orders of magnitude smaller. So 255, which stands for NaN,
/// never reaches a kernel.
pub const MAX_E8M0: u8 = 232;

/// A weight that cannot be packed, and where it is.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
#[error("row {row}, k {k}: {problem}")]
pub struct PackError {
    /// Row in the tile.
    pub row: usize,
    /// Element along k; for a scale, the first element of its block.
    pub k: usize,
    /// The weight's problem.
    pub problem: Problem,
}

/// A problem of a weight.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum Problem {
    /// NaN or an infinity.
    #[error("the weight is {0}, expected a finite number")]
    NotFinite(f32),
    /// An E8M0 code above [`MAX_E8M0`], or that of NaN.
    #[error("the MXFP4 scale byte is {0}, expected 0 to {limit}", limit = MAX_E8M0)]
    ScaleByte(u8),
    /// The block needs a scale above f16's largest number.
    #[error("the weight {amax} is too large for {format} with an f16 scale, expected at most {limit}")]
    ScaleOverflow {
        /// The block's largest magnitude.
        amax: f32,
        /// The largest magnitude that the format represents.
        limit: f32,
        /// The format's name.
        format: &'static str,
    },
    /// An f32 that bf16 would round.
    #[error("the weight {0:e} is not a bf16 number")]
    NotBf16(f32),
}

/// Error unless all elements of rows of `k` are finite.
fn check_finite(k: usize, rows: &[f32]) -> Result<(), PackError> {
    // A branchless pass first: looking for the culprit is for the rare case.
    if largest_bits(rows) < f32::INFINITY.to_bits() as i32 {
        return Ok(());
    }
    let at = rows.iter().position(|w| !w.is_finite()).expect("one has an exponent of all ones");
    Err(PackError { row: at / k, k: at % k, problem: Problem::NotFinite(rows[at]) })
}

/// The largest magnitude's bits; NaN and infinity are the largest. Signed, because that comparison
/// vectorises everywhere.
fn largest_bits(values: &[f32]) -> i32 {
    values.iter().fold(0, |largest, w| largest.max(w.abs().to_bits() as i32))
}

/// Why a block of 32 weights has no finite scale; `row` and `k` are its place, `limit` is the largest
/// magnitude of the format.
#[cold]
fn blame(format: &'static str, limit: f32, weights: &[f32], row: usize, k: usize) -> PackError {
    if let Some(at) = weights.iter().position(|w| !w.is_finite()) {
        return PackError { row, k: k + at, problem: Problem::NotFinite(weights[at]) };
    }
    let amax = f32::from_bits(largest_bits(weights) as u32);
    let at = weights.iter().position(|w| w.abs() == amax).expect("the largest is one of them");
    let problem = Problem::ScaleOverflow { amax, limit, format };
    PackError { row, k: k + at, problem }
}

/// Whether fitting can be compiled for a CPU with fused multiply-add, without which it is a library call
/// (of the same bits) per element.
#[cfg(target_arch = "x86_64")]
fn has_fma() -> bool {
    std::is_x86_feature_detected!("avx2")
        && std::is_x86_feature_detected!("fma")
        && std::is_x86_feature_detected!("f16c")
}
