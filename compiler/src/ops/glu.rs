//! `glu`: an expression of gate and up.

use super::def::{ANYWHERE, OpDef, Place, SpecOp};
use super::elementwise;
use super::form::{Form, Input, Operands, check_expr};
use super::sample::expression;
use crate::graph::cursor::{Cursor, quote};
use crate::graph::{Node, Op, OpKind, Type, ValueId};
use crate::interp::state::{Data, State};
use crate::spec::ops::{OpInfo, ParamKind, required};
use crate::spec::{At, Result as SpecResult};
use kernmill_kernels_gen::expr::Expr;

pub struct Glu;

const FORM: Form = Form::new(&[Input::F32, Input::F32], &[]);

const SPEC: &[SpecOp] = &[SpecOp {
    info: OpInfo {
        name: "glu",
        params: &[
            required("gate", ParamKind::Value),
            required("up", ParamKind::Value),
            required("expr", ParamKind::Expr),
        ],
        pattern: &[OpKind::Glu],
    },
    lower,
}];

/// Variables of the expression.
const GLU_VARS: [&str; 2] = ["gate", "up"];

fn expr(op: &Op) -> &Expr {
    let Op::Glu { expr } = op else { unreachable!("{op:?}") };
    expr
}

impl OpDef for Glu {
    fn name(&self) -> &'static str {
        "glu"
    }

    fn form(&self) -> &'static Form {
        &FORM
    }

    fn spec(&self) -> &'static [SpecOp] {
        SPEC
    }

    fn infer(&self, op: &Op, on: &Operands<'_>) -> Result<Type, String> {
        let ty = on.alike()?;
        check_expr(expr(op), 2)?;
        Ok(ty)
    }

    fn attributes(&self, op: &Op) -> String {
        format!("({})", quote(&expr(op).text(&GLU_VARS)))
    }

    fn parse(&self, at: &mut Cursor<'_>, _: bool) -> Result<Op, String> {
        Ok(Op::Glu { expr: at.expr(&GLU_VARS)? })
    }

    fn eval(&self, state: &mut State, node: &Node) -> Data {
        elementwise::value(state, node, expr(&node.op))
    }

    fn places(&self) -> &'static [Place] {
        ANYWHERE
    }

    fn expr(&self, op: &Op) -> Option<Expr> {
        Some(expr(op).clone())
    }

    fn sample(&self, expr: Option<&Expr>, inputs: usize) -> Option<Op> {
        Some(Op::Glu { expr: expr.cloned().unwrap_or_else(|| expression(inputs)) })
    }
}

fn lower(at: &mut At<'_, '_>) -> SpecResult<ValueId> {
    let expr = at.expr("expr", &["gate", "up"])?;
    let (gate, rows, cols) = at.input("gate")?;
    let (up, up_rows, up_cols) = at.input("up")?;
    if (rows, cols) != (up_rows, up_cols) {
        let message = format!("gate has {cols} columns, up {up_cols}");
        return Err(at.at("up", &message, "expected the same rows and columns as gate"));
    }
    Ok(at.push(Type::F32(rows, cols), Op::Glu { expr }, vec![gate, up], vec![]))
}
