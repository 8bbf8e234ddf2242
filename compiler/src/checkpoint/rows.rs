//! Reading the rows of the graph's tensors out of a checkpoint, whatever way they are stored.

use super::error::{CheckpointError, Result};
use super::{Checkpoint, Dtype, TensorView, bind::stored_shape};
use crate::graph::{Graph, Role, RowSelect, Tensor};
use half::f16;
use kernmill_plan::format::{BLOCK, WeightFormat};
use std::ops::Range;

/// Value of each E2M1 code.
pub const FP4_VALUES: [f32; 16] =
    [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0];

/// Bytes of one block of 32 E2M1 codes.
const FP4_BLOCK_BYTES: usize = BLOCK / 2;

/// `2^(s - 127)`; a denormal for s = 0, infinity for the refused 255.
pub fn e8m0(s: u8) -> f32 {
    if s == 0 { f32::from_bits(1 << 22) } else { f32::from_bits(u32::from(s) << 23) }
}

/// A checkpoint bound to the graph whose weights it holds.
///
/// Rows are counted after [`RowSelect`]. The rows of a matrix or table are its `n` rows of `k` elements; a vector counts
/// as `n` rows of one element. `expert` is 0 where there are none.
#[derive(Clone, Copy, Debug)]
pub struct Weights<'a> {
    checkpoint: &'a Checkpoint,
}

/// A tensor's geometry in the checkpoint.
struct Place {
    /// Rows per expert in the checkpoint.
    stored_rows: usize,
    /// Elements per row.
    cols: usize,
    /// Checkpoint row of row r is `first + r * step`.
    first: usize,
    step: usize,
}

impl<'a> Weights<'a> {
    /// Binds, see [`super::bind`].
    ///
    /// # Errors
    /// If a tensor of `graph` is missing from the checkpoint or unlike it, or the checkpoint has tensors left over.
    pub fn new(graph: &Graph, checkpoint: &'a Checkpoint) -> Result<Weights<'a>> {
        super::bind(graph, checkpoint)?;
        Ok(Weights { checkpoint })
    }

    #[cfg(test)]
    pub(super) fn unbound(checkpoint: &'a Checkpoint) -> Weights<'a> {
        Weights { checkpoint }
    }

    /// The checkpoint.
    pub fn checkpoint(&self) -> &'a Checkpoint {
        self.checkpoint
    }

    /// Replaces `out` with rows `rows` as f32, `[rows, k]`: exact for every stored format.
    ///
    /// # Errors
    /// If `t` is not one of the bound graph's tensors.
    ///
    /// # Panics
    /// If `rows` or `expert` is outside of the tensor.
    pub fn f32_rows(&self, t: &Tensor, expert: usize, rows: Range<usize>, out: &mut Vec<f32>) -> Result<()> {
        let place = Place::of(t);
        out.clear();
        out.reserve(rows.len() * place.cols);
        if t.stored == WeightFormat::Mxfp4 {
            let (blocks, scales) = self.mxfp4_views(t)?;
            for row in rows {
                let at = place.row(expert, row) * (place.cols / BLOCK);
                for block in at..at + place.cols / BLOCK {
                    decode_mxfp4(&blocks.data[block * FP4_BLOCK_BYTES..], scales.data[block], out);
                }
            }
            return Ok(());
        }
        let view = self.view(t, &t.source.name)?;
        let row_bytes = place.cols * view.dtype.bitsize() / 8;
        for row in rows {
            let at = place.row(expert, row) * row_bytes;
            widen(view.dtype, &view.data[at..at + row_bytes], out);
        }
        Ok(())
    }

    /// Replaces `blocks` with the E2M1 codes `[rows, k/32, 16]` of rows `rows`, and `scales` with `[rows, k/32]`.
    ///
    /// # Errors
    /// If `t` is not one of the bound graph's tensors or not stored as MXFP4.
    ///
    /// # Panics
    /// If `rows` or `expert` is outside of the tensor.
    pub fn mxfp4_rows(
        &self,
        t: &Tensor,
        expert: usize,
        rows: Range<usize>,
        blocks: &mut Vec<u8>,
        scales: &mut Vec<u8>,
    ) -> Result<()> {
        let place = Place::of(t);
        let (block_view, scale_view) = self.mxfp4_views(t)?;
        let per_row = place.cols / BLOCK;
        blocks.clear();
        scales.clear();
        for row in rows {
            let at = place.row(expert, row) * per_row;
            blocks
                .extend_from_slice(&block_view.data[at * FP4_BLOCK_BYTES..(at + per_row) * FP4_BLOCK_BYTES]);
            scales.extend_from_slice(&scale_view.data[at..at + per_row]);
        }
        Ok(())
    }

    /// Gives back the memory behind `expert`'s part of `t` (all of it where there are no experts).
    pub fn done_with(&self, t: &Tensor, expert: usize) {
        let experts = experts(t);
        for name in [Some(&t.source.name), t.source.scales.as_ref()].into_iter().flatten() {
            if let Some(view) = self.checkpoint.tensor(name) {
                let bytes = view.data.len() / experts;
                self.checkpoint.release(name, expert * bytes..(expert + 1) * bytes);
            }
        }
    }

    fn mxfp4_views(&self, t: &Tensor) -> Result<(TensorView<'a>, TensorView<'a>)> {
        match (&t.source.scales, t.stored) {
            (Some(scales), WeightFormat::Mxfp4) => Ok((self.view(t, &t.source.name)?, self.view(t, scales)?)),
            _ => Err(CheckpointError::Format { logical: t.name.clone(), format: t.stored.name() }),
        }
    }

    fn view(&self, t: &Tensor, name: &str) -> Result<TensorView<'a>> {
        self.checkpoint.tensor(name).ok_or_else(|| CheckpointError::Missing {
            path: self.checkpoint.path().to_owned(),
            name: name.to_owned(),
            logical: t.name.clone(),
            near: String::new(),
        })
    }
}

