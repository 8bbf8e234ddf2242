//! The operations of a graph and their attributes. The meaning of each, and the answers to every pass, are in
//! its file of `compiler/src/ir/ops/`.

use kernmill_kernels_gen::expr::Expr;
use kernmill_plan::format::WeightFormat;
use kernmill_plan::kv::{KvGeometry, KvPair, KvRow, LayerKind};

/// An operation. Inputs and tensors are listed as `inputs; tensors -> output`.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// `ids; table -> f32`.
    Embed,
    /// `x; weight -> f32`.
    RmsNorm {
        /// Added to the mean square.
        eps: f32,
    },
    /// `x f32, [shrunk]; matrix, [bias] -> f32`; what a preset may do with x.
    Linear(Activations),
    /// `x q8, [shrunk]; matrix, [bias] -> f32`.
    QuantLinear,
    /// `f32 -> q8`.
    QuantizeQ8,
    /// `f32 -> bf16`.
    Bf16Cast,
    /// `x f32 [rows, heads * head_dim] -> f32`: rotates each head by its token's position.
    Rope {
        /// Index into [`super::Graph::ropes`].
        rope: u32,
        /// Elements per head.
        head_dim: usize,
    },
    /// `f32 -> f32`: each head through a Hadamard transform.
    Hadamard {
        /// Elements per head.
        head_dim: usize,
    },
    /// `f32 -> f16, f32 or kv`: the rounding of keys or values that enter the cache.
    KvCast(KvRow),
    /// `q f32, k, v (f32 or f16); [sinks] -> f32`: appends k and v to the layer's cache, then attends.
    Attention(AttentionAttributes),
    /// `logits f32 [T, experts] -> routing`.
    RouterTopk {
        /// Experts per token.
        k: u32,
    },
    /// `x f32 (Tokens or Slots), routing, [shrunk]; expert matrix, [expert bias] -> f32 [Slots, n]`.
    ExpertLinear,
    /// `x q8 (Tokens or Slots), routing, [shrunk]; expert matrix, [expert bias] -> f32 [Slots, n]`.
    QuantExpertLinear,
    /// `x bf16 (Tokens or Slots), routing, [shrunk]; mxfp4 expert matrix, [expert bias] -> f32 [Slots, n]`.
    Bf16ExpertLinear,
    /// `y f32 [Slots, n], routing -> f32 [T, n]`.
    ExpertSum,
    /// `gate, up -> f32`: an expression of `gate` and `up`.
    Glu {
        /// Expression whose variables are `gate` and `up` (inputs 0 and 1).
        expr: Expr,
    },
    /// `x0.. -> f32`: an expression of the inputs.
    Elementwise {
        /// Expression; variable i is input i.
        expr: Expr,
    },
    /// `a, b -> f32`.
    Add,
    /// `a, b -> f32`.
    Mul,
    /// `x [T, n] -> f32 [Wanted, n]`: the rows whose logits are wanted.
    SelectRows,
    /// `x f32, [routing] -> f32 [rows, MAX_RANK]`: the scaled A of each token's adapter (and slot's expert)
    /// times x. Columns past the adapter's rank, and rows without one, are undefined. Only matrix products
    /// read it, as their last input.
    LoraShrink {
        /// Index into [`super::Graph::lora_targets`].
        lora_target: u32,
        /// The format that the elements of A and B are rounded to: bf16, or f32.
        format: WeightFormat,
    },
}

/// The roundings that a preset may apply to the input of a matrix product.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Activations {
    /// The preset rounds the input as it rounds all.
    #[default]
    AsPreset,
    /// The preset leaves the input in f32, unless the matrix has 4 bits.
    F32,
}

