//! `add` and `mul`: the sum and the product of two rows, element by element.

use super::def::{OpDef, Outline, SpecOp};
use super::form::{Input, OpForm, Operands};
use super::keys::{INPUTS, OpInfo};
use super::places::{ANYWHERE, KernelPosition, KernelTemplate};
use crate::ir::cursor::LineCursor;
use crate::ir::eval::state::{Data, OpState};
use crate::ir::{Node, Op, OpKind, Type};
use kernmill_kernels_gen::expr::{Binary, Expr};

/// An operation on two rows whose order does not matter.
pub struct RowPair {
    outline: Outline,
    op: Op,
    binary: Binary,
    element: fn(f32, f32) -> f32,
}

const FORM: OpForm = OpForm::new(&[Input::F32, Input::F32], &[]);

pub static ADD: RowPair = RowPair {
    outline: Outline {
        name: "add",
        form: FORM,
        spec: &[SpecOp {
            info: OpInfo { name: "add", params: INPUTS, pattern: &[OpKind::Add] },
            lower: |at| at.pair(Op::Add),
        }],
        places: &[
            KernelPosition::Rows,
            KernelPosition::Prologue,
            KernelPosition::Epilogue,
            KernelPosition::EpilogueOf(KernelTemplate::ExpertDown),
        ],
    },
    op: Op::Add,
    binary: Binary::Add,
    element: |a, b| a + b,
};

pub static MUL: RowPair = RowPair {
    outline: Outline {
        name: "mul",
        form: FORM,
        spec: &[SpecOp {
            info: OpInfo { name: "mul", params: INPUTS, pattern: &[OpKind::Mul] },
            lower: |at| at.pair(Op::Mul),
        }],
        places: ANYWHERE,
    },
    op: Op::Mul,
    binary: Binary::Mul,
    element: |a, b| a * b,
};

impl OpDef for RowPair {
    fn outline(&self) -> &Outline {
        &self.outline
    }

    fn infer(&self, _: &Op, on: &Operands<'_>) -> Result<Type, String> {
        on.alike()
    }

    fn parse(&self, _: &mut LineCursor<'_>, _: bool) -> Result<Op, String> {
        Ok(self.op.clone())
    }

    fn eval(&self, state: &mut OpState, node: &Node) -> Data {
        let (a, b) = (state.f32s(node.inputs[0]), state.f32s(node.inputs[1]));
        Data::F32(a.iter().zip(b).map(|(a, b)| (self.element)(*a, *b)).collect())
    }

    fn commutes(&self) -> bool {
        true
    }

    fn expr(&self, _: &Op) -> Option<Expr> {
        Some(Expr::Binary(self.binary, Box::new(Expr::Var(0)), Box::new(Expr::Var(1))))
    }

    fn sample(&self, _: Option<&Expr>, _: usize) -> Option<Op> {
        Some(self.op.clone())
    }
}
