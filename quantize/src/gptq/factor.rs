//! The moments of an input as `U D U^T`, with `U` upper triangular and ones on its diagonal.
//!
//! The squared error of a row's product over all inputs is then a sum of squares, one for each column. When
//! columns are rounded one after the other, each can make up for the errors of those before it.

use super::moments::InputMoments;
use crate::forward::gemm::PanelMatrix;
use kernmill_os::threads::share;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Columns that are eliminated, and rounded, together.
pub(crate) const BLOCK: usize = 64;
/// Additions to the diagonal, as parts of its mean: more, where less leaves no positive matrix.
const DAMPING: [f64; 3] = [0.01, 0.1, 1.0];
const LANES: usize = 8;

/// The factors of an input's moments.
pub(crate) struct InputFactors {
    /// Columns in the order in which they are rounded: those with the largest inputs first.
    pub(crate) order: Vec<usize>,
    /// `D`, in this order, as parts of the moments' mean.
    pub(crate) squares: Vec<f64>,
    /// For each block of columns: `U` of all columns before the block, as rows of a product.
    pub(crate) before: Vec<Option<PanelMatrix>>,
    /// For each block: `U` within, `[from][to]`.
    pub(crate) within: Vec<Vec<f32>>,
}

impl InputFactors {
    /// `None` if the inputs are all 0, or no numbers.
    pub(crate) fn of(moments: &InputMoments, threads: usize) -> Option<InputFactors> {
        let cols = moments.cols();
        let diagonal: Vec<f64> = (0..cols).map(|at| moments.at(at, at)).collect();
        let mean = diagonal.iter().sum::<f64>() / cols as f64;
        if !(mean.is_finite() && mean > f64::MIN_POSITIVE) {
            return None;
        }
        let mut order: Vec<usize> = (0..cols).collect();
        order.sort_by(|&a, &b| diagonal[b].total_cmp(&diagonal[a]).then(a.cmp(&b)));
        let lower = DAMPING.into_iter().find_map(|damping| {
            // The last column is eliminated first.
            let mut lower = vec![0.0; cols * cols];
            for (i, row) in lower.chunks_exact_mut(cols).enumerate() {
                let of = order[cols - 1 - i];
                for (j, to) in row[..=i].iter_mut().enumerate() {
                    *to = moments.at(of, order[cols - 1 - j]) / mean;
                }
                row[i] += damping;
            }
            cholesky(&mut lower, cols, threads).then_some(lower)
        })?;
        let u = |from: usize, to: usize| {
            let (row, column) = (cols - 1 - from, cols - 1 - to);
            (lower[row * cols + column] / lower[column * cols + column]) as f32
        };
        let (mut before, mut within) = (Vec::new(), Vec::new());
        for start in (0..cols).step_by(BLOCK) {
            let end = (start + BLOCK).min(cols);
            let rows: Vec<f32> = (start..end)
                .flat_map(|to| (0..start).map(move |from| (from, to)))
                .map(|(from, to)| u(from, to))
                .collect();
            before.push((start > 0).then(|| PanelMatrix::new(&rows, start)));
            let inner = (start..end).flat_map(|from| (start..end).map(move |to| (from, to)));
            within.push(inner.map(|(from, to)| if from < to { u(from, to) } else { 0.0 }).collect());
        }
        let square = |at: usize| lower[(cols - 1 - at) * cols + cols - 1 - at].powi(2);
        Some(InputFactors { squares: (0..cols).map(square).collect(), order, before, within })
    }
}

/// Replaces the lower triangle of a symmetric matrix by its factor `L`, where it is `L L^T`. False if it is
/// not positive. Each element's operations have one order, whatever the threads.
fn cholesky(a: &mut [f64], n: usize, threads: usize) -> bool {
    for start in (0..n).step_by(BLOCK) {
        let end = (start + BLOCK).min(n);
        let width = end - start;
        for j in start..end {
            for i in j..end {
                let products: f64 = (start..j).map(|k| a[i * n + k] * a[j * n + k]).sum();
                let rest = a[i * n + j] - products;
                a[i * n + j] = if i > j { rest / a[j * n + j] } else { rest.sqrt() };
            }
            let pivot = a[j * n + j];
            if !(pivot.is_finite() && pivot > 0.0) {
                return false;
            }
        }
        let (above, below) = a.split_at_mut(end * n);
        if below.is_empty() {
            break;
        }
        let corner = |i: usize, k: usize| above[(start + i) * n + start + k];
        // The rows below solve for their part of L by themselves.
        each_chunk(below, n, threads, |_, rows| {
            for row in rows.chunks_exact_mut(n) {
                for j in 0..width {
                    let products: f64 = (0..j).map(|k| row[start + k] * corner(j, k)).sum();
                    row[start + j] = (row[start + j] - products) / corner(j, j);
                }
            }
        });
        let count = below.len() / n;
        let padded = count.next_multiple_of(LANES);
        let mut across = vec![0.0; width * padded];
        for (at, row) in below.chunks_exact(n).enumerate() {
            for k in 0..width {
                across[k * padded + at] = row[start + k];
            }
        }
        each_chunk(below, n, threads, |first, rows| {
            // SAFETY: products in f32 need these features as well, and have asserted them.
            unsafe { subtract(rows, n, start..end, first, &across, padded) }
        });
    }
    true
}

