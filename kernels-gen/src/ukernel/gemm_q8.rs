//! Tiles for many tokens: weights are decoded once into scratch, then multiplied with panels of activations.
//!
//! - decode: `fn(scales: *const u8, data: *const u8, out: *mut u8, blocks: u64)`: `blocks` blocks of one
//!   packed tile, from the given places in its scale and data planes, to [`DECODED_BLOCK`] bytes each: a line
//!   of 16 f32 `w` (the weight scale, halved for mxfp4), a line of 16 f32 `-MAGIC * w`, and 8 lines of 16
//!   rows x 4 unsigned bytes, as int8 tiles have them.
//! - decode words: `fn(scales: *const u8, data: *const u8, out: *mut u8, blocks: u64)`: the same of a tile of
//!   larger integers, but a block is [`WORDS_BLOCK`] bytes: a line of 16 f32 `w`, and 16 lines of 16 rows x 2
//!   signed int16: line q those of 4q and 4q + 2, line 8 + q those of 4q + 1 and 4q + 3.
//! - gemm: `fn(weights: *const u8, panel: *const u8, sums: *mut f32, blocks: u64, stride: u64, gap: u64)`:
//!   adds `blocks` blocks of one or two decoded tiles, [`Decoded::tile_bytes`] apart, times a panel of
//!   `tokens` rows, to `sums`: 16 f32 per token and tile, tokens `stride` bytes apart, tiles `gap` bytes.
//!   "blockdot" of docs/dev/numerics.md, continued.
//!
//! A panel block is [`PANEL_BLOCK`] bytes: 32 int8 per token, then a f32 scale per token, then a starting
//! value per token: the bits of [`MAGIC`] less the correction for unsigned weights. An int32 accumulator that
//! starts there holds, read as a f32, `MAGIC + isum` exactly (|isum| <= 32 * 127 * 128 < 2^22), so `fma(acc,
//! w, -MAGIC * w)` is `isum * w` rounded once: w has at most 11 significant bits (f16, or a power of two),
//! which makes `MAGIC * w` exact. That saves a conversion per block, token and row.
//!
//! So it is where four products of bytes are added to 32 bits at once ([`DotStep::K4`]). Where only two are,
//! to 16 bits, panels differ ([`DotStep::K2`]):
//! - for [`Decoded::U8Pairwise`], the starting value is two int16: what unsigned weights make too much of the
//!   products of 4q and 4q + 1, and of 4q + 2 and 4q + 3, negated. Sums wrap around on the way, but starting
//!   there those of a half's 16 products end as what they are: 16 * 12 * 128 < 2^15.
//! - for [`Decoded::I16`], a row is int16 in the order of the decoded lines, and there are no starting
//!   values, because its weights are signed.
//!
//! - gemm and decode: `fn(weights: *const u8, panel: *const u8, sums: *mut f32, scales: *const u8, data:
//!   *const u8, out: *mut u8)`: what gemm does with two mxfp4 tiles and [`CHUNK_BLOCKS`] blocks, and what
//!   decode does with as many blocks of a tile that is multiplied later. `stride` and `gap` are the
//!   micro-kernel's own ([`Overlap`]). Multipliers are all that a gemm keeps busy, so that decoding costs
//!   next to nothing between its instructions.
//! - prefetch: `fn(first: *const u8, second: *const u8, lines: u64)`: may fetch so many lines from each place
//!   towards the cache, and never loads. Bodies call it between gemm micro-kernels for what is decoded next:
//!   all of it at once would wait for memory.

use crate::emit::{Emit, LANES};
use crate::ukernel::block::{data_lines, decode_of, scale_bytes};
use crate::ukernel::decode::{CHUNKS, Decoder};
use crate::ukernel::dot_q8::QUADS;
use cranelift_codegen::ir::types::{F32X4, I8X16, I16X8, I32};
use cranelift_codegen::ir::{InstBuilder, Value};
use kernmill_plan::format::{BLOCK, LINE, Scale, WeightFormat};
use kernmill_plan::target::{Features, Level};

