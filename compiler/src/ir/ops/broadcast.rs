//! `broadcast`: an expression of rows, of rows of one column, which is every column's, and of vectors. Specs
//! write it as an `elementwise` of such inputs.

use super::def::{OpDef, OpKind, Outline, Packed};
use super::form::{Input, MAX_INPUTS, MAX_VECTORS, OpForm, Operands, TensorOperand, check_expr, ensure};
use super::places::KernelPosition;
use super::sample::expression;
use super::spec_node::SpecNode;
use crate::ir::cursor::quote;
use crate::ir::eval::expr::eval;
use crate::ir::eval::state::{Data, OpState};
use crate::ir::{GraphRowOp, Node, OperandRef, Role, Type, ValueId};
use crate::spec_text::Result as SpecResult;
use kernmill_kernels_gen::expr::Expr;
use kernmill_kernels_gen::row_op::BroadcastRow;

/// `x0..; [vectors] -> f32`: an expression whose inputs of one column are spread over all.
#[derive(Clone, Debug, PartialEq)]
pub struct Broadcast {
    /// Expression; variable i is input i, and those behind them are the vectors.
    pub expr: Expr,
}

const VECTOR: TensorOperand = TensorOperand::optional("vector", Role::Vector);

pub static KINDS: [Outline; 1] = [Outline {
    places: &[KernelPosition::Rows, KernelPosition::Prologue],
    sample: |expr, inputs| {
        Some(Broadcast { expr: expr.cloned().unwrap_or_else(|| expression(inputs)) }.into())
    },
    ..Outline::new("broadcast", OpForm::variadic(&[Input::F32], &[VECTOR; MAX_VECTORS]), |at, _| {
        let names: Vec<String> = (0..MAX_INPUTS + MAX_VECTORS).map(|i| format!("x{i}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        Ok(Broadcast { expr: at.expr(&names)? }.into())
    })
}];

impl OpDef for Broadcast {
    fn kind(&self, _: usize) -> OpKind {
        OpKind(&KINDS[0])
    }

    fn infer(&self, on: &Operands<'_>) -> Result<Type, String> {
        let cols = on.inputs.iter().map(|ty| ty.cols()).max().unwrap_or(0);
        let out = Type::F32(on.x().rows(), cols);
        for (i, input) in on.inputs.iter().enumerate() {
            ensure(input.rows() == out.rows() && [1, cols].contains(&input.cols()), || {
                format!("input {i} is {}, expected {} or one column of it", input.text(), out.text())
            })?;
        }
        (0..on.tensors.len()).try_for_each(|i| on.shape(i, &[cols]))?;
        check_expr(&self.expr, on.inputs.len() + on.tensors.len())?;
        Ok(out)
    }

    fn attributes(&self, _: usize) -> String {
        format!("({})", quote(&self.expr.text(&[])))
    }

    fn eval(&self, state: &mut OpState, node: &Node) -> Data {
        let cols = state.cols(node.output);
        let inputs: Vec<(&[f32], usize)> =
            node.inputs.iter().map(|&value| (state.f32s(value), state.cols(value))).collect();
        let vectors: Vec<&[f32]> = node.tensors.iter().map(|&vector| state.dense(vector)).collect();
        let rows = inputs[0].0.len() / inputs[0].1;
        let element = |i: usize| {
            let (row, col) = (i / cols, i % cols);
            let of_rows = inputs.iter().map(|(x, n)| x[row * n + if *n == 1 { 0 } else { col }]);
            let vars: Vec<f32> = of_rows.chain(vectors.iter().map(|vector| vector[col])).collect();
            eval(&self.expr, &vars)
        };
        Data::F32((0..rows * cols).map(element).collect())
    }

    fn row_op(&self, node: &Node, _: &dyn Packed) -> Option<GraphRowOp> {
        let vectors = node.tensors.iter().map(|&vector| OperandRef::Tensor(vector)).collect();
        let (expr, inputs, out) = (self.expr.clone(), node.inputs.clone(), node.output);
        Some(BroadcastRow { expr, inputs, vectors, out }.into())
    }
}

/// The node of an elementwise op with vectors, or with inputs of one column beside wider ones.
pub fn lower(at: &mut dyn SpecNode, expr: Expr) -> SpecResult<ValueId> {
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
    Ok(at.push(out, Broadcast { expr }, values, vectors))
}