/// Attributes of [`Op::Attention`].
#[derive(Clone, Debug, PartialEq)]
pub struct AttentionAttributes {
    /// Attention layer, in order: index of its KV pool.
    pub layer: u32,
    /// Query heads.
    pub heads: usize,
    /// KV heads; `heads` is a multiple of it.
    pub kv_heads: usize,
    /// Elements per head.
    pub head_dim: usize,
    /// Factor on the scores.
    pub scale: f32,
    /// Keys in view, the token itself included; `None` is all.
    pub window: Option<u32>,
    /// Formats of the cache.
    pub kv: KvPair,
}

impl AttentionAttributes {
    /// Kind of the layer, which decides about its block table.
    pub fn layer_kind(&self) -> LayerKind {
        if self.window.is_some() { LayerKind::Sliding } else { LayerKind::Full }
    }

    /// Shape of the layer's KV blocks.
    pub fn geometry(&self) -> KvGeometry {
        KvGeometry { kv_heads: self.kv_heads, head_dim: self.head_dim, formats: self.kv }
    }
}

/// An [`Op`] without its attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum OpKind {
    Embed,
    RmsNorm,
    Linear,
    QuantLinear,
    QuantizeQ8,
    Bf16Cast,
    Rope,
    Hadamard,
    KvCast,
    Attention,
    RouterTopk,
    ExpertLinear,
    QuantExpertLinear,
    Bf16ExpertLinear,
    ExpertSum,
    Glu,
    Elementwise,
    Add,
    Mul,
    SelectRows,
    LoraShrink,
}

impl OpKind {
    /// Inputs of a matrix product without an adapter; `None` for other ops.
    pub fn plain_inputs(self) -> Option<usize> {
        match self {
            OpKind::Linear | OpKind::QuantLinear => Some(1),
            OpKind::ExpertLinear | OpKind::QuantExpertLinear | OpKind::Bf16ExpertLinear => Some(2),
            _ => None,
        }
    }

    /// Every kind, in the order of [`Op`].
    pub const ALL: [OpKind; 21] = [
        OpKind::Embed,
        OpKind::RmsNorm,
        OpKind::Linear,
        OpKind::QuantLinear,
        OpKind::QuantizeQ8,
        OpKind::Bf16Cast,
        OpKind::Rope,
        OpKind::Hadamard,
        OpKind::KvCast,
        OpKind::Attention,
        OpKind::RouterTopk,
        OpKind::ExpertLinear,
        OpKind::QuantExpertLinear,
        OpKind::Bf16ExpertLinear,
        OpKind::ExpertSum,
        OpKind::Glu,
        OpKind::Elementwise,
        OpKind::Add,
        OpKind::Mul,
        OpKind::SelectRows,
        OpKind::LoraShrink,
    ];
}

impl Op {
    /// The op without its attributes.
    pub fn kind(&self) -> OpKind {
        match self {
            Op::Embed => OpKind::Embed,
            Op::RmsNorm { .. } => OpKind::RmsNorm,
            Op::Linear(_) => OpKind::Linear,
            Op::QuantLinear => OpKind::QuantLinear,
            Op::QuantizeQ8 => OpKind::QuantizeQ8,
            Op::Bf16Cast => OpKind::Bf16Cast,
            Op::Rope { .. } => OpKind::Rope,
            Op::Hadamard { .. } => OpKind::Hadamard,
            Op::KvCast(_) => OpKind::KvCast,
            Op::Attention(_) => OpKind::Attention,
            Op::RouterTopk { .. } => OpKind::RouterTopk,
            Op::ExpertLinear => OpKind::ExpertLinear,
            Op::QuantExpertLinear => OpKind::QuantExpertLinear,
            Op::Bf16ExpertLinear => OpKind::Bf16ExpertLinear,
            Op::ExpertSum => OpKind::ExpertSum,
            Op::Glu { .. } => OpKind::Glu,
            Op::Elementwise { .. } => OpKind::Elementwise,
            Op::Add => OpKind::Add,
            Op::Mul => OpKind::Mul,
            Op::SelectRows => OpKind::SelectRows,
            Op::LoraShrink { .. } => OpKind::LoraShrink,
        }
    }
}