/// Rows of a panel.
pub const GROUP: usize = 6;
/// Bytes of a panel's block.
pub const PANEL_BLOCK: usize = 256;
/// Offset of its scales.
pub const PANEL_SCALES: usize = GROUP * BLOCK;
/// Offset of its starting values.
pub const PANEL_STARTS: usize = PANEL_SCALES + GROUP * 4;
/// Bytes of a decoded block.
pub const DECODED_BLOCK: usize = 10 * LINE;
/// Offset of its lines of bytes.
pub const DECODED_DATA: usize = 2 * LINE;
/// Blocks decoded at a time: two tiles of them and a panel fit the smallest L1 of 32 KiB.
pub const CHUNK_BLOCKS: usize = 15;
/// Bytes of a decoded block of words.
pub const WORDS_BLOCK: usize = 17 * LINE;
/// Offset of its lines of words.
pub const WORDS_DATA: usize = LINE;
/// Bytes from one decoded tile of bytes to the next.
pub const DECODED_TILE: usize = CHUNK_BLOCKS * DECODED_BLOCK;
/// 1.5 * 2^23: consecutive floats around it are consecutive integers.
pub const MAGIC: f32 = 12_582_912.0;

/// The layout of decoded weights that a gemm micro-kernel may rely on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Decoded {
    /// Bytes 1..=255: integers in [-127, 127] with 128 added. A version may flip the upper bit of each, and
    /// has signed weights.
    U8,
    /// Bytes 0..=24.
    U8Max24,
    /// Bytes 0..=24; every scale `w` is a power of two from 2^-128 to 2^104.
    U8Max24Pow2,
    /// Bytes 0..=24. Panels hold starting values for products that are added in pairs.
    U8Pairwise,
    /// Signed int16. Activations of panels are int16 too.
    I16,
}

/// How many products along k one instruction adds up. It decides the layout of decoded weights and panels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DotStep {
    /// Four products of bytes are added to 32 bits at once: `vpdpbusd`, or instructions that do the same.
    K4,
    /// Two products are added at once: of bytes to 16 bits (`vpmaddubsw`), of int16 to 32 bits (`vpmaddwd`).
    K2,
}

impl DotStep {
    /// The step that a level's micro-kernels use.
    pub fn at(level: Level) -> DotStep {
        let features = level.features();
        let four = [Features::AVX_VNNI, Features::AVX512].iter().any(|feature| features.has(*feature));
        if four { DotStep::K4 } else { DotStep::K2 }
    }

    /// Kinds of decoded weights.
    pub fn kinds(self) -> &'static [Decoded] {
        match self {
            DotStep::K4 => &[Decoded::U8, Decoded::U8Max24, Decoded::U8Max24Pow2],
            DotStep::K2 => &[Decoded::U8Pairwise, Decoded::I16],
        }
    }

    /// The layout of a format's decoded tiles.
    ///
    /// # Panics
    /// When the format decodes to bytes above 24 that are not integers with 128 added: no micro-kernel
    /// multiplies such bytes.
    pub fn decoded(self, format: WeightFormat) -> Decoded {
        let decode = decode_of(format);
        let small = decode.largest() <= 24;
        assert!(small || decode.bias() == 128, "{format:?}: bytes above 24 need a bias of 128");
        match (self, small, format.descriptor().scale) {
            (DotStep::K4, true, Scale::E8M0) => Decoded::U8Max24Pow2,
            (DotStep::K4, true, Scale::F16 | Scale::None) => Decoded::U8Max24,
            (DotStep::K4, false, _) => Decoded::U8,
            (DotStep::K2, true, _) => Decoded::U8Pairwise,
            (DotStep::K2, false, _) => Decoded::I16,
        }
    }
}

/// A block of a panel: offsets and sizes in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PanelLayout {
    /// A row's activations.
    pub row: usize,
    /// A f32 for each row.
    pub scales: usize,
    /// A starting value for each row.
    pub starts: usize,
    /// The whole block.
    pub block: usize,
}

impl Decoded {
    /// Every kind.
    pub const ALL: [Decoded; 5] =
        [Decoded::U8, Decoded::U8Max24, Decoded::U8Max24Pow2, Decoded::U8Pairwise, Decoded::I16];

    /// Whether these are bytes of at most 24.
    pub fn is_small(self) -> bool {
        matches!(self, Decoded::U8Max24 | Decoded::U8Max24Pow2 | Decoded::U8Pairwise)
    }

    /// Bytes of a decoded block.
    pub fn block_bytes(self) -> usize {
        if self == Decoded::I16 { WORDS_BLOCK } else { DECODED_BLOCK }
    }

    /// Bytes from one decoded tile to the next.
    pub fn tile_bytes(self) -> usize {
        CHUNK_BLOCKS * self.block_bytes()
    }

    /// Layout of the panels that are multiplied with such weights.
    pub fn panel(self) -> PanelLayout {
        if self != Decoded::I16 {
            return PanelLayout {
                row: BLOCK,
                scales: PANEL_SCALES,
                starts: PANEL_STARTS,
                block: PANEL_BLOCK,
            };
        }
        let row = 2 * BLOCK;
        let (scales, starts) = (GROUP * row, GROUP * (row + 4));
        PanelLayout { row, scales, starts, block: (starts + GROUP * 4).next_multiple_of(LINE) }
    }

