//! The meaning of matrix products, with bias and adapter branch.

use crate::ir::eval::num::{blockdot, dot4};
use crate::ir::eval::state::{BatchToken, Data, OpState};
use crate::ir::eval::weights::BlockData;
use crate::ir::{MatMul, Node, Role, Rows};
use kernmill_plan::abi::ChosenExpert;
use kernmill_plan::adapter::{MAX_RANK, RANK_STEP};
use kernmill_plan::format::BLOCK;

/// The product of two rows in f32.
pub type Dot = fn(&[f32], &[f32]) -> f32;

/// The value of a plain product.
pub fn dense(state: &OpState, node: &Node) -> Data {
    let (x, n) = (node.inputs[0], state.cols(node.output));
    let rows = state.rows(x);
    let per_token = rows / state.batch.len().max(1);
    let row = |row| {
        let mut y = product(dot4, state, node, (row, 0), 0, n);
        // Wanted rows have no branch.
        if node.shrunk().is_some() {
            expand(state, node, &state.batch[row / per_token.max(1)], row, 0, &mut y);
        }
        add_bias(state, node, 0, &mut y);
        for term in 1..node.op.matmul().map_or(1, MatMul::terms) {
            y.iter_mut().zip(product(dot4, state, node, (row, term), 0, n)).for_each(|(y, more)| *y += more);
        }
        y
    };
    Data::F32((0..rows).flat_map(row).collect())
}

/// The value of a product with the matrices of chosen experts; of rows that are not q8 by `dot`.
pub fn of_experts(dot: Dot, state: &OpState, node: &Node) -> Data {
    let (x, n) = (node.inputs[0], state.cols(node.output));
    let routing = state.routing(node.inputs[1]);
    let Rows::Slots(k) = state.graph.value(node.output).ty.rows() else { return Data::F32(Vec::new()) };
    let per_token = state.graph.value(x).ty.rows() == Rows::Tokens;
    let row = |slot: usize| if per_token { slot / k as usize } else { slot };
    let slot = |(slot, route): (usize, &ChosenExpert)| {
        let expert = route.expert as usize;
        let mut y = product(dot, state, node, (row(slot), 0), expert, n);
        expand(state, node, &state.batch[slot / k as usize], slot, expert, &mut y);
        add_bias(state, node, expert, &mut y);
        y
    };
    Data::F32(routing.iter().enumerate().flat_map(slot).collect())
}

/// Matrix number `expert` (0 for a plain matrix) times row `row` of input 0, of q8 that term of it.
fn product(
    dot: Dot,
    state: &OpState,
    node: &Node,
    (row, term): (usize, usize),
    expert: usize,
    n: usize,
) -> Vec<f32> {
    let x = node.inputs[0];
    let k = state.cols(x);
    let weight = &state.weights[node.tensors[0].0 as usize];
    let first = expert * n;
    match (&state.values[x.0 as usize], &weight.blocks) {
        (Some(Data::Q8 { q, scales, .. }), Some(BlockData { ints, parts, scales: w_scales, minima })) => {
            let (blocks, parts) = (k / BLOCK, k / BLOCK * parts);
            let row = row * (state.q8_row(x) / k) + term;
            let (q, scales) = (&q[row * k..][..k], &scales[row * blocks..][..blocks]);
            let dot = |i: usize| {
                let i = first + i;
                let minima = minima.get(i * parts..(i + 1) * parts).unwrap_or_default();
                blockdot(&ints[i * k..][..k], &w_scales[i * parts..][..parts], minima, q, scales)
            };
            (0..n).map(dot).collect()
        }
        (Some(Data::F32(x)), _) => {
            let x = &x[row * k..][..k];
            (0..n).map(|i| dot(&weight.dense[(first + i) * k..][..k], x)).collect()
        }
        _ => Vec::new(),
    }
}

fn add_bias(state: &OpState, node: &Node, expert: usize, y: &mut [f32]) {
    if let Some(bias) = node.tensors.get(1) {
        let first = expert * y.len();
        y.iter_mut().zip(&state.dense(*bias)[first..]).for_each(|(y, b)| *y += b);
    }
}

/// Adds the adapter's part of row `row` (token or slot) to a product's result, whose expert is `expert` (0
/// for a plain matrix).
fn expand(state: &OpState, node: &Node, token: &BatchToken, row: usize, expert: usize, y: &mut [f32]) {
    let Some(branch) = state.graph.branch_among(node, &state.lora_targets) else { return };
    let Some(adapter) = state.adapter(token, branch.lora_target) else { return };
    let shrunk = &state.f32s(branch.shrunk)[row * MAX_RANK..][..MAX_RANK];
    let tensor = state.graph.tensor(node.tensors[0]);
    let n = y.len();
    let rows = tensor.source.rows.stored(n).expect("the verifier has checked the tensor");
    let experts = if tensor.role == Role::ExpertMatrix { tensor.shape[0] } else { 1 };
    assert_eq!(adapter.b.len(), experts * rows * adapter.rank, "B of LoRA target {}", branch.lora_target);
    // The padding of the rank takes part.
    let mut b = vec![0.0; adapter.rank.next_multiple_of(RANK_STEP)];
    for (i, y) in y.iter_mut().enumerate() {
        let source = tensor.source.rows.row(i);
        b[..adapter.rank]
            .copy_from_slice(&adapter.b[(expert * rows + source) * adapter.rank..][..adapter.rank]);
        *y += dot4(&b, &shrunk[..b.len()]);
        if let Some(factors) = &adapter.factors {
            *y *= factors[source];
        }
    }
}
