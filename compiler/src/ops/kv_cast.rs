//! `kv_cast`: rows rounded to the element type of the KV cache.

use super::def::{InEpilogue, OpDef, Packed, Place};
use super::form::{Form, Input, Operands};
use crate::graph::cursor::{Cursor, unknown};
use crate::graph::{GraphRowOp, Node, Op, Rows, Step, Type};
use crate::interp::num::round_f16;
use crate::interp::state::{Data, State};
use kernmill_kernels_gen::kernel::RowOp;
use kernmill_plan::kv::KvElem;

pub struct KvCast;

/// The type of keys and values, `cols` for each token, that enter a cache of this element type.
pub fn kv_type(elem: KvElem, cols: usize) -> Type {
    match elem {
        KvElem::F16 => Type::F16(Rows::Tokens, cols),
        KvElem::F32 => Type::F32(Rows::Tokens, cols),
    }
}

/// What an element becomes in a cache of this element type.
fn rounding(elem: KvElem) -> fn(f32) -> f32 {
    match elem {
        KvElem::F16 => round_f16,
        KvElem::F32 => |x| x,
    }
}

fn elem(op: &Op) -> KvElem {
    match op {
        Op::KvCast(elem) => *elem,
        other => unreachable!("{:?} is no kv_cast", other.kind()),
    }
}

const FORM: Form = Form::new(&[Input::F32], &[]);

impl OpDef for KvCast {
    fn name(&self) -> &'static str {
        "kv_cast"
    }

    fn form(&self) -> &'static Form {
        &FORM
    }

    fn infer(&self, op: &Op, on: &Operands<'_>) -> Result<Type, String> {
        on.rows_are(Rows::Tokens)?;
        Ok(kv_type(elem(op), on.x().cols()))
    }

    fn attributes(&self, op: &Op) -> String {
        match elem(op) {
            KvElem::F16 => String::new(),
            elem => format!("(to={})", elem.name()),
        }
    }

    fn parse(&self, at: &mut Cursor<'_>, attributes: bool) -> Result<Op, String> {
        if !attributes {
            return Ok(Op::KvCast(KvElem::F16));
        }
        at.expect("to")?;
        at.expect("=")?;
        let name = at.word()?;
        let elem = KvElem::from_name(name).ok_or_else(|| unknown("KV element type", name))?;
        Ok(Op::KvCast(elem))
    }

    fn eval(&self, state: &mut State, node: &Node) -> Data {
        let round = rounding(elem(&node.op));
        Data::F32(state.f32s(node.inputs[0]).iter().map(|&x| round(x)).collect())
    }

    fn places(&self) -> &'static [Place] {
        &[Place::Rows, Place::Epilogue]
    }

    fn row_op(&self, node: &Node, _: &dyn Packed) -> Option<GraphRowOp> {
        Some(RowOp::KvCast { x: node.inputs[0], elem: elem(&node.op), out: node.output })
    }

    fn in_epilogue(&self, node: &Node) -> Option<InEpilogue> {
        Some(InEpilogue::Ends(Step::KvCast { elem: elem(&node.op), out: node.output }))
    }
}
