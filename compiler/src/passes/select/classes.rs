//! Token classes: the batch sizes that have separate kernels.

use super::cost::CostModel;
use super::{Pick, SelectError, Selection, select};
use crate::passes::fuse::FusedGraph;
use crate::passes::layout::WeightLayout;

/// Sizes that may be a class besides the chunk, ascending.
const SIZES: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];

/// A class must be cheaper than the next larger one by more than this share of a batch of its size: it costs
/// code and time to compile.
const GAIN: f64 = 0.01;

/// The token classes of a prefill chunk, ascending, each with its kernels. From the chunk down, a size is a
/// class when its own kernels gain enough, for a batch of that size, over those of the next larger class. One
/// token always is: its attention, which is not modelled, is made for it. When candidates are not picked by
/// cost, the chunk is the only class.
///
/// # Errors
/// When a shape has no kernel.
pub fn select_classes(
    fused: &FusedGraph,
    layout: &WeightLayout,
    chunk: usize,
    model: &CostModel,
    pick: Pick,
) -> Result<Vec<Selection>, SelectError> {
    let mut classes = vec![select(fused, layout, chunk, model, pick)?];
    for size in SIZES.into_iter().rev().filter(|size| *size < chunk && pick == Pick::Cheapest) {
        let own = select(fused, layout, size, model, pick)?;
        let next = &classes[classes.len() - 1];
        if size == 1 || cost(model, next, size) > cost(model, &own, size) * (1.0 + GAIN) {
            classes.push(own);
        }
    }
    classes.reverse();
    Ok(classes)
}

/// The time of a batch of `tokens` with a class's kernels.
fn cost(model: &CostModel, selection: &Selection, tokens: usize) -> f64 {
    selection.uses.iter().map(|one| model.kernel(&one.kernel, tokens)).sum()
}
