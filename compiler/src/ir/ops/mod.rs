//! The ops of a graph: a struct with its attributes in a file of its own for each, with all that the passes
//! ask about it, and the list of these files.
//!
//! [`OpDef`] is what an op says with its attributes at hand, [`Outline`] what holds for all of a kind: form,
//! text, the spec language, places in kernels, samples. What works on rows has a row operation, whose code is
//! in `kernels-gen/src/row_op/`.

mod attend;
mod attention;
mod def;
mod elementwise;
mod embed;
mod expert_sum;
pub mod form;
mod hadamard;
pub mod keys;
mod lora_shrink;
mod matmul;
mod norm;
pub mod places;
mod product;
mod rope;
mod round;
mod router_topk;
pub mod sample;
mod select_rows;
mod spec_node;

pub use def::{OpDef, OpKind, Outline, Packed};
pub use keys::Activations;
pub use matmul::{Factor, MatrixRows};
pub use norm::Normed;
pub(crate) use spec_node::SpecNode;

use crate::ir::cursor::{LineCursor, unknown};
use crate::ir::eval::state::{Data, OpState};
use crate::ir::{Node, RopeParameters, Tensor, Type, ValueId};
use crate::spec_text::Result as SpecResult;
use std::ops::RangeInclusive;

/// Makes [`Op`] of the list of ops: the module of each, with the struct that is its [`OpDef`], and with
/// `KINDS`, its outlines.
macro_rules! ops {
    ($($file:ident :: $name:ident),* $(,)?) => {
        /// The ops with their attributes.
        pub mod all {
            $(pub use super::$file::$name;)*
        }
        use all::*;

        /// An operation. Inputs and tensors are listed as `inputs; tensors -> output`.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Op {
            $(
                #[doc = concat!("[`", stringify!($name), "`]")]
                $name($name),
            )*
        }

        $(
            impl From<$name> for Op {
                fn from(op: $name) -> Op {
                    Op::$name(op)
                }
            }
        )*

        impl Op {
            /// The op as the passes ask it.
            pub fn def(&self) -> &dyn OpDef {
                match self {
                    $(Op::$name(op) => op,)*
                }
            }
        }

        /// The kinds of every op.
        static KINDS: &[&[Outline]] = &[$(&$file::KINDS),*];
    };
}

ops! {
    embed::Embed,
    norm::Norm,
    matmul::MatMul,
    round::Round,
    rope::Rope,
    hadamard::Hadamard,
    attention::Attention,
    router_topk::RouterTopk,
    expert_sum::ExpertSum,
    elementwise::Elementwise,
    select_rows::SelectRows,
    lora_shrink::LoraShrink,
}

impl OpKind {
    /// Every kind, in the order of [`Op`].
    pub fn all() -> impl Iterator<Item = OpKind> + Clone {
        KINDS.iter().copied().flatten().map(OpKind)
    }

    /// The kind of that name.
    pub fn from_name(name: &str) -> Option<OpKind> {
        OpKind::all().find(|kind| kind.name == name)
    }

    /// How many inputs an op of the kind takes, that of an adapter branch not counted.
    pub fn arity(self) -> RangeInclusive<usize> {
        self.form.arity()
    }
}

impl Op {
    /// The attributes of an attention; `None` of another op.
    pub fn attention(&self) -> Option<&Attention> {
        if let Op::Attention(op) = self { Some(op) } else { None }
    }

    /// The matrix product that the op is, if it is one.
    pub fn matmul(&self) -> Option<MatMul> {
        if let Op::MatMul(op) = self { Some(*op) } else { None }
    }

    /// The choice of experts that the op is, if it is one.
    pub fn router(&self) -> Option<RouterTopk> {
        if let Op::RouterTopk(op) = self { Some(*op) } else { None }
    }

    /// The rounding that the op is, if it is one.
    pub fn rounding(&self) -> Option<Round> {
        if let Op::Round(op) = self { Some(*op) } else { None }
    }

