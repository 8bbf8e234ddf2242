//! `quant_expert_linear`: matrices in blocks of the chosen experts times a row in q8.

use super::def::{OpDef, Place};
use super::form::{BLOCKED, Form, Input, Operand, Operands};
use super::product;
use crate::fuse::rule::Template;
use crate::graph::cursor::Cursor;
use crate::graph::{Node, Op, Role, Type};
use crate::interp::state::{Data, State};

pub struct QuantExpertLinear;

const FORM: Form = Form::branched(
    &[Input::Q8, Input::Routing, Input::F32],
    &[Operand::new("matrix", Role::ExpertMatrix, BLOCKED), Operand::optional("bias", Role::ExpertVector)],
);

impl OpDef for QuantExpertLinear {
    fn name(&self) -> &'static str {
        "quant_expert_linear"
    }

    fn form(&self) -> &'static Form {
        &FORM
    }

    fn infer(&self, _: &Op, on: &Operands<'_>) -> Result<Type, String> {
        product::infer_experts(on)
    }

    fn parse(&self, _: &mut Cursor<'_>, _: bool) -> Result<Op, String> {
        Ok(Op::QuantExpertLinear)
    }

    fn eval(&self, state: &mut State, node: &Node) -> Data {
        product::eval_experts(state, node)
    }

    fn places(&self) -> &'static [Place] {
        &[Place::Root(Template::Experts), Place::Root(Template::ExpertDown)]
    }
}
