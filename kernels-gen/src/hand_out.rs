//! How the items of a kernel are handed out to workers, as numbers.

use crate::body::items_per_claim;
use crate::kernel::{Body, Kernel, MatrixPart};
use kernmill_plan::hand_out::HandOut;

/// The hand-out of a kernel's items over `rows` rows of its domain; experts that any row has chosen have
/// `chosen` rows each. Attention and the shrinks of adapters, whose items are not those of a matrix, have
/// `rows` items.
pub fn hand_out(kernel: &Kernel, rows: usize, chosen: &[usize]) -> HandOut {
    let run = items_per_claim(&kernel.body) as u64;
    match &kernel.body {
        Body::Rows { .. } | Body::Panels { .. } => HandOut::even(rows as u64),
        Body::Matmul { parts, .. } => {
            HandOut::with_tail(parts.iter().map(MatrixPart::items).sum::<usize>() as u64, run)
        }
        Body::Experts { part, even_rows, .. } => {
            let cost = |rows: &usize| *rows.max(even_rows) as u64;
            HandOut::by_cost(chosen.iter().map(cost).collect(), part.items() as u64, run)
        }
        Body::ExpertDown { mat, rows_per_item, .. } => {
            HandOut::with_tail(MatrixPart::down(mat, *rows_per_item).items() as u64, run)
        }
        Body::Attention(_) | Body::Shrink { .. } => HandOut::one_by_one(rows as u64),
    }
}
