//! `embed`: the rows of a table that the token ids name.

use super::def::{OpDef, Outline, Packed, SpecOp};
use super::form::{ANY, Input, OpForm, Operands, TensorOperand};
use super::keys::{OpInfo, ParamKind, required};
use super::places::KernelPosition;
use super::sample::KnownValues;
use super::spec_node::SpecNode;
use crate::ir::cursor::LineCursor;
use crate::ir::eval::state::{Data, OpState};
use crate::ir::{GraphRowOp, Node, Op, OperandRef, Role, Rows, Type, ValueId};
use crate::spec_text::Result as SpecResult;
use kernmill_kernels_gen::kernel::RowOp;

pub struct Embed;

const OUTLINE: Outline = Outline {
    name: "embed",
    form: OpForm::new(&[Input::Ids], &[TensorOperand::new("table", Role::Table, ANY)]),
    spec: &[SpecOp {
        info: OpInfo { name: "embed", params: &[required("table", ParamKind::Tensor)], pattern: &[] },
        lower,
    }],
    places: &[KernelPosition::Rows],
};

impl OpDef for Embed {
    fn outline(&self) -> &Outline {
        &OUTLINE
    }

    fn infer(&self, _: &Op, on: &Operands<'_>) -> Result<Type, String> {
        Ok(Type::F32(Rows::Tokens, on.tensors[0].shape[1]))
    }

    fn parse(&self, _: &mut LineCursor<'_>, _: bool) -> Result<Op, String> {
        Ok(Op::Embed)
    }

    fn eval(&self, state: &mut OpState, node: &Node) -> Data {
        let cols = state.cols(node.output);
        let table = state.dense(node.tensors[0]);
        let rows = state.batch.iter().flat_map(|token| &table[token.token as usize * cols..][..cols]);
        Data::F32(rows.copied().collect())
    }

    fn row_op(&self, node: &Node, kernels: &dyn Packed) -> Option<GraphRowOp> {
        let table = node.tensors[0];
        Some(RowOp::Embed {
            table: OperandRef::Tensor(table),
            format: kernels.graph().tensor(table).format,
            row_bytes: kernels.row_bytes(table),
            out: node.output,
        })
    }

    fn multiples(&self, _: &Op, width: usize) -> Vec<(&'static str, usize, usize)> {
        vec![("the width", width, 16)]
    }

    fn facts(&self, known: &mut KnownValues<'_>, inputs: &[&str], _: &str) {
        known.ids.push(inputs[0].to_owned());
    }
}

fn lower(at: &mut dyn SpecNode) -> SpecResult<ValueId> {
    let table = at.tensor("table", Role::Table)?;
    let (vocab, rows, cols) = (at.graph().vocab, at.shape(table)[0], at.shape(table)[1]);
    if rows != vocab {
        return Err(at.at(
            "table",
            &format!("the table has {rows} rows, the vocabulary {vocab} tokens"),
            format!("expected a tensor [{vocab}, ...]"),
        ));
    }
    at.check_width("table", cols)?;
    let tokens = ValueId(0);
    Ok(at.push(Type::F32(Rows::Tokens, cols), Op::Embed, vec![tokens], vec![table]))
}
