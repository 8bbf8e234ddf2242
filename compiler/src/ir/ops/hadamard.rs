//! `hadamard`: each head of a row through a Hadamard transform, in blocks of 64 elements, or of 32.
//!
//! Two heads have the same dot product before it as after it, divided by the elements of a block. It spreads
//! a few large elements over all, so that rounding to few bits loses less.

use super::def::{OpDef, OpKind, Outline, Packed};
use super::form::{Input, OpForm, Operands, ensure};
use super::places::ANYWHERE;
use crate::ir::eval::num::hadamard;
use crate::ir::eval::state::{Data, OpState};
use crate::ir::{GraphRowOp, Node, Type};
use kernmill_kernels_gen::row_op::{HadamardRow, RowPlace};
use kernmill_plan::kv::hadamard_block;

/// `f32 -> f32`: each head through a Hadamard transform.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hadamard {
    /// Elements per head.
    pub head_dim: usize,
}

pub static KINDS: [Outline; 1] = [Outline {
    places: ANYWHERE,
    passes: true,
    by_presets: true,
    ..Outline::new("hadamard", OpForm::new(&[Input::F32], &[]), |at, _| {
        Ok(Hadamard { head_dim: at.attribute("head_dim")? }.into())
    })
}];

impl OpDef for Hadamard {
    fn kind(&self, _: usize) -> OpKind {
        OpKind(&KINDS[0])
    }

    fn infer(&self, on: &Operands<'_>) -> Result<Type, String> {
        let (d, cols) = (self.head_dim, on.x().cols());
        ensure(d > 0 && d.is_multiple_of(32) && cols.is_multiple_of(d), || {
            format!("{cols} columns are not heads of head_dim = {d}, a multiple of 32")
        })?;
        Ok(on.x())
    }

    fn attributes(&self, _: usize) -> String {
        format!("(head_dim={})", self.head_dim)
    }

    fn eval(&self, state: &mut OpState, node: &Node) -> Data {
        let mut y = state.f32s(node.inputs[0]).to_vec();
        hadamard(&mut y, hadamard_block(self.head_dim));
        Data::F32(y)
    }

    fn row_op(&self, node: &Node, _: &dyn Packed) -> Option<GraphRowOp> {
        let (x, out) = (RowPlace::Row(node.inputs[0]), RowPlace::Row(node.output));
        Some(HadamardRow { x, head_dim: self.head_dim, out }.into())
    }

    fn in_epilogue(&self, _: &Node) -> Option<GraphRowOp> {
        let at_hand = RowPlace::Results;
        Some(HadamardRow { x: at_hand, head_dim: self.head_dim, out: at_hand }.into())
    }
}
