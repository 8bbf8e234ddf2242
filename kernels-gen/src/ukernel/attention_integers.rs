//! Scores and weighted values of formats whose elements are integers.
//!
//! - query: `fn(q: *const f32, out: *mut u8)`: a group of query heads, `[group][head_dim]`, rounded to int8
//!   (`quantize_head`): their integers, `[group][head_dim]` bytes; a factor for each head, f32 `[group]`, the
//!   head's scale times that of the scores; i32 `[group]` sums of the integers, times minus what the keys'
//!   words have added to each of theirs.
//! - integer score: `fn(k: *const *const u8, q: *const u8, out: *mut f32, blocks: u64)`: each `k[b]` is f32
//!   `[16]` scales and words ([`kernmill_plan::kv::Words`]), `q` what the one above has written;
//!   `out[g][16 * b..]`, rows [`SCORE_STRIDE`] bytes apart, receives `(f32(sum) * scale) * factor` of each
//!   token. The integer sum is exact.
//! - weights: `fn(v: *const *const u8, p: *mut f32, blocks: u64, first: u64, end: u64, out: *mut f32)`:
//!   rows of `p`, [`SCORE_STRIDE`] apart, are `[blocks][16]` scores. Columns `first..end` of them are in
//!   view, one at least; each `v[b]` begins with f32 `[16]` scales. Of each row `out[0][g]` receives the
//!   largest score and `out[1][g]` the sum of the exponentials, as softmax has them. The rows' first halves
//!   become i16 `[blocks][16]`: `exponential * scale`, 0 of an exponential of 0, rounded by
//!   `quantize_weights`, and 0 out of view; `out[2][g]` receives the factor. The rest of the rows is not
//!   defined.
//! - integer value: `fn(v: *const *const u8, p: *const i16, o: *mut i32, blocks: u64, tokens: u64, scratch:
//!   *mut u8)`: each `v[b]` is f32 `[16]` scales and `[16][head_dim]` integers, rows of `p`
//!   `[tokens][group]`, [`SCORE_STRIDE`] apart, are `[blocks][16]` weights that `quantize_weights` gives;
//!   `o[t][g][d]` grows by `p[t][g][position] * v[position][d]` for all positions of the blocks, which are
//!   [`VALUE_BLOCKS`] at most. `scratch` is [`ValueScratch`].

use super::attention::{SCORE_STRIDE, each_block};
use super::softmax::softmax;
use crate::emit::{Emit, LANES};
use crate::floats;
use crate::integers::{self, Rounding};
use cranelift_codegen::ir::condcodes::FloatCC;
use cranelift_codegen::ir::types::{F32X4, I8X16, I16, I16X8, I32, I32X4, I64};
use cranelift_codegen::ir::{InstBuilder, Value};
use kernmill_plan::kv::{BLOCK_TOKENS, KvFormat};
use kernmill_plan::numeric::{LEAST_WEIGHT, ROUND_MAGIC, WEIGHT_MAX};

/// Byte offsets of a rounded group of queries.
#[derive(Clone, Copy, Debug)]
pub struct QueryLayout {
    /// Byte offset of the factors.
    pub factors: usize,
    /// Byte offset of the sums.
    pub sums: usize,
    /// Bytes in all.
    pub bytes: usize,
}

impl QueryLayout {
    /// Layout of `group` heads of `head_dim` elements, a multiple of 4.
    pub fn new(head_dim: usize, group: usize) -> QueryLayout {
        let factors = group * head_dim;
        QueryLayout { factors, sums: factors + group * 4, bytes: factors + group * 8 }
    }
}

