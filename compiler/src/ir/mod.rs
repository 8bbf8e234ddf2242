//! The model as a typed graph of named operations, in topological order; its ops with all that passes ask
//! about them (`ops`), the text of expressions (`expr`), and the meaning of ops in plain loops (`eval`).
//!
//! Rows are counted symbolically ([`Rows`]); columns are numbers. Every op's meaning is defined by the
//! interpreter (`crate::interp`) and in `docs/dev/numerics.md`.

mod build;
mod caches;
pub(crate) mod cursor;
mod error;
pub(crate) mod eval;
pub mod expr;
pub mod lora;
mod lora_targets;
mod operand;
pub(crate) mod ops;
mod parse;
pub mod rope;
mod source;
#[cfg(test)]
mod tests;
mod text;
mod uses;
mod verify;

pub use build::GraphBuilder;
pub use error::GraphError;
pub use lora_targets::{Branch, LoraTargetNode};
pub use operand::{GraphMat, GraphRowOp, OperandRef, PanelBuffer};
pub use ops::all::*;
pub use ops::{Activations, Factor, MatrixRows, Normed, Op, OpKind};
pub use parse::ParseError;
pub use source::{EXPERT, RowSelect, TensorSource, of_expert};
pub use uses::Uses;

use kernmill_kernels_gen::row_op::HeadRotation;
use kernmill_plan::format::{BLOCK, WeightFormat};
use kernmill_plan::kv::KvRow;
use kernmill_plan::target::Level;
use kernmill_plan::vectors::VectorForm;

/// Index into [`Graph::values`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueId(pub u32);

/// Index into [`Graph::tensors`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TensorId(pub u32);

/// Index into [`Graph::nodes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u32);

/// How many rows a value has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rows {
    /// One per token of the batch.
    Tokens,
    /// `top_k` per token: row `token * top_k + slot`.
    Slots(u32),
    /// One per row whose logits are wanted.
    LogitRows,
}

/// The meaning of a row of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowKind {
    /// A token.
    Tokens,
    /// One of a token's chosen experts.
    Slots,
    /// A token whose logits are wanted.
    LogitRows,
}

