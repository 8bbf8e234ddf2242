//! Items that dots take together, so that one micro-kernel multiplies four tiles although an item has fewer:
//! their results are as those of one wide item.

use crate::emit::Emit;
use crate::kernel::MatrixPart;
use crate::ukernel::TILES_PER_CALL;
use cranelift_codegen::ir::{InstBuilder, Value};
use kernmill_plan::format::TILE_ROWS;

/// Consecutive items of a part.
#[derive(Clone, Copy)]
pub struct ItemRun {
    /// Number of the first.
    pub first: Value,
    /// How many.
    pub items: usize,
}

impl ItemRun {
    /// One item.
    pub fn one(item: Value) -> ItemRun {
        ItemRun { first: item, items: 1 }
    }

    /// Columns of each of the part's matrices.
    pub fn columns(self, part: &MatrixPart) -> usize {
        part.rows_per_item * self.items
    }

    /// Bytes of one row of results, `[mats][columns]` f32.
    pub fn row_bytes(self, part: &MatrixPart) -> usize {
        part.result_bytes() * self.items
    }

    /// Bytes from the start of a row of f32 to the run's columns.
    pub fn offset(self, e: &mut Emit, part: &MatrixPart) -> Value {
        e.mul_imm(self.first, (part.rows_per_item * 4) as i64)
    }
}

/// Which rows of the batch the results belong to.
#[derive(Clone, Copy)]
pub enum RowsOf<'f> {
    /// Consecutive ones from this on, in batch and output alike.
    From(Value),
    /// For result row i: the batch row (positions, sequences) and the row of outputs and residuals.
    Each(&'f dyn Fn(&mut Emit, Value) -> (Value, Value)),
}

/// Items of a part that dots take together: when an item has fewer tiles than one micro-kernel multiplies, as
/// many as fill it.
pub fn run_of(part: &MatrixPart) -> usize {
    let tiles = part.rows_per_item / TILE_ROWS;
    let run = TILES_PER_CALL / tiles.max(1);
    // Where operations work on heads, an item is one.
    let is_one = part.mats.len() != 1 || part.epilogue.iter().any(|op| op.facts().head_dim.is_some());
    if !is_one && run * tiles == TILES_PER_CALL && part.items() >= run { run } else { 1 }
}

/// Items that are handed out together: [`run_of`] all parts if it is one number.
pub fn run_of_all(parts: &[MatrixPart]) -> usize {
    let first = run_of(&parts[0]);
    if parts.iter().all(|part| run_of(part) == first) { first } else { 1 }
}

impl Emit<'_, '_> {
    /// `clamp(value - first, 0, count)`, signed.
    pub fn clamp_from(&mut self, value: Value, first: Value, count: Value) -> Value {
        let relative = self.b.ins().isub(value, first);
        let zero = self.i64(0);
        let floor = self.b.ins().smax(relative, zero);
        self.b.ins().smin(floor, count)
    }
}

/// Runs `body` over items `start..end` in runs of `run` items, a power of two, then one by one.
pub fn for_runs(
    e: &mut Emit,
    start: Value,
    end: Value,
    run: usize,
    mut body: impl FnMut(&mut Emit, ItemRun),
) {
    let mut from = start;
    if run > 1 {
        let count = e.b.ins().isub(end, start);
        let whole = e.b.ins().band_imm_s(count, -(run as i64));
        from = e.add(start, whole);
        e.for_range(start, from, run as i64, |e, first| body(e, ItemRun { first, items: run }));
    }
    e.for_range(from, end, 1, |e, item| body(e, ItemRun::one(item)));
}