pub fn query(e: &mut Emit, params: &[Value], head_dim: usize, group: usize, zero: i32, scale: f32) {
    let (q, out) = (params[0], params[1]);
    let layout = QueryLayout::new(head_dim, group);
    e.for_count(group, |e, g| {
        let (q, own) = (e.at(q, g, head_dim * 4), e.at(out, g, head_dim));
        let rounding = Rounding::of_head(e, q, head_dim, 8);
        let (start, end, none) = (e.i64(0), e.i64((head_dim / LANES) as i64), e.splat_i32(0));
        let sum = e.for_carry(start, end, 1, &[none], |e, four, sum| {
            let (q, own) = (e.at(q, four, LANES * 4), e.at(own, four, LANES));
            let elements = e.load(F32X4, q, 0);
            let rounded = rounding.integers(e, elements);
            let bytes = integers::bytes(e, rounded);
            e.store(bytes, own, 0);
            vec![e.b.ins().iadd(sum[0], rounded)]
        })[0];
        let place = e.at(out, g, 4);
        let factor = e.b.ins().f32const(scale);
        let factor = e.fmul(rounding.scale, factor);
        e.store(factor, place, layout.factors);
        let sum = integers::sum(e, sum);
        let sum = e.b.ins().imul_imm_s(sum, i64::from(-zero));
        e.store(sum, place, layout.sums);
    });
}

pub fn score(e: &mut Emit, params: &[Value], elem: KvFormat, head_dim: usize, group: usize, vnni: bool) {
    let (q, out) = (params[1], params[2]);
    let layout = QueryLayout::new(head_dim, group);
    each_block(e, params[0], params[3], |e, block, k| {
        let out = e.at(out, block, BLOCK_TOKENS * 4);
        e.for_count(BLOCK_TOKENS / LANES, |e, quad| {
            let k = e.at(k, quad, LANES * 4);
            let out = e.at(out, quad, LANES * 4);
            e.for_count(group, |e, g| {
                let (integers, own, out) = (e.at(q, g, head_dim), e.at(q, g, 4), e.at(out, g, SCORE_STRIDE));
                let sum = e.load(I32, own, layout.sums);
                let sum = e.splat(sum);
                let sum = sums(e, elem, [k, integers], sum, head_dim, vnni);
                let (scales, factor) = (e.load(F32X4, k, 0), e.load_splat(own, layout.factors));
                let score = e.b.ins().fcvt_from_sint(F32X4, sum);
                let score = e.fmul(score, scales);
                let score = e.fmul(score, factor);
                e.store(score, out, 0);
            });
        });
    });
}

/// Sums of four tokens' integers times a head's.
fn sums(
    e: &mut Emit,
    elem: KvFormat,
    [k, q]: [Value; 2],
    before: Value,
    head_dim: usize,
    vnni: bool,
) -> Value {
    let elements = elem.words().map_or(LANES, |words| words.elements);
    let (start, end) = (e.i64(0), e.i64((head_dim / elements) as i64));
    e.for_carry(start, end, 1, &[before], |e, line, sum| {
        let (k, q) = (e.at(k, line, 4 * BLOCK_TOKENS), e.at(q, line, elements));
        let keys = e.load(I8X16, k, elem.scales_bytes());
        let query = |e: &mut Emit, at: usize| {
            let query = e.load(I32, q, at);
            let query = e.b.ins().splat(I32X4, query);
            e.cast(I8X16, query)
        };
        let first = query(e, 0);
        if elements == LANES {
            return vec![e.dot_u8_i8(sum[0], keys, first, vnni)];
        }
        let halves = e.bytes([0x0f; 16]);
        let low = e.b.ins().band(keys, halves);
        let high = e.cast(I16X8, keys);
        let high = e.b.ins().ushr_imm_u(high, 4);
        let high = e.cast(I8X16, high);
        let high = e.b.ins().band(high, halves);
        let sum = e.dot_small_u8_i8(sum[0], low, first, vnni);
        let second = query(e, LANES);
        vec![e.dot_small_u8_i8(sum, high, second, vnni)]
    })[0]
}

/// Bytes of a block's weights in a row.
pub const WEIGHTS: usize = BLOCK_TOKENS * 2;
/// Blocks of a call that adds weighted values at most: what is made of them once for all tokens stays in L1.
pub const VALUE_BLOCKS: usize = 8;

/// Byte offsets in the memory that adding weighted values has for itself.
#[derive(Clone, Copy, Debug)]
pub struct ValueScratch {
    /// Byte offset of sums of columns; values come first.
    pub sums: usize,
    /// Byte offset of halves of weights.
    pub weights: usize,
    /// Bytes in all.
    pub bytes: usize,
}

impl ValueScratch {
    /// Columns that are worked on together.
    pub const COLUMNS: usize = 64;

