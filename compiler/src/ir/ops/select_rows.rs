//! `select_rows`: the rows whose logits or vectors are wanted; and `embedding`, which makes vectors the
//! output of a model.

use super::def::{OpDef, OpKind, Outline, Packed, SpecOp};
use super::form::{Input, OpForm, Operands};
use super::keys::{INPUT, NodeKey, OpInfo, POOLINGS, ParamKind, required};
use super::places::KernelPosition;
use super::spec_node::SpecNode;
use crate::ir::RowKind;
use crate::ir::eval::state::{Data, OpState};
use crate::ir::{GraphRowOp, Node, Rows, Type, ValueId};
use crate::spec_text::Result as SpecResult;
use kernmill_kernels_gen::row_op::SelectRow;
use kernmill_plan::vectors::{Pooling, VectorForm};

/// `x [T, n] -> f32 [Wanted, n]`: the rows whose logits are wanted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SelectRows;

const EMBEDDING: &[NodeKey] =
    &[INPUT, required("pool", ParamKind::OneOf(&POOLINGS)), required("normalise", ParamKind::Flag)];

pub static KINDS: [Outline; 1] = [Outline {
    spec: &[
        SpecOp { info: OpInfo { name: "select_rows", params: &[INPUT], pattern: &["select_rows"] }, lower },
        SpecOp {
            info: OpInfo { name: "embedding", params: EMBEDDING, pattern: &[] },
            lower: lower_embedding,
        },
    ],
    places: &[KernelPosition::Rows, KernelPosition::Prologue],
    passes: true,
    facts: |known, inputs, out| {
        known.same_cols(inputs[0], out);
        known.rows_are(inputs[0], RowKind::Tokens);
        known.rows_are(out, RowKind::LogitRows);
    },
    sample: |_, _| Some(SelectRows.into()),
    ..Outline::new("select_rows", OpForm::new(&[Input::F32], &[]), |_, _| Ok(SelectRows.into()))
}];

impl OpDef for SelectRows {
    fn kind(&self, _: usize) -> OpKind {
        OpKind(&KINDS[0])
    }

    fn infer(&self, on: &Operands<'_>) -> Result<Type, String> {
        on.rows_are(Rows::Tokens)?;
        Ok(Type::F32(Rows::LogitRows, on.x().cols()))
    }

    fn eval(&self, state: &mut OpState, node: &Node) -> Data {
        let x = node.inputs[0];
        let (cols, rows) = (state.cols(x), state.f32s(x));
        Data::F32(state.wanted.iter().flat_map(|row| &rows[row * cols..][..cols]).copied().collect())
    }

    fn row_op(&self, node: &Node, _: &dyn Packed) -> Option<GraphRowOp> {
        Some(SelectRow { x: node.inputs[0], out: node.output }.into())
    }
}

fn lower(at: &mut dyn SpecNode) -> SpecResult<ValueId> {
    let (x, cols) = at.token_input("input")?;
    Ok(at.push(Type::F32(Rows::LogitRows, cols), SelectRows, vec![x], vec![]))
}

/// An embedding is no node of the graph: pooling and lengths are the runtime's.
fn lower_embedding(at: &mut dyn SpecNode) -> SpecResult<ValueId> {
    let (value, rows, _) = at.input("input")?;
    if rows != Rows::LogitRows {
        let message = "vectors of every row of the batch";
        return Err(at
            .at("input", message, "expected a value behind `select_rows`")
            .help("put a `select_rows` node before the final norm: only the rows that are pooled go on"));
    }
    let pooling = Pooling::from_name(&at.text("pool").value).unwrap_or(Pooling::Last);
    let normalise = at.text("normalise").value == "true";
    at.set_output(value, Some(VectorForm { pooling, normalise }))?;
    Ok(value)
}
