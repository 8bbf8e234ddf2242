//! Rounds weights to blocks of GGUF's types, so that the sum of the squares of the errors is small when each
//! is weighted by how large the input is that meets the weight.
//!
//! Weights that are on a grid of the type already come back as they are. The same weights make the same
//! blocks on every CPU.

mod bytes;
mod grid;
mod lattice;
mod part;
mod single;
mod superblocks;
mod table;
#[cfg(test)]
mod tests;

pub(crate) use grid::RowGrid;
use kernmill_plan::format::{BLOCK, CodeMap, FileBlock, SUPERBLOCK, WeightFormat, read_stored};
use part::{FitPart, IntegerRange};
use superblocks::SuperShape;
use table::NearestCodes;

/// Formats that weights are fitted to.
pub const FITTED: [WeightFormat; 10] = [
    WeightFormat::Int4,
    WeightFormat::Q4_1,
    WeightFormat::Q5_0,
    WeightFormat::Q5_1,
    WeightFormat::Int8,
    WeightFormat::Q4K,
    WeightFormat::Q5K,
    WeightFormat::Q6K,
    WeightFormat::Iq4Nl,
    WeightFormat::Mxfp4,
];

/// The largest weight: with it, every unit of a scale is a finite f16.
const LARGEST: f32 = 65504.0;
/// The least weight of an error, as a part of the mean: inputs that a short text never made are not free.
const LEAST_COUNT: f32 = 1e-4;

/// A weight that no block can hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UnfitWeight {
    /// Where it is in the rows.
    pub index: usize,
    /// The weight.
    pub value: f32,
}

/// Fits blocks of one format. It is made once for many rows.
pub struct BlockFitter {
    format: WeightFormat,
    kind: FitKind,
    elements: usize,
}

enum FitKind {
    Linear(IntegerRange),
    Affine(IntegerRange),
    Super(SuperShape),
    Table(NearestCodes),
    PowerOfTwo(NearestCodes),
}

impl BlockFitter {
    /// For one of [`FITTED`].
    ///
    /// # Panics
    /// For another format.
    pub fn new(format: WeightFormat) -> BlockFitter {
        let table = || match format.parts().map {
            CodeMap::Table { values, .. } => NearestCodes::new(values),
            CodeMap::Linear { .. } => unreachable!("{} has no table", format.name()),
        };
        let kind = match format {
            WeightFormat::Int4 => FitKind::Linear([-8.0, 7.0]),
            WeightFormat::Q5_0 => FitKind::Linear([-16.0, 15.0]),
            // The least integer of eight bits stays unused: kernels need its negative.
            WeightFormat::Int8 => FitKind::Linear([-127.0, 127.0]),
            WeightFormat::Q4_1 => FitKind::Affine([0.0, 15.0]),
            WeightFormat::Q5_1 => FitKind::Affine([0.0, 31.0]),
            WeightFormat::Q4K => FitKind::Super(superblocks::Q4_K),
            WeightFormat::Q5K => FitKind::Super(superblocks::Q5_K),
            WeightFormat::Q6K => FitKind::Super(superblocks::Q6_K),
            WeightFormat::Iq4Nl => FitKind::Table(table()),
            WeightFormat::Mxfp4 => FitKind::PowerOfTwo(table()),
            other => panic!("weights are not fitted to {}", other.name()),
        };
        let elements = format.descriptor().file.map_or(BLOCK, |file| file.elements);
        BlockFitter { format, kind, elements }
    }

    /// Fits a row of whole blocks, appends them to `out`, and returns the sum of its squared errors, each
    /// weighted by `importance`, one number for each column.
    ///
    /// # Errors
    /// A weight that is no number or too large for an f16.
    ///
    /// # Panics
    /// If the row is not whole blocks, or has not as many weights as `importance` numbers.
    pub fn row(&self, row: &[f32], importance: &[f32], out: &mut Vec<u8>) -> Result<f64, UnfitWeight> {
        assert!(row.len().is_multiple_of(self.elements) && row.len() == importance.len(), "{}", row.len());
        if let Some((index, &value)) = row.iter().enumerate().find(|(_, x)| x.is_nan() || x.abs() > LARGEST) {
            return Err(UnfitWeight { index, value });
        }
        let counts = counts(importance);
        let start = out.len();
        for (x, counts) in row.chunks_exact(self.elements).zip(counts.chunks_exact(self.elements)) {
            self.block(x, counts, out);
        }
        let mut back = Vec::with_capacity(row.len());
        read_stored(self.format, &out[start..], &mut back);
        let error = |((x, back), importance): ((&f32, &f32), &f32)| {
            let difference = f64::from(*x) - f64::from(*back);
            f64::from(*importance) * difference * difference
        };
        Ok(row.iter().zip(&back).zip(importance).map(error).sum())
    }

    fn block(&self, x: &[f32], counts: &[f32], out: &mut Vec<u8>) {
        let start = out.len();
        let as_bytes = |block: &FileBlock| {
            let mut bytes = Vec::with_capacity(256);
            bytes::write(self.format, block, &mut bytes);
            bytes
        };
        let is_exact = |block: &FileBlock| {
            let mut back = Vec::with_capacity(x.len());
            read_stored(self.format, &as_bytes(block), &mut back);
            back == x
        };
        let part = FitPart { x, counts };
        let block = match &self.kind {
            FitKind::Linear(range) => {
                let bias = self.format.parts().bias();
                lattice::linear(x, *range, bias, &is_exact)
                    .unwrap_or_else(|| single::linear(part, *range, bias))
            }
            FitKind::Affine(range) => {
                lattice::affine(x, range[1] as i32, &is_exact).unwrap_or_else(|| single::affine(part, *range))
            }
            FitKind::Table(codes) => single::table(part, codes),
            FitKind::PowerOfTwo(codes) => single::power_of_two(part, codes),
            FitKind::Super(shape) => {
                let (x, counts): (&[f32; SUPERBLOCK], &[f32; SUPERBLOCK]) =
                    (x.try_into().expect("a whole block"), counts.try_into().expect("a whole block"));
                lattice::of_super(*shape, x, &is_exact).unwrap_or_else(|| shape.fit(x, counts))
            }
        };
        bytes::write(self.format, &block, out);
        debug_assert_eq!(out.len() - start, self.format.stored_bytes(self.elements));
    }
}

/// The weights of errors: those that are asked for, as parts of the largest, and none of them 0.
fn counts(importance: &[f32]) -> Vec<f32> {
    let largest = importance.iter().fold(0.0f32, |far, &count| if count > far { count } else { far });
    if largest == 0.0 || !largest.is_finite() {
        return vec![1.0; importance.len()];
    }
    let sum: f64 = importance.iter().map(|count| f64::from(count / largest)).sum();
    let least = (sum / importance.len() as f64) as f32 * LEAST_COUNT;
    importance.iter().map(|count| (count / largest).max(least)).collect()
}
