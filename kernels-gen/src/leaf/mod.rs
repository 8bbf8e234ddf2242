//! Leaf micro-kernels: the innermost register tiles.
//!
//! A leaf is a function in the same code blob, called by bodies with the System V convention; every vector register is
//! caller-saved. Its contract stands in its file. The versions here are 128 bits wide, in Cranelift IR, and run on every level.

pub(crate) mod add_dot;
mod add_weighted;
pub(crate) mod attention;
pub mod block;
pub mod contract;
mod dot_f32;
pub(crate) mod dot_q8;
pub mod gemm_bf16;
pub mod gemm_q8;
pub mod map;
pub mod param;
mod quantize;
mod rms_norm;
mod softmax;

pub use attention::{BLOCKS_AHEAD, SCORE_STRIDE};
pub use dot_q8::{ADJACENT, Order};

use crate::emit::Emit;
use cranelift_codegen::ir::Value;
use gemm_bf16::Shape;
use gemm_q8::{Decoded, GROUP, Overlap, Products};
use kernmill_plan::format::WeightFormat;
use kernmill_plan::kv::KvElem;
use map::Map;
use std::fmt;

/// Which leaf, specialised to what. Its `Display` is the symbol name.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Leaf {
    /// 16 rows x `tokens` rows of q8 activations.
    DotQ8 { format: WeightFormat, k: usize, tokens: usize },
    /// Four adjacent tiles of 16 rows x `tokens` rows of q8 activations.
    DotAdjacent { format: WeightFormat, k: usize, tokens: usize, order: Order },
    /// 16 rows x `tokens` rows of f32 activations.
    DotF32 { format: WeightFormat, k: usize, tokens: usize },
    /// Decodes blocks of a tile for `GemmQ8`.
    Decode { format: WeightFormat },
    /// Decodes blocks of an int8 tile to words for `GemmQ8`.
    DecodeWords,
    /// `tiles` decoded tiles (1 or 2) x a panel of `tokens` q8 rows.
    GemmQ8 { weights: Decoded, tiles: usize, tokens: usize },
    /// Two decoded tiles of mxfp4 x a panel of q8 rows, and meanwhile `Decode` of a tile of the next.
    GemmDecode(Overlap),
    /// Prefetches from two places.
    Prefetch,
    /// Decodes blocks of an MXFP4 tile for `GemmBf16`.
    DecodeBf16,
    /// Decoded tiles x a panel of bf16 rows.
    GemmBf16(Shape),
    /// Configures tiles, where there are any.
    TilesOn,
    /// Releases them.
    TilesOff,
    /// Scores of `group` queries against blocks of 16 keys. `scale` holds the f32's bits.
    Score { elem: KvElem, head_dim: usize, group: usize, scale: u32 },
    /// Adds weighted values of blocks to `group` outputs.
    Value { elem: KvElem, head_dim: usize, group: usize },
    /// Exponentials of a row of scores, with their maximum and sum.
    Softmax,
    /// Combines the segments of `group` query heads.
    Combine { head_dim: usize, group: usize, sinks: bool },
    /// An elementwise expression over rows.
    Map(Map),
    /// Weighted rows of `n`, with or without a bias, added to rows that lie anywhere.
    AddWeighted { n: usize, bias: bool },
    /// Adds 16 rows of an adapter's A or B x `tokens` f32 rows, whose length is a parameter.
    AddDot { format: WeightFormat, tokens: usize },
    /// f32 to q8 blocks.
    Quantize,
    /// RMS norm of a row of `n`. `eps` holds the f32's bits.
    RmsNorm { n: usize, eps: u32 },
}

impl fmt::Display for Leaf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Leaf::DotQ8 { format, k, tokens } => write!(f, "dot_{}_q8_k{k}_t{tokens}", format.name()),
            Leaf::DotAdjacent { format, k, tokens, order } => {
                let order = match *order {
                    Order::Straight => "",
                    Order::Pairs => "_pairs",
                };
                write!(f, "dot_adjacent_{}_q8_k{k}_t{tokens}{order}", format.name())
            }
            Leaf::DotF32 { format, k, tokens } => write!(f, "dot_{}_f32_k{k}_t{tokens}", format.name()),
            Leaf::Decode { format } => write!(f, "decode_{}", format.name()),
            Leaf::DecodeWords => write!(f, "decode_int8_words"),
            Leaf::GemmQ8 { weights, tiles, tokens } => {
                write!(f, "gemm_{}_q8_{tiles}x{tokens}", weights.name())
            }
            Leaf::GemmDecode(Overlap { tokens, stride, gap }) => {
                write!(f, "gemm_decode_2x{tokens}_s{stride}_g{gap}")
            }
            Leaf::Prefetch => write!(f, "prefetch"),
            Leaf::DecodeBf16 => write!(f, "decode_mxfp4_bf16"),
            Leaf::GemmBf16(Shape { tiles, groups, stride, gap }) => {
                write!(f, "gemm_bf16_{tiles}x{}_s{stride}_g{gap}", groups * gemm_bf16::GROUP)
            }
            Leaf::TilesOn => write!(f, "tiles_on"),
            Leaf::TilesOff => write!(f, "tiles_off"),
            Leaf::Score { elem, head_dim, group, scale } => {
                write!(f, "score_{elem:?}_d{head_dim}_g{group}_s{scale:08x}")
            }
            Leaf::Value { elem, head_dim, group } => write!(f, "value_{elem:?}_d{head_dim}_g{group}"),
            Leaf::Softmax => write!(f, "softmax"),
            Leaf::Combine { head_dim, group, sinks } => {
                write!(f, "combine_d{head_dim}_g{group}{}", if *sinks { "_sinks" } else { "" })
            }
            Leaf::Map(map) => write!(f, "{map}"),
            Leaf::AddWeighted { n, bias } => {
                write!(f, "add_weighted{}_n{n}", if *bias { "_biased" } else { "" })
            }
            Leaf::AddDot { format, tokens } => write!(f, "add_dot_{}_t{tokens}", format.name()),
            Leaf::Quantize => write!(f, "quantize_q8"),
            Leaf::RmsNorm { n, eps } => write!(f, "rms_norm_n{n}_e{eps:08x}"),
        }
    }
}

