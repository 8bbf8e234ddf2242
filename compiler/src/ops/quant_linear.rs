//! `quant_linear`: a matrix in blocks times a row in q8.

use super::def::{OpDef, Place};
use super::form::{BLOCKED, Form, Input, Operand, Operands};
use super::product;
use crate::fuse::rule::Template;
use crate::graph::cursor::Cursor;
use crate::graph::{Node, Op, Role, Type};
use crate::interp::state::{Data, State};

pub struct QuantLinear;

const FORM: Form = Form::branched(
    &[Input::Q8, Input::F32],
    &[Operand::new("matrix", Role::Matrix, BLOCKED), Operand::optional("bias", Role::Vector)],
);

impl OpDef for QuantLinear {
    fn name(&self) -> &'static str {
        "quant_linear"
    }

    fn form(&self) -> &'static Form {
        &FORM
    }

    fn infer(&self, _: &Op, on: &Operands<'_>) -> Result<Type, String> {
        product::infer_dense(on)
    }

    fn parse(&self, _: &mut Cursor<'_>, _: bool) -> Result<Op, String> {
        Ok(Op::QuantLinear)
    }

    fn eval(&self, state: &mut State, node: &Node) -> Data {
        product::eval_dense(state, node)
    }

    fn places(&self) -> &'static [Place] {
        &[Place::Root(Template::Matmul)]
    }
}
