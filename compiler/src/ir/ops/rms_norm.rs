//! `rms_norm`: a row divided by its root mean square, times a weight per column.

use super::def::{OpDef, OpKind, Outline, Packed, SpecOp};
use super::form::{Input, OpForm, Operands, PLAIN, TensorOperand, ensure};
use super::keys::{INPUT, OpInfo, ParamKind, required};
use super::places::KernelPosition;
use super::spec_node::SpecNode;
use crate::ir::eval::num::sum_squares;
use crate::ir::eval::state::{Data, OpState};
use crate::ir::{GraphRowOp, Node, OperandRef, Role, Type, ValueId};
use crate::spec_text::Result as SpecResult;
use kernmill_kernels_gen::row_op::RmsNormRow;

/// `x; weight -> f32`: divides rows by their root mean square.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RmsNorm {
    /// Added to the mean square.
    pub eps: f32,
}

pub static KINDS: [Outline; 1] = [Outline {
    spec: &[SpecOp {
        info: OpInfo {
            name: "rms_norm",
            params: &[INPUT, required("weight", ParamKind::Tensor), required("eps", ParamKind::Number)],
            pattern: &["rms_norm"],
        },
        lower,
    }],
    places: &[KernelPosition::Rows, KernelPosition::Prologue],
    passes: true,
    ..Outline::new("rms_norm", FORM, |at, _| Ok(RmsNorm { eps: at.attribute("eps")? }.into()))
}];

const FORM: OpForm = OpForm::new(&[Input::F32], &[TensorOperand::new("weight", Role::Vector, PLAIN)]);

impl OpDef for RmsNorm {
    fn kind(&self, _: usize) -> OpKind {
        OpKind(&KINDS[0])
    }

    fn infer(&self, on: &Operands<'_>) -> Result<Type, String> {
        let eps = self.eps;
        ensure(eps.is_finite() && eps >= 0.0, || format!("eps = {eps} is not a number >= 0"))?;
        on.shape(0, &[on.x().cols()])?;
        Ok(on.x())
    }

    fn attributes(&self, _: usize) -> String {
        format!("(eps={:?})", self.eps)
    }

    fn eval(&self, state: &mut OpState, node: &Node) -> Data {
        let (x, weight, eps) = (node.inputs[0], state.dense(node.tensors[0]), self.eps);
        let rows = state.f32s(x).chunks_exact(state.cols(x));
        let normed = rows.flat_map(|row| {
            let r = 1.0 / (sum_squares(row) / row.len() as f32 + eps).sqrt();
            row.iter().zip(weight).map(move |(x, w)| (x * r) * w)
        });
        Data::F32(normed.collect())
    }

    fn row_op(&self, node: &Node, _: &dyn Packed) -> Option<GraphRowOp> {
        Some(
            RmsNormRow {
                x: node.inputs[0],
                weight: OperandRef::Tensor(node.tensors[0]),
                eps: self.eps.into(),
                out: node.output,
            }
            .into(),
        )
    }

    fn multiples(&self, width: usize) -> Vec<(&'static str, usize, usize)> {
        vec![("the width", width, 16)]
    }
}

fn lower(at: &mut dyn SpecNode) -> SpecResult<ValueId> {
    let (x, rows, cols) = at.input("input")?;
    let weight = at.tensor("weight", Role::Vector)?;
    at.check_shape("weight", weight, &[cols]).map_err(|error| match at.shape(weight)[..] {
        [width] if width < cols && cols.is_multiple_of(width) => {
            error.help("a norm is of whole rows: norms of single heads are not supported")
        }
        _ => error,
    })?;
    let eps = at.positive("eps", "eps")?;
    Ok(at.push(Type::F32(rows, cols), RmsNorm { eps }, vec![x], vec![weight]))
}
