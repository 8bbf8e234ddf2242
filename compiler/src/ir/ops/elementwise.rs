//! `elementwise`: an expression of its inputs, element by element. `add` and `mul` are two such expressions
//! with names of their own, `glu` is a way to write one of gate and up. `broadcast` is the kind whose inputs
//! may also have one column, which is every column's, and vectors behind them; specs write it as an
//! `elementwise` of such inputs.

use super::def::{OpDef, OpKind, Outline, Packed, SpecOp};
use super::form::{Input, MAX_INPUTS, MAX_VECTORS, OpForm, Operands, TensorOperand, check_expr, ensure};
use super::keys::{INPUTS, OpInfo, ParamKind, optional, required};
use super::places::{ANYWHERE, KernelPosition, KernelTemplate};
use super::sample::expression;
use super::spec_node::SpecNode;
use crate::ir::cursor::{LineCursor, quote};
use crate::ir::eval::expr::eval;
use crate::ir::eval::state::{Data, OpState};
use crate::ir::{GraphRowOp, Node, OperandRef, Role, Type, ValueId};
use crate::spec_text::Result as SpecResult;
use kernmill_kernels_gen::expr::{Binary, Expr};
use kernmill_kernels_gen::row_op::{ElementwiseRow, RowPlace};

/// `x0..; [vectors] -> f32`: an expression of the inputs and vectors.
#[derive(Clone, Debug, PartialEq)]
pub struct Elementwise {
    /// Expression; variable i is input i, and those behind them are the vectors.
    pub expr: Expr,
    /// Whether inputs may have one column, which is spread over all, and there may be vectors.
    pub is_spread: bool,
}

const PAIR: OpForm = OpForm::new(&[Input::F32, Input::F32], &[]);

const VECTOR: TensorOperand = TensorOperand::optional("vector", Role::Vector);

