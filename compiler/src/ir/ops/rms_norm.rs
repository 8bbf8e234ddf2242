//! `rms_norm`: a row divided by its root mean square, times a weight per column.

use super::def::{OpDef, Outline, Packed, SpecOp};
use super::form::{Input, OpForm, Operands, PLAIN, TensorOperand, ensure};
use super::keys::{INPUT, OpInfo, ParamKind, required};
use super::places::KernelPosition;
use super::spec_node::SpecNode;
use crate::ir::cursor::LineCursor;
use crate::ir::eval::num::sum_squares;
use crate::ir::eval::state::{Data, OpState};
use crate::ir::{GraphRowOp, Node, Op, OpKind, OperandRef, Role, Type, ValueId};
use crate::spec_text::Result as SpecResult;
use kernmill_kernels_gen::kernel::RowOp;

pub struct RmsNorm;

const OUTLINE: Outline = Outline {
    name: "rms_norm",
    form: OpForm::new(&[Input::F32], &[TensorOperand::new("weight", Role::Vector, PLAIN)]),
    spec: &[SpecOp {
        info: OpInfo {
            name: "rms_norm",
            params: &[INPUT, required("weight", ParamKind::Tensor), required("eps", ParamKind::Number)],
            pattern: &[OpKind::RmsNorm],
        },
        lower,
    }],
    places: &[KernelPosition::Rows, KernelPosition::Prologue],
};

/// The number that is added to the mean square.
fn eps(op: &Op) -> f32 {
    let Op::RmsNorm { eps } = op else { unreachable!("{op:?}") };
    *eps
}

impl OpDef for RmsNorm {
    fn outline(&self) -> &Outline {
        &OUTLINE
    }

    fn infer(&self, op: &Op, on: &Operands<'_>) -> Result<Type, String> {
        let eps = eps(op);
        ensure(eps.is_finite() && eps >= 0.0, || format!("eps = {eps} is not a number >= 0"))?;
        on.shape(0, &[on.x().cols()])?;
        Ok(on.x())
    }

    fn attributes(&self, op: &Op) -> String {
        format!("(eps={:?})", eps(op))
    }

    fn parse(&self, at: &mut LineCursor<'_>, _: bool) -> Result<Op, String> {
        Ok(Op::RmsNorm { eps: at.attribute("eps")? })
    }

    fn eval(&self, state: &mut OpState, node: &Node) -> Data {
        let (x, weight, eps) = (node.inputs[0], state.dense(node.tensors[0]), eps(&node.op));
        let rows = state.f32s(x).chunks_exact(state.cols(x));
        let normed = rows.flat_map(|row| {
            let r = 1.0 / (sum_squares(row) / row.len() as f32 + eps).sqrt();
            row.iter().zip(weight).map(move |(x, w)| (x * r) * w)
        });
        Data::F32(normed.collect())
    }

    fn row_op(&self, node: &Node, _: &dyn Packed) -> Option<GraphRowOp> {
        Some(RowOp::RmsNorm {
            x: node.inputs[0],
            weight: OperandRef::Tensor(node.tensors[0]),
            eps: eps(&node.op).into(),
            out: node.output,
        })
    }

    fn multiples(&self, _: &Op, width: usize) -> Vec<(&'static str, usize, usize)> {
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
    Ok(at.push(Type::F32(rows, cols), Op::RmsNorm { eps }, vec![x], vec![weight]))
}
