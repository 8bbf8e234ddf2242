//! `bf16_cast`: rows rounded to bf16, as experts in MXFP4 read them.

use super::def::{InEpilogue, OpDef, Outline, Packed};
use super::form::{Input, OpForm, Operands};
use super::places::ANYWHERE;
use crate::ir::cursor::LineCursor;
use crate::ir::eval::num::round_bf16;
use crate::ir::eval::state::{Data, OpState};
use crate::ir::{GraphEpilogue, GraphRowOp, Node, Op, Type};
use kernmill_kernels_gen::kernel::RowOp;

pub struct Bf16Cast;

const OUTLINE: Outline =
    Outline { name: "bf16_cast", form: OpForm::new(&[Input::F32], &[]), spec: &[], places: ANYWHERE };

impl OpDef for Bf16Cast {
    fn outline(&self) -> &Outline {
        &OUTLINE
    }

    fn infer(&self, _: &Op, on: &Operands<'_>) -> Result<Type, String> {
        Ok(Type::Bf16(on.x().rows(), on.blocks()?))
    }

    fn parse(&self, _: &mut LineCursor<'_>, _: bool) -> Result<Op, String> {
        Ok(Op::Bf16Cast)
    }

    fn eval(&self, state: &mut OpState, node: &Node) -> Data {
        Data::F32(state.f32s(node.inputs[0]).iter().map(|&x| round_bf16(x)).collect())
    }

    fn row_op(&self, node: &Node, _: &dyn Packed) -> Option<GraphRowOp> {
        Some(RowOp::Bf16Cast { x: node.inputs[0], out: node.output })
    }

    fn in_epilogue(&self, node: &Node) -> Option<InEpilogue> {
        Some(InEpilogue::Ends(GraphEpilogue::Bf16Cast { out: node.output }))
    }
}
