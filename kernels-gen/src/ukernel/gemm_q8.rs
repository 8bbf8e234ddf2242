//! Tiles for many tokens: weights are decoded once into scratch, then multiplied with panels of activations.
//!
//! - decode: `fn(scales: *const u8, data: *const u8, out: *mut u8, blocks: u64)`: `blocks` blocks of one
//!   packed tile, from the given places in its scale and data planes, to [`Decoded::block_bytes`] bytes each:
//!   for each part of the block that has a scale a line of 16 f32 `w` (the weight scale, halved for mxfp4),
//!   a line of 16 f32 `-MAGIC * w`, and where the format has minima a line of those; then 8 lines of 16 rows
//!   x 4 unsigned bytes, as int8 tiles have them. Where scales have units, a fifth parameter is the place of
//!   those of the first block, which is the first of its units.
//! - decode words: the same of a tile of larger integers, without the lines of `-MAGIC * w`, and with 16
//!   lines of 16 rows x 2 signed int16: line q those of 4q and 4q + 2, line 8 + q those of 4q + 1 and 4q + 3.
//! - gemm: `fn(weights: *const u8, panel: *const u8, sums: *mut f32, blocks: u64, stride: u64, gap: u64)`:
//!   adds `blocks` blocks of one or two decoded tiles, [`Decoded::tile_bytes`] apart, times a panel of
//!   `tokens` rows, to `sums`: 16 f32 per token and tile, tokens `stride` bytes apart, tiles `gap` bytes.
//!   "blockdot" and "affinedot" of docs/dev/numerics.md, continued.
//!
//! A panel block ([`PanelLayout`]) is 32 int8 per token, then a f32 scale per token, then a starting value
//! per token and part: the bits of [`MAGIC`] less the correction for unsigned weights; and where weights have
//! minima, for each part and token the sum of activations times the scale. An int32 accumulator that
//! starts there holds, read as a f32, `MAGIC + isum` exactly (|isum| <= 32 * 127 * 128 < 2^22), so `fma(acc,
//! w, -MAGIC * w)` is `isum * w` rounded once: w has at most 19 significant bits (an f16, or one times a
//! byte), and MAGIC has two, which makes `MAGIC * w` exact. That saves a conversion per block, token and row.
//!
//! So it is where four products of bytes are added to 32 bits at once ([`DotStep::K4`]). Where only two are,
//! to 16 bits, panels differ ([`DotStep::K2`]):
//! - for [`DecodedNumber::U8Pairwise`], the starting value is two int16: what unsigned weights make too much
//!   of the products of 4q and 4q + 1, and of 4q + 2 and 4q + 3, negated. Sums wrap around on the way, but
//!   starting there those of a half's 16 products end as what they are: 16 * 12 * 128 < 2^15.
//! - for [`DecodedNumber::I16`], a row is int16 in the order of the decoded lines, and there are no starting
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
use crate::ukernel::block::data_lines;
use crate::ukernel::decode::{CHUNKS, Decoder, ScalePlaces};
use crate::ukernel::dot_q8::QUADS;
use cranelift_codegen::ir::types::{F32X4, I8X16, I16X8, I32};
use cranelift_codegen::ir::{InstBuilder, Value};
use kernmill_plan::format::{BLOCK, LINE, SUPERBLOCK, Scale, WeightFormat};
use kernmill_plan::target::{Features, Level};
use std::collections::BTreeSet;

/// Rows of a panel.
pub const GROUP: usize = 6;
/// Blocks of a decoded tile at most: two tiles of them and a panel fit the smallest L1 of 32 KiB.
pub const CHUNK_BLOCKS: usize = 15;
/// Where blocks have more than one scale for each row, or minima: whole superblocks.
const LONG_CHUNK: usize = 2 * SUPERBLOCK / BLOCK;
/// 1.5 * 2^23: consecutive floats around it are consecutive integers.
pub const MAGIC: f32 = 12_582_912.0;

/// The layout of decoded weights that a gemm micro-kernel may rely on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Decoded {
    /// The numbers.
    pub number: DecodedNumber,
    /// Scales of a row's block: 1, or 2 for its halves.
    pub parts: usize,
    /// Whether there is a minimum beside each scale.
    pub minima: bool,
}

