//! The ops of a graph: a file for each, or for a few that are nearly the same, with all that the passes ask
//! about it, and the table of these files.
//!
//! [`OpDef`] is what a file says: form, shapes, text, the spec language, meaning, places in kernels, row
//! operation, cost, samples. An op without an expression of its own also has a [`RowOp`], whose code is in
//! `kernels-gen/src/row_op/`.

mod attention;
mod bf16_cast;
mod def;
mod elementwise;
mod embed;
mod expert_linear;
mod expert_sum;
pub mod form;
mod hadamard;
pub mod keys;
mod kv_cast;
mod linear;
mod lora_shrink;
mod pair;
pub mod places;
mod product;
mod quantize_q8;
mod rms_norm;
mod rope;
mod rounded_linear;
mod router_topk;
pub mod sample;
mod select_rows;
mod spec_node;

pub use attention::cache_writes;
pub use def::{InEpilogue, OpDef, Packed, RowCosts};
pub(crate) use spec_node::SpecNode;

use crate::ir::cursor::{LineCursor, unknown};
use crate::ir::eval::state::{Data, OpState};
use crate::ir::{Node, Op, OpKind, RopeParameters, Tensor, Type, ValueId};
use crate::spec_text::Result as SpecResult;
use def::SpecOp;
use form::Operands;
use kernmill_kernels_gen::kernel::RowOp;
use keys::OpInfo;
use places::KernelPosition;
use places::{KernelTemplate, MemberRole};
use std::fmt;
use std::ops::RangeInclusive;

/// The definition of an op.
pub fn def(op: OpKind) -> &'static dyn OpDef {
    match op {
        OpKind::Embed => &embed::Embed,
        OpKind::RmsNorm => &rms_norm::RmsNorm,
        OpKind::Linear => &linear::Linear,
        OpKind::QuantLinear => &rounded_linear::QUANT_LINEAR,
        OpKind::QuantizeQ8 => &quantize_q8::QuantizeQ8,
        OpKind::Bf16Cast => &bf16_cast::Bf16Cast,
        OpKind::Rope => &rope::Rope,
        OpKind::Hadamard => &hadamard::Hadamard,
        OpKind::KvCast => &kv_cast::KvCast,
        OpKind::Attention => &attention::Attention,
        OpKind::RouterTopk => &router_topk::RouterTopk,
        OpKind::ExpertLinear => &expert_linear::ExpertLinear,
        OpKind::QuantExpertLinear => &rounded_linear::QUANT_EXPERT_LINEAR,
        OpKind::Bf16ExpertLinear => &rounded_linear::BF16_EXPERT_LINEAR,
        OpKind::ExpertSum => &expert_sum::ExpertSum,
        OpKind::Glu => &elementwise::GLU,
        OpKind::Elementwise => &elementwise::ELEMENTWISE,
        OpKind::Add => &pair::ADD,
        OpKind::Mul => &pair::MUL,
        OpKind::SelectRows => &select_rows::SelectRows,
        OpKind::LoraShrink => &lora_shrink::LoraShrink,
    }
}

/// The definition of the op that a row operation computes, or computes a part of. Elementwise ops share one.
fn def_of_row_op(row_op: &RowOp) -> &'static dyn OpDef {
    def(match row_op {
        RowOp::Embed { .. } => OpKind::Embed,
        RowOp::RmsNorm { .. } => OpKind::RmsNorm,
        RowOp::Quantize { .. } => OpKind::QuantizeQ8,
        RowOp::Bf16Cast { .. } => OpKind::Bf16Cast,
        RowOp::Elementwise { .. } => OpKind::Elementwise,
        RowOp::Rope { .. } => OpKind::Rope,
        RowOp::Hadamard { .. } => OpKind::Hadamard,
        RowOp::KvCast { .. } => OpKind::KvCast,
        RowOp::KvStore { .. } => OpKind::Attention,
        RowOp::Linear { .. } => OpKind::Linear,
        RowOp::TopK { .. } => OpKind::RouterTopk,
        RowOp::SelectRow { .. } => OpKind::SelectRows,
        RowOp::ExpertSum { .. } => OpKind::ExpertSum,
    })
}

