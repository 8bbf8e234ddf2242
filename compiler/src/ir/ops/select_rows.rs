//! `select_rows`: the rows whose logits are wanted.

use super::def::{OpDef, Outline, Packed, SpecOp};
use super::form::{Input, OpForm, Operands};
use super::keys::{INPUT, OpInfo};
use super::places::KernelPosition;
use super::sample::KnownValues;
use super::spec_node::SpecNode;
use crate::ir::RowKind;
use crate::ir::cursor::LineCursor;
use crate::ir::eval::state::{Data, OpState};
use crate::ir::{GraphRowOp, Node, Op, OpKind, Rows, Type, ValueId};
use crate::spec_text::Result as SpecResult;
use kernmill_kernels_gen::expr::Expr;
use kernmill_kernels_gen::kernel::RowOp;

pub struct SelectRows;

const OUTLINE: Outline = Outline {
    name: "select_rows",
    form: OpForm::new(&[Input::F32], &[]),
    spec: &[SpecOp {
        info: OpInfo { name: "select_rows", params: &[INPUT], pattern: &[OpKind::SelectRows] },
        lower,
    }],
    places: &[KernelPosition::Rows, KernelPosition::Prologue],
};

impl OpDef for SelectRows {
    fn outline(&self) -> &Outline {
        &OUTLINE
    }

    fn infer(&self, _: &Op, on: &Operands<'_>) -> Result<Type, String> {
        on.rows_are(Rows::Tokens)?;
        Ok(Type::F32(Rows::LogitRows, on.x().cols()))
    }

    fn parse(&self, _: &mut LineCursor<'_>, _: bool) -> Result<Op, String> {
        Ok(Op::SelectRows)
    }

    fn eval(&self, state: &mut OpState, node: &Node) -> Data {
        let x = node.inputs[0];
        let (cols, rows) = (state.cols(x), state.f32s(x));
        Data::F32(state.wanted.iter().flat_map(|row| &rows[row * cols..][..cols]).copied().collect())
    }

    fn row_op(&self, node: &Node, _: &dyn Packed) -> Option<GraphRowOp> {
        Some(RowOp::SelectRow { x: node.inputs[0], out: node.output })
    }

    fn facts(&self, known: &mut KnownValues<'_>, inputs: &[&str], out: &str) {
        known.same_cols(inputs[0], out);
        known.rows_are(inputs[0], RowKind::Tokens);
        known.rows_are(out, RowKind::LogitRows);
    }

    fn sample(&self, _: Option<&Expr>, _: usize) -> Option<Op> {
        Some(Op::SelectRows)
    }
}

fn lower(at: &mut dyn SpecNode) -> SpecResult<ValueId> {
    let (x, cols) = at.token_input("input")?;
    Ok(at.push(Type::F32(Rows::LogitRows, cols), Op::SelectRows, vec![x], vec![]))
}
