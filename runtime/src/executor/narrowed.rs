//! A batch's wanted rows as a separate batch.

use super::batch::Batch;

/// The rows, and their numbers.
pub(super) struct Narrowed {
    batch: Batch,
    /// 0, 1, and so on.
    numbers: Box<[u32]>,
}

impl Narrowed {
    /// Room for so many rows.
    pub(super) fn new(tokens: u32) -> Narrowed {
        Narrowed { batch: Batch::with_capacity(tokens as usize), numbers: (0..tokens).collect() }
    }

    /// Takes rows of a checked batch.
    pub(super) fn take(&mut self, of: &Batch, rows: &[u32]) {
        self.batch.clear();
        for row in rows.iter().map(|row| *row as usize) {
            self.batch.push(of.token_ids[row], of.positions[row], of.sequences[row], of.adapters[row]);
            // Rows that are left out are seen all the same.
            self.batch.last_positions.push(of.last_positions[row]);
        }
        self.batch.count_runs();
    }

    pub(super) fn batch(&self) -> &Batch {
        &self.batch
    }

    /// Numbers of the rows in the batch of their own.
    pub(super) fn numbers(&self) -> &[u32] {
        &self.numbers[..self.batch.len()]
    }
}
