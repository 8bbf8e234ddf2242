//! `rms_norm`: a row divided by its root mean square, times a weight per column; `head_norm`: each head of a
//! row by itself, all times the same weights.

use super::def::{OpDef, OpKind, Outline, Packed, SpecOp};
use super::form::{Input, OpForm, Operands, TensorOperand, ensure};
use super::keys::{INPUT, OpInfo, ParamKind, optional, required};
use super::places::{ANYWHERE, KernelPosition};
use super::spec_node::SpecNode;
use crate::ir::eval::num::sum_squares;
use crate::ir::eval::state::{Data, OpState};
use crate::ir::{GraphRowOp, Node, OperandRef, Role, Type, ValueId};
use crate::spec_text::Result as SpecResult;
use kernmill_kernels_gen::row_op::{RmsNormRow, RowPlace};
use kernmill_plan::limit;

/// `x; [weight] -> f32`: divides rows, or each head of them, by their root mean square.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RmsNorm {
    /// Added to the mean square.
    pub eps: f32,
    /// Elements of a head, if each is normed by itself.
    pub head_dim: Option<usize>,
}

pub static KINDS: [Outline; 2] = [
    Outline {
        spec: &[SpecOp {
            info: OpInfo {
                name: "rms_norm",
                params: &[
                    INPUT,
                    optional("weight", ParamKind::Tensor),
                    required("eps", ParamKind::Number),
                    optional("head_dim", ParamKind::Number),
                ],
                pattern: &["rms_norm"],
            },
            lower,
        }],
        places: &[KernelPosition::Rows, KernelPosition::Prologue],
        passes: true,
        ..Outline::new("rms_norm", FORM, |at, _| {
            Ok(RmsNorm { eps: at.attribute("eps")?, head_dim: None }.into())
        })
    },
    Outline {
        places: ANYWHERE,
        passes: true,
        facts: |known, inputs, out| {
            known.same_cols(inputs[0], out);
            known.same_rows(inputs[0], out);
            known.has_heads(out);
        },
        ..Outline::new("head_norm", FORM, |at, _| {
            let eps = at.attribute("eps")?;
            at.expect(",")?;
            Ok(RmsNorm { eps, head_dim: Some(at.attribute("head_dim")?) }.into())
        })
    },
];

const FORM: OpForm = OpForm::new(&[Input::F32], &[TensorOperand::optional("weight", Role::Vector)]);

impl OpDef for RmsNorm {
    fn kind(&self, _: usize) -> OpKind {
        OpKind(&KINDS[usize::from(self.head_dim.is_some())])
    }

    fn infer(&self, on: &Operands<'_>) -> Result<Type, String> {
        let eps = self.eps;
        ensure(eps.is_finite() && eps >= 0.0, || format!("eps = {eps} is not a number >= 0"))?;
        let cols = on.x().cols();
        let normed = self.head_dim.unwrap_or(cols);
        ensure(normed > 0 && cols.is_multiple_of(normed), || {
            format!("{cols} columns are not heads of head_dim = {normed}")
        })?;
        on.shape(0, &[normed])?;
        Ok(on.x())
    }

    fn attributes(&self, _: usize) -> String {
        let head_dim = self.head_dim.map_or(String::new(), |head_dim| format!(", head_dim={head_dim}"));
        format!("(eps={:?}{head_dim})", self.eps)
    }

    fn eval(&self, state: &mut OpState, node: &Node) -> Data {
        let (x, eps) = (node.inputs[0], self.eps);
        let weight = node.tensors.first().map(|&weight| state.dense(weight));
        let rows = state.f32s(x).chunks_exact(self.head_dim.unwrap_or(state.cols(x)));
        let normed = rows.flat_map(|row| {
            let r = 1.0 / (sum_squares(row) / row.len() as f32 + eps).sqrt();
            row.iter().enumerate().map(move |(i, x)| match weight {
                Some(weight) => (x * r) * weight[i],
                None => x * r,
            })
        });
        Data::F32(normed.collect())
    }

    fn row_op(&self, node: &Node, _: &dyn Packed) -> Option<GraphRowOp> {
        Some(self.on(node, RowPlace::Row(node.inputs[0]), RowPlace::Row(node.output)))
    }

    fn in_epilogue(&self, node: &Node) -> Option<GraphRowOp> {
        self.head_dim.map(|_| self.on(node, RowPlace::Results, RowPlace::Results))
    }

    fn multiples(&self, width: usize) -> Vec<(&'static str, usize, usize)> {
        vec![match self.head_dim {
            Some(head_dim) => ("head_dim", head_dim, 16),
            None => ("the width", width, 16),
        }]
    }
}

impl RmsNorm {
    fn on(&self, node: &Node, x: RowPlace<ValueId>, out: RowPlace<ValueId>) -> GraphRowOp {
        let weight = node.tensors.first().map(|&weight| OperandRef::Tensor(weight));
        RmsNormRow { x, weight, eps: self.eps.into(), head_dim: self.head_dim, out }.into()
    }
}

fn lower(at: &mut dyn SpecNode) -> SpecResult<ValueId> {
    let (x, rows, cols) = at.input("input")?;
    let head_dim = match at.has("head_dim") {
        true => Some(at.whole("head_dim", limit::HEAD_DIM)?),
        false => None,
    };
    let normed = head_dim.unwrap_or(cols);
    if !cols.is_multiple_of(normed) {
        let message = format!("{cols} columns do not divide into heads of {normed}");
        return Err(at.at("head_dim", &message, format!("expected a divisor of {cols}")));
    }
    let mut weights = vec![];
    if at.has("weight") {
        let weight = at.tensor("weight", Role::Vector)?;
        at.check_shape("weight", weight, &[normed]).map_err(|error| match at.shape(weight)[..] {
            [width] if head_dim.is_none() && width < cols && cols.is_multiple_of(width) => {
                error.help(format!("`head_dim = {width}` makes it a norm of each head"))
            }
            _ => error,
        })?;
        weights.push(weight);
    }
    let eps = at.positive("eps", "eps")?;
    Ok(at.push(Type::F32(rows, cols), RmsNorm { eps, head_dim }, vec![x], weights))
}