/// Does something with chunks of rows on several threads; it is told the first row.
fn each_chunk(rows: &mut [f64], n: usize, threads: usize, work: impl Fn(usize, &mut [f64]) + Sync) {
    const ROWS: usize = 32;
    let chunks: Vec<Mutex<&mut [f64]>> = rows.chunks_mut(ROWS * n).map(Mutex::new).collect();
    let next = AtomicUsize::new(0);
    share(threads.min(chunks.len()), || {
        while let Some(at) = chunks.len().checked_sub(1 + next.fetch_add(1, Ordering::Relaxed)) {
            work(at * ROWS, &mut chunks[at].lock().unwrap_or_else(PoisonError::into_inner));
        }
    });
}

/// Subtracts from each row, behind the columns `of`, the products of its part there with those of all rows up
/// to itself, which `across` has by column.
#[target_feature(enable = "avx2,fma")]
fn subtract(
    rows: &mut [f64],
    n: usize,
    of: std::ops::Range<usize>,
    first: usize,
    across: &[f64],
    padded: usize,
) {
    for (at, row) in rows.chunks_exact_mut(n).enumerate() {
        let (done, rest) = row.split_at_mut(of.end);
        let factors = &done[of.start..];
        let count = first + at + 1;
        for (chunk, to) in rest[..count].chunks_mut(4 * LANES).enumerate() {
            let from = chunk * 4 * LANES;
            let mut sums = [0.0; 4 * LANES];
            for (factor, line) in factors.iter().zip(across.chunks_exact(padded)) {
                let line = &line[from..];
                let many = line.len().min(4 * LANES);
                for (sum, x) in sums[..many].iter_mut().zip(&line[..many]) {
                    *sum = factor.mul_add(*x, *sum);
                }
            }
            to.iter_mut().zip(sums).for_each(|(to, sum)| *to -= sum);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastrand::Rng;

    fn random(rng: &mut Rng, rows: usize, cols: usize) -> Vec<f32> {
        (0..rows * cols).map(|_| rng.f32() - 0.5).collect()
    }

    #[test]
    fn factors_multiply_to_the_moments() {
        let mut rng = Rng::with_seed(1);
        for (rows, cols) in [(300, 100), (40, 150), (3000, 64), (9, 1)] {
            let x = random(&mut rng, rows, cols);
            let moments = InputMoments::of(x.chunks_exact(cols), cols, 2);
            let sum = |a: usize, b: usize| -> f64 {
                x.chunks_exact(cols).map(|row| f64::from(row[a]) * f64::from(row[b])).sum()
            };
            let mean = (0..cols).map(|at| sum(at, at)).sum::<f64>() / cols as f64;
            let factors = InputFactors::of(&moments, 3).unwrap();
            let again = InputFactors::of(&moments, 1).unwrap();
            assert_eq!(factors.squares, again.squares);
            assert_eq!(factors.within, again.within);
            let u = |from: usize, to: usize| -> f64 {
                let (block, start) = (to / BLOCK, to / BLOCK * BLOCK);
                let width = BLOCK.min(cols - start);
                match from {
                    _ if from == to => 1.0,
                    _ if from > to => 0.0,
                    _ if from >= start => {
                        f64::from(factors.within[block][(from - start) * width + to - start])
                    }
                    _ => {
                        let mut unit = vec![0.0; start];
                        unit[from] = 1.0;
                        let products = factors.before[block].as_ref().unwrap().product(&unit);
                        f64::from(products[to - start])
                    }
                }
            };
            let all: Vec<f64> = (0..cols * cols).map(|at| u(at / cols, at % cols)).collect();
            for i in 0..cols {
                for j in 0..=i {
                    let made: f64 =
                        (i..cols).map(|k| all[i * cols + k] * factors.squares[k] * all[j * cols + k]).sum();
                    let (a, b) = (factors.order[i], factors.order[j]);
                    let expected = sum(a, b) / mean + if i == j { DAMPING[0] } else { 0.0 };
                    assert!((made - expected).abs() < 2e-5, "{rows} {cols} {i} {j}: {made} {expected}");
                }
            }
        }
    }

    #[test]
    fn degenerate_moments_are_damped_or_refused() {
        let of =
            |x: &[f32], cols: usize| InputFactors::of(&InputMoments::of(x.chunks_exact(cols), cols, 2), 2);
        assert!(of(&[0.0; 640], 64).is_none());
        assert!(of(&[], 64).is_none());
        assert!(of(&[f32::NAN; 64], 64).is_none());
        assert!(of(&[f32::MAX; 64], 64).is_none());
        // One direction, of very different sizes; a column without inputs; one row.
        let row: Vec<f32> = (0..64).map(|at| if at == 7 { 0.0 } else { 10f32.powi(at % 20 - 10) }).collect();
        for x in [row.repeat(3), row.clone(), vec![1.0; 6400]] {
            let factors = of(&x, 64).unwrap();
            assert!(factors.squares.iter().all(|square| *square > 0.0));
            assert!(factors.within.iter().flatten().all(|x| x.is_finite()));
        }
    }
}
