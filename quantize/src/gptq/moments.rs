//! Sums over rows of inputs: of the products of every two columns.

use crate::forward::gemm::PanelMatrix;
use kernmill_os::threads::share;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Columns of a stripe.
const STRIPE: usize = 64;
/// Rows whose products are summed in f32 before they are added in f64.
const CHUNK: usize = 1024;

/// `X^T X` of the rows of an input, `[cols][cols]`, symmetric. Sums are in the order of the rows, the same
/// for any number of threads.
pub(crate) struct InputMoments {
    cols: usize,
    /// For each stripe of columns, its rows from the first to the stripe's own.
    stripes: Vec<Vec<f64>>,
    /// Rows that were added.
    pub(crate) rows: usize,
}

impl InputMoments {
    /// The sums over rows of `cols` elements.
    pub(crate) fn of<'r>(rows: impl Iterator<Item = &'r [f32]>, cols: usize, threads: usize) -> InputMoments {
        let stripe = |at: usize| vec![0.0; (at + STRIPE).min(cols) * STRIPE.min(cols - at)];
        let stripes = (0..cols).step_by(STRIPE).map(stripe).collect();
        let mut moments = InputMoments { cols, stripes, rows: 0 };
        let mut chunk: Vec<&[f32]> = Vec::with_capacity(CHUNK);
        for row in rows {
            chunk.push(row);
            if chunk.len() == CHUNK {
                moments.add(&chunk, threads);
                chunk.clear();
            }
        }
        if !chunk.is_empty() {
            moments.add(&chunk, threads);
        }
        moments
    }

    fn add(&mut self, rows: &[&[f32]], threads: usize) {
        self.rows += rows.len();
        let count = rows.len();
        let mut across = vec![0.0; self.cols * count];
        for (at, row) in rows.iter().enumerate() {
            across.iter_mut().skip(at).step_by(count).zip(*row).for_each(|(to, x)| *to = *x);
        }
        let stripes: Vec<Mutex<&mut Vec<f64>>> = self.stripes.iter_mut().map(Mutex::new).collect();
        let next = AtomicUsize::new(0);
        share(threads.min(stripes.len()), || {
            // The longest come first.
            while let Some(at) = stripes.len().checked_sub(1 + next.fetch_add(1, Ordering::Relaxed)) {
                let (from, end) = (at * STRIPE, ((at + 1) * STRIPE).min(self.cols));
                let panels = PanelMatrix::new(&across[from * count..end * count], count);
                let products = panels.product(&across[..end * count]);
                let mut stripe = stripes[at].lock().unwrap_or_else(PoisonError::into_inner);
                stripe.iter_mut().zip(products).for_each(|(sum, more)| *sum += f64::from(more));
            }
        });
    }

    /// Columns of the rows.
    pub(crate) fn cols(&self) -> usize {
        self.cols
    }

    /// The sum of the products of two columns.
    pub(crate) fn at(&self, a: usize, b: usize) -> f64 {
        let (a, b) = (a.min(b), a.max(b));
        let width = STRIPE.min(self.cols - b / STRIPE * STRIPE);
        self.stripes[b / STRIPE][a * width + b % STRIPE]
    }
}
