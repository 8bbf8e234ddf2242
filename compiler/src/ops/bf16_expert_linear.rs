//! `bf16_expert_linear`: MXFP4 matrices of the chosen experts times a row in bf16.

use super::def::{OpDef, Place};
use super::form::{Form, Input, Operand, Operands, STORED};
use super::product;
use crate::fuse::rule::Template;
use crate::graph::cursor::Cursor;
use crate::graph::{Node, Op, Role, Type};
use crate::interp::state::{Data, State};

pub struct Bf16ExpertLinear;

const FORM: Form = Form::branched(
    &[Input::Bf16, Input::Routing, Input::F32],
    &[Operand::new("matrix", Role::ExpertMatrix, STORED), Operand::optional("bias", Role::ExpertVector)],
);

impl OpDef for Bf16ExpertLinear {
    fn name(&self) -> &'static str {
        "bf16_expert_linear"
    }

    fn form(&self) -> &'static Form {
        &FORM
    }

    fn infer(&self, _: &Op, on: &Operands<'_>) -> Result<Type, String> {
        product::infer_experts(on)
    }

    fn parse(&self, _: &mut Cursor<'_>, _: bool) -> Result<Op, String> {
        Ok(Op::Bf16ExpertLinear)
    }

    fn eval(&self, state: &mut State, node: &Node) -> Data {
        product::eval_experts(state, node)
    }

    fn places(&self) -> &'static [Place] {
        &[Place::Root(Template::Experts), Place::Root(Template::ExpertDown)]
    }
}