impl Leaf {
    /// Token counts that dot leaves come in, descending; the last is 1. Of a few sequences three often go to the same expert.
    pub fn dot_tokens(q8: bool) -> &'static [usize] {
        if q8 { &[8, 4, 3, 2, 1] } else { &[2, 1] }
    }

    /// The leaf that decodes a format's tiles to such weights.
    pub fn decoding(weights: Decoded, format: WeightFormat) -> Leaf {
        if weights == Decoded::Words { Leaf::DecodeWords } else { Leaf::Decode { format } }
    }

    /// Whether it multiplies one or two decoded tiles, whose products it adds up in this way, with a panel.
    pub fn is_gemm(self, products: Products) -> bool {
        match self {
            Leaf::GemmQ8 { weights, tiles: 1..=2, tokens: 1..=GROUP } => products.kinds().contains(&weights),
            _ => false,
        }
    }

    /// Number of pointer or integer parameters.
    pub fn params(self) -> usize {
        match self {
            Leaf::DotQ8 { .. } | Leaf::DotAdjacent { .. } | Leaf::DotF32 { .. } | Leaf::Score { .. } => 4,
            Leaf::TilesOn | Leaf::TilesOff => 0,
            Leaf::DecodeBf16 | Leaf::GemmBf16(_) | Leaf::Quantize => 5,
            Leaf::Decode { .. } | Leaf::DecodeWords => 4,
            Leaf::RmsNorm { .. } | Leaf::Prefetch => 3,
            Leaf::Map(map) => map.params(),
            Leaf::GemmQ8 { .. } | Leaf::GemmDecode(_) | Leaf::Value { .. } | Leaf::AddWeighted { .. } => 6,
            Leaf::Softmax | Leaf::Combine { .. } | Leaf::AddDot { .. } => 6,
        }
    }

    /// Emits the body; `vnni` says whether the target has `vpdpbusd`.
    pub(crate) fn emit(self, e: &mut Emit, params: &[Value], vnni: bool) {
        match self {
            Leaf::DotQ8 { format, k, tokens } => dot_q8::emit(e, params, format, k, tokens, vnni),
            Leaf::DotAdjacent { format, k, tokens, order } => {
                dot_q8::adjacent(e, params, format, k, tokens, order, vnni);
            }
            Leaf::DotF32 { format, k, tokens } => dot_f32::emit(e, params, format, k, tokens),
            Leaf::Decode { format } => gemm_q8::decode(e, params, format),
            Leaf::DecodeWords => gemm_q8::decode_words(e, params),
            Leaf::GemmQ8 { weights, tiles, tokens } => {
                gemm_q8::gemm(e, params, weights, tiles, tokens, vnni);
            }
            Leaf::GemmDecode(overlap) => gemm_q8::gemm_decode(e, params, overlap, vnni),
            // Cranelift has no prefetch.
            Leaf::Prefetch => {}
            Leaf::DecodeBf16 => gemm_bf16::decode(e, params),
            Leaf::GemmBf16(shape) => gemm_bf16::gemm(e, params, shape),
            // 128-bit code has no tiles.
            Leaf::TilesOn | Leaf::TilesOff => {}
            Leaf::Score { elem, head_dim, group, scale } => {
                attention::score(e, params, elem, head_dim, group, f32::from_bits(scale));
            }
            Leaf::Value { elem, head_dim, group } => attention::value(e, params, elem, head_dim, group),
            Leaf::Softmax => softmax::softmax(e, params),
            Leaf::Combine { head_dim, group, sinks } => softmax::combine(e, params, head_dim, group, sinks),
            Leaf::Map(map) => map::emit(e, params, map),
            Leaf::AddWeighted { n, bias } => add_weighted::emit(e, params, n, bias),
            Leaf::AddDot { format, tokens } => add_dot::emit(e, params, format, tokens),
            Leaf::Quantize => quantize::emit(e, params),
            Leaf::RmsNorm { n, eps } => rms_norm::emit(e, params, n, f32::from_bits(eps)),
        }
    }
}