    /// For `group` query heads.
    pub fn new(group: usize) -> ValueScratch {
        let sums = VALUE_BLOCKS * BLOCK_TOKENS * ValueScratch::COLUMNS;
        let weights = sums + ValueScratch::COLUMNS * 4;
        ValueScratch { sums, weights, bytes: weights + group * VALUE_BLOCKS * WEIGHTS }
    }
}

pub fn weights(e: &mut Emit, params: &[Value], group: usize) {
    let &[list, p, blocks, first, end, out] = params else { unreachable!("six parameters") };
    e.for_count(group, |e, g| {
        let (p, max) = (e.at(p, g, SCORE_STRIDE), e.at(out, g, 4));
        let [sum, factor] = [1, 2].map(|number| e.add_imm(max, (number * group * 4) as i64));
        powers(e, [p, blocks, first, end, max, sum]);
        let (start, none, zero) = (e.i64(0), e.splat_i32(0), e.splat_f32(0.0));
        let magnitude = e.splat_i32(0x7fff_ffff);
        let largest = e.for_carry(start, blocks, 1, &[none], |e, block, largest| {
            let (entry, row) = (e.at(list, block, 8), e.at(p, block, BLOCK_TOKENS * 4));
            let scales = e.load(I64, entry, 0);
            let mut largest = largest[0];
            for place in (0..BLOCK_TOKENS * 4).step_by(LANES * 4) {
                let (powers, scales) = (e.load(F32X4, row, place), e.load(F32X4, scales, place));
                let weights = e.fmul(powers, scales);
                let weights = e.lane_select(FloatCC::Equal, powers, zero, zero, weights);
                e.store(weights, row, place);
                let bits = e.cast(I32X4, weights);
                let bits = e.b.ins().band(bits, magnitude);
                largest = e.b.ins().smax(largest, bits);
            }
            vec![largest]
        })[0];
        let swapped = e.swap_halves(largest);
        let largest = e.b.ins().smax(largest, swapped);
        let swapped = e.swap_pairs(largest);
        let largest = e.b.ins().smax(largest, swapped);
        let largest = e.cast(F32X4, largest);
        let largest = e.b.ins().extractlane(largest, 0);
        let most = e.b.ins().f32const(WEIGHT_MAX);
        let whole = e.fdiv(largest, most);
        e.store(whole, factor, 0);
        let inverse = e.fdiv(most, largest);
        let (least, none) = (e.b.ins().f32const(LEAST_WEIGHT), e.b.ins().f32const(0.0));
        let is_small = e.b.ins().fcmp(FloatCC::LessThan, largest, least);
        let inverse = e.select(is_small, none, inverse);
        let inverse = e.splat(inverse);
        let magic = (e.splat_f32(ROUND_MAGIC), e.splat_i32(ROUND_MAGIC.to_bits() as i32));
        let bounds = (e.splat_i32(-(WEIGHT_MAX as i32)), e.splat_i32(WEIGHT_MAX as i32));
        // Integers are written where weights have been read.
        e.for_range(start, blocks, 1, |e, block| {
            let (row, out) = (e.at(p, block, BLOCK_TOKENS * 4), e.at(p, block, WEIGHTS));
            let integers: Vec<Value> = (0..BLOCK_TOKENS * 4)
                .step_by(LANES * 4)
                .map(|place| {
                    let weights = e.load(F32X4, row, place);
                    let scaled = e.fmul(weights, inverse);
                    let shifted = e.fadd(scaled, magic.0);
                    let bits = e.cast(I32X4, shifted);
                    let integers = e.b.ins().isub(bits, magic.1);
                    let integers = e.b.ins().smax(integers, bounds.0);
                    e.b.ins().smin(integers, bounds.1)
                })
                .collect();
            for (pair, place) in integers.chunks_exact(2).zip((0..).step_by(LANES * 4)) {
                let words = e.b.ins().snarrow(pair[0], pair[1]);
                e.store(words, out, place);
            }
        });
    });
}

