//! Reading the rows of the graph's tensors out of a checkpoint, whatever way they are stored.

use super::{WeightSource, row_shape};
use crate::ir::{Graph, Role, RowSelect, Tensor, of_expert};
use kernmill_checkpoint::{Checkpoint, CheckpointError, FP4_BLOCK_BYTES, Result, TensorView};
use kernmill_plan::format::BLOCK;
use kernmill_plan::format::mxfp4::{E2M1, scale_value};
use std::ops::Range;

/// A checkpoint bound to the graph whose weights it holds.
///
/// Rows are counted after [`crate::ir::RowSelect`]. The rows of a matrix or table are its `n` rows of `k`
/// elements; a vector counts as `n` rows of one element. `expert` is 0 for tensors without experts.
#[derive(Clone, Copy, Debug)]
pub struct CheckpointWeights<'a> {
    checkpoint: &'a Checkpoint,
}

/// A tensor's geometry in the checkpoint.
struct TensorGeometry {
    /// Rows per expert in the checkpoint.
    stored_rows: usize,
    /// Elements per row.
    cols: usize,
    /// Which of the rows are the tensor's.
    taken: RowSelect,
    /// Whether the checkpoint tensor is one expert's.
    gathered: bool,
    /// Order of the rows in heads, as [`TensorView`] has it.
    paired: Option<usize>,
}

/// MXFP4 in two tensors.
struct Mxfp4Data<'a> {
    /// Codes by block of 32, the low nibble first.
    codes: &'a [[u8; FP4_BLOCK_BYTES]],
    /// By block.
    scales: &'a [u8],
    geometry: TensorGeometry,
}

impl<'a> CheckpointWeights<'a> {
    /// Binds, see [`super::bind`].
    ///
    /// # Errors
    /// If a tensor of `graph` is missing from the checkpoint or unlike it, or the checkpoint has tensors left
    /// over.
    pub fn new(graph: &Graph, checkpoint: &'a Checkpoint) -> Result<CheckpointWeights<'a>> {
        super::bind(graph, checkpoint)?;
        Ok(CheckpointWeights { checkpoint })
    }

    /// A checkpoint with some of a graph's tensors alone; others are missed when they are read. Shapes are
    /// not checked: they are those of a checkpoint that was bound.
    pub fn of_some(checkpoint: &'a Checkpoint) -> CheckpointWeights<'a> {
        CheckpointWeights { checkpoint }
    }

    /// The checkpoint.
    pub fn checkpoint(&self) -> &'a Checkpoint {
        self.checkpoint
    }

    /// Whether a row is spread over all of the tensor's bytes, or its expert's.
    fn is_across(&self, t: &Tensor, expert: usize) -> bool {
        let view = || self.checkpoint.tensor(&of_expert(&t.source.name, expert));
        t.source.transposed || view().is_some_and(|view| view.is_across())
    }

    /// The bytes of the rows in each checkpoint tensor, all of them where rows are spread over it.
    /// Rows of a period that another tensor has are counted with those before them; rows that lie in another
    /// order within their head are where their number says, to within a head.
    fn each_part(&self, t: &Tensor, expert: usize, rows: Range<usize>, take: impl Fn(&str, Range<usize>)) {
        let (experts, n) = experts_and_rows(t);
        let rows = if self.is_across(t, expert) { 0..n } else { rows };
        let (place, experts) = if t.source.is_gathered() { (0, 1) } else { (expert, experts) };
        let all = row_shape(t)[t.row_dim()];
        let taken = t.source.rows;
        let to = |row: usize| row.checked_sub(1).map_or(0, |last| taken.row(last) + 1);
        for name in [Some(&t.source.name), t.source.scales.as_ref()].into_iter().flatten() {
            let name = of_expert(name, expert);
            if let Some(view) = self.checkpoint.tensor(&name) {
                let bytes = view.data.len() / experts;
                let at = |row: usize| place * bytes + (bytes as u128 * row as u128 / all as u128) as usize;
                take(&name, at(taken.row(rows.start).min(to(rows.end)))..at(to(rows.end)));
            }
        }
    }

    fn mxfp4(&self, t: &Tensor, scales: &str, expert: usize) -> Result<Mxfp4Data<'a>> {
        let codes = self.view(t, &t.source.name, expert)?;
        Ok(Mxfp4Data {
            codes: codes.data.as_chunks().0,
            scales: self.view(t, scales, expert)?.data,
            geometry: TensorGeometry::of(t, &codes),
        })
    }

    /// The checkpoint tensor of that name, or the expert's of such names.
    fn view(&self, t: &Tensor, name: &str, expert: usize) -> Result<TensorView<'a>> {
        let name = of_expert(name, expert);
        self.checkpoint.tensor(&name).ok_or_else(|| CheckpointError::Missing {
            path: self.checkpoint.path().to_owned(),
            name: name.into_owned(),
            logical: t.name.clone(),
            near: String::new(),
        })
    }
}

