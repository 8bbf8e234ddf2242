//! `embed`: the rows of a table that the token ids name.

use super::def::{OpDef, OpKind, Outline, Packed, SpecOp};
use super::form::{ANY, Input, OpForm, Operands, TensorOperand};
use super::keys::{OpInfo, ParamKind, required};
use super::places::KernelPosition;
use super::spec_node::SpecNode;
use crate::ir::eval::state::{Data, OpState};
use crate::ir::{GraphRowOp, Node, OperandRef, Role, Rows, Type, ValueId};
use crate::spec_text::Result as SpecResult;
use kernmill_kernels_gen::row_op::EmbedRow;

/// `ids; table -> f32`: rows of a table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Embed;

pub static KINDS: [Outline; 1] = [Outline {
    spec: &[SpecOp {
        info: OpInfo { name: "embed", params: &[required("table", ParamKind::Tensor)], pattern: &[] },
        lower,
    }],
    places: &[KernelPosition::Rows],
    facts: |known, inputs, _| known.ids.push(inputs[0].to_owned()),
    ..Outline::new("embed", FORM, |_, _| Ok(Embed.into()))
}];

const FORM: OpForm = OpForm::new(&[Input::Ids], &[TensorOperand::new("table", Role::Table, ANY)]);

impl OpDef for Embed {
    fn kind(&self, _: usize) -> OpKind {
        OpKind(&KINDS[0])
    }

    fn infer(&self, on: &Operands<'_>) -> Result<Type, String> {
        Ok(Type::F32(Rows::Tokens, on.tensors[0].shape[1]))
    }

    fn eval(&self, state: &mut OpState, node: &Node) -> Data {
        let cols = state.cols(node.output);
        let table = state.dense(node.tensors[0]);
        let rows = state.batch.iter().flat_map(|token| &table[token.token as usize * cols..][..cols]);
        Data::F32(rows.copied().collect())
    }

    fn row_op(&self, node: &Node, kernels: &dyn Packed) -> Option<GraphRowOp> {
        let table = node.tensors[0];
        Some(
            EmbedRow {
                table: OperandRef::Tensor(table),
                format: kernels.graph().tensor(table).format,
                row_bytes: kernels.row_bytes(table),
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
    Ok(at.push(Type::F32(Rows::Tokens, cols), Embed, vec![tokens], vec![table]))
}
