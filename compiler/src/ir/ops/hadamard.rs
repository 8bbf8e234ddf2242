//! `hadamard`: each head of a row through a Hadamard transform, in blocks of 64 elements, or of 32.
//!
//! Two heads have the same dot product before it as after it, divided by the elements of a block. It spreads
//! a few large elements over all, so that rounding to few bits loses less.

use super::def::{InEpilogue, OpDef, Outline, Packed};
use super::form::{Input, OpForm, Operands, ensure};
use super::places::ANYWHERE;
use crate::ir::cursor::LineCursor;
use crate::ir::eval::num::hadamard;
use crate::ir::eval::state::{Data, OpState};
use crate::ir::{GraphEpilogue, GraphRowOp, Node, Op, Type};
use kernmill_kernels_gen::kernel::RowOp;
use kernmill_plan::kv::hadamard_block;

pub struct Hadamard;

const OUTLINE: Outline =
    Outline { name: "hadamard", form: OpForm::new(&[Input::F32], &[]), spec: &[], places: ANYWHERE };

fn head_dim(op: &Op) -> usize {
    let Op::Hadamard { head_dim } = op else { unreachable!("{op:?}") };
    *head_dim
}

impl OpDef for Hadamard {
    fn outline(&self) -> &Outline {
        &OUTLINE
    }

    fn infer(&self, op: &Op, on: &Operands<'_>) -> Result<Type, String> {
        let (d, cols) = (head_dim(op), on.x().cols());
        ensure(d > 0 && d.is_multiple_of(32) && cols.is_multiple_of(d), || {
            format!("{cols} columns are not heads of head_dim = {d}, a multiple of 32")
        })?;
        Ok(on.x())
    }

    fn attributes(&self, op: &Op) -> String {
        format!("(head_dim={})", head_dim(op))
    }

    fn parse(&self, at: &mut LineCursor<'_>, _: bool) -> Result<Op, String> {
        Ok(Op::Hadamard { head_dim: at.attribute("head_dim")? })
    }

    fn eval(&self, state: &mut OpState, node: &Node) -> Data {
        let mut y = state.f32s(node.inputs[0]).to_vec();
        hadamard(&mut y, hadamard_block(head_dim(&node.op)));
        Data::F32(y)
    }

    fn row_op(&self, node: &Node, _: &dyn Packed) -> Option<GraphRowOp> {
        let head_dim = head_dim(&node.op);
        Some(RowOp::Hadamard { x: node.inputs[0], head_dim, out: node.output })
    }

    fn in_epilogue(&self, node: &Node) -> Option<InEpilogue> {
        Some(InEpilogue::Changes(GraphEpilogue::Hadamard { head_dim: head_dim(&node.op) }))
    }
}
