//! Rows that are rounded column by column, where each column makes up for the errors of those before it.

use super::factor::{BLOCK, InputFactors};
use crate::fit::{BlockFitter, RowGrid, UnfitWeight};
use kernmill_plan::format::{WeightFormat, read_stored};

/// Squared errors of products with the inputs, as parts of the inputs' mean square.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ProductErrors {
    /// The sum for rows whose weights are fitted one at a time.
    pub(crate) fitted: f64,
    /// The sum for the rows that were written.
    pub(crate) written: f64,
}

/// Rounds rows to a type for inputs with known moments.
pub(crate) struct RowRounder<'a> {
    fitter: BlockFitter,
    format: WeightFormat,
    factors: &'a InputFactors,
    /// Weights of the columns' errors where scales are fitted.
    importance: &'a [f32],
}

/// Rows with their columns in the order of the factors.
type OrderedRows = Vec<f32>;

impl<'a> RowRounder<'a> {
    pub(crate) fn new(
        format: WeightFormat,
        factors: &'a InputFactors,
        importance: &'a [f32],
    ) -> RowRounder<'a> {
        RowRounder { fitter: BlockFitter::new(format), format, factors, importance }
    }

    /// Appends the rows `x` in the type. Scales are those of the fit. A row whose error would not fall stays
    /// as it is fitted.
    ///
    /// # Errors
    /// The row, and a weight that no block can hold.
    pub(crate) fn rows(&self, x: &[f32], out: &mut Vec<u8>) -> Result<ProductErrors, (usize, UnfitWeight)> {
        let cols = self.importance.len();
        let (mut fits, mut grids, mut fitted) = (Vec::new(), Vec::new(), Vec::with_capacity(x.len()));
        for (at, row) in x.chunks_exact(cols).enumerate() {
            let mut bytes = Vec::new();
            self.fitter.row(row, self.importance, &mut bytes).map_err(|unfit| (at, unfit))?;
            read_stored(self.format, &bytes, &mut fitted);
            grids.push(self.fitter.grid(&bytes));
            fits.push(bytes);
        }
        let (x, fitted) = (self.ordered(x), self.ordered(&fitted));
        let of_fit = self.sweep(&x, |row, at, _| fitted[row * cols + at]);
        let of_grid = self.sweep(&x, |row, at, wanted| {
            let grid: &mut RowGrid = &mut grids[row];
            self.fitter.choose(grid, self.factors.order[at], wanted)
        });
        let mut errors = ProductErrors::default();
        for ((grid, fit), (of_fit, of_grid)) in grids.iter().zip(&fits).zip(of_fit.into_iter().zip(of_grid)) {
            errors.fitted += of_fit;
            if of_grid < of_fit {
                errors.written += of_grid;
                self.fitter.write(grid, out);
            } else {
                errors.written += of_fit;
                out.extend_from_slice(fit);
            }
        }
        Ok(errors)
    }

    fn ordered(&self, rows: &[f32]) -> OrderedRows {
        let cols = self.importance.len();
        rows.chunks_exact(cols).flat_map(|row| self.factors.order.iter().map(|&at| row[at])).collect()
    }

    /// Chooses a number for each weight, column by column. `choose` gets the row, the place of the column and
    /// what would make up for all errors before it. Returned is the squared error of each row's products.
    fn sweep(&self, x: &OrderedRows, mut choose: impl FnMut(usize, usize, f32) -> f32) -> Vec<f64> {
        let cols = self.importance.len();
        let count = x.len() / cols;
        let mut squares = vec![0.0; count];
        let mut errors = vec![0.0; x.len()];
        for (block, start) in (0..cols).step_by(BLOCK).enumerate() {
            let width = BLOCK.min(cols - start);
            let mut due = match &self.factors.before[block] {
                None => vec![0.0; count * width],
                Some(before) => {
                    let done = errors.chunks_exact(cols).flat_map(|row| &row[..start]).copied();
                    before.product(&done.collect::<Vec<f32>>())
                }
            };
            let within = &self.factors.within[block];
            for (row, due) in due.chunks_exact_mut(width).enumerate() {
                for at in 0..width {
                    let place = row * cols + start + at;
                    let wanted = x[place] + due[at];
                    let chosen = choose(row, start + at, wanted);
                    let error = x[place] - chosen;
                    errors[place] = error;
                    let left = f64::from(wanted - chosen);
                    squares[row] += self.factors.squares[start + at] * left * left;
                    let line = &within[at * width..][..width];
                    due[at + 1..].iter_mut().zip(&line[at + 1..]).for_each(|(due, u)| *due += error * u);
                }
            }
        }
        squares
    }
}
