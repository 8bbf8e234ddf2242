//! `quantize_q8`: rows in blocks of 32 int8 with a scale each.

use super::def::{InEpilogue, OpDef, Outline, Packed};
use super::form::{Input, OpForm, Operands};
use super::places::{KernelPosition, KernelTemplate};
use crate::ir::cursor::LineCursor;
use crate::ir::eval::num::quantize_block;
use crate::ir::eval::state::{Data, OpState};
use crate::ir::{GraphEpilogue, GraphRowOp, Node, Op, Type};
use kernmill_kernels_gen::kernel::RowOp;
use kernmill_plan::format::BLOCK;

pub struct QuantizeQ8;

const OUTLINE: Outline = Outline {
    name: "quantize_q8",
    form: OpForm::new(&[Input::F32], &[]),
    spec: &[],
    places: &[
        KernelPosition::Rows,
        KernelPosition::Prologue,
        KernelPosition::Epilogue,
        KernelPosition::EpilogueOf(KernelTemplate::Attention),
    ],
};

impl OpDef for QuantizeQ8 {
    fn outline(&self) -> &Outline {
        &OUTLINE
    }

    fn infer(&self, _: &Op, on: &Operands<'_>) -> Result<Type, String> {
        Ok(Type::Q8(on.x().rows(), on.blocks()?))
    }

    fn parse(&self, _: &mut LineCursor<'_>, _: bool) -> Result<Op, String> {
        Ok(Op::QuantizeQ8)
    }

    fn eval(&self, state: &mut OpState, node: &Node) -> Data {
        let x = state.f32s(node.inputs[0]);
        let mut q = vec![0; x.len()];
        let blocks = x.chunks_exact(BLOCK).zip(q.chunks_exact_mut(BLOCK));
        let (scales, sums) = blocks.map(|(x, q)| quantize_block(x, q)).unzip();
        Data::Q8 { q, scales, sums }
    }

    fn row_op(&self, node: &Node, _: &dyn Packed) -> Option<GraphRowOp> {
        Some(RowOp::Quantize { x: node.inputs[0], out: node.output })
    }

    fn in_epilogue(&self, node: &Node) -> Option<InEpilogue> {
        Some(InEpilogue::Ends(GraphEpilogue::Quantize { out: node.output }))
    }
}