impl Place {
    fn of(t: &Tensor) -> Place {
        let shape = stored_shape(t);
        let rank = shape.len();
        let (stored_rows, cols) = match t.role {
            Role::Vector | Role::ExpertVector => (shape[rank - 1], 1),
            Role::Matrix | Role::ExpertMatrix | Role::Table => (shape[rank - 2], shape[rank - 1]),
        };
        let (first, step) = match t.source.rows {
            RowSelect::All => (0, 1),
            RowSelect::Even => (0, 2),
            RowSelect::Odd => (1, 2),
        };
        Place { stored_rows, cols, first, step }
    }

    /// Row of the checkpoint tensor, counted through the experts.
    fn row(&self, expert: usize, row: usize) -> usize {
        let row = self.first + row * self.step;
        assert!(row < self.stored_rows, "row {row} of {}", self.stored_rows);
        expert * self.stored_rows + row
    }
}

fn experts(t: &Tensor) -> usize {
    match t.role {
        Role::ExpertMatrix | Role::ExpertVector => t.shape[0],
        Role::Matrix | Role::Vector | Role::Table => 1,
    }
}

/// Appends the 32 elements of the block at the head of `codes`; the low nibble comes first.
fn decode_mxfp4(codes: &[u8], scale: u8, out: &mut Vec<f32>) {
    let scale = e8m0(scale);
    for &byte in &codes[..FP4_BLOCK_BYTES] {
        out.push(FP4_VALUES[usize::from(byte & 15)] * scale);
        out.push(FP4_VALUES[usize::from(byte >> 4)] * scale);
    }
}

/// Appends `bytes`, elements of `dtype`, as f32. Binding has refused every dtype but these.
fn widen(dtype: Dtype, bytes: &[u8], out: &mut Vec<f32>) {
    match dtype {
        Dtype::BF16 => out.extend(bytes.as_chunks().0.iter().map(|&b| {
            let bits = u16::from_le_bytes(b);
            f32::from_bits(u32::from(bits) << 16)
        })),
        Dtype::F16 => {
            out.extend(bytes.as_chunks().0.iter().map(|&b| f16::from_bits(u16::from_le_bytes(b)).to_f32()));
        }
        Dtype::F32 => out.extend(bytes.as_chunks().0.iter().map(|&b| f32::from_le_bytes(b))),
        other => unreachable!("{other:?} passed binding"),
    }
}
