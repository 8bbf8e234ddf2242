//! Weights in memory, for the packer.

use crate::ir::{Role, Tensor};
use crate::weights::WeightSource;
use std::collections::HashMap;
use std::ops::Range;
use thiserror::Error;

/// Weights in memory, by the tensor's logical name.
#[derive(Clone, Debug, Default)]
pub struct MemorySource {
    /// Elements `[experts][n][k]` of tensors that are read as f32.
    pub f32: HashMap<String, Vec<f32>>,
    /// Bytes of tensors that are stored in blocks, and their scales where those are by themselves:
    /// `[experts][n]` rows of each.
    pub stored: HashMap<String, (Vec<u8>, Vec<u8>)>,
}

/// A tensor that a [`MemorySource`] lacks.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("no {form} data of tensor {tensor} rows {rows:?} of expert {expert}")]
pub struct MemorySourceError {
    /// Logical name.
    pub tensor: String,
    /// `f32` or `stored`.
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
        let columns = row_columns(tensor);
        let data = self.f32.get(&tensor.name).and_then(|data| slice(data, tensor, expert, &rows, columns?));
        let missing =
            || MemorySourceError { tensor: tensor.name.clone(), form: "f32", expert, rows: rows.clone() };
        out.clear();
        out.extend_from_slice(data.ok_or_else(missing)?);
        Ok(())
    }

    fn stored_rows(
        &self,
        tensor: &Tensor,
        expert: usize,
        rows: Range<usize>,
        blocks: &mut Vec<u8>,
        scales: &mut Vec<u8>,
    ) -> Result<(), MemorySourceError> {
        let all: usize = tensor.shape.iter().product::<usize>() / row_columns(tensor).unwrap_or(1);
        let data = self.stored.get(&tensor.name).and_then(|(blocks, scales)| {
            let rows_of = |data| slice(data, tensor, expert, &rows, data.len() / all);
            Some((rows_of(blocks)?, rows_of(scales)?))
        });
        let missing =
            || MemorySourceError { tensor: tensor.name.clone(), form: "stored", expert, rows: rows.clone() };
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

/// Elements of a row, 1 for a vector's.
fn row_columns(tensor: &Tensor) -> Option<usize> {
    match tensor.role {
        Role::Vector | Role::ExpertVector => Some(1),
        Role::Matrix | Role::ExpertMatrix | Role::Table => tensor.shape.last().copied(),
    }
}

/// An expert's rows, which have `row` data each.
fn slice<'a, T>(
    data: &'a [T],
    tensor: &Tensor,
    expert: usize,
    rows: &Range<usize>,
    row: usize,
) -> Option<&'a [T]> {
    let n = match (tensor.role, tensor.shape.as_slice()) {
        (Role::Vector | Role::ExpertVector, [.., n]) | (_, [.., n, _]) => *n,
        _ => return None,
    };
    data.get((expert * n + rows.start) * row..(expert * n + rows.end) * row)
}