    /// The shrink of an adapter that the op is, if it is one.
    pub fn shrink(&self) -> Option<LoraShrink> {
        if let Op::LoraShrink(op) = self { Some(*op) } else { None }
    }

    /// The norm that the op is, if it is one.
    pub fn norm(&self) -> Option<Norm> {
        if let Op::Norm(op) = self { Some(*op) } else { None }
    }

    /// Whether the op reads the row of a table that the token's id names.
    pub fn is_embed(&self) -> bool {
        *self == Op::Embed(Embed { by_position: false })
    }

    /// Whether the op reads the row of a table that the token's position names.
    pub fn is_embed_of_positions(&self) -> bool {
        *self == Op::Embed(Embed { by_position: true })
    }

    /// Whether the op sums the rows of a token's experts.
    pub fn is_expert_sum(&self) -> bool {
        matches!(self, Op::ExpertSum(_))
    }
}

impl Node {
    /// The kind of the node's op.
    pub fn kind(&self) -> OpKind {
        self.op.def().kind(self.inputs.len())
    }

    /// Whether the node adds two values.
    pub fn is_add(&self) -> bool {
        self.op == Elementwise::add().into() && self.inputs.len() == 2
    }

    /// The op with its attributes, as graph text has them.
    pub fn op_text(&self) -> String {
        format!("{}{}", self.kind(), self.op.def().attributes(self.inputs.len()))
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
    op.def().kind(inputs.len()).form.check(inputs, tensors)?;
    op.def().infer(&form::Operands { inputs, tensors, ropes })
}

/// Reads an op with its attributes.
///
/// # Errors
/// What was expected.
pub fn parse(at: &mut LineCursor<'_>) -> Result<Op, String> {
    let word = at.word()?;
    let kind = OpKind::from_name(word).ok_or_else(|| unknown("op", word))?;
    let written = at.eat("(");
    let op = (kind.parse)(at, written)?;
    if written {
        at.expect(")")?;
    }
    Ok(op)
}

/// The value of a node for the batch at hand.
pub fn eval(state: &mut OpState, node: &Node) -> Data {
    node.op.def().eval(state, node)
}

/// Kinds of ops that may be in a part of a kernel of that template.
pub fn legal(template: places::KernelTemplate, part: places::MemberRole) -> Vec<OpKind> {
    let may = |kind: &OpKind| {
        part == places::MemberRole::Context || kind.places.iter().any(|place| place.is(template, part))
    };
    OpKind::all().filter(may).collect()
}

/// Whether a node is computed row by row, each from the same row of its inputs (or, of experts and wanted
/// rows, from that row's).
pub fn is_row_op(node: &Node) -> bool {
    node.kind().places.contains(&places::KernelPosition::Rows)
}

fn all_spec_ops() -> impl Iterator<Item = &'static def::SpecOp> {
    KINDS.iter().copied().flatten().flat_map(|kind| kind.spec)
}

/// The operations of the spec language.
pub fn spec_ops() -> impl Iterator<Item = &'static keys::OpInfo> {
    all_spec_ops().map(|op| &op.info)
}

/// Names of ops in patterns of fused-op specs: kinds, and other names of the spec language for one of them.
pub fn pattern_ops() -> impl Iterator<Item = (&'static str, OpKind)> {
    let own = OpKind::all().map(|kind| (kind.name, kind));
    let others = spec_ops().filter(|op| op.pattern.len() == 1 && OpKind::from_name(op.name).is_none());
    own.chain(others.filter_map(|op| Some((op.name, OpKind::from_name(op.pattern[0])?))))
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
        for kind in OpKind::all() {
            assert_eq!(OpKind::from_name(kind.name), Some(kind), "{kind}");
            assert_eq!(OpKind::all().filter(|other| *other == kind).count(), 1, "{kind}");
        }
        for op in spec_ops() {
            assert_eq!(spec_ops().filter(|other| other.name == op.name).count(), 1, "{}", op.name);
            assert!(op.pattern.iter().all(|name| OpKind::from_name(name).is_some()), "{}", op.name);
        }
    }
}
