//! What a kernel's workers read first, for those that wait for the step before.

use crate::body::{equal_shares, items_per_claim};
use crate::kernel::{Body, Kernel, Mat, OperandId, Part, RowOp, Tiling};
use kernmill_plan::format::TILE_ROWS;
use kernmill_plan::program::{PrefetchHint, PrefetchRange};

/// A kernel's weights in the order in which workers come to them. Whose choice says which expert comes first
/// is left open.
pub fn prefetch_hint(kernel: &Kernel) -> PrefetchHint {
    let whole = kernel.prologue.iter().flat_map(row_op_weights).map(|operand| operand as u32).collect();
    let mut prefetch = PrefetchHint { whole, ..PrefetchHint::default() };
    let dots = kernel.tiling == Tiling::Dot;
    let run = if dots { items_per_claim(&kernel.body) } else { 1 };
    let shared = |items: usize| if dots { equal_shares(items, run) } else { items } as u32;
    match &kernel.body {
        Body::Matmul { parts, .. } => {
            prefetch.parts = parts
                .iter()
                .map(|part| runs_of(&part.mats[0], part.rows_per_item, part.items(), run))
                .collect();
            prefetch.shared = shared(parts.iter().map(Part::items).sum());
        }
        Body::ExpertDown { mat, rows_per_item, .. } => {
            let items = mat.n.div_ceil(*rows_per_item);
            prefetch.parts = vec![runs_of(mat, *rows_per_item, items, run)];
            prefetch.shared = shared(items);
        }
        // Which experts a token goes to is not known before the step has begun; attention knows its own
        // blocks.
        Body::Rows { .. } | Body::Experts { .. } | Body::Attention(_) | Body::Shrink { .. } => {}
    }
    prefetch
}

/// Work items of `rows_per_item` rows, in runs.
fn runs_of(mat: &Mat, rows_per_item: usize, items: usize, run: usize) -> PrefetchRange {
    PrefetchRange {
        operand: mat.operand as u32,
        items: items.div_ceil(run) as u32,
        item_bytes: (run * rows_per_item / TILE_ROWS * mat.tile_stride) as u64,
        expert_stride: mat.expert_stride as u64,
    }
}

/// Weights that a row operation of a prologue reads from end to end.
fn row_op_weights(row_op: &RowOp) -> Vec<OperandId> {
    match row_op {
        RowOp::RmsNorm { weight, .. } => vec![*weight],
        RowOp::Linear { mat, .. } => [Some(mat.operand), mat.bias].into_iter().flatten().collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Domain, Epilogue};
    use kernmill_plan::format::WeightFormat;

    /// Bytes of a tile of the matrix.
    const TILE: usize = 100;

    fn part(n: usize, rows_per_item: usize, epilogue: Vec<Epilogue>) -> Part {
        let mat = Mat {
            operand: 3,
            format: WeightFormat::Int8,
            n,
            k: 64,
            tile_stride: TILE,
            expert_stride: 0,
            bias: None,
            adapter: None,
        };
        Part { mats: vec![mat], interleaved: false, rows_per_item, epilogue }
    }

    fn by_dots(body: Body) -> PrefetchHint {
        let (vals, prologue) = (Vec::new(), Vec::new());
        prefetch_hint(&Kernel { vals, prologue, body, max_rows: 1, tiling: Tiling::Dot })
    }

    /// Where in the matrix workers begin, by the rule of `PrefetchHint`, in tiles.
    fn starts(prefetch: &PrefetchHint, workers: u64) -> Vec<u64> {
        let item = |worker| u64::from(prefetch.shared) * worker / workers;
        (0..workers).map(|worker| item(worker) * prefetch.parts[0].item_bytes / TILE as u64).collect()
    }

    /// 180 items of a tile, of which 45 are left to the counter: the other 135 are 33 runs of four.
    #[test]
    fn workers_begin_at_whole_runs_of_what_is_handed_out_in_equal_shares() {
        let store = vec![Epilogue::Store { out: 0 }];
        let parts = vec![part(2880, 16, store)];
        let dense = by_dots(Body::Matmul { domain: Domain::Tokens, input: 0, parts: parts.clone() });
        assert_eq!((dense.shared, dense.parts[0].items), (33, 45));
        assert_eq!(starts(&dense, 2), [0, 64]);
        assert_eq!(starts(&dense, 3), [0, 44, 88]);
        let mat = parts[0].mats[0].clone();
        let (experts, top_k, rows_per_item) = (4, 2, 16);
        let down = Body::ExpertDown {
            input: 0,
            routing: 1,
            experts,
            top_k,
            mat,
            rows_per_item,
            residual: None,
            out: 2,
        };
        assert_eq!(starts(&by_dots(down), 2), [0, 64]);
    }

    /// A head is a run by itself: 20 items of four tiles, 5 of them left to the counter.
    #[test]
    fn heads_are_handed_out_one_by_one() {
        let parts = vec![part(1280, 64, vec![Epilogue::Rope { table: 4 }])];
        let heads = by_dots(Body::Matmul { domain: Domain::Tokens, input: 0, parts });
        assert_eq!((heads.shared, heads.parts[0].items), (15, 20));
        assert_eq!(starts(&heads, 2), [0, 28]);
    }
}
