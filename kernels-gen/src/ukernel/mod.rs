//! Micro-kernel micro-kernels: the innermost register tiles.
//!
//! A micro-kernel is a function in the same code blob, called by bodies with the System V convention; every
//! vector register is caller-saved. Its contract stands in its file. The versions here are 128 bits wide, in
//! Cranelift IR, and run on every level.

pub(crate) mod add_dot;
mod add_weighted;
pub(crate) mod attention;
pub(crate) mod attention_integers;
pub mod block;
pub mod contract;
pub(crate) mod decode;
mod dot_f32;
pub(crate) mod dot_q8;
pub mod gemm_bf16;
pub mod gemm_q8;
pub mod gemm_tiles;
pub mod map;
pub mod param;
mod quantize;
mod rms_norm;
mod softmax;

pub use attention::{BLOCKS_AHEAD, SCORE_STRIDE};
pub use attention_integers::{QueryLayout, VALUE_BLOCKS, ValueScratch, WEIGHTS};
pub use dot_q8::{TILES_PER_CALL, TileOrder};

use crate::emit::Emit;
use cranelift_codegen::ir::Value;
use gemm_bf16::Shape;
use gemm_q8::{Decoded, DecodedNumber, DotStep, GROUP, Overlap};
use gemm_tiles::{Strip, TileShapes};
use kernmill_plan::format::WeightFormat;
use kernmill_plan::kv::KvFormat;
use map::Map;
use std::fmt;

/// Which micro-kernel, specialised to what. Its `Display` is the symbol name.
#[allow(missing_docs)]
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MicroKernel {
    /// 16 rows x `tokens` rows of q8 activations.
    DotQ8 { format: WeightFormat, k: usize, tokens: usize },
    /// Four adjacent tiles of 16 rows x `tokens` rows of q8 activations.
    DotQ8x4 { format: WeightFormat, k: usize, tokens: usize, order: TileOrder },
    /// 16 rows x `tokens` rows of f32 activations.
    DotF32 { format: WeightFormat, k: usize, tokens: usize },
    /// Decodes blocks of a tile for `GemmQ8`.
    Decode { format: WeightFormat },
    /// Decodes blocks of a tile to words for `GemmQ8`.
    DecodeWords { format: WeightFormat },
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
    /// Decoded tiles x all panels of q8 rows, and meanwhile the decoding of the next ones.
    GemmStrip(Strip),
    /// Configures tiles of such shapes, where there are any.
    TilesOn(TileShapes),
    /// Releases them.
    TilesOff,
    /// Scores of `group` queries against blocks of 16 keys. `scale` holds the f32's bits.
    Score { elem: KvFormat, head_dim: usize, group: usize, scale: u32 },
    /// Rounds `group` queries for `IntegerScore`s. `zero` is that of the keys' words, `scale` holds the f32's
    /// bits.
    Query { head_dim: usize, group: usize, zero: i32, scale: u32 },
    /// Scores of `group` rounded queries against blocks of 16 keys that are integers.
    IntegerScore { elem: KvFormat, head_dim: usize, group: usize },
    /// Adds weighted values of blocks to `group` outputs.
    Value { elem: KvFormat, head_dim: usize, group: usize },
    /// Makes weights of the scores of `group` query heads, rounded for `IntegerValue`s.
    Weights { group: usize },
    /// Adds weighted values of blocks, which are integers as their weights are, to `group` outputs of every
    /// token, which are `stride` bytes apart.
    IntegerValue { elem: KvFormat, head_dim: usize, group: usize, stride: usize },
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

impl fmt::Display for MicroKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MicroKernel::DotQ8 { format, k, tokens } => write!(f, "dot_{}_q8_k{k}_t{tokens}", format.name()),
            MicroKernel::DotQ8x4 { format, k, tokens, order } => {
                let order = match *order {
                    TileOrder::Straight => "",
                    TileOrder::Pairs => "_pairs",
                };
                write!(f, "dot_adjacent_{}_q8_k{k}_t{tokens}{order}", format.name())
            }
            MicroKernel::DotF32 { format, k, tokens } => {
                write!(f, "dot_{}_f32_k{k}_t{tokens}", format.name())
            }
            MicroKernel::Decode { format } => write!(f, "decode_{}", format.name()),
            MicroKernel::DecodeWords { format } => write!(f, "decode_{}_words", format.name()),
            MicroKernel::GemmQ8 { weights, tiles, tokens } => {
                write!(f, "gemm_{}_q8_{tiles}x{tokens}", weights.name())
            }
            MicroKernel::GemmDecode(Overlap { tokens, stride, gap }) => {
                write!(f, "gemm_decode_2x{tokens}_s{stride}_g{gap}")
            }
            MicroKernel::Prefetch => write!(f, "prefetch"),
            MicroKernel::DecodeBf16 => write!(f, "decode_mxfp4_bf16"),
            MicroKernel::GemmBf16(Shape { tiles, groups, stride, gap }) => {
                write!(f, "gemm_bf16_{tiles}x{}_s{stride}_g{gap}", groups * gemm_bf16::GROUP)
            }
            MicroKernel::GemmStrip(Strip { format, tiles, k, stride, gap }) => {
                write!(f, "gemm_strip_{}_{tiles}_k{k}_s{stride}_g{gap}", format.name())
            }
            MicroKernel::TilesOn(shapes) => write!(f, "tiles_on{}", shapes.suffix()),
            MicroKernel::TilesOff => write!(f, "tiles_off"),
            MicroKernel::Score { elem, head_dim, group, scale } => {
                write!(f, "score_{elem:?}_d{head_dim}_g{group}_s{scale:08x}")
            }
            MicroKernel::Query { head_dim, group, zero, scale } => {
                write!(f, "query_z{zero}_d{head_dim}_g{group}_s{scale:08x}")
            }
            MicroKernel::IntegerScore { elem, head_dim, group } => {
                write!(f, "score_{elem:?}_d{head_dim}_g{group}")
            }
            MicroKernel::Value { elem, head_dim, group } => write!(f, "value_{elem:?}_d{head_dim}_g{group}"),
            MicroKernel::Weights { group } => write!(f, "weights_g{group}"),
            MicroKernel::IntegerValue { elem, head_dim, group, stride } => {
                write!(f, "value_{elem:?}_d{head_dim}_g{group}_s{stride}")
            }
            MicroKernel::Softmax => write!(f, "softmax"),
            MicroKernel::Combine { head_dim, group, sinks } => {
                write!(f, "combine_d{head_dim}_g{group}{}", if *sinks { "_sinks" } else { "" })
            }
            MicroKernel::Map(map) => write!(f, "{map}"),
            MicroKernel::AddWeighted { n, bias } => {
                write!(f, "add_weighted{}_n{n}", if *bias { "_biased" } else { "" })
            }
            MicroKernel::AddDot { format, tokens } => write!(f, "add_dot_{}_t{tokens}", format.name()),
            MicroKernel::Quantize => write!(f, "quantize_q8"),
            MicroKernel::RmsNorm { n, eps } => write!(f, "rms_norm_n{n}_e{eps:08x}"),
        }
    }
}