impl WeightSource for CheckpointWeights<'_> {
    type Error = CheckpointError;

    fn f32_rows(&self, t: &Tensor, expert: usize, rows: Range<usize>, out: &mut Vec<f32>) -> Result<()> {
        out.clear();
        if let Some(scales) = &t.source.scales {
            let data = self.mxfp4(t, scales, expert)?;
            for block in rows.flat_map(|row| data.geometry.blocks(expert, row)) {
                let scale = scale_value(data.scales[block]);
                for byte in data.codes[block] {
                    out.push(E2M1[usize::from(byte & 15)] * scale);
                    out.push(E2M1[usize::from(byte >> 4)] * scale);
                }
            }
            return Ok(());
        }
        let view = self.view(t, &t.source.name, expert)?;
        let place = TensorGeometry::of(t, &view);
        if t.source.transposed {
            place.columns(&view, expert, rows, out);
            return Ok(());
        }
        out.reserve(rows.len() * place.cols);
        let row_bytes =
            view.encoding.row_bytes(view.dtype, place.cols).expect("binding has checked the shape");
        let mut made = Vec::new();
        for row in rows {
            let row = place.row(expert, row);
            if !view.is_quantised() {
                let at = row * row_bytes;
                view.encoding.decode(view.dtype, &view.data[at..at + row_bytes], out);
                continue;
            }
            made.clear();
            view.append_row(row, row_bytes, &mut made);
            view.encoding.decode(view.dtype, &made, out);
        }
        Ok(())
    }

    fn stored_rows(
        &self,
        t: &Tensor,
        expert: usize,
        rows: Range<usize>,
        blocks: &mut Vec<u8>,
        scales: &mut Vec<u8>,
    ) -> Result<()> {
        blocks.clear();
        scales.clear();
        if let Some(name) = &t.source.scales {
            let data = self.mxfp4(t, name, expert)?;
            for row in rows.map(|row| data.geometry.blocks(expert, row)) {
                blocks.extend_from_slice(data.codes[row.clone()].as_flattened());
                scales.extend_from_slice(&data.scales[row]);
            }
            return Ok(());
        }
        let view = self.view(t, &t.source.name, expert)?;
        let place = TensorGeometry::of(t, &view);
        let row_bytes =
            view.encoding.row_bytes(view.dtype, place.cols).expect("binding has checked the shape");
        for row in rows {
            view.append_row(place.row(expert, row), row_bytes, blocks);
        }
        Ok(())
    }

    fn will_need(&self, t: &Tensor, expert: usize, rows: Range<usize>) {
        if rows.start > 0 && self.is_across(t, expert) {
            return;
        }
        self.each_part(t, expert, rows, |name, bytes| self.checkpoint.prefetch(name, bytes));
    }

    fn done_with(&self, t: &Tensor, expert: usize, rows: Range<usize>) {
        if rows.end < experts_and_rows(t).1 && self.is_across(t, expert) {
            return;
        }
        self.each_part(t, expert, rows, |name, bytes| self.checkpoint.release(name, bytes));
    }

    fn drop_cache(&self) {
        self.checkpoint.drop_cache();
    }
}

impl TensorGeometry {
    fn of(t: &Tensor, view: &TensorView<'_>) -> TensorGeometry {
        let shape = row_shape(t);
        let rank = shape.len();
        let (stored_rows, cols) = match t.role {
            Role::Vector | Role::ExpertVector => (shape[rank - 1], 1),
            Role::Matrix | Role::ExpertMatrix | Role::Table => (shape[rank - 2], shape[rank - 1]),
        };
        let paired = view.paired.filter(|head| stored_rows.is_multiple_of(*head));
        TensorGeometry { stored_rows, cols, taken: t.source.rows, gathered: t.source.is_gathered(), paired }
    }

    /// Appends rows `rows` of a matrix that is stored as `[experts, cols, rows]`: those are columns there, so
    /// that each stored row gives a short run, which is spread out.
    fn columns(&self, view: &TensorView<'_>, expert: usize, rows: Range<usize>, out: &mut Vec<f32>) {
        let Some(last) = rows.clone().next_back() else { return };
        let (low, high) = (self.taken.row(rows.start), self.taken.row(last) + 1);
        assert!(high <= self.stored_rows, "row {last} of {}", self.stored_rows);
        let bytes = view.dtype.bitsize() / 8;
        let start = out.len();
        out.resize(start + rows.len() * self.cols, 0.0);
        let mut run = Vec::with_capacity(high - low);
        for col in 0..self.cols {
            let at = (self.place(expert) * self.cols + col) * self.stored_rows;
            run.clear();
            view.encoding.decode(view.dtype, &view.data[(at + low) * bytes..(at + high) * bytes], &mut run);
            for (i, row) in rows.clone().enumerate() {
                out[start + i * self.cols + col] = run[self.taken.row(row) - low];
            }
        }
    }

    /// Place of an expert in the checkpoint tensor.
    fn place(&self, expert: usize) -> usize {
        if self.gathered { 0 } else { expert }
    }

    /// Blocks of 32 that a row has.
    fn blocks(&self, expert: usize, row: usize) -> Range<usize> {
        let (at, count) = (self.row(expert, row), self.cols / BLOCK);
        at * count..(at + 1) * count
    }

    /// Row of the checkpoint tensor, counted through the experts.
    fn row(&self, expert: usize, row: usize) -> usize {
        let row = self.taken.row(row);
        assert!(row < self.stored_rows, "row {row} of {}", self.stored_rows);
        let row = match self.paired {
            None => row,
            Some(head) => {
                let (half, within) = (head / 2, row % head);
                row - within + within % half * 2 + within / half
            }
        };
        self.place(expert) * self.stored_rows + row
    }
}

/// Experts, 1 for a tensor without them, and rows of each.
fn experts_and_rows(t: &Tensor) -> (usize, usize) {
    match t.role {
        Role::ExpertMatrix | Role::ExpertVector => (t.shape[0], t.shape[1]),
        Role::Matrix | Role::Vector | Role::Table => (1, t.shape[0]),
    }
}