/// Decoded numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DecodedNumber {
    /// Bytes 1..=255: integers in [-127, 127] with 128 added. A version may flip the upper bit of each, and
    /// has signed weights.
    U8,
    /// Bytes 0..=63.
    U8Max63,
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

    /// Numbers that its products take.
    pub fn numbers(self) -> &'static [DecodedNumber] {
        use DecodedNumber::*;
        match self {
            DotStep::K4 => &[U8, U8Max63, U8Max24, U8Max24Pow2],
            DotStep::K2 => &[U8Pairwise, I16],
        }
    }

    /// The layout of a format's decoded tiles.
    ///
    /// # Panics
    /// When the format decodes to bytes above 63 that are not integers with 128 added: no micro-kernel
    /// multiplies such bytes.
    pub fn decoded(self, format: WeightFormat) -> Decoded {
        let parts = format.parts();
        let largest = parts.largest();
        assert!(largest <= 63 || parts.bias() == 128, "{format:?}: bytes above 63 need a bias of 128");
        // Sixteen products of integers with int8.
        let integers = parts.bias().max(i32::from(largest) - parts.bias());
        let fits_words = largest <= 24 && integers <= 15;
        let number = match self {
            DotStep::K4 if largest > 63 => DecodedNumber::U8,
            DotStep::K4 if largest > 24 => DecodedNumber::U8Max63,
            DotStep::K4 if parts.scale == Scale::E8M0 => DecodedNumber::U8Max24Pow2,
            DotStep::K4 => DecodedNumber::U8Max24,
            DotStep::K2 if fits_words && parts.parts() == 1 => DecodedNumber::U8Pairwise,
            DotStep::K2 => DecodedNumber::I16,
        };
        Decoded { number, parts: parts.parts(), minima: parts.has_minimum() }
    }
}

/// A block of a panel: offsets and sizes in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PanelLayout {
    /// A row's activations.
    pub row: usize,
    /// A f32 for each row.
    pub scales: usize,
    /// A starting value for each part and row, if numbers are bytes.
    pub starts: usize,
    /// A sum of activations times their scale for each part and row, if there are minima.
    pub sums: usize,
    /// The whole block.
    pub block: usize,
}

impl Decoded {
    /// Numbers with one scale for a block, and no minimum.
    pub const fn plain(number: DecodedNumber) -> Decoded {
        Decoded { number, parts: 1, minima: false }
    }

    /// The layouts of all formats, for tests and listings.
    pub fn all() -> BTreeSet<Decoded> {
        let of = |step: DotStep| WeightFormat::blocked().map(move |format| step.decoded(format));
        of(DotStep::K4).chain(of(DotStep::K2)).collect()
    }

    /// Whether these are bytes of at most 63, so that two products with int8 add up in 16 bits.
    pub fn is_small(self) -> bool {
        !matches!(self.number, DecodedNumber::U8 | DecodedNumber::I16)
    }

    /// Lines of a part's scales, and what is derived from them.
    fn part_lines(self) -> usize {
        1 + usize::from(self.number != DecodedNumber::I16) + usize::from(self.minima)
    }

    /// Offset of a part's scales in a decoded block.
    pub fn scales(self, part: usize) -> usize {
        part * self.part_lines() * LINE
    }

    /// Offset of a part's `-MAGIC * w`, where numbers are bytes.
    pub fn negatives(self, part: usize) -> usize {
        self.scales(part) + LINE
    }

    /// Offset of a part's minima.
    pub fn minima(self, part: usize) -> usize {
        self.scales(part + 1) - LINE
    }

    /// Offset of the lines of numbers.
    pub fn data(self) -> usize {
        self.scales(self.parts)
    }

    /// Bytes of a decoded block.
    pub fn block_bytes(self) -> usize {
        self.data() + BLOCK / if self.number == DecodedNumber::I16 { 2 } else { 4 } * LINE
    }

    /// Blocks of a decoded tile at most.
    pub fn tile_blocks(self) -> usize {
        if self.parts > 1 || self.minima { LONG_CHUNK } else { CHUNK_BLOCKS }
    }

    /// Bytes from one decoded tile to the next.
    pub fn tile_bytes(self) -> usize {
        self.tile_blocks() * self.block_bytes()
    }

    /// Blocks of a format that are decoded at a time: whole superblocks, where scales have units.
    pub fn chunk_blocks(self, format: WeightFormat) -> usize {
        self.tile_blocks() / (format.parts().columns() / BLOCK) * (format.parts().columns() / BLOCK)
    }

    /// Layout of the panels that are multiplied with such weights.
    pub fn panel(self) -> PanelLayout {
        let (row, starts) =
            if self.number == DecodedNumber::I16 { (2 * BLOCK, 0) } else { (BLOCK, self.parts) };
        let scales = GROUP * row;
        let starts_at = scales + GROUP * 4;
        let sums = starts_at + starts * GROUP * 4;
        let end = sums + if self.minima { self.parts * GROUP * 4 } else { 0 };
        PanelLayout { row, scales, starts: starts_at, sums, block: end.next_multiple_of(LINE) }
    }

