//! `elementwise`: an expression of its inputs, element by element.

use super::def::{ANYWHERE, OpDef, Place, SpecOp};
use super::form::{Form, Input, MAX_INPUTS, Operands, check_expr};
use super::sample::expression;
use crate::graph::cursor::{Cursor, quote};
use crate::graph::{Node, Op, OpKind, Type, ValueId};
use crate::interp::eval;
use crate::interp::state::{Data, State};
use crate::spec::ops::{OpInfo, ParamKind, required};
use crate::spec::{At, Result as SpecResult};
use kernmill_kernels_gen::expr::Expr;

pub struct Elementwise;

const FORM: Form = Form::variadic(&[Input::F32]);

const SPEC: &[SpecOp] = &[SpecOp {
    info: OpInfo {
        name: "elementwise",
        params: &[required("inputs", ParamKind::Values), required("expr", ParamKind::Expr)],
        pattern: &[OpKind::Elementwise],
    },
    lower,
}];

fn expr(op: &Op) -> &Expr {
    let Op::Elementwise { expr } = op else { unreachable!("{op:?}") };
    expr
}

/// The expression of each element of the node's inputs.
pub fn value(state: &State, node: &Node, expr: &Expr) -> Data {
    let inputs: Vec<&[f32]> = node.inputs.iter().map(|&value| state.f32s(value)).collect();
    let mut vars = vec![0.0; inputs.len()];
    let element = |i: usize| {
        vars.iter_mut().zip(&inputs).for_each(|(var, input)| *var = input[i]);
        eval(expr, &vars)
    };
    Data::F32((0..inputs[0].len()).map(element).collect())
}

impl OpDef for Elementwise {
    fn name(&self) -> &'static str {
        "elementwise"
    }

    fn form(&self) -> &'static Form {
        &FORM
    }

    fn spec(&self) -> &'static [SpecOp] {
        SPEC
    }

    fn infer(&self, op: &Op, on: &Operands<'_>) -> Result<Type, String> {
        let ty = on.alike()?;
        check_expr(expr(op), on.inputs.len())?;
        Ok(ty)
    }

    fn attributes(&self, op: &Op) -> String {
        format!("({})", quote(&expr(op).text(&[])))
    }

    fn parse(&self, at: &mut Cursor<'_>, _: bool) -> Result<Op, String> {
        let vars: Vec<String> = (0..MAX_INPUTS).map(|i| format!("x{i}")).collect();
        let vars: Vec<&str> = vars.iter().map(String::as_str).collect();
        Ok(Op::Elementwise { expr: at.expr(&vars)? })
    }

    fn eval(&self, state: &mut State, node: &Node) -> Data {
        value(state, node, expr(&node.op))
    }

    fn places(&self) -> &'static [Place] {
        ANYWHERE
    }

    fn expr(&self, op: &Op) -> Option<Expr> {
        Some(expr(op).clone())
    }

    fn sample(&self, expr: Option<&Expr>, inputs: usize) -> Option<Op> {
        Some(Op::Elementwise { expr: expr.cloned().unwrap_or_else(|| expression(inputs)) })
    }
}

fn lower(at: &mut At<'_, '_>) -> SpecResult<ValueId> {
    let names = at.texts("inputs");
    let vars: Vec<&str> = names.iter().map(|n| n.value.as_str()).collect();
    if vars.len() > MAX_INPUTS {
        let message = format!("{} inputs", vars.len());
        return Err(at.at("inputs", &message, format!("expected at most {MAX_INPUTS}")));
    }
    let expr = at.expr("expr", &vars)?;
    let (values, ty) = at.same_inputs(1)?;
    Ok(at.push(ty, Op::Elementwise { expr }, values, vec![]))
}
