//! How the items of a kernel are handed out to workers, as numbers.

use crate::body::{down_part, items_per_claim};
use crate::kernel::{Body, Kernel, MatrixPart, PROLOGUE_TOKENS, RowType, Tiling};
use crate::ukernel::gemm_bf16::PANEL_ROWS;
use kernmill_plan::hand_out::HandOut;

/// The hand-out of a kernel's items over `rows` rows of its domain, of which each of `experts` experts has some.
/// Attention and the shrinks of adapters, whose items are not those of a matrix, have `rows` items.
pub fn hand_out(kernel: &Kernel, rows: usize, experts: usize) -> HandOut {
    let run = items_per_claim(&kernel.body) as u64;
    match &kernel.body {
        Body::Rows { .. } => HandOut::even(rows as u64),
        Body::Matmul { parts, .. } => {
            let items = parts.iter().map(MatrixPart::items).sum::<usize>() as u64;
            let by_panels = kernel.tiling.least_rows().is_some_and(|least| rows >= least);
            if by_panels { HandOut::even(items) } else { HandOut::with_tail(items, run) }
        }
        Body::Experts { top_k, part, .. } => {
            let items = (experts * part.items()) as u64;
            let is_batch = kernel.max_rows > PROLOGUE_TOKENS * top_k;
            if is_batch { HandOut::one_by_one(items) } else { HandOut::with_tail(items, run) }
        }
        Body::ExpertDown { input, mat, rows_per_item, .. } => {
            let items = down_part(mat, *rows_per_item).items() as u64;
            let has_costly_panels = match kernel.vals[*input].row {
                RowType::Bf16(_) => kernel.max_rows > PANEL_ROWS,
                _ => kernel.tiling != Tiling::Dot,
            };
            if has_costly_panels { HandOut::even(items) } else { HandOut::with_tail(items, run) }
        }
        Body::Attention(_) | Body::Shrink { .. } => HandOut::one_by_one(rows as u64),
    }
}