    /// Name in listings.
    pub fn name(self) -> String {
        let number = match self.number {
            DecodedNumber::U8 => "byte",
            DecodedNumber::U8Max63 => "six",
            DecodedNumber::U8Max24 => "small",
            DecodedNumber::U8Max24Pow2 => "power",
            DecodedNumber::U8Pairwise => "pair",
            DecodedNumber::I16 => "word",
        };
        let halves = if self.parts == 2 { "_halves" } else { "" };
        format!("{number}{halves}{}", if self.minima { "_minima" } else { "" })
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

/// Emits `Decode` and `DecodeWords`.
pub fn decode(e: &mut Emit, params: &[Value], format: WeightFormat, decoded: Decoded) {
    let (data, out, blocks) = (params[1], params[2], params[3]);
    let (decoder, parts) = (Decoder::new(format), format.parts());
    let places = ScalePlaces::new(params[0], params[if parts.is_super() { 4 } else { 0 }]);
    let zero = e.i64(0);
    e.for_range(zero, blocks, 1, |e, block| {
        let places = places.block(e, format, block);
        let data = e.at(data, block, data_lines(format) * LINE);
        let out = e.at(out, block, decoded.block_bytes());
        let magic = e.splat_f32(-MAGIC);
        for part in 0..parts.parts() {
            for quad in 0..QUADS {
                let w = decoder.row_scales(e, places, quad, part);
                e.store(w, out, decoded.scales(part) + quad * 16);
                if decoded.number != DecodedNumber::I16 {
                    let negative = e.fmul(magic, w);
                    e.store(negative, out, decoded.negatives(part) + quad * 16);
                }
                if decoded.minima {
                    let minima = decoder.row_minima(e, places, quad, part);
                    e.store(minima, out, decoded.minima(part) + quad * 16);
                }
            }
        }
        for chunk in 0..CHUNKS {
            for quad in 0..QUADS {
                let bytes = decoder.weights(e, data, quad, chunk);
                if decoded.number != DecodedNumber::I16 {
                    e.store(bytes, out, decoded.data() + chunk * LINE + quad * 16);
                    continue;
                }
                let bytes = decoder.less_bias(e, bytes);
                for (words, line) in words(e, bytes).into_iter().zip([chunk, CHUNKS + chunk]) {
                    e.store(words, out, decoded.data() + line * LINE + quad * 16);
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
                    let mut acc = acc.to_vec();
                    for part in 0..kind.parts {
                        multiply_part(e, [weights, panel], first, &mut acc, (kind, part), vnni);
                    }
                    acc
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
    let (format, power) = (WeightFormat::Mxfp4, DotStep::K4.decoded(WeightFormat::Mxfp4));
    gemm(e, &[gemm_params, &[blocks, stride, gap]].concat(), power, 2, overlap.tokens, vnni);
    decode(e, &[decode_params, &[blocks]].concat(), format, power);
}

/// A part of a block of four rows by a few tokens from number `first`.
fn multiply_part(
    e: &mut Emit,
    [weights, panel]: [Value; 2],
    first: usize,
    acc: &mut [Value],
    (kind, part): (Decoded, usize),
    vnni: bool,
) {
    let layout = kind.panel();
    let place = |row: usize| 4 * (part * GROUP + row);
    let lines = BLOCK / 4 / kind.parts;
    let lines = part * lines..(part + 1) * lines;
    let w = e.load(F32X4, weights, kind.scales(part));
    for (i, acc) in acc.iter_mut().enumerate() {
        let row = first + i;
        let splat = |e: &mut Emit, offset: usize| {
            let dword = e.load(I32, panel, offset);
            e.splat(dword)
        };
        let scaled = match kind.number {
            DecodedNumber::I16 => {
                let mut int = e.splat_i32(0);
                for line in lines.clone().flat_map(|line| [line, BLOCK / 4 + line]) {
                    let w = e.load(I16X8, weights, kind.data() + line * LINE);
                    let two = splat(e, row * layout.row + line * 4);
                    let a = e.cast(I16X8, two);
                    let products = e.madd(w, a);
                    int = e.b.ins().iadd(int, products);
                }
                let float = e.b.ins().fcvt_from_sint(F32X4, int);
                e.fmul(float, w)
            }
            number => {
                let start = splat(e, layout.starts + place(row));
                let pairwise = number == DecodedNumber::U8Pairwise;
                let mut int = start;
                if pairwise {
                    let halves = e.cast(I16X8, start);
                    int = e.pairs(halves);
                }
                for line in lines.clone() {
                    let w = e.load(I8X16, weights, kind.data() + line * LINE);
                    let four = splat(e, row * layout.row + line * 4);
                    let a = e.cast(I8X16, four);
                    let vnni = vnni && !pairwise;
                    int = match kind.is_small() {
                        true => e.dot_small_u8_i8(int, w, a, vnni),
                        false => e.dot_u8_i8(int, w, a, vnni),
                    };
                }
                if pairwise {
                    let float = e.b.ins().fcvt_from_sint(F32X4, int);
                    e.fmul(float, w)
                } else {
                    let negative = e.load(F32X4, weights, kind.negatives(part));
                    let float = e.cast(F32X4, int);
                    e.fma(float, w, negative)
                }
            }
        };
        let a_scale = e.load_splat(panel, layout.scales + row * 4);
        *acc = e.fma(scaled, a_scale, *acc);
        if kind.minima {
            let minimum = e.load(F32X4, weights, kind.minima(part));
            let sum = e.load_splat(panel, layout.sums + place(row));
            *acc = e.fma(minimum, sum, *acc);
        }
    }
}
