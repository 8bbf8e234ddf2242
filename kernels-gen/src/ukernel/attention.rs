//! Attention's inner tiles over KV blocks of 16 tokens and one KV head, for a group of query heads of one or
//! more tokens ([`QueryHeads`]).
//!
//! Both take a list of pointers to the same plane of consecutive blocks, which lie apart in memory. Versions
//! may prefetch from the pointer [`BLOCKS_AHEAD`] behind each of them, because the CPU does not find blocks
//! that lie apart itself.
//!
//! - score: `fn(k: *const *const u8, q: *const f32, out: *mut f32, blocks: u64)`: each `k[b]` is
//!   `[head_dim][16]`, `q` of each token `[group][head_dim]`; `out[g][16 * b..]` of each query, rows
//!   [`SCORE_STRIDE`] bytes apart, receives 16 scaled scores ("dot4" per key) of each block.
//! - value: `fn(v: *const *const u8, p: *const f32, o: *mut f32, blocks: u64, first: u64, end: u64)`: each
//!   `v[b]` is `[16][head_dim]`; for tokens `first..end`, counted from the first block on, ascending,
//!   `o[g][d] = fma(p[g][token], v[token][d], o[g][d])`; rows of `p` are [`SCORE_STRIDE`] apart, `o` of each
//!   token is `[group][head_dim]`. Values of other tokens are never read. The range is empty, or begins in
//!   the first block and ends in the last.

use crate::emit::{Emit, LANES};
use cranelift_codegen::ir::types::{F32X4, I64};
use cranelift_codegen::ir::{InstBuilder, Value};
use kernmill_plan::format::LINE;
use kernmill_plan::kv::{BLOCK_TOKENS, KvFormat};
use kernmill_plan::numeric::ATTENTION_SEGMENT;
use std::fmt;

/// Bytes between the score rows of two query heads: one segment of f32, and a line more, so that a column of
/// many rows spreads over the sets of a cache.
pub const SCORE_STRIDE: usize = ATTENTION_SEGMENT * 4 + LINE;
/// Pointers in a list from a block to the one that is prefetched while it is worked on: those of a segment.
/// While scores are computed, the segment's values are fetched, and with the values the keys of the segment
/// that comes next. So memory has work all the time; and both fit in L2.
pub const BLOCKS_AHEAD: usize = ATTENTION_SEGMENT / BLOCK_TOKENS;

/// Query heads that read the same keys and values: a group of each of one or more tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QueryHeads {
    /// Query heads of a token.
    pub group: usize,
    /// Tokens.
    pub tokens: usize,
    /// Bytes from the first head of a token to that of the next one, in f32 rows of `head_dim`.
    pub stride: usize,
}

impl QueryHeads {
    /// The query heads of one token.
    pub fn of_token(group: usize) -> QueryHeads {
        QueryHeads { group, tokens: 1, stride: 0 }
    }

    /// How many query heads there are in all.
    pub fn rows(self) -> usize {
        self.tokens * self.group
    }

    /// Bytes from the first query head to another one.
    pub fn place(self, row: usize, head_dim: usize) -> usize {
        row / self.group * self.stride + row % self.group * head_dim * 4
    }
}

impl fmt::Display for QueryHeads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let QueryHeads { group, tokens, stride } = self;
        match tokens {
            1 => write!(f, "g{group}"),
            _ => write!(f, "g{group}x{tokens}_b{stride}"),
        }
    }
}

/// Vectors of columns that are accumulated together.
const VALUE_VECTORS: usize = 2;

fn load4(e: &mut Emit, elem: KvFormat, ptr: Value, offset: usize) -> Value {
    match elem {
        KvFormat::F16 => e.load_f16x4(ptr, offset * 2),
        KvFormat::F32 => e.load(F32X4, ptr, offset * 4),
        KvFormat::Fp8 => e.load_fp8x4(ptr, offset),
        // Scores and values of formats with scales are sums of integers.
        KvFormat::Int8 | KvFormat::Int4 => e.splat_f32(0.0),
    }
}

/// Calls `body` with the number of each block and its pointer in `list`.
pub(super) fn each_block(
    e: &mut Emit,
    list: Value,
    blocks: Value,
    body: impl FnOnce(&mut Emit, Value, Value),
) {
    let zero = e.i64(0);
    e.for_range(zero, blocks, 1, |e, block| {
        let entry = e.at(list, block, 8);
        let plane = e.load(I64, entry, 0);
        body(e, block, plane);
    });
}

pub fn score(
    e: &mut Emit,
    params: &[Value],
    elem: KvFormat,
    head_dim: usize,
    queries: QueryHeads,
    scale: f32,
) {
    let (q, out) = (params[1], params[2]);
    each_block(e, params[0], params[3], |e, block, k| {
        let out = e.at(out, block, BLOCK_TOKENS * 4);
        e.for_count(queries.tokens, |e, token| {
            let q = e.at(q, token, queries.stride);
            let out = e.at(out, token, queries.group * SCORE_STRIDE);
            score_block(e, [k, q, out], elem, head_dim, queries.group, scale);
        });
    });
}

