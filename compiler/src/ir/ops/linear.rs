//! `linear`: a matrix times a row, plus a bias and the branch of the token's adapter. Router and unembedding
//! too.

use super::def::{OpDef, Outline, Packed, RowCosts, SpecOp};
use super::form::{ANY, Input, OpForm, Operands, TensorOperand};
use super::keys::{LINEAR, OpInfo};
use super::places::{KernelPosition, KernelTemplate};
use super::product;
use super::sample::KnownValues;
use super::spec_node::SpecNode;
use crate::ir::cursor::LineCursor;
use crate::ir::eval::state::{Data, OpState};
use crate::ir::{Activations, GraphRowOp, Node, Op, OpKind, Role, Rows, Type, ValueId};
use crate::spec_text::Result as SpecResult;
use kernmill_kernels_gen::kernel::{RowOp, ValId};

pub struct Linear;

const OUTLINE: Outline = Outline {
    name: "linear",
    form: OpForm::branched(
        &[Input::F32, Input::F32],
        &[TensorOperand::new("matrix", Role::Matrix, ANY), TensorOperand::optional("bias", Role::Vector)],
    ),
    spec: &[
        SpecOp {
            info: OpInfo { name: "linear", params: LINEAR, pattern: &[OpKind::Linear, OpKind::QuantLinear] },
            lower,
        },
        SpecOp { info: OpInfo { name: "logits", params: LINEAR, pattern: &[] }, lower: lower_logits },
    ],
    // In a prologue all of a small matrix, such as a router's, is multiplied by one worker.
    places: &[KernelPosition::Prologue, KernelPosition::Root(KernelTemplate::Matmul)],
};

impl OpDef for Linear {
    fn outline(&self) -> &Outline {
        &OUTLINE
    }

    fn infer(&self, _: &Op, on: &Operands<'_>) -> Result<Type, String> {
        product::infer_dense(on)
    }

    fn attributes(&self, op: &Op) -> String {
        match op {
            Op::Linear(Activations::F32) => "(activations=f32)".to_owned(),
            _ => String::new(),
        }
    }

    fn parse(&self, at: &mut LineCursor<'_>, written: bool) -> Result<Op, String> {
        if !written {
            return Ok(Op::Linear(Activations::AsPreset));
        }
        at.expect("activations=f32")?;
        Ok(Op::Linear(Activations::F32))
    }

    fn eval(&self, state: &mut OpState, node: &Node) -> Data {
        product::eval_dense(state, node)
    }

    fn row_op(&self, node: &Node, kernels: &dyn Packed) -> Option<GraphRowOp> {
        Some(RowOp::Linear { x: node.inputs[0], mat: kernels.mat(node), out: node.output })
    }

    fn row_cost(&self, row_op: &RowOp, _: &dyn Fn(ValId) -> usize, of: &RowCosts) -> f64 {
        let RowOp::Linear { mat, .. } = row_op else { unreachable!("{row_op:?}") };
        of.weight * (mat.n * mat.k) as f64
    }

    fn facts(&self, known: &mut KnownValues<'_>, inputs: &[&str], out: &str) {
        known.same_rows(inputs[0], out);
    }
}

fn lower(at: &mut dyn SpecNode) -> SpecResult<ValueId> {
    push(at, |at, n| at.check_width("weight", n))
}

/// Adds a product whose `n` results per row pass `check`.
fn push(
    at: &mut dyn SpecNode,
    check: impl FnOnce(&dyn SpecNode, usize) -> SpecResult<()>,
) -> SpecResult<ValueId> {
    let (x, rows, cols) = at.input("input")?;
    let weight = at.tensor("weight", Role::Matrix)?;
    let n = at.check_k("weight", weight, cols)?;
    check(at, n)?;
    let mut tensors = vec![weight];
    if at.has("bias") {
        tensors.push(at.vector("bias", n)?);
    }
    let op = Op::Linear(at.activations()?);
    Ok(at.push(Type::F32(rows, n), op, vec![x], tensors))
}

/// Logits are a product of the wanted rows alone, as wide as the vocabulary.
fn lower_logits(at: &mut dyn SpecNode) -> SpecResult<ValueId> {
    let (_, rows, _) = at.input("input")?;
    if rows != Rows::LogitRows {
        let message = "logits of every row of the batch";
        return Err(at.at("input", message, "expected a value behind `select_rows`").help(
            "put a `select_rows` node before the final norm: only the rows whose logits are wanted go on",
        ));
    }
    let value = push(at, |_, _| Ok(()))?;
    let vocab = at.graph().vocab;
    if at.ty(value) != Type::F32(Rows::LogitRows, vocab) {
        let message = format!("logits with {}, the vocabulary has {vocab} tokens", at.ty(value).in_words());
        return Err(at.at("weight", &message, format!("expected a tensor [{vocab}, ...]")));
    }
    at.set_logits(value)?;
    Ok(value)
}
