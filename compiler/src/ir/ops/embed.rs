//! `embed`: the rows of a table that the token ids name, or their positions.

use super::def::{OpDef, OpKind, Outline, Packed, SpecOp};
use super::form::{ANY, Input, OpForm, Operands, TensorOperand};
use super::keys::{KeyWords, OpInfo, ParamKind, optional, required};
use super::places::KernelPosition;
use super::spec_node::SpecNode;
use crate::ir::cursor::LineCursor;
use crate::ir::eval::state::{BatchToken, Data, OpState};
use crate::ir::{GraphRowOp, Node, Op, OperandRef, Role, Rows, Type, ValueId};
use crate::spec_text::Result as SpecResult;
use kernmill_kernels_gen::row_op::EmbedRow;

/// `ids; table -> f32`: rows of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Embed {
    /// Whether the table has a row for each position; else it has one for each token of the vocabulary.
    pub by_position: bool,
}

/// Names for what a table has a row for.
static BY: KeyWords =
    KeyWords { what: "by", words: &["token", "position"], expected: "\"token\" or \"position\"" };

pub static KINDS: [Outline; 1] = [Outline {
    spec: &[SpecOp {
        info: OpInfo {
            name: "embed",
            params: &[required("table", ParamKind::Tensor), optional("by", ParamKind::OneOf(&BY))],
            pattern: &[],
        },
        lower,
    }],
    places: &[KernelPosition::Rows],
    facts: |known, inputs, _| known.ids.push(inputs[0].to_owned()),
    ..Outline::new("embed", FORM, parse)
}];

const FORM: OpForm = OpForm::new(&[Input::Ids], &[TensorOperand::new("table", Role::Table, ANY)]);

fn parse(at: &mut LineCursor<'_>, has_attributes: bool) -> Result<Op, String> {
    if has_attributes {
        at.expect("by")?;
        at.expect("=")?;
        at.expect("position")?;
    }
    Ok(Embed { by_position: has_attributes }.into())
}

impl OpDef for Embed {
    fn kind(&self, _: usize) -> OpKind {
        OpKind(&KINDS[0])
    }

    fn infer(&self, on: &Operands<'_>) -> Result<Type, String> {
        Ok(Type::F32(Rows::Tokens, on.tensors[0].shape[1]))
    }

    fn attributes(&self, _: usize) -> String {
        if self.by_position { "(by=position)".to_owned() } else { String::new() }
    }

    fn eval(&self, state: &mut OpState, node: &Node) -> Data {
        let cols = state.cols(node.output);
        let table = state.dense(node.tensors[0]);
        let row = |token: &BatchToken| if self.by_position { token.position } else { token.token as usize };
        let rows = state.batch.iter().flat_map(|token| &table[row(token) * cols..][..cols]);
        Data::F32(rows.copied().collect())
    }

    fn row_op(&self, node: &Node, kernels: &dyn Packed) -> Option<GraphRowOp> {
        let table = node.tensors[0];
        Some(
            EmbedRow {
                table: OperandRef::Tensor(table),
                format: kernels.graph().tensor(table).format,
                row_bytes: kernels.row_bytes(table),
                positions: self.by_position.then(|| kernels.graph().tensor(table).shape[0]),
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
    let by_position = at.has("by") && at.text("by").value == "position";
    let (vocab, rows, cols) = (at.graph().vocab, at.shape(table)[0], at.shape(table)[1]);
    let context = at.graph().max_context;
    if by_position && rows < context {
        return Err(at.at(
            "table",
            &format!("the table has {rows} rows, the context {context} positions"),
            format!("expected a tensor [{context}, ...], or a smaller `max_context`"),
        ));
    }
    if !by_position && rows != vocab {
        return Err(at.at(
            "table",
            &format!("the table has {rows} rows, the vocabulary {vocab} tokens"),
            format!("expected a tensor [{vocab}, ...]"),
        ));
    }
    at.check_width("table", cols)?;
    let tokens = ValueId(0);
    Ok(at.push(Type::F32(Rows::Tokens, cols), Embed { by_position }, vec![tokens], vec![table]))
}
