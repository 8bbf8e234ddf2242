//! Operations on rows: stages over rows of values, and epilogues, which work on an item's results.
//!
//! Each has a file of its own: what it is, what it reads and writes and what the checker demands of that, its
//! code, and its cost. The list here makes one type of them. A new operation is a file, its `mod` and `use`,
//! and a line of the list.

mod bf16;
mod elementwise;
mod embed;
mod expert_sum;
mod hadamard;
mod kv;
mod kv_integers;
mod kv_plane;
mod kv_store;
pub(crate) mod linear;
mod norm;
mod operation;
mod prelude;
pub(crate) mod quantize;
mod rope;
mod round;
mod select_row;
pub(crate) mod site;
mod store;
mod topk;
pub(crate) mod transform;

pub use elementwise::ElementwiseRow;
pub use embed::EmbedRow;
pub use expert_sum::ExpertSumRow;
pub use hadamard::HadamardRow;
pub use kv_store::KvStoreRow;
pub use linear::LinearRow;
pub use norm::NormRow;
pub(crate) use operation::RowOpCode;
pub use operation::{RowOpFacts, RowWork};
pub use rope::{HeadRotation, RopePairs, RopeRow};
pub use round::{RoundRow, RoundTo};
pub use select_row::SelectRow;
pub use site::RowPlace;
pub use store::StoreRow;
pub use topk::{GroupScore, RouterGroups, RouterScores, TopKRow};

use crate::cx::Cx;
use crate::emit::Emit;
use crate::names::Names;
use crate::values::{OperandId, ValId};
use cranelift_codegen::ir::Value;
use site::OpSite;

macro_rules! row_ops {
    ($($(#[$doc:meta])* $op:ident($row:ident<$($name:ident),+>)),+ $(,)?) => {
        /// Something done to one row: of a value, or of an item's results, in an epilogue. Values are `V`;
        /// weights and pools are operands `O`; numbers are shapes. The compiler names values and operands by
        /// its graph until it makes a kernel ([`crate::names`]).
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub enum RowOp<V = ValId, O = OperandId> {
            $($(#[$doc])* $op($row<$($name),+>)),+
        }

        $(impl<V, O> From<$row<$($name),+>> for RowOp<V, O> {
            fn from(op: $row<$($name),+>) -> Self {
                RowOp::$op(op)
            }
        })+

        impl<V, O> RowOp<V, O> {
            /// The properties that passes ask for.
            pub fn facts(&self) -> RowOpFacts<'_, V> {
                match self {
                    $(RowOp::$op(op) => op.facts()),+
                }
            }

            /// The operation by numbers: first of what it writes, then of what it reads.
            pub fn numbered(&self, names: &mut impl Names<V, O>) -> RowOp {
                match self {
                    $(RowOp::$op(op) => op.numbered(names).into()),+
                }
            }
        }

        impl RowOp {
            /// The checks and the code.
            pub(crate) fn code(&self) -> &dyn RowOpCode {
                match self {
                    $(RowOp::$op(op) => op),+
                }
            }
        }
    };
}

row_ops! {
    /// A row of the embedding table.
    Embed(EmbedRow<V, O>),
    /// A norm: see docs/dev/numerics.md.
    Norm(NormRow<V, O>),
    /// f32 to fewer bits.
    Round(RoundRow<V>),
    /// An expression of f32.
    Elementwise(ElementwiseRow<V, O>),
    /// Rotates each head.
    Rope(RopeRow<V, O>),
    /// Each head through a Hadamard transform.
    Hadamard(HadamardRow<V>),
    /// Keys or values into the cache.
    KvStore(KvStoreRow<V, O>),
    /// A small matrix, all of it by one worker (the router).
    Linear(LinearRow<V, O>),
    /// The k experts with the largest scores, and their weights.
    TopK(TopKRow<V, O>),
    /// The row that a wanted row stands for.
    SelectRow(SelectRow<V>),
    /// Weighted sum of a token's expert rows in ascending expert id.
    ExpertSum(ExpertSumRow<V>),
    /// f32 as they are.
    Store(StoreRow<V, O>),
}

impl RowOp {
    /// The arithmetic for one row, where rows have as many elements as `len` says.
    pub fn work(&self, len: &dyn Fn(ValId) -> usize) -> RowWork {
        let elements = || self.facts().out.map_or(0, |out| len(*out));
        self.code().work(len).unwrap_or_else(|| RowWork { elements: elements(), weights: 0 })
    }
}

/// Emits operations for row `row` of their values.
pub(crate) fn emit(e: &mut Emit, cx: &Cx, row_ops: &[RowOp], row: Value) {
    row_ops.iter().for_each(|op| op.code().emit(e, cx, &OpSite::row(row)));
}
