//! Weights in memory, for the packer.

use crate::graph::{Role, Tensor};
use crate::weights::WeightSource;
use std::collections::HashMap;
use std::ops::Range;
use thiserror::Error;

/// Weights in memory, by the tensor's logical name.
#[derive(Clone, Debug, Default)]
pub struct MemorySource {
    /// Elements `[experts][n][k]` of tensors that are read as f32.
    pub f32: HashMap<String, Vec<f32>>,
    /// Blocks `[experts][n][k/32][16]` and scales `[experts][n][k/32]` of tensors that are read as MXFP4.
    pub mxfp4: HashMap<String, (Vec<u8>, Vec<u8>)>,
    /// Bits per element of tensors that count as stored in blocks.
    pub block_bits: HashMap<String, f64>,
}

/// A tensor that a [`MemorySource`] lacks.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("no {form} data of tensor {tensor} rows {rows:?} of expert {expert}")]
pub struct MemorySourceError {
    /// Logical name.
    pub tensor: String,
    /// `f32` or `mxfp4`.
    pub form: &'static str,
    /// Expert asked for.
    pub expert: usize,
    /// Rows asked for.
    pub rows: Range<usize>,
}

impl WeightSource for MemorySource {
    type Error = MemorySourceError;

    fn f32_rows(
        &self,
        tensor: &Tensor,
        expert: usize,
        rows: Range<usize>,
        out: &mut Vec<f32>,
    ) -> Result<(), MemorySourceError> {
        let data = self.f32.get(&tensor.name).and_then(|data| slice(data, tensor, expert, &rows, 1));
        let missing =
            || MemorySourceError { tensor: tensor.name.clone(), form: "f32", expert, rows: rows.clone() };
        out.clear();
        out.extend_from_slice(data.ok_or_else(missing)?);
        Ok(())
    }

    fn steps(
        &self,
        _: &Tensor,
        _: usize,
        _: Range<usize>,
        out: &mut Vec<f32>,
    ) -> Result<bool, MemorySourceError> {
        out.clear();
        Ok(false)
    }

    fn block_bits(&self, tensor: &Tensor) -> Option<f64> {
        self.block_bits.get(&tensor.name).copied()
    }

    fn mxfp4_rows(
        &self,
        tensor: &Tensor,
        expert: usize,
        rows: Range<usize>,
        blocks: &mut Vec<u8>,
        scales: &mut Vec<u8>,
    ) -> Result<(), MemorySourceError> {
        let data = self.mxfp4.get(&tensor.name).and_then(|(blocks, scales)| {
            Some((slice(blocks, tensor, expert, &rows, 2)?, slice(scales, tensor, expert, &rows, 32)?))
        });
        let missing =
            || MemorySourceError { tensor: tensor.name.clone(), form: "mxfp4", expert, rows: rows.clone() };
        let (block_data, scale_data) = data.ok_or_else(missing)?;
        blocks.clear();
        blocks.extend_from_slice(block_data);
        scales.clear();
        scales.extend_from_slice(scale_data);
        Ok(())
    }

    fn will_need(&self, _tensor: &Tensor, _expert: usize, _rows: Range<usize>) {}

    fn done_with(&self, _tensor: &Tensor, _expert: usize, _rows: Range<usize>) {}

    fn drop_cache(&self) {}
}

/// An expert's rows, where a datum covers `per` elements along k.
fn slice<'a, T>(
    data: &'a [T],
    tensor: &Tensor,
    expert: usize,
    rows: &Range<usize>,
    per: usize,
) -> Option<&'a [T]> {
    let (n, k) = match (tensor.role, tensor.shape.as_slice()) {
        (Role::Vector | Role::ExpertVector, [.., n]) => (*n, 1),
        (_, [.., n, k]) => (*n, *k),
        _ => return None,
    };
    let row = k / per;
    data.get((expert * n + rows.start) * row..(expert * n + rows.end) * row)
}