impl OpKind {
    /// The name in graph text, specs and listings.
    pub fn name(self) -> &'static str {
        def(self).outline().name
    }

    /// The kind of that name.
    pub fn from_name(name: &str) -> Option<OpKind> {
        OpKind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

impl fmt::Display for OpKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How many inputs an op takes, that of an adapter branch not counted.
pub fn arity(op: OpKind) -> RangeInclusive<usize> {
    match op.plain_inputs() {
        Some(plain) => plain..=plain,
        None => def(op).outline().form.arity(),
    }
}

/// The output type of an op on these inputs and tensors.
///
/// # Errors
/// What is not legal and what was expected.
pub fn infer(
    op: &Op,
    inputs: &[Type],
    tensors: &[&Tensor],
    ropes: &[RopeParameters],
) -> Result<Type, String> {
    let def = def(op.kind());
    def.outline().form.check(inputs, tensors)?;
    def.infer(op, &Operands { inputs, tensors, ropes })
}

/// Attributes of an op in graph text, with their parentheses; nothing for an op without attributes.
pub fn attributes(op: &Op) -> String {
    def(op.kind()).attributes(op)
}

/// Reads an op with its attributes.
///
/// # Errors
/// What was expected.
pub fn parse(at: &mut LineCursor<'_>) -> Result<Op, String> {
    let word = at.word()?;
    let kind = OpKind::from_name(word).ok_or_else(|| unknown("op", word))?;
    let written = at.eat("(");
    let op = def(kind).parse(at, written)?;
    if written {
        at.expect(")")?;
    }
    Ok(op)
}

/// The value of a node for the batch at hand.
pub fn eval(state: &mut OpState, node: &Node) -> Data {
    def(node.op.kind()).eval(state, node)
}

/// Ops that may be in a part of a kernel of that template.
pub fn legal(template: KernelTemplate, part: MemberRole) -> Vec<OpKind> {
    let may = |op: &OpKind| {
        part == MemberRole::Context || def(*op).outline().places.iter().any(|place| place.is(template, part))
    };
    OpKind::ALL.into_iter().filter(may).collect()
}

/// Whether an op is computed row by row, each from the same row of its inputs (or, of experts and wanted
/// rows, from that row's).
pub fn is_row_op(op: &Op) -> bool {
    def(op.kind()).outline().places.contains(&KernelPosition::Rows)
}

/// The name of a row operation in listings.
pub fn row_op_name(row_op: &RowOp) -> &'static str {
    match row_op {
        RowOp::KvStore { .. } => "kv_store",
        _ => def_of_row_op(row_op).outline().name,
    }
}

/// The time of a row operation for one row, in ns.
pub fn row_cost(row_op: &RowOp, len: &dyn Fn(usize) -> usize, of: &RowCosts) -> f64 {
    def_of_row_op(row_op).row_cost(row_op, len, of)
}

fn all_spec_ops() -> impl Iterator<Item = &'static SpecOp> {
    OpKind::ALL.into_iter().flat_map(|op| def(op).outline().spec)
}

/// The operations of the spec language.
pub fn spec_ops() -> impl Iterator<Item = &'static OpInfo> {
    all_spec_ops().map(|op| &op.info)
}

/// Adds the graph nodes of a spec's node; returns the value that they compute.
///
/// # Errors
/// What its op demands and does not get, with the place.
pub fn lower(at: &mut dyn SpecNode) -> SpecResult<ValueId> {
    let op = all_spec_ops().find(|op| op.info.name == at.op_name());
    (op.expect("the reader takes ops from this list").lower)(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_of_one_op() {
        for kind in OpKind::ALL {
            assert_eq!(OpKind::from_name(kind.name()), Some(kind), "{kind}");
            assert_eq!(OpKind::ALL.iter().filter(|other| **other == kind).count(), 1, "{kind}");
        }
        for op in spec_ops() {
            assert_eq!(spec_ops().filter(|other| other.name == op.name).count(), 1, "{}", op.name);
        }
    }
}
