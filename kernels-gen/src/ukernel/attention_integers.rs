//! Scores of formats whose keys are integers.
//!
//! - query: `fn(q: *const f32, out: *mut u8)`: a group of query heads, `[group][head_dim]`, rounded to int8
//!   (`quantize_head`): their integers, `[group][head_dim]` bytes; a factor for each head, f32 `[group]`, the
//!   head's scale times that of the scores; i32 `[group]` sums of the integers, times minus what the keys'
//!   words have added to each of theirs.
//! - integer score: `fn(k: *const *const u8, q: *const u8, out: *mut f32, blocks: u64)`: each `k[b]` is f32
//!   `[16]` scales and words ([`kernmill_plan::kv::Words`]), `q` what the one above has written;
//!   `out[g][16 * b..]`, rows [`SCORE_STRIDE`] bytes apart, receives `(f32(sum) * scale) * factor` of each
//!   token. The integer sum is exact.

use super::attention::{SCORE_STRIDE, each_block};
use crate::emit::{Emit, LANES};
use crate::integers::{self, Rounding};
use cranelift_codegen::ir::types::{F32X4, I8X16, I16X8, I32, I32X4};
use cranelift_codegen::ir::{InstBuilder, Value};
use kernmill_plan::kv::{BLOCK_TOKENS, KvFormat};

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
