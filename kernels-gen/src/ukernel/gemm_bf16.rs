//! MXFP4 by bf16 activations: weights are decoded once into scratch, then multiplied with panels of
//! activations. "tiledot" of docs/dev/numerics.md, for any number of tokens.
//!
//! - tiles on, tiles off: `fn()`: around any number of the others. They configure and release the tiles that
//!   the AMX version of gemm needs, and do nothing elsewhere.
//! - decode: `fn(scales: *const u8, data: *const u8, out: *mut u8, blocks: u64, ahead: *const u8)`: `blocks`
//!   blocks of one packed MXFP4 tile, from the given places in its scale and data planes, to
//!   [`DECODED_BLOCK`] bytes each: 16 lines of 2 k, the layout of bf16 tiles, which is that of the second
//!   operand of `tdpbf16ps`. A value times its scale is exact. `ahead` is where the data of the next call
//!   will be; versions may prefetch `blocks` blocks from there, and never load.
//! - gemm: `fn(weights: *const u8, panel: *const u8, sums: *mut f32, blocks: u64, tokens: u64)`: adds
//!   `blocks` blocks of one or two decoded tiles, [`DECODED_TILE`] bytes apart, times a panel of 1 to `16 *
//!   groups` rows, to `sums`: 16 f32 per token and tile, tokens `stride` bytes apart, tiles `gap` bytes. Sums
//!   of rows from `tokens` to `16 * groups` may be overwritten: tiles hold 16 rows.
//!
//! A panel block is [`PANEL_BLOCK`] bytes: 32 bf16 per row. Nothing of a row decides over another row's sums.
//!
//! Denormals, which tiles take for zeros: when no nonzero element is below [`SMALL`], every product and hence
//! every sum within a block is a multiple of 2^-126, so that none is denormal and plain fmas do. Versions
//! look, and flush every step only otherwise.

use crate::emit::{Emit, LANES};
use crate::ukernel::block::{data_lines, scale_bytes};
use crate::ukernel::decode::{CHUNKS, Decoder, ScalePlaces};
use crate::ukernel::dot_q8::QUADS;
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::types::{F32X4, I16X8, I32, I32X4};
use cranelift_codegen::ir::{InstBuilder, Value};
use kernmill_plan::format::{BLOCK, LINE, TILE_ROWS, WeightFormat};

/// Rows of a tile register.
pub const GROUP: usize = 16;
/// Rows of a panel.
pub const PANEL_ROWS: usize = 2 * GROUP;
/// Bytes of a row in a panel's block.
pub const ROW_BYTES: usize = BLOCK * 2;
/// Bytes of a panel's block.
pub const PANEL_BLOCK: usize = PANEL_ROWS * ROW_BYTES;
/// Bytes of a decoded block: 32 k of 16 rows.
pub const DECODED_BLOCK: usize = BLOCK * TILE_ROWS * 2;
/// Blocks decoded at a time: two tiles of them stay in L1.
pub const CHUNK_BLOCKS: usize = 15;
/// Bytes from one decoded tile to the next.
pub const DECODED_TILE: usize = CHUNK_BLOCKS * DECODED_BLOCK;
/// 2^-56 as bf16: a bf16 that is not below is a multiple of 2^-63.
pub const SMALL: u16 = (127 - 56) << 7;

/// The shape that a gemm micro-kernel is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Shape {
    /// Decoded tiles, 1 or 2.
    pub tiles: usize,
    /// Groups of 16 rows, 1 or 2.
    pub groups: usize,
    /// Bytes between the sums of tokens.
    pub stride: usize,
    /// Bytes between the sums of tiles.
    pub gap: usize,
}

/// Emits `DecodeBf16`.
pub fn decode(e: &mut Emit, params: &[Value]) {
    let decoder = Decoder::new(WeightFormat::Mxfp4);
    decode_blocks(e, params, DECODED_BLOCK, |e, scales, _| {
        decoder.row_scales(e, ScalePlaces::new(scales, scales), 0, 0)
    });
}

