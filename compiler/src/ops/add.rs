//! `add`: the sum of two rows.

use super::def::{OpDef, Place, SpecOp};
use super::form::{Form, Input, Operands};
use crate::fuse::rule::Template;
use crate::graph::cursor::Cursor;
use crate::graph::{Node, Op, OpKind, Type};
use crate::interp::state::{Data, State};
use crate::spec::ops::{INPUTS, OpInfo};
use kernmill_kernels_gen::expr::{Binary, Expr};

pub struct Add;

const FORM: Form = Form::new(&[Input::F32, Input::F32], &[]);

const SPEC: &[SpecOp] = &[SpecOp {
    info: OpInfo { name: "add", params: INPUTS, pattern: &[OpKind::Add] },
    lower: |at| at.pair(Op::Add),
}];

impl OpDef for Add {
    fn name(&self) -> &'static str {
        "add"
    }

    fn form(&self) -> &'static Form {
        &FORM
    }

    fn spec(&self) -> &'static [SpecOp] {
        SPEC
    }

    fn infer(&self, _: &Op, on: &Operands<'_>) -> Result<Type, String> {
        on.alike()
    }

    fn parse(&self, _: &mut Cursor<'_>, _: bool) -> Result<Op, String> {
        Ok(Op::Add)
    }

    fn eval(&self, state: &mut State, node: &Node) -> Data {
        let (a, b) = (state.f32s(node.inputs[0]), state.f32s(node.inputs[1]));
        Data::F32(a.iter().zip(b).map(|(a, b)| a + b).collect())
    }

    fn places(&self) -> &'static [Place] {
        &[Place::Rows, Place::Prologue, Place::Epilogue, Place::EpilogueOf(Template::ExpertDown)]
    }

    fn commutes(&self) -> bool {
        true
    }

    fn expr(&self, _: &Op) -> Option<Expr> {
        Some(Expr::Binary(Binary::Add, Box::new(Expr::Var(0)), Box::new(Expr::Var(1))))
    }

    fn sample(&self, _: Option<&Expr>, _: usize) -> Option<Op> {
        Some(Op::Add)
    }
}