fn score_block(
    e: &mut Emit,
    [k, q, out]: [Value; 3],
    elem: KvFormat,
    head_dim: usize,
    group: usize,
    scale: f32,
) {
    // Two query heads share each decoded key vector: 8 accumulators, and room for the operands.
    let per_pass = if group.is_multiple_of(2) { 2 } else { 1 };
    e.for_count(BLOCK_TOKENS / LANES, |e, quad| {
        let k = e.at(k, quad, elem.elements_bytes(LANES));
        let out = e.at(out, quad, LANES * 4);
        let (zero, end) = (e.i64(0), e.i64(group as i64));
        e.for_range(zero, end, per_pass as i64, |e, g| {
            let q = e.at(q, g, head_dim * 4);
            let out = e.at(out, g, SCORE_STRIDE);
            let init = vec![e.splat_f32(0.0); 4 * per_pass];
            let (start, end) = (e.i64(0), e.i64((head_dim / 4) as i64));
            let acc = e.for_carry(start, end, 1, &init, |e, four, acc| {
                let mut acc = acc.to_vec();
                let k = e.at(k, four, elem.elements_bytes(4 * BLOCK_TOKENS));
                let q = e.at(q, four, 16);
                for j in 0..4 {
                    let keys = load4(e, elem, k, j * BLOCK_TOKENS);
                    for h in 0..per_pass {
                        let a = e.load_splat(q, h * head_dim * 4 + j * 4);
                        acc[h * 4 + j] = e.fma(keys, a, acc[h * 4 + j]);
                    }
                }
                acc
            });
            let factor = e.splat_f32(scale);
            for (h, acc) in acc.chunks(4).enumerate() {
                let (a, b) = (e.fadd(acc[0], acc[1]), e.fadd(acc[2], acc[3]));
                let sum = e.fadd(a, b);
                let scaled = e.fmul(sum, factor);
                e.store(scaled, out, h * SCORE_STRIDE);
            }
        });
    });
}

pub fn value(e: &mut Emit, params: &[Value], elem: KvFormat, head_dim: usize, queries: QueryHeads) {
    let (p, o, first, end) = (params[1], params[2], params[4], params[5]);
    each_block(e, params[0], params[3], |e, block, v| {
        let (zero, all) = (e.i64(0), e.i64(BLOCK_TOKENS as i64));
        let before = e.mul_imm(block, BLOCK_TOKENS as i64);
        let first = e.b.ins().isub(first, before);
        let first = e.b.ins().smax(first, zero);
        let end = e.b.ins().isub(end, before);
        let end = e.b.ins().smin(end, all);
        let p = e.at(p, before, 4);
        e.for_count(queries.tokens, |e, token| {
            let p = e.at(p, token, queries.group * SCORE_STRIDE);
            let o = e.at(o, token, queries.stride);
            value_block(e, [v, p, o], first, end, elem, head_dim, queries.group);
        });
    });
}

fn value_block(
    e: &mut Emit,
    [v, p, o]: [Value; 3],
    first: Value,
    end: Value,
    elem: KvFormat,
    head_dim: usize,
    group: usize,
) {
    // Eight lanes of four columns per decoded value: two column vectors by up to four heads are accumulated
    // in registers.
    let heads = [4, 2, 1].into_iter().find(|h| group.is_multiple_of(*h)).expect("1 divides");
    let vectors = VALUE_VECTORS;
    e.for_count(head_dim / (LANES * vectors), |e, column| {
        let v = e.at(v, column, elem.elements_bytes(LANES * vectors));
        let o = e.at(o, column, LANES * vectors * 4);
        let (zero, groups) = (e.i64(0), e.i64(group as i64));
        e.for_range(zero, groups, heads as i64, |e, g| {
            let p = e.at(p, g, SCORE_STRIDE);
            let o = e.at(o, g, head_dim * 4);
            let place = |h: usize, c: usize| h * head_dim * 4 + c * LANES * 4;
            let init: Vec<Value> =
                (0..heads * vectors).map(|i| e.load(F32X4, o, place(i / vectors, i % vectors))).collect();
            let sums = e.for_carry(first, end, 1, &init, |e, token, acc| {
                let mut acc = acc.to_vec();
                let v = e.at(v, token, elem.elements_bytes(head_dim));
                let p = e.at(p, token, 4);
                let columns: [Value; VALUE_VECTORS] = std::array::from_fn(|c| load4(e, elem, v, c * LANES));
                for h in 0..heads {
                    let weight = e.load_splat(p, h * SCORE_STRIDE);
                    for (c, column) in columns.iter().enumerate() {
                        let i = h * vectors + c;
                        acc[i] = e.fma(weight, *column, acc[i]);
                    }
                }
                acc
            });
            for (i, sum) in sums.into_iter().enumerate() {
                e.store(sum, o, place(i / vectors, i % vectors));
            }
        });
    });
}