impl RowKind {
    /// Every kind by its name in specs.
    pub const NAMED: [(&'static str, RowKind); 3] =
        [("tokens", RowKind::Tokens), ("slots", RowKind::Slots), ("wanted", RowKind::LogitRows)];

    pub(crate) fn of(rows: Rows) -> RowKind {
        match rows {
            Rows::Tokens => RowKind::Tokens,
            Rows::Slots(_) => RowKind::Slots,
            Rows::LogitRows => RowKind::LogitRows,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        RowKind::NAMED.iter().find(|(_, kind)| *kind == self).map_or("?", |(name, _)| name)
    }
}

/// Type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// Token ids, u32 `[T]`.
    TokenIds,
    /// f32 `[rows, cols]`.
    F32(Rows, usize),
    /// Blocks of 32 int8 with scale and sum, `[rows, cols]`.
    Q8(Rows, usize),
    /// Two rows of such blocks for each row, `[rows, cols]`: the second is what the first leaves, rounded.
    Q8x2(Rows, usize),
    /// f16 `[rows, cols]` (keys and values).
    F16(Rows, usize),
    /// bf16 `[rows, cols]` (inputs of experts).
    Bf16(Rows, usize),
    /// Keys or values `[T, cols]` in another format of the cache.
    Kv(KvRow, usize),
    /// Chosen experts and weights, `[T, top_k]`.
    Routing(u32),
}

impl Type {
    /// Columns of a row: `top_k` for a routing, 1 for token ids.
    pub fn cols(self) -> usize {
        match self {
            Type::TokenIds => 1,
            Type::F32(_, cols)
            | Type::Q8(_, cols)
            | Type::Q8x2(_, cols)
            | Type::F16(_, cols)
            | Type::Bf16(_, cols)
            | Type::Kv(_, cols) => cols,
            Type::Routing(k) => k as usize,
        }
    }

    /// How many rows there are.
    pub fn rows(self) -> Rows {
        match self {
            Type::TokenIds | Type::Kv(..) | Type::Routing(_) => Rows::Tokens,
            Type::F32(rows, _)
            | Type::Q8(rows, _)
            | Type::Q8x2(rows, _)
            | Type::F16(rows, _)
            | Type::Bf16(rows, _) => rows,
        }
    }

    /// Rows of q8 that each row consists of; 0 of other types.
    pub fn q8_terms(self) -> usize {
        match self {
            Type::Q8(..) => 1,
            Type::Q8x2(..) => 2,
            _ => 0,
        }
    }

    /// The type as errors about specs show it.
    pub(crate) fn in_words(self) -> String {
        match self {
            Type::TokenIds => "token ids".into(),
            Type::F32(_, cols) => format!("{cols} columns"),
            Type::Q8(_, cols) => format!("{cols} q8 columns"),
            Type::Q8x2(_, cols) => format!("{cols} q8x2 columns"),
            Type::F16(_, cols) => format!("{cols} f16 columns"),
            Type::Bf16(_, cols) => format!("{cols} bf16 columns"),
            Type::Kv(row, cols) => format!("{cols} {row} columns"),
            Type::Routing(k) => format!("a routing to {k} experts"),
        }
    }

    /// Bytes of a row in memory, without padding.
    pub fn row_bytes(self) -> usize {
        match self {
            Type::TokenIds => 4,
            Type::F32(_, cols) => 4 * cols,
            Type::Q8(_, cols) => cols + cols / BLOCK * 8,
            Type::Q8x2(_, cols) => 2 * (cols + cols / BLOCK * 8),
            Type::F16(_, cols) | Type::Bf16(_, cols) => 2 * cols,
            Type::Kv(row, cols) => row.bytes(cols),
            Type::Routing(k) => 8 * k as usize,
        }
    }
}

/// A value: the output of exactly one node, or the graph's input.
#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    /// Unique name.
    pub name: String,
    /// Type.
    pub ty: Type,
}

/// The kind of a tensor, which decides how it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Matrix `[n, k]`, packed in tiles.
    Matrix,
    /// Grouped matrices `[experts, n, k]`, packed in tiles.
    ExpertMatrix,
    /// Vector `[n]` f32 (norm weights, biases, sinks).
    Vector,
    /// Vectors `[experts, n]` f32 (expert biases).
    ExpertVector,
    /// Table `[vocab, cols]` (embeddings): row-major in bf16 or f32, packed in tiles in a format with blocks.
    Table,
}

/// A weight.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// Unique logical name, such as `layers.3.q`.
    pub name: String,
    /// Role.
    pub role: Role,
    /// Shape after row selection, see [`Role`].
    pub shape: Vec<usize>,
    /// Format in the checkpoint.
    pub stored: WeightFormat,
    /// Format in the plan; differs from `stored` after the quantisation pass.
    pub format: WeightFormat,
    /// Added to the elements of a vector, in f32.
    pub plus: f32,
    /// Where its data is.
    pub source: TensorSource,
}

impl Tensor {
    /// Index of the dimension that counts its rows, or the elements of a vector.
    pub fn row_dim(&self) -> usize {
        let behind = match self.role {
            Role::Vector | Role::ExpertVector => 1,
            Role::Matrix | Role::ExpertMatrix | Role::Table => 2,
        };
        self.role.dims() - behind
    }

    /// Whether it is packed in tiles of 16 rows.
    pub fn is_tiled(&self) -> bool {
        match self.role {
            Role::Matrix | Role::ExpertMatrix => true,
            Role::Table => self.format.is_blocked(),
            Role::Vector | Role::ExpertVector => false,
        }
    }
}

/// The divisor of the columns of every matrix in the format: rows are whole blocks, in a file and in tiles.
pub fn whole_columns(format: WeightFormat) -> usize {
    let descriptor = format.descriptor();
    descriptor.columns().max(descriptor.file.map_or(1, |file| file.elements))
}

