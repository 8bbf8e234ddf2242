//! `kv_cast`: rows rounded to f16, as the KV cache has them.

use super::def::{InEpilogue, OpDef, Packed, Place};
use super::form::{Form, Input, Operands};
use crate::graph::cursor::Cursor;
use crate::graph::{GraphRowOp, Node, Op, Rows, Step, Type};
use crate::interp::num::round_f16;
use crate::interp::state::{Data, State};
use kernmill_kernels_gen::kernel::RowOp;

pub struct KvCast;

const FORM: Form = Form::new(&[Input::F32], &[]);

impl OpDef for KvCast {
    fn name(&self) -> &'static str {
        "kv_cast"
    }

    fn form(&self) -> &'static Form {
        &FORM
    }

    fn infer(&self, _: &Op, on: &Operands<'_>) -> Result<Type, String> {
        on.rows_are(Rows::Tokens)?;
        Ok(Type::F16(Rows::Tokens, on.x().cols()))
    }

    fn parse(&self, _: &mut Cursor<'_>, _: bool) -> Result<Op, String> {
        Ok(Op::KvCast)
    }

    fn eval(&self, state: &mut State, node: &Node) -> Data {
        Data::F32(state.f32s(node.inputs[0]).iter().map(|&x| round_f16(x)).collect())
    }

    fn places(&self) -> &'static [Place] {
        &[Place::Rows, Place::Epilogue]
    }

    fn row_op(&self, node: &Node, _: &dyn Packed) -> Option<GraphRowOp> {
        Some(RowOp::KvCast { x: node.inputs[0], out: node.output })
    }

    fn in_epilogue(&self, node: &Node) -> Option<InEpilogue> {
        Some(InEpilogue::Ends(Step::KvCast { out: node.output }))
    }
}