/// Decodes blocks of an MXFP4 tile to bf16, `block_bytes` apart. For four rows each, `scale` is given where
/// their scale bytes are and where their first bf16 go; it returns what the rows' integers, which are twice
/// their values, are multiplied by.
pub fn decode_blocks(
    e: &mut Emit,
    params: &[Value],
    block_bytes: usize,
    scale: impl Fn(&mut Emit, Value, Value) -> Value,
) {
    let (scales, data, out, blocks) = (params[0], params[1], params[2], params[3]);
    let format = WeightFormat::Mxfp4;
    let decoder = Decoder::new(format);
    let zero = e.i64(0);
    e.for_range(zero, blocks, 1, |e, block| {
        let scales = e.at(scales, block, scale_bytes(format));
        let data = e.at(data, block, data_lines(format) * LINE);
        let out = e.at(out, block, block_bytes);
        e.for_count(QUADS, |e, quad| {
            let (scales, data) = (e.at(scales, quad, LANES), e.at(data, quad, LANES * 4));
            let out = e.at(out, quad, LANES * 4);
            let scale = scale(e, scales, out);
            for chunk in 0..CHUNKS {
                let signed = decoder.signed(e, data, chunk);
                for pair in 0..2 {
                    let both = decode_pair(e, signed, scale, pair);
                    e.store(both, out, (chunk * 2 + pair) * LINE);
                }
            }
        });
    });
}

/// Bytes `2 * pair` and the next of each lane, times `scale`, as two bf16.
fn decode_pair(e: &mut Emit, signed: Value, scale: Value, pair: usize) -> Value {
    let words = e.cast(I32X4, signed);
    let bits = |e: &mut Emit, byte: usize| {
        let up = e.b.ins().ishl_imm_u(words, (24 - 8 * byte) as i64);
        let value = e.b.ins().sshr_imm_u(up, 24);
        let value = e.b.ins().fcvt_from_sint(F32X4, value);
        let value = e.fmul(value, scale);
        e.cast(I32X4, value)
    };
    let (low, high) = (bits(e, 2 * pair), bits(e, 2 * pair + 1));
    let low = e.b.ins().ushr_imm_u(low, 16);
    let upper = e.splat_i32(UPPER);
    let high = e.b.ins().band(high, upper);
    e.b.ins().bor(low, high)
}

/// The upper bf16 of two.
const UPPER: i32 = 0xffff_0000_u32 as i32;
/// Tokens whose accumulators fit the sixteen 128-bit registers.
const TOKENS_PER_PASS: i64 = 3;

/// Emits `GemmBf16`.
pub fn gemm(e: &mut Emit, params: &[Value], shape: Shape) {
    let operands = GemmOperands {
        weights: params[0],
        panel: params[1],
        sums: params[2],
        blocks: params[3],
        tokens: params[4],
        shape,
    };
    let small = operands.any_small(e);
    let plain = e.b.ins().bxor_imm_u(small, 1);
    e.if_then(plain, |e| operands.multiply(e, false));
    e.if_then(small, |e| operands.multiply(e, true));
}

/// Parameters of a gemm.
#[derive(Clone, Copy)]
struct GemmOperands {
    weights: Value,
    panel: Value,
    sums: Value,
    blocks: Value,
    tokens: Value,
    shape: Shape,
}

impl GemmOperands {
    /// Whether any element is nonzero and below [`SMALL`].
    fn any_small(&self, e: &mut Emit) -> Value {
        let zero = e.i64(0);
        let none = e.bytes([0xff; 16]);
        let none = e.cast(I16X8, none);
        let least = e.for_carry(zero, self.blocks, 1, &[none], |e, block, least| {
            let mut least = least[0];
            for tile in 0..self.shape.tiles {
                let weights = e.at(self.weights, block, DECODED_BLOCK);
                let weights = e.add_imm(weights, (tile * DECODED_TILE) as i64);
                let end = e.i64(DECODED_BLOCK as i64);
                least = least_of(e, weights, end, least);
            }
            let panel = e.at(self.panel, block, PANEL_BLOCK);
            let end = e.mul_imm(self.tokens, ROW_BYTES as i64);
            vec![least_of(e, panel, end, least)]
        })[0];
        // One below, so that zeros are the largest.
        let limit = e.splat_i32(i32::from(SMALL - 1) * 0x1_0001);
        let limit = e.cast(I16X8, limit);
        let below = e.icmp(IntCC::UnsignedLessThan, least, limit);
        e.b.ins().vany_true(below)
    }

    /// Every tile, four rows at a time.
    fn multiply(&self, e: &mut Emit, flush: bool) {
        e.for_count(self.shape.tiles, |e, tile| {
            e.for_count(QUADS, |e, quad| {
                let weights = e.at(self.weights, tile, DECODED_TILE);
                let weights = e.at(weights, quad, 4 * LANES);
                let sums = e.at(self.sums, tile, self.shape.gap);
                let sums = e.at(sums, quad, 4 * LANES);
                let passes = e.i64(TOKENS_PER_PASS);
                let rest = e.b.ins().urem(self.tokens, passes);
                let whole = e.b.ins().isub(self.tokens, rest);
                let zero = e.i64(0);
                for (start, end, count) in [(zero, whole, TOKENS_PER_PASS), (whole, self.tokens, 1)] {
                    e.for_range(start, end, count, |e, first| {
                        let sums = e.at(sums, first, self.shape.stride);
                        let panel = e.at(self.panel, first, ROW_BYTES);
                        self.pass(e, weights, panel, sums, count as usize, flush);
                    });
                }
            });
        });
    }