pub static KINDS: [Outline; 4] = [
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
            Some(Elementwise::of(expr.cloned().unwrap_or_else(|| expression(inputs))).into())
        },
        ..Outline::new("elementwise", OpForm::variadic(&[Input::F32], &[]), |at, _| {
            Ok(Elementwise::of(parse(at, MAX_INPUTS)?).into())
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
    Outline {
        places: &[KernelPosition::Rows, KernelPosition::Prologue],
        sample: |expr, inputs| {
            Some(Elementwise::spread(expr.cloned().unwrap_or_else(|| expression(inputs))).into())
        },
        ..Outline::new("broadcast", OpForm::variadic(&[Input::F32], &[VECTOR; MAX_VECTORS]), |at, _| {
            Ok(Elementwise::spread(parse(at, MAX_INPUTS + MAX_VECTORS)?).into())
        })
    },
];

/// The expression of so many variables in graph text.
fn parse(at: &mut LineCursor<'_>, vars: usize) -> Result<Expr, String> {
    let names: Vec<String> = (0..vars).map(|i| format!("x{i}")).collect();
    at.expr(&names.iter().map(String::as_str).collect::<Vec<_>>())
}

impl Elementwise {
    /// An expression of inputs of the same rows and columns.
    pub fn of(expr: Expr) -> Elementwise {
        Elementwise { expr, is_spread: false }
    }

    /// An expression whose inputs may have one column, with vectors behind them.
    pub fn spread(expr: Expr) -> Elementwise {
        Elementwise { expr, is_spread: true }
    }

    /// The sum of two inputs.
    pub fn add() -> Elementwise {
        Elementwise::pair(Binary::Add)
    }

    /// The product of two inputs.
    pub fn mul() -> Elementwise {
        Elementwise::pair(Binary::Mul)
    }

    fn pair(binary: Binary) -> Elementwise {
        Elementwise::of(Expr::Binary(binary, Box::new(Expr::Var(0)), Box::new(Expr::Var(1))))
    }
}

impl OpDef for Elementwise {
    fn kind(&self, inputs: usize) -> OpKind {
        let of_vars = |a: &Expr, b: &Expr| (a, b) == (&Expr::Var(0), &Expr::Var(1));
        OpKind(match &self.expr {
            _ if self.is_spread => &KINDS[3],
            Expr::Binary(Binary::Add, a, b) if inputs == 2 && of_vars(a, b) => &KINDS[1],
            Expr::Binary(Binary::Mul, a, b) if inputs == 2 && of_vars(a, b) => &KINDS[2],
            _ => &KINDS[0],
        })
    }

    fn infer(&self, on: &Operands<'_>) -> Result<Type, String> {
        check_expr(&self.expr, on.inputs.len() + on.tensors.len())?;
        if !self.is_spread {
            return on.alike();
        }
        let cols = on.inputs.iter().map(|ty| ty.cols()).max().unwrap_or(0);
        let out = Type::F32(on.x().rows(), cols);
        for (i, input) in on.inputs.iter().enumerate() {
            ensure(input.rows() == out.rows() && [1, cols].contains(&input.cols()), || {
                format!("input {i} is {}, expected {} or one column of it", input.text(), out.text())
            })?;
        }
        (0..on.tensors.len()).try_for_each(|i| on.shape(i, &[cols]))?;
        Ok(out)
    }

    fn attributes(&self, inputs: usize) -> String {
        match self.kind(inputs).commutes {
            true => String::new(),
            false => format!("({})", quote(&self.expr.text(&[]))),
        }
    }

    fn eval(&self, state: &mut OpState, node: &Node) -> Data {
        let cols = state.cols(node.output);
        let inputs: Vec<(&[f32], usize)> =
            node.inputs.iter().map(|&value| (state.f32s(value), state.cols(value))).collect();
        let vectors: Vec<&[f32]> = node.tensors.iter().map(|&vector| state.dense(vector)).collect();
        let rows = inputs[0].0.len() / inputs[0].1;
        let mut vars = vec![0.0; inputs.len() + vectors.len()];
        let element = |i: usize| {
            let (row, col) = (i / cols, i % cols);
            let of_rows = inputs.iter().map(|(x, n)| x[row * n + if *n == 1 { 0 } else { col }]);
            let found = of_rows.chain(vectors.iter().map(|vector| vector[col]));
            vars.iter_mut().zip(found).for_each(|(var, x)| *var = x);
            eval(&self.expr, &vars)
        };
        Data::F32((0..rows * cols).map(element).collect())
    }

    fn expr(&self) -> Option<Expr> {
        (!self.is_spread).then(|| self.expr.clone())
    }

    fn row_op(&self, node: &Node, _: &dyn Packed) -> Option<GraphRowOp> {
        let vectors = node.tensors.iter().map(|&vector| OperandRef::Tensor(vector)).collect();
        let (expr, inputs, out) = (self.expr.clone(), node.inputs.clone(), RowPlace::Row(node.output));
        Some(ElementwiseRow { expr, inputs, vectors, out }.into())
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
        return lower_spread(at, expr);
    }
    let (values, ty) = at.same_inputs(1)?;
    Ok(at.push(ty, Elementwise::of(expr), values, vec![]))
}

/// The node of an expression with vectors, or with inputs of one column beside wider ones.
fn lower_spread(at: &mut dyn SpecNode, expr: Expr) -> SpecResult<ValueId> {
    let mut values = Vec::new();
    let mut out: Option<Type> = None;
    let names = at.texts("inputs");
    for name in &names {
        let value = at.value(name)?;
        let ty = at.ty(value);
        let known = out.unwrap_or(ty);
        let fits = |cols: usize| cols == known.cols() || cols == 1 || known.cols() == 1;
        if !matches!(ty, Type::F32(..)) || ty.rows() != known.rows() || !fits(ty.cols()) {
            let message = format!("`{}` has {}", name.value, ty.in_words());
            let label = format!("expected {} or one, and the same rows", known.in_words());
            return Err(at.error(name.span.clone(), &message, label));
        }
        out = Some(if ty.cols() > known.cols() { ty } else { known });
        values.push(value);
    }
    let Some(out) = out else {
        return Err(at.at("inputs", "0 inputs", "expected at least 1"));
    };
    let mut vectors = Vec::new();
    if at.has("vectors") {
        for name in at.texts("vectors") {
            let vector = at.named_tensor(&name, Role::Vector)?;
            let shape = at.shape(vector);
            if *shape != [out.cols()] {
                let message = format!("tensor `{}` has shape {shape:?}", name.value);
                return Err(at.error(name.span.clone(), &message, format!("expected [{}]", out.cols())));
            }
            vectors.push(vector);
        }
    }
    Ok(at.push(out, Elementwise::spread(expr), values, vectors))
}

fn lower_glu(at: &mut dyn SpecNode) -> SpecResult<ValueId> {
    let expr = at.expr("expr", &["gate", "up"])?;
    let (gate, rows, cols) = at.input("gate")?;
    let (up, up_rows, up_cols) = at.input("up")?;
    if (rows, cols) != (up_rows, up_cols) {
        let message = format!("gate has {cols} columns, up {up_cols}");
        return Err(at.at("up", &message, "expected the same rows and columns as gate"));
    }
    Ok(at.push(Type::F32(rows, cols), Elementwise::of(expr), vec![gate, up], vec![]))
}