/// Softmax of a row whose range in view need not begin in its first block, nor end in its last.
fn powers(e: &mut Emit, [row, blocks, first, end, max, sum]: [Value; 6]) {
    let shift = i64::from(BLOCK_TOKENS.trailing_zeros());
    let (start, last) = (e.b.ins().ushr_imm_u(first, shift), e.add_imm(end, -1));
    let last = e.b.ins().ushr_imm_u(last, shift);
    let stop = e.add_imm(last, 1);
    let zero = e.i64(0);
    for (from, to) in [(zero, start), (stop, blocks)] {
        e.for_range(from, to, 1, |e, block| {
            let row = e.at(row, block, BLOCK_TOKENS * 4);
            floats::zero(e, row, BLOCK_TOKENS);
        });
    }
    let (row, before) = (e.at(row, start, BLOCK_TOKENS * 4), e.mul_imm(start, BLOCK_TOKENS as i64));
    let blocks = e.b.ins().isub(stop, start);
    let [first, end] = [first, end].map(|column| e.b.ins().isub(column, before));
    softmax(e, &[row, blocks, first, end, max, sum]);
}

pub fn value(e: &mut Emit, params: &[Value], elem: KvFormat, [head_dim, group, stride]: [usize; 3]) {
    let (start, tokens) = (e.i64(0), params[4]);
    e.for_range(start, tokens, 1, |e, token| {
        let (p, o) = (e.at(params[1], token, group * SCORE_STRIDE), e.at(params[2], token, stride));
        token_values(e, [params[0], p, o, params[3]], elem, head_dim, group);
    });
}

fn token_values(
    e: &mut Emit,
    [list, p, o, blocks]: [Value; 4],
    elem: KvFormat,
    head_dim: usize,
    group: usize,
) {
    // int4 has the next 16 elements in the high halves of the bytes.
    let halves = elem == KvFormat::Int4;
    let (vectors, apart) = if halves { (2, 16) } else { (1, LANES) };
    each_block(e, list, blocks, |e, block, v| {
        let (v, p) = (e.add_imm(v, elem.scales_bytes() as i64), e.at(p, block, WEIGHTS));
        e.for_count(head_dim / (LANES * vectors), |e, column| {
            let v = e.at(v, column, elem.elements_bytes(LANES * vectors));
            let o = if halves {
                // Four pairs of vectors to 32 columns.
                let group = e.b.ins().ushr_imm_u(column, 2);
                let within = e.b.ins().band_imm_u(column, 3);
                let o = e.at(o, group, 2 * apart * 4);
                e.at(o, within, LANES * 4)
            } else {
                e.at(o, column, LANES * 4)
            };
            e.for_count(group, |e, g| {
                let (p, o) = (e.at(p, g, SCORE_STRIDE), e.at(o, g, head_dim * 4));
                let init: Vec<Value> = (0..vectors).map(|c| e.load(I32X4, o, c * apart * 4)).collect();
                let (start, end) = (e.i64(0), e.i64(BLOCK_TOKENS as i64));
                let sums = e.for_carry(start, end, 1, &init, |e, token, sums| {
                    let (v, p) = (e.at(v, token, elem.elements_bytes(head_dim)), e.at(p, token, 2));
                    let weight = e.load(I16, p, 0);
                    let weight = e.b.ins().sextend(I32, weight);
                    let weight = e.splat(weight);
                    let columns = columns(e, elem, v);
                    let products = columns.iter().map(|column| e.b.ins().imul(*column, weight));
                    let products: Vec<Value> = products.collect();
                    sums.iter().zip(products).map(|(sum, product)| e.b.ins().iadd(*sum, product)).collect()
                });
                for (c, sum) in sums.into_iter().enumerate() {
                    e.store(sum, o, c * apart * 4);
                }
            });
        });
    });
}

/// Columns of a value row as integers, four to a vector.
fn columns(e: &mut Emit, elem: KvFormat, v: Value) -> Vec<Value> {
    let bytes = e.load_i8x4(v, 0);
    if elem != KvFormat::Int4 {
        return vec![bytes];
    }
    let (bits, zero) = (e.splat_i32(15), e.splat_i32(8));
    let high = e.b.ins().ushr_imm_u(bytes, 4);
    let codes = [bytes, high].map(|half| e.b.ins().band(half, bits));
    codes.map(|code| e.b.ins().isub(code, zero)).to_vec()
}
