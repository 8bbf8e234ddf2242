//! MXFP4 by q8 activations, made of products of bf16: "blockdot" of docs/dev/numerics.md, bit for bit.
//!
//! An integer of 8 bits is a bf16 number, and so is a MXFP4 value times its power of two. A block's sum is an
//! integer below 2^16 times that power, which f32 holds in whatever order the 32 products are added. So one
//! product of tiles gives `isum * w` exactly, and one fma by the activation's scale is left.
//!
//! Tiles take numbers below 2^-126 for zeros. The least product of a block is 2^(s - 128), s being the byte
//! of its scale. Bytes 0 and 1 are therefore decoded as [`LEAST_SCALE`], and a factor makes up for it, which
//! is 1 for all other blocks. Products with it are exact, too.
//!
//! - decode: `fn(scales: *const u8, data: *const u8, out: *mut u8, blocks: u64, ahead: *const u8)`: as that
//!   of [`super::gemm_bf16`], but with scales of at least [`LEAST_SCALE`], and behind each block's lines one
//!   of 16 f32, the factors of the rows.
//! - gemm: `fn(weights: *const u8, panel: *const u8, sums: *mut f32, blocks: u64, products: *mut u8)`: adds
//!   `blocks` blocks of a decoded tile times a panel of 16 rows to `sums`: 16 f32 per token, tokens `stride`
//!   bytes apart. Rows that are not there may hold anything, and their sums may become anything. `products`
//!   is memory for [`PRODUCTS`] products of tiles, which versions may use.
//!
//! A panel block is [`PANEL_BLOCK`] bytes: 32 bf16 per row, then a f32 scale per row. Versions for tiles need
//! them on, as [`super::gemm_bf16`] says.

use crate::emit::{Emit, LANES};
use crate::ukernel::dot_q8::QUADS;
use crate::ukernel::gemm_bf16::{decode_blocks, halves};
use cranelift_codegen::ir::types::{F32X4, I32, I32X4};
use cranelift_codegen::ir::{InstBuilder, Value};
use kernmill_plan::format::{BLOCK, LINE, TILE_ROWS};

/// Rows of a panel, which are those of a tile register.
pub const PANEL_ROWS: usize = 16;
/// Bytes of a row in a panel's block.
pub const ROW_BYTES: usize = BLOCK * 2;
/// Offset of a panel block's scales.
pub const PANEL_SCALES: usize = PANEL_ROWS * ROW_BYTES;
/// Bytes of a panel's block.
pub const PANEL_BLOCK: usize = PANEL_SCALES + PANEL_ROWS * 4;
/// Offset of a decoded block's factors.
pub const DECODED_FACTORS: usize = BLOCK * TILE_ROWS * 2;
/// Bytes of a decoded block.
pub const DECODED_BLOCK: usize = DECODED_FACTORS + LINE;
/// Blocks decoded at a time: as many as [`super::gemm_q8::CHUNK_BLOCKS`].
pub const CHUNK_BLOCKS: usize = super::gemm_q8::CHUNK_BLOCKS;
/// Bytes from one decoded tile to the next.
pub const DECODED_TILE: usize = CHUNK_BLOCKS * DECODED_BLOCK;
/// Products of tiles that there is memory for.
pub const PRODUCTS: usize = 6;
/// Bytes of one.
pub const PRODUCT_BYTES: usize = PANEL_ROWS * TILE_ROWS * 4;
/// The least byte of a scale whose products tiles keep.
pub const LEAST_SCALE: u8 = 2;

/// Emits `DecodeTiles`.
pub fn decode(e: &mut Emit, params: &[Value]) {
    decode_blocks(e, params, DECODED_BLOCK, |e, scales, out| {
        let (scale, factor) = scale_and_factor(e, scales);
        e.store(factor, out, DECODED_FACTORS);
        scale
    });
}

/// What the integers of four rows, twice their values, are multiplied with, and what is left to multiply
/// their sums with.
fn scale_and_factor(e: &mut Emit, scales: Value) -> (Value, Value) {
    let low = e.splat_i32(0xff);
    let bytes = e.load_i8x4(scales, 0);
    let bytes = e.b.ins().band(bytes, low);
    let least = e.splat_i32(i32::from(LEAST_SCALE));
    let used = e.b.ins().umax(bytes, least);
    let power = |e: &mut Emit, exponent: Value, bias: i32| {
        let bias = e.splat_i32(bias);
        let biased = e.b.ins().iadd(exponent, bias);
        let bits = e.b.ins().ishl_imm_u(biased, 23);
        e.cast(F32X4, bits)
    };
    let left = e.b.ins().isub(bytes, used);
    (power(e, used, -1), power(e, left, 127))
}

/// Emits `GemmTiles`.
pub fn gemm(e: &mut Emit, params: &[Value], stride: usize) {
    let (weights, panel, sums, blocks) = (params[0], params[1], params[2], params[3]);
    e.for_count(QUADS, |e, quad| {
        let (weights, sums) = (e.at(weights, quad, LANES * 4), e.at(sums, quad, LANES * 4));
        e.for_count(PANEL_ROWS, |e, token| {
            let sums = e.at(sums, token, stride);
            let row = e.at(panel, token, ROW_BYTES);
            let scale = e.at(panel, token, 4);
            let start = e.load(F32X4, sums, 0);
            let zero = e.i64(0);
            let done = e.for_carry(zero, blocks, 1, &[start], |e, block, acc| {
                let weights = e.at(weights, block, DECODED_BLOCK);
                let row = e.at(row, block, PANEL_BLOCK);
                let scale = e.at(scale, block, PANEL_BLOCK);
                let sum = block_sum(e, weights, row);
                let factor = e.load(F32X4, weights, DECODED_FACTORS);
                let sum = e.fmul(sum, factor);
                let scale = e.load_splat(scale, PANEL_SCALES);
                vec![e.fma(sum, scale, acc[0])]
            });
            e.store(done[0], sums, 0);
        });
    });
}

/// The exact sum of a block's products, four rows by one token.
fn block_sum(e: &mut Emit, weights: Value, row: Value) -> Value {
    let zero = e.splat_f32(0.0);
    let (start, end) = (e.i64(0), e.i64((BLOCK / 2) as i64));
    e.for_carry(start, end, 1, &[zero], |e, line, sum| {
        let (weights, pair) = (e.at(weights, line, LINE), e.at(row, line, 4));
        let w = e.load(I32X4, weights, 0);
        let w = halves(e, w, false);
        let a = e.load(I32, pair, 0);
        let a = e.splat(a);
        let a = halves(e, a, false);
        let sum = e.fma(a[0], w[0], sum[0]);
        vec![e.fma(a[1], w[1], sum)]
    })[0]
}
