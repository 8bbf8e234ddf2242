//! `elementwise`: an expression of its inputs, element by element; `glu`, an expression of gate and up.

use super::def::{OpDef, Outline, SpecOp};
use super::form::{Input, MAX_INPUTS, OpForm, Operands, check_expr};
use super::keys::{OpInfo, ParamKind, required};
use super::places::ANYWHERE;
use super::sample::expression;
use super::spec_node::SpecNode;
use crate::ir::cursor::{LineCursor, quote};
use crate::ir::eval::expr::eval;
use crate::ir::eval::state::{Data, OpState};
use crate::ir::{Node, Op, OpKind, Type, ValueId};
use crate::spec_text::Result as SpecResult;
use kernmill_kernels_gen::expr::Expr;

/// An op that is an expression.
pub struct Elementwise {
    outline: Outline,
    /// Variables of the expression; of inputs without a name none.
    vars: &'static [&'static str],
    op: fn(Expr) -> Op,
}

pub static ELEMENTWISE: Elementwise = Elementwise {
    outline: Outline {
        name: "elementwise",
        form: OpForm::variadic(&[Input::F32]),
        spec: &[SpecOp {
            info: OpInfo {
                name: "elementwise",
                params: &[required("inputs", ParamKind::Values), required("expr", ParamKind::Expr)],
                pattern: &[OpKind::Elementwise],
            },
            lower,
        }],
        places: ANYWHERE,
    },
    vars: &[],
    op: |expr| Op::Elementwise { expr },
};

pub static GLU: Elementwise = Elementwise {
    outline: Outline {
        name: "glu",
        form: OpForm::new(&[Input::F32, Input::F32], &[]),
        spec: &[SpecOp {
            info: OpInfo {
                name: "glu",
                params: &[
                    required("gate", ParamKind::Value),
                    required("up", ParamKind::Value),
                    required("expr", ParamKind::Expr),
                ],
                pattern: &[OpKind::Glu],
            },
            lower: lower_glu,
        }],
        places: ANYWHERE,
    },
    vars: &["gate", "up"],
    op: |expr| Op::Glu { expr },
};

fn expr(op: &Op) -> &Expr {
    let (Op::Elementwise { expr } | Op::Glu { expr }) = op else { unreachable!("{op:?}") };
    expr
}

impl OpDef for Elementwise {
    fn outline(&self) -> &Outline {
        &self.outline
    }

    fn infer(&self, op: &Op, on: &Operands<'_>) -> Result<Type, String> {
        let ty = on.alike()?;
        check_expr(expr(op), on.inputs.len())?;
        Ok(ty)
    }

    fn attributes(&self, op: &Op) -> String {
        format!("({})", quote(&expr(op).text(self.vars)))
    }

    fn parse(&self, at: &mut LineCursor<'_>, _: bool) -> Result<Op, String> {
        let numbered: Vec<String> = (0..MAX_INPUTS).map(|i| format!("x{i}")).collect();
        let numbered: Vec<&str> = numbered.iter().map(String::as_str).collect();
        Ok((self.op)(at.expr(if self.vars.is_empty() { &numbered[..] } else { self.vars })?))
    }

    fn eval(&self, state: &mut OpState, node: &Node) -> Data {
        let inputs: Vec<&[f32]> = node.inputs.iter().map(|&value| state.f32s(value)).collect();
        let mut vars = vec![0.0; inputs.len()];
        let element = |i: usize| {
            vars.iter_mut().zip(&inputs).for_each(|(var, input)| *var = input[i]);
            eval(expr(&node.op), &vars)
        };
        Data::F32((0..inputs[0].len()).map(element).collect())
    }

    fn expr(&self, op: &Op) -> Option<Expr> {
        Some(expr(op).clone())
    }

    fn sample(&self, expr: Option<&Expr>, inputs: usize) -> Option<Op> {
        Some((self.op)(expr.cloned().unwrap_or_else(|| expression(inputs))))
    }
}

fn lower(at: &mut dyn SpecNode) -> SpecResult<ValueId> {
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

fn lower_glu(at: &mut dyn SpecNode) -> SpecResult<ValueId> {
    let expr = at.expr("expr", &["gate", "up"])?;
    let (gate, rows, cols) = at.input("gate")?;
    let (up, up_rows, up_cols) = at.input("up")?;
    if (rows, cols) != (up_rows, up_cols) {
        let message = format!("gate has {cols} columns, up {up_cols}");
        return Err(at.at("up", &message, "expected the same rows and columns as gate"));
    }
    Ok(at.push(Type::F32(rows, cols), Op::Glu { expr }, vec![gate, up], vec![]))
}
