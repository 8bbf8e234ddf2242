//! Graph nodes as row stages.

use super::builder::Builder;
use super::{OperandRef, SelectError, Selector};
use crate::graph::{Node, NodeId, Op};
use kernmill_kernels::kernel::{Stage, ValId};
use kernmill_plan::format::WeightFormat;

impl Selector<'_> {
    /// The stage that computes `node` into `out`.
    pub(super) fn stage(&self, b: &mut Builder, node: &Node, out: ValId) -> Result<Stage, SelectError> {
        let input = |b: &mut Builder, i: usize| b.input(node.inputs[i]);
        Ok(match &node.op {
            Op::Embed => {
                let table = self.graph.tensor(node.tensors[0]);
                let row_bytes = self.layout.placement(node.tensors[0]).tile_stride as usize;
                let format = table.format;
                debug_assert!(matches!(format, WeightFormat::Bf16 | WeightFormat::F32));
                Stage::Embed { table: b.tensor(node.tensors[0]), format, row_bytes, out }
            }
            Op::RmsNorm { eps } => {
                Stage::RmsNorm { x: input(b, 0), weight: b.tensor(node.tensors[0]), eps: *eps, out }
            }
            Op::QuantizeQ8 => Stage::Quantize { x: input(b, 0), out },
            Op::Bf16Cast => Stage::Bf16Cast { x: input(b, 0), out },
            Op::Rope { rope, head_dim } => {
                let table = b.operand(OperandRef::Rope(*rope));
                Stage::Rope { x: input(b, 0), table, head_dim: *head_dim, out }
            }
            Op::KvCast => Stage::KvCast { x: input(b, 0), out },
            Op::Linear => Stage::Linear { x: input(b, 0), mat: b.mat(node), out },
            Op::RouterTopk { k } => {
                let experts = self.graph.value(node.inputs[0]).ty.cols();
                Stage::TopK { x: input(b, 0), experts, k: *k as usize, out }
            }
            Op::Glu { expr } | Op::Elementwise { expr } => {
                let inputs = (0..node.inputs.len()).map(|i| input(b, i)).collect();
                Stage::Elementwise { expr: expr.clone(), inputs, out }
            }
            Op::Add | Op::Mul => {
                let op = if node.op == Op::Add {
                    kernmill_kernels::expr::Binary::Add
                } else {
                    kernmill_kernels::expr::Binary::Mul
                };
                use kernmill_kernels::expr::Expr;
                let expr = Expr::Binary(op, Box::new(Expr::Var(0)), Box::new(Expr::Var(1)));
                Stage::Elementwise { expr, inputs: vec![input(b, 0), input(b, 1)], out }
            }
            Op::SelectRows => Stage::SelectRow { x: input(b, 0), out },
            Op::ExpertSum => {
                let top_k = self.graph.value(node.inputs[1]).ty.cols();
                Stage::ExpertSum { y: input(b, 0), routing: input(b, 1), top_k, out }
            }
            Op::QuantLinear
            | Op::ExpertLinear
            | Op::QuantExpertLinear
            | Op::Bf16ExpertLinear
            | Op::Attention(_)
            | Op::LoraShrink { .. } => {
                return Err(self.bug(node, "is not a row stage"));
            }
        })
    }

    /// Prologue nodes as stages of the kernel being built, on rows of the worker's own.
    pub(super) fn local_stages(
        &self,
        b: &mut Builder,
        nodes: &[NodeId],
        outputs: &[crate::graph::ValueId],
    ) -> Result<Vec<Stage>, SelectError> {
        let mut stages = Vec::with_capacity(nodes.len());
        for id in nodes {
            let node = self.graph.node(*id);
            // Inputs first: a stage may read what an earlier one made, under the same value id.
            node.inputs.iter().for_each(|value| {
                if *value != crate::graph::ValueId(0) {
                    b.input(*value);
                }
            });
            let out = b.local(node.output, outputs.contains(&node.output));
            stages.push(self.stage(b, node, out)?);
        }
        Ok(stages)
    }

    pub(super) fn bug(&self, node: &Node, message: &str) -> SelectError {
        SelectError::Bug { node: self.graph.value(node.output).name.clone(), message: message.to_owned() }
    }
}
