//! `elementwise`: an expression of its inputs, element by element. `add` and `mul` are two such expressions
//! with names of their own, `glu` is a way to write one of gate and up.

use super::broadcast;
use super::def::{OpDef, OpKind, Outline, SpecOp};
use super::form::{Input, MAX_INPUTS, MAX_VECTORS, OpForm, Operands, check_expr};
use super::keys::{INPUTS, OpInfo, ParamKind, optional, required};
use super::places::{ANYWHERE, KernelPosition, KernelTemplate};
use super::sample::expression;
use super::spec_node::SpecNode;
use crate::ir::cursor::quote;
use crate::ir::eval::expr::eval;
use crate::ir::eval::state::{Data, OpState};
use crate::ir::{Node, Type, ValueId};
use crate::spec_text::Result as SpecResult;
use kernmill_kernels_gen::expr::{Binary, Expr};

/// `x0.. -> f32`: an expression of the inputs.
#[derive(Clone, Debug, PartialEq)]
pub struct Elementwise {
    /// Expression; variable i is input i.
    pub expr: Expr,
}

const PAIR: OpForm = OpForm::new(&[Input::F32, Input::F32], &[]);

pub static KINDS: [Outline; 3] = [
    Outline {
        spec: &[
            SpecOp {
                info: OpInfo {
                    name: "elementwise",
                    params: &[
                        required("inputs", ParamKind::Values),
                        optional("vectors", ParamKind::Tensors),
                        required("expr", ParamKind::Expr),
                    ],
                    pattern: &["elementwise"],
                },
                lower,
            },
            SpecOp {
                info: OpInfo {
                    name: "glu",
                    params: &[
                        required("gate", ParamKind::Value),
                        required("up", ParamKind::Value),
                        required("expr", ParamKind::Expr),
                    ],
                    pattern: &["elementwise"],
                },
                lower: lower_glu,
            },
        ],
        places: ANYWHERE,
        passes: true,
        sample: |expr, inputs| {
            Some(Elementwise { expr: expr.cloned().unwrap_or_else(|| expression(inputs)) }.into())
        },
        ..Outline::new("elementwise", OpForm::variadic(&[Input::F32], &[]), |at, _| {
            let names: Vec<String> = (0..MAX_INPUTS).map(|i| format!("x{i}")).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            Ok(Elementwise { expr: at.expr(&names)? }.into())
        })
    },
    Outline {
        spec: &[SpecOp {
            info: OpInfo { name: "add", params: INPUTS, pattern: &["add"] },
            lower: |at| at.pair(Elementwise::add().into()),
        }],
        places: &[
            KernelPosition::Rows,
            KernelPosition::Prologue,
            KernelPosition::Epilogue,
            KernelPosition::EpilogueOf(KernelTemplate::ExpertDown),
        ],
        commutes: true,
        sample: |_, _| Some(Elementwise::add().into()),
        ..Outline::new("add", PAIR, |_, _| Ok(Elementwise::add().into()))
    },
    Outline {
        spec: &[SpecOp {
            info: OpInfo { name: "mul", params: INPUTS, pattern: &["mul"] },
            lower: |at| at.pair(Elementwise::mul().into()),
        }],
        places: ANYWHERE,
        commutes: true,
        passes: true,
        sample: |_, _| Some(Elementwise::mul().into()),
        ..Outline::new("mul", PAIR, |_, _| Ok(Elementwise::mul().into()))
    },
];

impl Elementwise {
    /// The sum of two inputs.
    pub fn add() -> Elementwise {
        Elementwise::pair(Binary::Add)
    }

    /// The product of two inputs.
    pub fn mul() -> Elementwise {
        Elementwise::pair(Binary::Mul)
    }

    fn pair(binary: Binary) -> Elementwise {
        Elementwise { expr: Expr::Binary(binary, Box::new(Expr::Var(0)), Box::new(Expr::Var(1))) }
    }
}

impl OpDef for Elementwise {
    fn kind(&self, inputs: usize) -> OpKind {
        let of_vars = |a: &Expr, b: &Expr| (a, b) == (&Expr::Var(0), &Expr::Var(1));
        OpKind(match &self.expr {
            Expr::Binary(Binary::Add, a, b) if inputs == 2 && of_vars(a, b) => &KINDS[1],
            Expr::Binary(Binary::Mul, a, b) if inputs == 2 && of_vars(a, b) => &KINDS[2],
            _ => &KINDS[0],
        })
    }

    fn infer(&self, on: &Operands<'_>) -> Result<Type, String> {
        let ty = on.alike()?;
        check_expr(&self.expr, on.inputs.len())?;
        Ok(ty)
    }

    fn attributes(&self, inputs: usize) -> String {
        match self.kind(inputs).commutes {
            true => String::new(),
            false => format!("({})", quote(&self.expr.text(&[]))),
        }
    }

    fn eval(&self, state: &mut OpState, node: &Node) -> Data {
        let inputs: Vec<&[f32]> = node.inputs.iter().map(|&value| state.f32s(value)).collect();
        let mut vars = vec![0.0; inputs.len()];
        let element = |i: usize| {
            vars.iter_mut().zip(&inputs).for_each(|(var, input)| *var = input[i]);
            eval(&self.expr, &vars)
        };
        Data::F32((0..inputs[0].len()).map(element).collect())
    }

    fn expr(&self) -> Option<Expr> {
        Some(self.expr.clone())
    }
}

fn lower(at: &mut dyn SpecNode) -> SpecResult<ValueId> {
    let mut names = at.texts("inputs");
    if names.len() > MAX_INPUTS {
        let message = format!("{} inputs", names.len());
        return Err(at.at("inputs", &message, format!("expected at most {MAX_INPUTS}")));
    }
    let values = names.iter().map(|name| at.value(name)).collect::<SpecResult<Vec<_>>>()?;
    let types: Vec<Type> = values.iter().map(|value| at.ty(*value)).collect();
    if at.has("vectors") {
        let vectors = at.texts("vectors");
        if vectors.len() > MAX_VECTORS {
            let message = format!("{} vectors", vectors.len());
            return Err(at.at("vectors", &message, format!("expected at most {MAX_VECTORS}")));
        }
        names.extend(vectors);
    }
    let vars: Vec<&str> = names.iter().map(|name| name.value.as_str()).collect();
    let expr = at.expr("expr", &vars)?;
    let is_narrow = |ty: &Type| matches!(ty, Type::F32(_, 1));
    if at.has("vectors") || types.iter().any(is_narrow) && !types.iter().all(is_narrow) {
        return broadcast::lower(at, expr);
    }
    let (values, ty) = at.same_inputs(1)?;
    Ok(at.push(ty, Elementwise { expr }, values, vec![]))
}

fn lower_glu(at: &mut dyn SpecNode) -> SpecResult<ValueId> {
    let expr = at.expr("expr", &["gate", "up"])?;
    let (gate, rows, cols) = at.input("gate")?;
    let (up, up_rows, up_cols) = at.input("up")?;
    if (rows, cols) != (up_rows, up_cols) {
        let message = format!("gate has {cols} columns, up {up_cols}");
        return Err(at.at("up", &message, "expected the same rows and columns as gate"));
    }
    Ok(at.push(Type::F32(rows, cols), Elementwise { expr }, vec![gate, up], vec![]))
}