    /// Name in listings.
    pub fn name(self) -> &'static str {
        match self {
            Decoded::U8 => "byte",
            Decoded::U8Max24 => "small",
            Decoded::U8Max24Pow2 => "power",
            Decoded::U8Pairwise => "pair",
            Decoded::I16 => "word",
        }
    }
}

/// The specialisation of a micro-kernel that multiplies and decodes at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Overlap {
    /// Rows of the panel.
    pub tokens: usize,
    /// Bytes from one token's sums to the next one's.
    pub stride: usize,
    /// Bytes from the first tile's sums to the second's.
    pub gap: usize,
}

const _: () = assert!(PANEL_STARTS + GROUP * 4 <= PANEL_BLOCK);

/// Emits `Decode`.
pub fn decode(e: &mut Emit, params: &[Value], format: WeightFormat) {
    let (scales, data, out, blocks) = (params[0], params[1], params[2], params[3]);
    let decoder = Decoder::new(format);
    let zero = e.i64(0);
    e.for_range(zero, blocks, 1, |e, block| {
        let scales = e.at(scales, block, scale_bytes(format));
        let data = e.at(data, block, data_lines(format) * LINE);
        let out = e.at(out, block, DECODED_BLOCK);
        let magic = e.splat_f32(-MAGIC);
        for quad in 0..QUADS {
            let w = decoder.row_scales(e, scales, quad);
            e.store(w, out, quad * 16);
            let negative = e.fmul(magic, w);
            e.store(negative, out, LINE + quad * 16);
        }
        for chunk in 0..CHUNKS {
            for quad in 0..QUADS {
                let bytes = decoder.weights(e, data, quad, chunk);
                e.store(bytes, out, DECODED_DATA + chunk * LINE + quad * 16);
            }
        }
    });
}

/// Emits `DecodeWords`.
pub fn decode_words(e: &mut Emit, params: &[Value], format: WeightFormat) {
    let (scales, data, out, blocks) = (params[0], params[1], params[2], params[3]);
    let decoder = Decoder::new(format);
    let zero = e.i64(0);
    e.for_range(zero, blocks, 1, |e, block| {
        let scales = e.at(scales, block, scale_bytes(format));
        let data = e.at(data, block, data_lines(format) * LINE);
        let out = e.at(out, block, WORDS_BLOCK);
        for quad in 0..QUADS {
            let w = decoder.row_scales(e, scales, quad);
            e.store(w, out, quad * 16);
        }
        for chunk in 0..CHUNKS {
            for quad in 0..QUADS {
                let bytes = decoder.weights(e, data, quad, chunk);
                let bytes = decoder.less_bias(e, bytes);
                for (words, line) in words(e, bytes).into_iter().zip([chunk, CHUNKS + chunk]) {
                    e.store(words, out, WORDS_DATA + line * LINE + quad * 16);
                }
            }
        }
    });
}

/// The bytes with an even number, and those with an odd one, as int16.
pub fn words(e: &mut Emit, bytes: Value) -> [Value; 2] {
    let pairs = e.cast(I16X8, bytes);
    let even = e.b.ins().ishl_imm_u(pairs, 8);
    [e.b.ins().sshr_imm_u(even, 8), e.b.ins().sshr_imm_u(pairs, 8)]
}

/// Tokens whose accumulators fit the sixteen 128-bit registers.
const TOKENS_PER_PASS: usize = 3;

/// Emits `GemmQ8`.
pub fn gemm(e: &mut Emit, params: &[Value], kind: Decoded, tiles: usize, tokens: usize, vnni: bool) {
    let (weights, panel, sums, blocks, stride, gap) =
        (params[0], params[1], params[2], params[3], params[4], params[5]);
    e.for_count(tiles, |e, tile| {
        let weights = e.at(weights, tile, kind.tile_bytes());
        let skipped = e.b.ins().imul(tile, gap);
        let sums = e.add(sums, skipped);
        e.for_count(QUADS, |e, quad| {
            let weights = e.at(weights, quad, 16);
            let sums = e.at(sums, quad, 4 * LANES);
            for first in (0..tokens).step_by(TOKENS_PER_PASS) {
                let count = (tokens - first).min(TOKENS_PER_PASS);
                let places: Vec<Value> = (first..first + count)
                    .map(|token| {
                        let skipped = e.mul_imm(stride, token as i64);
                        e.add(sums, skipped)
                    })
                    .collect();
                let init: Vec<Value> = places.iter().map(|place| e.load(F32X4, *place, 0)).collect();
                let zero = e.i64(0);
                let done = e.for_carry(zero, blocks, 1, &init, |e, block, acc| {
                    let weights = e.at(weights, block, kind.block_bytes());
                    let panel = e.at(panel, block, kind.panel().block);
                    match kind {
                        Decoded::U8Pairwise | Decoded::I16 => {
                            pairs_block(e, weights, panel, first, acc, kind)
                        }
                        _ => gemm_block(e, weights, panel, first, acc, kind.is_small(), vnni),
                    }
                });
                for (place, sum) in places.iter().zip(done) {
                    e.store(sum, *place, 0);
                }
            }
        });
    });
}

