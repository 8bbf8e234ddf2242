//! Graph nodes as row operations.

use super::builder::Builder;
use super::{OperandRef, SelectError, Selector};
use crate::fuse::{RowStep, row_steps};
use crate::graph::{Node, NodeId, Op};
use kernmill_kernels_gen::kernel::{RowOp, ValId};

impl Selector<'_> {
    /// The stage that computes `node` into `out`.
    pub(super) fn row_op(&self, b: &mut Builder, node: &Node, out: ValId) -> Result<RowOp, SelectError> {
        let input = |b: &mut Builder, i: usize| b.input(node.inputs[i]);
        Ok(match &node.op {
            Op::Embed => {
                let table = self.graph.tensor(node.tensors[0]);
                let row_bytes = self.layout.placement(node.tensors[0]).tile_stride as usize;
                let format = table.format;
                debug_assert!(!format.is_blocked());
                RowOp::Embed { table: b.tensor(node.tensors[0]), format, row_bytes, out }
            }
            Op::RmsNorm { eps } => {
                RowOp::RmsNorm { x: input(b, 0), weight: b.tensor(node.tensors[0]), eps: (*eps).into(), out }
            }
            Op::QuantizeQ8 => RowOp::Quantize { x: input(b, 0), out },
            Op::Bf16Cast => RowOp::Bf16Cast { x: input(b, 0), out },
            Op::Rope { rope, head_dim } => {
                let table = b.operand(OperandRef::Rope(*rope));
                RowOp::Rope { x: input(b, 0), table, head_dim: *head_dim, out }
            }
            Op::KvCast => RowOp::KvCast { x: input(b, 0), out },
            Op::Linear(_) => RowOp::Linear { x: input(b, 0), mat: b.mat(node), out },
            Op::RouterTopk { k } => {
                let experts = self.graph.value(node.inputs[0]).ty.cols();
                RowOp::TopK { x: input(b, 0), experts, k: *k as usize, out }
            }
            Op::SelectRows => RowOp::SelectRow { x: input(b, 0), out },
            Op::ExpertSum => {
                let top_k = self.graph.value(node.inputs[1]).ty.cols();
                RowOp::ExpertSum { y: input(b, 0), routing: input(b, 1), top_k, out }
            }
            Op::Glu { .. }
            | Op::Elementwise { .. }
            | Op::Add
            | Op::Mul
            | Op::QuantLinear
            | Op::ExpertLinear
            | Op::QuantExpertLinear
            | Op::Bf16ExpertLinear
            | Op::Attention(_)
            | Op::LoraShrink { .. } => {
                return Err(self.bug(node, "is not a row stage of its own"));
            }
        })
    }

    /// The stage of a step.
    pub(super) fn step(&self, b: &mut Builder, step: &RowStep, out: ValId) -> Result<RowOp, SelectError> {
        match step {
            RowStep::Node(id) => self.row_op(b, self.graph.node(*id), out),
            RowStep::Map { expr, inputs, .. } => {
                let inputs = inputs.iter().map(|value| b.input(*value)).collect();
                Ok(RowOp::Elementwise { expr: expr.clone(), inputs, out })
            }
        }
    }

    /// Prologue nodes as stages of the kernel being built, on rows of the worker's own.
    pub(super) fn local_row_ops(
        &self,
        b: &mut Builder,
        nodes: &[NodeId],
        outputs: &[crate::graph::ValueId],
    ) -> Result<Vec<RowOp>, SelectError> {
        let mut row_ops = Vec::with_capacity(nodes.len());
        for step in row_steps(self.graph, self.uses, nodes, outputs) {
            let node = self.graph.node(last_of(&step));
            // Inputs first: a stage may read what an earlier one made, under the same value id.
            let inputs = if let RowStep::Map { inputs, .. } = &step { inputs } else { &node.inputs };
            inputs.iter().for_each(|value| {
                if *value != crate::graph::ValueId(0) {
                    b.input(*value);
                }
            });
            let out = b.local(node.output, outputs.contains(&node.output));
            row_ops.push(self.step(b, &step, out)?);
        }
        Ok(row_ops)
    }

    pub(super) fn bug(&self, node: &Node, message: &str) -> SelectError {
        SelectError::Bug { node: self.graph.value(node.output).name.clone(), message: message.to_owned() }
    }
}

/// The node whose value a step makes.
pub(super) fn last_of(step: &RowStep) -> NodeId {
    match step {
        RowStep::Node(id) => *id,
        RowStep::Map { last, .. } => *last,
    }
}