impl MicroKernel {
    /// Token counts that dot micro-kernels come in, descending; the last is 1. Of a few sequences three often
    /// go to the same expert.
    pub fn dot_tokens(q8: bool) -> &'static [usize] {
        if q8 { &[8, 4, 3, 2, 1] } else { &[2, 1] }
    }

    /// The micro-kernel that decodes a format's tiles to such weights.
    pub fn decoding(weights: Decoded, format: WeightFormat) -> MicroKernel {
        if weights.number == DecodedNumber::I16 {
            MicroKernel::DecodeWords { format }
        } else {
            MicroKernel::Decode { format }
        }
    }

    /// The layout of what it decodes tiles of the format to for `GemmQ8`.
    pub fn decoded(&self, format: WeightFormat) -> Decoded {
        let words = matches!(self, MicroKernel::DecodeWords { .. });
        let plain = DotStep::K4.decoded(format);
        if words { Decoded { number: DecodedNumber::I16, ..plain } } else { plain }
    }

    /// Whether it multiplies one or two decoded tiles, whose products it adds up in this way, with a panel.
    pub fn is_gemm(&self, products: DotStep) -> bool {
        match self {
            MicroKernel::GemmQ8 { weights, tiles: 1..=2, tokens: 1..=GROUP } => {
                products.numbers().contains(&weights.number)
            }
            _ => false,
        }
    }

    /// The format of the weights that it reads, if it reads packed ones.
    pub fn format(&self) -> Option<WeightFormat> {
        match self {
            MicroKernel::DotQ8 { format, .. }
            | MicroKernel::DotQ8x4 { format, .. }
            | MicroKernel::DotF32 { format, .. }
            | MicroKernel::Decode { format }
            | MicroKernel::DecodeWords { format }
            | MicroKernel::AddDot { format, .. } => Some(*format),
            MicroKernel::GemmStrip(strip) => Some(strip.format),
            MicroKernel::GemmDecode(_) | MicroKernel::DecodeBf16 => Some(WeightFormat::Mxfp4),
            _ => None,
        }
    }

    /// Number of pointer or integer parameters.
    pub fn params(&self) -> usize {
        match self {
            MicroKernel::DotQ8 { .. }
            | MicroKernel::DotQ8x4 { .. }
            | MicroKernel::DotF32 { .. }
            | MicroKernel::IntegerScore { .. }
            | MicroKernel::Score { .. } => 4,
            MicroKernel::Query { .. } => 2,
            MicroKernel::TilesOn(_) | MicroKernel::TilesOff => 0,
            MicroKernel::DecodeBf16 | MicroKernel::GemmBf16(_) | MicroKernel::Quantize => 5,
            MicroKernel::GemmStrip(_) => 12,
            MicroKernel::Decode { format } | MicroKernel::DecodeWords { format } => {
                4 + usize::from(format.parts().is_super())
            }
            MicroKernel::RmsNorm { .. } | MicroKernel::Prefetch => 3,
            MicroKernel::Map(map) => map.params(),
            MicroKernel::GemmQ8 { .. }
            | MicroKernel::GemmDecode(_)
            | MicroKernel::Value { .. }
            | MicroKernel::Weights { .. }
            | MicroKernel::IntegerValue { .. }
            | MicroKernel::AddWeighted { .. } => 6,
            MicroKernel::Softmax | MicroKernel::Combine { .. } | MicroKernel::AddDot { .. } => 6,
        }
    }

    /// Emits the body; `vnni` says whether the target has `vpdpbusd`.
    pub(crate) fn emit(self, e: &mut Emit, params: &[Value], vnni: bool) {
        match self {
            MicroKernel::DotQ8 { format, k, tokens } => dot_q8::emit(e, params, format, k, tokens, vnni),
            MicroKernel::DotQ8x4 { format, k, tokens, order } => {
                dot_q8::adjacent(e, params, format, k, tokens, order, vnni);
            }
            MicroKernel::DotF32 { format, k, tokens } => dot_f32::emit(e, params, format, k, tokens),
            MicroKernel::Decode { format } | MicroKernel::DecodeWords { format } => {
                gemm_q8::decode(e, params, format, self.decoded(format));
            }
            MicroKernel::GemmQ8 { weights, tiles, tokens } => {
                gemm_q8::gemm(e, params, weights, tiles, tokens, vnni);
            }
            MicroKernel::GemmDecode(overlap) => gemm_q8::gemm_decode(e, params, overlap, vnni),
            // Cranelift has no prefetch.
            MicroKernel::Prefetch => {}
            MicroKernel::DecodeBf16 => gemm_bf16::decode(e, params),
            MicroKernel::GemmBf16(shape) => gemm_bf16::gemm(e, params, shape),
            MicroKernel::GemmStrip(strip) => gemm_tiles::strip(e, params, strip),
            // 128-bit code has no tiles.
            MicroKernel::TilesOn(_) | MicroKernel::TilesOff => {}
            MicroKernel::Score { elem, head_dim, group, scale } => {
                attention::score(e, params, elem, head_dim, group, f32::from_bits(scale));
            }
            MicroKernel::Query { head_dim, group, zero, scale } => {
                attention_integers::query(e, params, head_dim, group, zero, f32::from_bits(scale));
            }
            MicroKernel::IntegerScore { elem, head_dim, group } => {
                attention_integers::score(e, params, elem, head_dim, group, vnni);
            }
            MicroKernel::Value { elem, head_dim, group } => {
                attention::value(e, params, elem, head_dim, group)
            }
            MicroKernel::Weights { group } => attention_integers::weights(e, params, group),
            MicroKernel::IntegerValue { elem, head_dim, group, stride } => {
                attention_integers::value(e, params, elem, [head_dim, group, stride]);
            }
            MicroKernel::Softmax => softmax::softmax(e, params),
            MicroKernel::Combine { head_dim, group, sinks } => {
                softmax::combine(e, params, head_dim, group, sinks)
            }
            MicroKernel::Map(map) => map::emit(e, params, &map),
            MicroKernel::AddWeighted { n, bias } => add_weighted::emit(e, params, n, bias),
            MicroKernel::AddDot { format, tokens } => add_dot::emit(e, params, format, tokens),
            MicroKernel::Quantize => quantize::emit(e, params),
            MicroKernel::RmsNorm { n, eps } => rms_norm::emit(e, params, n, f32::from_bits(eps)),
        }
    }
}
