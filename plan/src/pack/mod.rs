//! Packing: rows of weights into tiles of a [`WeightFormat`], and single elements back out of them.
//!
//! A tile holds up to [`TILE_ROWS`] rows of `k` elements; `pack_tile` of a format's module writes all of its
//! [`WeightFormat::tile`] bytes, missing rows and padding included. A format's `element` is written from the layout's
//! definition and shares no code with its `pack_tile`, so that each checks the other.

pub mod bf16;
pub mod f32;
mod fit;
mod grid;
pub mod int4;
pub mod int8;
pub mod mxfp4;
mod quantise;
mod unpack;

pub use unpack::{Column, unpack_tile};

use crate::format::{TILE_ROWS, WeightFormat};
use thiserror::Error;

/// A weight that cannot be packed, and where it is.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
#[error("row {row}, k {k}: {problem}")]
pub struct PackError {
    /// Row in the tile.
    pub row: usize,
    /// Element along k; for a scale, the first element of its block.
    pub k: usize,
    /// What is wrong with it.
    pub problem: Problem,
}

/// What is wrong with a weight.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum Problem {
    /// NaN or an infinity.
    #[error("the weight is {0}, expected a finite number")]
    NotFinite(f32),
    /// An E8M0 code above [`mxfp4::MAX_SCALE`], or that of NaN.
    #[error("the MXFP4 scale byte is {0}, expected 0 to {limit}", limit = mxfp4::MAX_SCALE)]
    ScaleByte(u8),
    /// The block needs a scale above f16's largest number.
    #[error("the weight {amax} is too large for {} with an f16 scale, expected at most {limit}", format.name())]
    ScaleOverflow {
        /// The block's largest magnitude.
        amax: f32,
        /// The largest magnitude that the format represents.
        limit: f32,
        /// The format.
        format: WeightFormat,
    },
    /// An f32 that bf16 would round.
    #[error("the weight {0:e} is not a bf16 number")]
    NotBf16(f32),
}

/// Packs rows given as f32 into one tile.
///
/// `rows` is `[1..=16][k]`, `tile` has `format.tile(k).bytes()` bytes.
///
/// # Panics
/// If the lengths are not that, or the format is MXFP4, whose blocks are packed bit for bit by [`mxfp4::pack_tile`].
pub fn pack_f32_tile(format: WeightFormat, k: usize, rows: &[f32], tile: &mut [u8]) -> Result<(), PackError> {
    match format {
        WeightFormat::Int8 => int8::pack_tile(k, rows, tile),
        WeightFormat::Int4 => int4::pack_tile(k, rows, tile),
        WeightFormat::Bf16 => bf16::pack_tile(k, rows, tile),
        WeightFormat::F32 => f32::pack_tile(k, rows, tile),
        WeightFormat::Mxfp4 => panic!("MXFP4 tiles are packed from blocks, not from f32"),
    }
}

/// Element `[row, index]` of a tile as f32, by the definition of docs/dev/numerics.md.
pub fn value(format: WeightFormat, k: usize, tile: &[u8], row: usize, index: usize) -> f32 {
    match format {
        WeightFormat::Mxfp4 => mxfp4::element(k, tile, row, index).value(),
        WeightFormat::Int8 => int8::element(k, tile, row, index).value(),
        WeightFormat::Int4 => int4::element(k, tile, row, index).value(),
        WeightFormat::Bf16 => bf16::element(k, tile, row, index).to_f32(),
        WeightFormat::F32 => f32::element(k, tile, row, index),
    }
}

/// An element of an `int8` or `int4` tile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scaled {
    /// Integer in [-127, 127] or [-8, 7].
    pub q: i8,
    /// Its block's scale.
    pub scale: half::f16,
}

impl Scaled {
    /// `f32(q) * f32(scale)`.
    pub fn value(self) -> f32 {
        f32::from(self.q) * self.scale.to_f32()
    }
}

/// Rows in `rows` elements of `k` each.
///
/// # Panics
/// If they are not 1 to 16 whole rows, or the tile has the wrong length.
fn count_rows(format: WeightFormat, k: usize, elements: usize, tile: &[u8]) -> usize {
    let rows = elements / k;
    assert!(
        (1..=TILE_ROWS).contains(&rows) && rows * k == elements,
        "a tile takes 1 to {TILE_ROWS} rows of {k}, not {elements} elements"
    );
    assert_eq!(tile.len(), format.tile(k).bytes(), "length of a {} tile of k = {k}", format.name());
    rows
}

/// Error unless all elements are finite.
fn check_finite(k: usize, rows: &[f32]) -> Result<(), PackError> {
    // A branchless pass first: looking for the culprit is for the rare case.
    if largest_bits(rows) < f32::INFINITY.to_bits() as i32 {
        return Ok(());
    }
    let at = rows.iter().position(|w| !w.is_finite()).expect("one has an exponent of all ones");
    Err(PackError { row: at / k, k: at % k, problem: Problem::NotFinite(rows[at]) })
}

/// The largest magnitude's bits; NaN and infinity are the largest. Signed, because that comparison vectorises everywhere.
fn largest_bits(values: &[f32]) -> i32 {
    values.iter().fold(0, |largest, w| largest.max(w.abs().to_bits() as i32))
}

/// Whether fitting can be compiled for a CPU with fused multiply-add, without which it is a library call (of the same bits) per
/// element.
#[cfg(target_arch = "x86_64")]
fn has_fma() -> bool {
    std::is_x86_feature_detected!("avx2")
        && std::is_x86_feature_detected!("fma")
        && std::is_x86_feature_detected!("f16c")
}

#[cfg(test)]
mod tests;
