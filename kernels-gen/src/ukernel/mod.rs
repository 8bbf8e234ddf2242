//! Micro-kernels: the innermost register tiles, in one table.
//!
//! A micro-kernel is a function in the same code blob, called by bodies with the System V convention; every
//! vector register is caller-saved. Its contract stands in its file. The versions here are 128 bits wide, in
//! Cranelift IR, and run on every level.

pub(crate) mod add_dot;
mod add_weighted;
pub(crate) mod attention;
pub(crate) mod attention_integers;
pub mod block;
mod contract;
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

pub use attention::{BLOCKS_AHEAD, QueryHeads, SCORE_STRIDE};
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
use param::{Param, TileState};
use std::fmt;

/// The table of micro-kernels. An entry has the symbol's name, the parameters, and the code: a call with the
/// emitter, the parameters, and whether the target has `vpdpbusd`.
macro_rules! micro_kernels {
    (
        |$e:ident, $params:ident, $vnni:ident|
        $(
            $(#[$doc:meta])*
            $ukernel:ident $({ $($field:ident: $ty:ty),+ })? $(($inner:ident: $inner_ty:ty))?
            => ($($name:tt)+), $contract:expr, $code:expr;
        )+
    ) => {
        /// Which micro-kernel, specialised to what. Its `Display` is the symbol name.
        #[allow(missing_docs)]
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum MicroKernel {
            $($(#[$doc])* $ukernel $({ $($field: $ty),+ })? $(($inner_ty))?),+
        }

        impl fmt::Display for MicroKernel {
            #[allow(unused_variables)]
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self.clone() {
                    $(MicroKernel::$ukernel $({ $($field),+ })? $(($inner))? => write!(f, $($name)+)),+
                }
            }
        }

        impl MicroKernel {
            /// The parameters, in order.
            #[allow(unused_variables)]
            pub fn contract(&self) -> Vec<Param> {
                match self.clone() {
                    $(MicroKernel::$ukernel $({ $($field),+ })? $(($inner))? => $contract),+
                }
            }

            /// Emits the body; `vnni` says whether the target has `vpdpbusd`.
            #[allow(unused_variables)]
            pub(crate) fn emit(self, $e: &mut Emit, $params: &[Value], $vnni: bool) {
                match self {
                    $(MicroKernel::$ukernel $({ $($field),+ })? $(($inner))? => $code),+
                }
            }
        }
    };
}

micro_kernels! { |e, params, vnni|
    /// 16 rows x `tokens` rows of q8 activations.
    DotQ8 { format: WeightFormat, k: usize, tokens: usize }
        => ("dot_{}_q8_k{k}_t{tokens}", format.name()),
        contract::dot_q8(format, k, tokens),
        dot_q8::emit(e, params, format, k, tokens, vnni);
    /// Four adjacent tiles of 16 rows x `tokens` rows of q8 activations.
    DotQ8x4 { format: WeightFormat, k: usize, tokens: usize, order: TileOrder }
        => ("dot_adjacent_{}_q8_k{k}_t{tokens}{}", format.name(), order.suffix()),
        contract::dot_q8_adjacent(format, k, tokens),
        dot_q8::adjacent(e, params, format, k, tokens, order, vnni);
    /// 16 rows x `tokens` rows of f32 activations.
    DotF32 { format: WeightFormat, k: usize, tokens: usize }
        => ("dot_{}_f32_k{k}_t{tokens}", format.name()),
        contract::dot_f32(format, k, tokens),
        dot_f32::emit(e, params, format, k, tokens);
    /// Decodes blocks of a tile for `GemmQ8`.
    Decode { format: WeightFormat }
        => ("decode_{}", format.name()),
        contract::decode(format, DotStep::K4.decoded(format)),
        gemm_q8::decode(e, params, format, DotStep::K4.decoded(format));
    /// Decodes blocks of a tile to words for `GemmQ8`.
    DecodeWords { format: WeightFormat }
        => ("decode_{}_words", format.name()),
        contract::decode(format, decoded_words(format)),
        gemm_q8::decode(e, params, format, decoded_words(format));
    /// `tiles` decoded tiles (1 or 2) x a panel of `tokens` q8 rows.
    GemmQ8 { weights: Decoded, tiles: usize, tokens: usize }
        => ("gemm_{}_q8_{tiles}x{tokens}", weights.name()),
        contract::gemm_q8(weights, tiles, tokens),
        gemm_q8::gemm(e, params, weights, tiles, tokens, vnni);
    /// Two decoded tiles of mxfp4 x a panel of q8 rows, and meanwhile `Decode` of a tile of the next.
    GemmDecode(overlap: Overlap)
        => ("gemm_decode_2x{}_s{}_g{}", overlap.tokens, overlap.stride, overlap.gap),
        contract::gemm_decode(overlap),
        gemm_q8::gemm_decode(e, params, overlap, vnni);
    /// Prefetches from two places. Cranelift has no such instruction.
    Prefetch
        => ("prefetch"),
        vec![Param::Ahead, Param::Ahead, Param::Number],
        {};
    /// Decodes blocks of an MXFP4 tile for `GemmBf16`.
    DecodeBf16
        => ("decode_mxfp4_bf16"),
        contract::decode_bf16(),
        gemm_bf16::decode(e, params);
    /// Decoded tiles x a panel of bf16 rows.
    GemmBf16(shape: Shape)
        => ("gemm_bf16_{}x{}_s{}_g{}", shape.tiles, shape.groups * gemm_bf16::GROUP, shape.stride, shape.gap),
        contract::gemm_bf16(shape),
        gemm_bf16::gemm(e, params, shape);
    /// Decoded tiles x all panels of q8 rows, and meanwhile the decoding of the next ones.
    GemmStrip(strip: Strip)
        => ("gemm_strip_{}_{}_k{}_s{}_g{}", strip.format.name(), strip.tiles, strip.k, strip.stride, strip.gap),
        contract::gemm_strip(strip),
        gemm_tiles::strip(e, params, strip);
    /// Configures tiles of such shapes, where there are any: code of 128 bits has none.
    TilesOn(shapes: TileShapes)
        => ("tiles_on{}", shapes.suffix()),
        Vec::new(),
        {};
    /// Releases them.
    TilesOff
        => ("tiles_off"),
        Vec::new(),
        {};
    /// Scores of queries against blocks of 16 keys. `scale` holds the f32's bits.
    Score { elem: KvFormat, head_dim: usize, queries: QueryHeads, scale: u32 }
        => ("score_{elem:?}_d{head_dim}_{queries}_s{scale:08x}"),
        contract::score(elem, head_dim, queries),
        attention::score(e, params, elem, head_dim, queries, f32::from_bits(scale));
    /// Rounds `group` queries for `IntegerScore`s. `zero` is that of the keys' words, `scale` holds the f32's
    /// bits.
    Query { head_dim: usize, group: usize, zero: i32, scale: u32 }
        => ("query_z{zero}_d{head_dim}_g{group}_s{scale:08x}"),
        contract::query(head_dim, group),
        attention_integers::query(e, params, head_dim, group, zero, f32::from_bits(scale));
    /// Scores of `group` rounded queries against blocks of 16 keys that are integers.
    IntegerScore { elem: KvFormat, head_dim: usize, group: usize }
        => ("score_{elem:?}_d{head_dim}_g{group}"),
        contract::integer_score(elem, head_dim, group),
        attention_integers::score(e, params, elem, head_dim, group, vnni);
    /// Adds weighted values of blocks to outputs of such queries.
    Value { elem: KvFormat, head_dim: usize, queries: QueryHeads }
        => ("value_{elem:?}_d{head_dim}_{queries}"),
        contract::value(elem, head_dim, queries),
        attention::value(e, params, elem, head_dim, queries);
    /// Makes weights of the scores of `group` query heads, rounded for `IntegerValue`s.
    Weights { group: usize }
        => ("weights_g{group}"),
        contract::weights(group),
        attention_integers::weights(e, params, group);
    /// Adds weighted values of blocks, which are integers as their weights are, to `group` outputs of every
    /// token, which are `stride` bytes apart.
    IntegerValue { elem: KvFormat, head_dim: usize, group: usize, stride: usize }
        => ("value_{elem:?}_d{head_dim}_g{group}_s{stride}"),
        contract::integer_value(elem, head_dim, group, stride),
        attention_integers::value(e, params, elem, [head_dim, group, stride]);
    /// Exponentials of a row of scores, with their maximum and sum.
    Softmax
        => ("softmax"),
        contract::softmax(),
        softmax::softmax(e, params);
    /// Combines the segments of `group` query heads.
    Combine { head_dim: usize, group: usize, sinks: bool }
        => ("combine_d{head_dim}_g{group}{}", if sinks { "_sinks" } else { "" }),
        contract::combine(head_dim, group, sinks),
        softmax::combine(e, params, head_dim, group, sinks);
    /// An elementwise expression over rows.
    Map(map: Map)
        => ("{map}"),
        map.contract(),
        map::emit(e, params, &map);
    /// Weighted rows of `n`, with or without a bias, added to rows that lie anywhere.
    AddWeighted { n: usize, bias: bool }
        => ("add_weighted{}_n{n}", if bias { "_biased" } else { "" }),
        add_weighted::contract(n, bias),
        add_weighted::emit(e, params, n, bias);
    /// Adds 16 rows of an adapter's A or B x `tokens` f32 rows, whose length is a parameter.
    AddDot { format: WeightFormat, tokens: usize }
        => ("add_dot_{}_t{tokens}", format.name()),
        add_dot::contract(format, tokens),
        add_dot::emit(e, params, format, tokens);
    /// f32 to q8 blocks.
    Quantize
        => ("quantize_q8"),
        quantize::contract(),
        quantize::emit(e, params);
    /// RMS norm of a row of `n`. `eps` holds the f32's bits.
    RmsNorm { n: usize, eps: u32 }
        => ("rms_norm_n{n}_e{eps:08x}"),
        rms_norm::contract(n),
        rms_norm::emit(e, params, n, f32::from_bits(eps));
}

/// The layout that `DecodeWords` decodes tiles of the format to.
fn decoded_words(format: WeightFormat) -> Decoded {
    Decoded { number: DecodedNumber::I16, ..DotStep::K4.decoded(format) }
}

impl MicroKernel {
    /// Token counts that dot micro-kernels come in, descending; the last is 1. Of a few sequences three often
    /// go to the same expert. Kernels call f32 dots of four tokens only where there is an assembled version,
    /// for which there must be 32 registers.
    pub fn dot_tokens(q8: bool) -> &'static [usize] {
        if q8 { &[8, 4, 3, 2, 1] } else { &[4, 2, 1] }
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
        match self {
            MicroKernel::DecodeWords { .. } => decoded_words(format),
            _ => DotStep::K4.decoded(format),
        }
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
        self.contract().len()
    }

    /// Whether tiles are configured around it.
    pub fn tiles(&self) -> TileState {
        match self {
            MicroKernel::TilesOn(_) => TileState { before: false, after: true },
            MicroKernel::TilesOff => TileState { before: true, after: false },
            MicroKernel::GemmBf16(_) | MicroKernel::GemmStrip(_) => TileState { before: true, after: true },
            _ => TileState::default(),
        }
    }
}
