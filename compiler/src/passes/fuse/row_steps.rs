//! Row-wise nodes as row operations: elementwise ones that belong together as one expression.

use crate::ir::ops::Packed;
use crate::ir::{GraphRowOp, NodeId, Uses, ValueId};
use kernmill_kernels_gen::expr::Expr;
use kernmill_kernels_gen::row_op::{ElementwiseRow, RowOp, RowPlace};
use kernmill_kernels_gen::ukernel::map::MAX_INPUTS;

/// Operators of a fused expression at most: a value that is read twice counts twice.
pub(super) const MAX_OPERATORS: usize = 1024;

/// Row-wise nodes as row operations. An elementwise node that one other elementwise node alone reads becomes
/// part of its expression, where neither has vectors, as long as a micro-kernel takes so many inputs.
///
/// # Errors
/// The first node that has no row operation.
pub fn row_steps(
    kernels: &dyn Packed,
    uses: &Uses,
    nodes: &[NodeId],
    outputs: &[ValueId],
) -> Result<Vec<GraphRowOp>, NodeId> {
    let mut steps: Vec<GraphRowOp> = Vec::with_capacity(nodes.len());
    for id in nodes {
        let node = kernels.graph().node(*id);
        let step = node.op.def().row_op(node, kernels).ok_or(*id)?;
        let RowOp::Elementwise(ElementwiseRow { mut expr, mut inputs, vectors, out }) = step else {
            steps.push(step);
            continue;
        };
        let mut at = 0;
        while at < steps.len() {
            let merged = match &steps[at] {
                RowOp::Elementwise(ElementwiseRow {
                    expr: inner,
                    inputs: read,
                    vectors: inner_vectors,
                    out: RowPlace::Row(value),
                }) if vectors.is_empty() && inner_vectors.is_empty() => {
                    let alone = uses.users(*value) == [*id] && !outputs.contains(value);
                    alone.then(|| merge(&expr, &inputs, *value, inner, read)).flatten()
                }
                _ => None,
            };
            match merged {
                Some(merged) => {
                    (expr, inputs) = merged;
                    steps.remove(at);
                    at = 0;
                }
                None => at += 1,
            }
        }
        steps.push(ElementwiseRow { expr, inputs, vectors, out }.into());
    }
    Ok(steps)
}

/// `outer` of `inputs` with `inner` of `read` in place of `value`.
fn merge(
    outer: &Expr,
    inputs: &[ValueId],
    value: ValueId,
    inner: &Expr,
    read: &[ValueId],
) -> Option<(Expr, Vec<ValueId>)> {
    if !inputs.contains(&value) {
        return None;
    }
    let mut all: Vec<ValueId> = Vec::new();
    for other in inputs.iter().filter(|other| **other != value).chain(read) {
        if !all.contains(other) {
            all.push(*other);
        }
    }
    let var = |of: &ValueId| Expr::Var(all.iter().position(|other| other == of).unwrap_or(0));
    let inner = inner.substitute(&read.iter().map(var).collect::<Vec<_>>());
    let arguments: Vec<Expr> =
        inputs.iter().map(|input| if *input == value { inner.clone() } else { var(input) }).collect();
    let expr = outer.substitute(&arguments);
    (all.len() <= MAX_INPUTS && expr.operators() <= MAX_OPERATORS).then_some((expr, all))
}