/// Emits `GemmDecode`.
pub fn gemm_decode(e: &mut Emit, params: &[Value], overlap: Overlap, vnni: bool) {
    let [blocks, stride, gap] =
        [CHUNK_BLOCKS, overlap.stride, overlap.gap].map(|number| e.i64(number as i64));
    let (gemm_params, decode_params) = params.split_at(3);
    gemm(e, &[gemm_params, &[blocks, stride, gap]].concat(), Decoded::U8Max24Pow2, 2, overlap.tokens, vnni);
    decode(e, &[decode_params, &[blocks]].concat(), WeightFormat::Mxfp4);
}

/// One block of four rows by a few tokens from number `first`, products added in pairs.
fn pairs_block(
    e: &mut Emit,
    weights: Value,
    panel: Value,
    first: usize,
    acc: &[Value],
    kind: Decoded,
) -> Vec<Value> {
    let layout = kind.panel();
    let w = e.load(F32X4, weights, 0);
    let rows = acc.iter().enumerate();
    rows.map(|(i, acc)| {
        let row = first + i;
        let int = if kind == Decoded::I16 {
            let mut int = e.splat_i32(0);
            for line in 0..BLOCK / 2 {
                let w = e.load(I16X8, weights, WORDS_DATA + line * LINE);
                let two = e.load(I32, panel, row * layout.row + line * 4);
                let splat = e.splat(two);
                let a = e.cast(I16X8, splat);
                let products = e.madd(w, a);
                int = e.b.ins().iadd(int, products);
            }
            int
        } else {
            let start = e.load(I32, panel, layout.starts + row * 4);
            let splat = e.splat(start);
            let halves = e.cast(I16X8, splat);
            let mut int = e.pairs(halves);
            for line in 0..BLOCK / 4 {
                let w = e.load(I8X16, weights, DECODED_DATA + line * LINE);
                let four = e.load(I32, panel, row * layout.row + line * 4);
                let splat = e.splat(four);
                let a = e.cast(I8X16, splat);
                int = e.dot_small_u8_i8(int, w, a, false);
            }
            int
        };
        let float = e.b.ins().fcvt_from_sint(F32X4, int);
        let scaled = e.fmul(float, w);
        let a_scale = e.load_splat(panel, layout.scales + row * 4);
        e.fma(scaled, a_scale, *acc)
    })
    .collect()
}

/// One block of four rows by a few tokens from number `first`.
fn gemm_block(
    e: &mut Emit,
    weights: Value,
    panel: Value,
    first: usize,
    acc: &[Value],
    small: bool,
    vnni: bool,
) -> Vec<Value> {
    let mut ints: Vec<Value> = (first..first + acc.len())
        .map(|token| {
            let start = e.load(I32, panel, PANEL_STARTS + token * 4);
            e.splat(start)
        })
        .collect();
    for line in 0..BLOCK / 4 {
        let w = e.load(I8X16, weights, DECODED_DATA + line * LINE);
        for (i, int) in ints.iter_mut().enumerate() {
            let four = e.load(I32, panel, (first + i) * BLOCK + line * 4);
            let splat = e.splat(four);
            let a = e.cast(I8X16, splat);
            *int = if small { e.dot_small_u8_i8(*int, w, a, vnni) } else { e.dot_u8_i8(*int, w, a, vnni) };
        }
    }
    let w = e.load(F32X4, weights, 0);
    let negative = e.load(F32X4, weights, LINE);
    ints.iter()
        .zip(acc)
        .enumerate()
        .map(|(i, (int, acc))| {
            let float = e.cast(F32X4, *int);
            let scaled = e.fma(float, w, negative);
            let a_scale = e.load_splat(panel, PANEL_SCALES + (first + i) * 4);
            e.fma(scaled, a_scale, *acc)
        })
        .collect()
}