    /// A few tokens by four rows.
    fn pass(&self, e: &mut Emit, weights: Value, panel: Value, sums: Value, tokens: usize, flush: bool) {
        let place = |token: usize| token * self.shape.stride;
        let init: Vec<Value> = (0..tokens)
            .map(|token| {
                let sum = e.load(F32X4, sums, place(token));
                flushed(e, sum)
            })
            .collect();
        let zero = e.i64(0);
        let done = e.for_carry(zero, self.blocks, 1, &init, |e, block, acc| {
            let weights = e.at(weights, block, DECODED_BLOCK);
            let panel = e.at(panel, block, PANEL_BLOCK);
            let halves = block_sums(e, weights, panel, tokens, flush);
            halves
                .chunks(2)
                .zip(acc)
                .map(|(half, acc)| {
                    let sum = e.fadd(half[0], half[1]);
                    let sum = if flush { flushed(e, sum) } else { sum };
                    let sum = e.fadd(*acc, sum);
                    flushed(e, sum)
                })
                .collect()
        });
        let any = e.icmp(IntCC::NotEqual, self.blocks, zero);
        e.if_then(any, |e| {
            for (token, sum) in done.iter().enumerate() {
                e.store(*sum, sums, place(token));
            }
        });
    }
}

/// Sums of even and odd elements, token by token.
fn block_sums(e: &mut Emit, weights: Value, panel: Value, tokens: usize, flush: bool) -> Vec<Value> {
    let zero = e.splat_f32(0.0);
    let (start, end) = (e.i64(0), e.i64((BLOCK / 2) as i64));
    e.for_carry(start, end, 1, &vec![zero; 2 * tokens], |e, line, sums| {
        let weights = e.at(weights, line, LINE);
        let panel = e.at(panel, line, 4);
        let w = e.load(I32X4, weights, 0);
        let w = halves(e, w, flush);
        let mut next = Vec::with_capacity(sums.len());
        for (token, sums) in sums.chunks(2).enumerate() {
            let a = e.load(I32, panel, token * ROW_BYTES);
            let a = e.splat(a);
            let a = halves(e, a, flush);
            for i in 0..2 {
                let sum = e.fma(a[i], w[i], sums[i]);
                next.push(if flush { flushed(e, sum) } else { sum });
            }
        }
        next
    })
}

/// The lower and the upper bf16 of each lane as f32.
pub fn halves(e: &mut Emit, pairs: Value, flush: bool) -> [Value; 2] {
    let low = e.b.ins().ishl_imm_u(pairs, 16);
    let upper = e.splat_i32(UPPER);
    let high = e.b.ins().band(pairs, upper);
    [low, high].map(|half| {
        let half = e.cast(F32X4, half);
        if flush { flushed(e, half) } else { half }
    })
}

/// Denormals as zeros of their sign.
fn flushed(e: &mut Emit, x: Value) -> Value {
    let bits = e.cast(I32X4, x);
    let magnitude = e.splat_i32(i32::MAX);
    let magnitude = e.b.ins().band(bits, magnitude);
    let magnitude = e.cast(F32X4, magnitude);
    let smallest = e.splat_f32(f32::MIN_POSITIVE);
    let normal = e.b.ins().fcmp(FloatCC::UnorderedOrGreaterThanOrEqual, magnitude, smallest);
    let sign = e.splat_i32(i32::MIN);
    let kept = e.b.ins().bor(normal, sign);
    let bits = e.b.ins().band(bits, kept);
    e.cast(F32X4, bits)
}

/// The least of `least` and of `|x| - 1` of the bf16 at `from`, as u16: zeros count as the largest.
fn least_of(e: &mut Emit, from: Value, bytes: Value, least: Value) -> Value {
    let zero = e.i64(0);
    e.for_carry(zero, bytes, 16, &[least], |e, offset, least| {
        let from = e.add(from, offset);
        let x = e.load(I16X8, from, 0);
        let magnitude = e.splat_i32(0x7fff_7fff);
        let magnitude = e.cast(I16X8, magnitude);
        let x = e.b.ins().band(x, magnitude);
        let ones = e.bytes([0xff; 16]);
        let ones = e.cast(I16X8, ones);
        let x = e.b.ins().iadd(x, ones);
        vec![e.b.ins().umin(least[0], x)]
    })[0]
}