/// A node.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Operation.
    pub op: Op,
    /// Values read.
    pub inputs: Vec<ValueId>,
    /// Tensors read.
    pub tensors: Vec<TensorId>,
    /// Value written.
    pub output: ValueId,
}

/// RoPE parameters; see docs/dev/numerics.md.
#[derive(Clone, Debug, PartialEq)]
pub struct RopeParameters {
    /// The elements of heads that rotate.
    pub head: HeadRotation,
    /// Base.
    pub theta: f64,
    /// Scaling of long contexts.
    pub scaling: RopeScaling,
    /// Divisors of each frequency, or an empty list.
    pub factors: Vec<f64>,
    /// Factor on cos and sin, instead of that of the scaling.
    pub attention_factor: Option<f64>,
}

impl RopeParameters {
    /// Rotation of whole heads by halves.
    pub fn new(head_dim: usize, theta: f64, scaling: RopeScaling) -> RopeParameters {
        let head = HeadRotation::whole(head_dim);
        RopeParameters { head, theta, scaling, factors: Vec::new(), attention_factor: None }
    }
}

/// Long-context scaling of RoPE.
#[derive(Clone, Debug, PartialEq)]
pub enum RopeScaling {
    /// None.
    Plain,
    /// Every frequency divided by a factor, as if positions were (arXiv:2306.15595).
    Linear {
        /// Context extension factor.
        factor: f64,
    },
    /// YaRN (arXiv:2309.00071).
    Yarn {
        /// Context extension factor.
        factor: f64,
        /// Rotations above which a frequency is kept.
        beta_fast: f64,
        /// Rotations below which a frequency is interpolated.
        beta_slow: f64,
        /// Context the model was first trained on.
        original_context: f64,
        /// Whether the ramp's ends are floored and ceiled.
        truncate: bool,
    },
    /// Llama 3's scaling.
    Llama3 {
        /// Context extension factor.
        factor: f64,
        /// Low frequency factor.
        low_freq_factor: f64,
        /// High frequency factor.
        high_freq_factor: f64,
        /// Context the model was first trained on.
        original_context: f64,
    },
}

/// A model graph.
#[derive(Clone, Debug, PartialEq)]
pub struct Graph {
    /// Model name.
    pub name: String,
    /// Vocabulary size.
    pub vocab: usize,
    /// Longest context in tokens.
    pub max_context: usize,
    /// Values; value 0 is the token ids.
    pub values: Vec<Value>,
    /// How the names begin of tensors that a checkpoint may have beside the model's.
    pub left_out: Vec<String>,
    /// Weights.
    pub tensors: Vec<Tensor>,
    /// Nodes in topological order.
    pub nodes: Vec<Node>,
    /// RoPE parameter sets.
    pub ropes: Vec<RopeParameters>,
    /// The logits, f32 `[Wanted, vocab]`; or the rows that vectors are made of.
    pub output: ValueId,
    /// How vectors are made of the output's rows; `None` where they are logits.
    pub vectors: Option<VectorForm>,
}

/// Tokens of a step at most where texts run whole, unless something else is asked for: many short texts share
/// a step, and long ones need one.
pub const WHOLE_TEXTS: u32 = 2048;

impl Graph {
    /// Whether tokens see those that follow, so that a text runs whole in one batch.
    pub fn whole_texts(&self) -> bool {
        self.nodes.iter().filter_map(|node| node.op.attention()).any(|attention| !attention.causal)
    }

    /// Tokens of a step at most, in code for `levels`: those that were asked for, or as many as suit the
    /// levels ([`Level::default_chunk`]). A model whose texts run whole takes [`WHOLE_TEXTS`] on any level.
    pub fn chunk(&self, asked: Option<u32>, levels: impl IntoIterator<Item = Level>) -> u32 {
        let usual = || if self.whole_texts() { WHOLE_TEXTS } else { Level::default_chunk(levels) };
        asked.unwrap_or_else(usual)
    }
}
