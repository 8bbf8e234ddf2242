//! Row-wise nodes as steps of a kernel: elementwise ones that belong together as one expression.

use crate::graph::{Graph, NodeId, Op, Uses, ValueId};
use kernmill_kernels_gen::expr::{Binary, Expr};
use kernmill_kernels_gen::ukernel::map::MAX_INPUTS;

/// Operators of a fused expression at most: a value that is read twice counts twice.
pub(super) const MAX_OPERATORS: usize = 1024;

/// Whether an op is computed row by row, each from the same row of its inputs (or, of experts and wanted rows, from that row's).
pub fn is_row_op(op: &Op) -> bool {
    !matches!(
        op,
        Op::Linear(_)
            | Op::QuantLinear
            | Op::ExpertLinear
            | Op::QuantExpertLinear
            | Op::Bf16ExpertLinear
            | Op::Attention(_)
            | Op::LoraShrink { .. }
    )
}

/// A step of a row-wise kernel.
#[derive(Clone, Debug, PartialEq)]
pub enum RowStep {
    /// A node that is not elementwise.
    Node(NodeId),
    /// Elementwise nodes as one expression.
    Map {
        /// The last of them, whose value it is.
        last: NodeId,
        /// The expression; variable i is input i.
        expr: Expr,
        /// What it reads.
        inputs: Vec<ValueId>,
    },
}

/// Row-wise nodes as steps. An elementwise node that one other elementwise node alone reads becomes part of its expression, as long as a
/// micro-kernel takes so many inputs.
pub fn row_steps(graph: &Graph, uses: &Uses, nodes: &[NodeId], outputs: &[ValueId]) -> Vec<RowStep> {
    let mut steps: Vec<RowStep> = Vec::with_capacity(nodes.len());
    for id in nodes {
        let node = graph.node(*id);
        let Some(mut expr) = elementwise(&node.op) else {
            steps.push(RowStep::Node(*id));
            continue;
        };
        let mut inputs = node.inputs.clone();
        let mut at = 0;
        while at < steps.len() {
            let merged = match &steps[at] {
                RowStep::Map { last, expr: inner, inputs: read } => {
                    let value = graph.node(*last).output;
                    let alone = uses.users(value) == [*id] && !outputs.contains(&value);
                    alone.then(|| merge(&expr, &inputs, value, inner, read)).flatten()
                }
                RowStep::Node(_) => None,
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
        steps.push(RowStep::Map { last: *id, expr, inputs });
    }
    steps
}

/// The expression of an elementwise op.
pub(super) fn elementwise(op: &Op) -> Option<Expr> {
    let binary = |op| Some(Expr::Binary(op, Box::new(Expr::Var(0)), Box::new(Expr::Var(1))));
    match op {
        Op::Glu { expr } | Op::Elementwise { expr } => Some(expr.clone()),
        Op::Add => binary(Binary::Add),
        Op::Mul => binary(Binary::Mul),
        _ => None,
    }
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
