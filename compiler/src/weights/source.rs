//! Where packed weights come from.

use crate::ir::Tensor;
use std::ops::Range;

/// A checkpoint as the packer reads it. Row selection ([`crate::ir::RowSelect`]) is the source's business:
/// rows count from 0 in the tensor's own shape.
pub trait WeightSource: Sync {
    /// The error of a source.
    type Error: std::error::Error + Send + 'static;

    /// Replaces `out` by the rows `rows` of an expert (0 for tensors without experts), `[rows][k]`, as f32. A
    /// row of a vector is one element, so that `0..n` is all of it.
    fn f32_rows(
        &self,
        tensor: &Tensor,
        expert: usize,
        rows: Range<usize>,
        out: &mut Vec<f32>,
    ) -> Result<(), Self::Error>;

    /// Replaces `blocks` by the bytes of rows that are stored in blocks, one row after the other, as the file
    /// has them. Of MXFP4 in two tensors ([`crate::ir::TensorSource::scales`]), `blocks` are the codes
    /// `[rows][k/32][16]`, and `scales` is replaced by the scales `[rows][k/32]`; of others it is emptied.
    fn stored_rows(
        &self,
        tensor: &Tensor,
        expert: usize,
        rows: Range<usize>,
        blocks: &mut Vec<u8>,
        scales: &mut Vec<u8>,
    ) -> Result<(), Self::Error>;

    /// Says that these rows will be read soon, so that the disk can be asked for them.
    fn will_need(&self, tensor: &Tensor, expert: usize, rows: Range<usize>);

    /// Says that these rows will not be read again, so that their pages may be dropped.
    fn done_with(&self, tensor: &Tensor, expert: usize, rows: Range<usize>);

    /// Says that the memory in which the system keeps files is wanted for something else.
    fn drop_cache(&self);
}
