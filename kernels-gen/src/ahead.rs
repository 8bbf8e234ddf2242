//! What a kernel's workers read first, for those that wait for the step before.

use crate::body::{equal_shares, items_together};
use crate::kernel::{Body, Kernel, Mat, OperandId, Part, Stage, Tiling};
use kernmill_plan::format::TILE_ROWS;
use kernmill_plan::program::{Ahead, AheadPart};

/// A kernel's weights in the order in which workers come to them. Whose choice says which expert comes first is left open.
pub fn reads_first(kernel: &Kernel) -> Ahead {
    let whole = kernel.prologue.iter().flat_map(stage_weights).map(|operand| operand as u32).collect();
    let mut ahead = Ahead { whole, ..Ahead::default() };
    let dots = kernel.tiling == Tiling::Dot;
    let run = if dots { items_together(&kernel.body) } else { 1 };
    let shared = |items: usize| if dots { equal_shares(items, run) } else { items } as u32;
    match &kernel.body {
        Body::Matmul { parts, .. } => {
            ahead.parts =
                parts.iter().map(|part| runs_of(&part.mats[0], part.unit, part.items(), run)).collect();
            ahead.shared = shared(parts.iter().map(Part::items).sum());
        }
        Body::ExpertDown { mat, unit, .. } => {
            let items = mat.n.div_ceil(*unit);
            ahead.parts = vec![runs_of(mat, *unit, items, run)];
            ahead.shared = shared(items);
        }
        // Which experts a token goes to is not known before the step has begun; attention knows its own blocks.
        Body::Rows { .. } | Body::Experts { .. } | Body::Attention(_) | Body::Shrink { .. } => {}
    }
    ahead
}

/// Work items of `unit` rows, in runs.
fn runs_of(mat: &Mat, unit: usize, items: usize, run: usize) -> AheadPart {
    AheadPart {
        operand: mat.operand as u32,
        items: items.div_ceil(run) as u32,
        item_bytes: (run * unit / TILE_ROWS * mat.tile_stride) as u64,
        expert_stride: mat.expert_stride as u64,
    }
}

/// Weights that a stage of a prologue reads from end to end.
fn stage_weights(stage: &Stage) -> Vec<OperandId> {
    match stage {
        Stage::RmsNorm { weight, .. } => vec![*weight],
        Stage::Linear { mat, .. } => [Some(mat.operand), mat.bias].into_iter().flatten().collect(),
        _ => Vec::new(),
    }
}
