//! Attention over the paged KV cache: work items are (tile of tokens, KV head), each with its group of query
//! heads.
//!
//! Keys are split into segments of 1024 absolute positions. Per segment: scores, their maximum, exponentials
//! and their sum, weighted values; at the end the segments are combined in ascending order
//! (docs/dev/numerics.md).
//!
//! A lone token that sees all positions has too few heads for many workers, and each of them takes long: its
//! segments are separate items, whose results go to scratch that workers share. The worker that finishes the
//! last segment of a head combines them all.
//!
//! A tile's consecutive tokens of one sequence (a run) go through a segment together, a few blocks at a time,
//! so that blocks are in L1 for all of them but the first. Every token takes only blocks that it sees, in
//! ascending order: the order of arithmetic is that of a token alone. Tokens that see the same blocks share
//! their loads, a few of them in a call of a micro-kernel.
//!
//! In small batches items are runs, of any number of sequences: each reads its sequence's keys and values
//! once, as a drafted text's tokens do.

use super::attention_items::{
    AttentionSplit, ItemSegment, block_of, each_run, first_in_view, last_in_view, longest_run, run_from,
    segment_of,
};
use super::attention_scratch::{AttentionScratch, areas, splits};
use super::attention_ukernels::{
    cap_ukernel, combine_ukernel, group, query_ukernel, score_ukernel, tokens_per_call, value_ukernel,
    weights_ukernel,
};
use crate::cx::Cx;
use crate::emit::Emit;
use crate::floats;
use crate::kernel::{AttentionBody, Domain, KvPlane, RowType};
use crate::row_op::site::{ItemResults, ItemShape, OpSite};
use crate::row_op::{RowOpCode, quantize, transform};
use crate::ukernel::{BLOCKS_AHEAD, MicroKernel, SCORE_STRIDE};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value};
use kernmill_plan::format::BLOCK;
use kernmill_plan::kv::{BLOCK_TOKENS, hadamard_block};
use kernmill_plan::numeric::ATTENTION_SEGMENT;

/// Bytes of a list of a segment's blocks.
pub(super) const LIST: usize = BLOCKS_AHEAD * 8;
/// Items per worker below which tokens are handed out one by one.
const ITEMS_PER_WORKER: i64 = 8;

pub fn emit(e: &mut Emit, cx: &Cx, body: &AttentionBody) {
    let heads = body.geometry.kv_heads as i64;
    let tokens = cx.rows(e, Domain::Tokens);
    let one = e.i64(1);
    let longest = body.by_runs.then(|| longest_run(e, cx, body, tokens));
    let tile = if body.tile_tokens == 1 || longest.is_some() {
        one
    } else {
        let tile = e.i64(body.tile_tokens as i64);
        let items = e.mul_imm(tokens, heads);
        let workers = cx.workers(e);
        let enough = e.mul_imm(workers, ITEMS_PER_WORKER * body.tile_tokens as i64);
        let many = e.icmp(IntCC::UnsignedGreaterThanOrEqual, items, enough);
        e.select(many, tile, one)
    };
    let rounded = e.add(tokens, tile);
    let rounded = e.add_imm(rounded, -1);
    let tiles = e.b.ins().udiv(rounded, tile);
    let mut total = e.mul_imm(tiles, heads);
    let split = splits(body).then(|| AttentionSplit::new(e, cx, body, tokens));
    if let Some(split) = split {
        total = e.b.ins().imul(total, split.count);
    }
    // Head by head, so that its keys and values stay in L2; later tokens of a prompt, which see more keys,
    // first.
    cx.for_each_claimed(e, total, |e, item| {
        let (item, part) = match split {
            Some(split) => {
                let (part, whole) = ItemSegment::new(e, cx, split, item, total);
                (whole, Some(part))
            }
            None => (item, None),
        };
        let head = e.b.ins().udiv(item, tiles);
        let before = e.b.ins().imul(head, tiles);
        let number = e.b.ins().isub(item, before);
        let number = e.b.ins().isub(tiles, number);
        let end = e.b.ins().imul(number, tile);
        let first = e.b.ins().isub(end, tile);
        let end = e.min_u(end, tokens);
        let run = |e: &mut Emit, first, end| {
            let run = TokenRun::new(e, cx, body, first, end, head, part.map(|part| part.split));
            run.emit(e, part);
        };
        match longest {
            Some(longest) => run_from(e, cx, first, longest, tokens, run),
            None => each_run(e, cx, first, end, run),
        }
    });
}

/// A run of tokens and a KV head.
pub(super) struct TokenRun<'a> {
    pub(super) cx: &'a Cx<'a>,
    pub(super) body: &'a AttentionBody,
    pub(super) areas: AttentionScratch,
    pub(super) group: usize,
    /// Batch row of the first token, and how many there are.
    pub(super) row: Value,
    pub(super) tokens: Value,
    pub(super) head: Value,
    /// Keys of KV block 0 for this head, and the sequence's block table.
    pub(super) pool: Value,
    pub(super) table: Value,
    /// Position of the first token, and the first position that it sees.
    pub(super) position: Value,
    pub(super) first: Value,
    /// Last position of the sequence, where tokens see what follows.
    pub(super) end: Option<Value>,
    /// Where the segments' values, maxima and sums are.
    pub(super) results: [Value; 3],
}

/// The part of a segment that a token sees: positions `from..=to`, blocks `first..end`; no block where `end
/// <= first`.
pub(super) struct TokenView {
    pub(super) from: Value,
    pub(super) to: Value,
    pub(super) first: Value,
    pub(super) end: Value,
}

/// Blocks that a call of a micro-kernel takes: those that a token sees of a few, from `first` on.
pub(super) struct CallSpan {
    pub(super) token: Value,
    pub(super) first: Value,
    pub(super) blocks: Value,
    /// The range in view, as columns of the blocks.
    pub(super) columns: (Value, Value),
}

/// A segment: its first position, the blocks that the run sees of it, and its number among the run's.
pub(super) struct ContextSegment {
    pub(super) base: Value,
    pub(super) first: Value,
    pub(super) end: Value,
    pub(super) index: Value,
}

impl<'a> TokenRun<'a> {
    fn new(
        e: &mut Emit,
        cx: &'a Cx,
        body: &'a AttentionBody,
        row: Value,
        end: Value,
        head: Value,
        split: Option<AttentionSplit>,
    ) -> TokenRun<'a> {
        let geometry = &body.geometry;
        let tokens = e.b.ins().isub(end, row);
        let pool = cx.operand(e, body.pool);
        let pool = e.at(pool, head, geometry.head_bytes());
        let pool = e.add_imm(pool, geometry.offset(KvPlane::K, 0) as i64);
        let table = cx.block_table(e, body.kind, row);
        let position = cx.position(e, row);
        let first = first_in_view(e, body, position);
        let end = (!body.causal).then(|| cx.last_position(e, row));
        let (areas, group) = (areas(body), group(body));
        let elems = [(areas.values, geometry.v_head_dim), (areas.maxima, 1), (areas.sums, 1)];
        let results = elems.map(|(area, elems)| {
            let own = cx.body_scratch(e, area);
            let Some(split) = split else { return own };
            let common = cx.common_scratch(e, area);
            let common = e.at(common, head, body.max_segments * group * elems * 4);
            e.select(split.is, common, own)
        });
        TokenRun { cx, body, areas, group, row, tokens, head, pool, table, position, first, end, results }
    }

    /// `part`: the segment that this item is, where it is one.
    fn emit(&self, e: &mut Emit, part: Option<ItemSegment>) {
        self.round_queries(e);
        let last_position = e.add(self.position, self.tokens);
        let last_position = e.add_imm(last_position, -1);
        let last_position = last_in_view(e, self.body, last_position, self.end);
        let first_segment = segment_of(e, self.first);
        let last_segment = segment_of(e, last_position);
        let end = e.add_imm(last_segment, 1);
        let (from, end) = match part {
            Some(ItemSegment { split, segment, .. }) => {
                let after = e.add_imm(segment, 1);
                (e.select(split.is, segment, first_segment), e.select(split.is, after, end))
            }
            None => (first_segment, end),
        };
        e.for_range(from, end, 1, |e, number| {
            let base = e.mul_imm(number, ATTENTION_SEGMENT as i64);
            let from = e.b.ins().smax(self.first, base);
            let to = e.add_imm(base, ATTENTION_SEGMENT as i64 - 1);
            let to = e.b.ins().smin(last_position, to);
            let (first, last) = (block_of(e, from), block_of(e, to));
            let end = e.add_imm(last, 1);
            let index = e.b.ins().isub(number, first_segment);
            let segment = ContextSegment { base, first, end, index };
            self.planes(e, &segment);
            let next = e.add_imm(number, 1);
            let (mut next, mut pool) = (e.min_u(next, last_segment), self.pool);
            if let Some(ItemSegment { split, next: [head, segment], .. }) = part {
                let heads = e.b.ins().isub(head, self.head);
                let other = e.at(pool, heads, self.body.geometry.head_bytes());
                (next, pool) = (e.select(split.is, segment, next), e.select(split.is, other, pool));
            }
            let last_block = block_of(e, last_position);
            self.next_keys(e, &segment, pool, next, last_block);
            self.segment(e, &segment);
        });
        let combine = |e: &mut Emit| self.each_token(e, |e, token| self.combine(e, token, first_segment));
        let Some(ItemSegment { split, .. }) = part else { return combine(e) };
        // Where segments are no items, nothing is counted and the one item is the last.
        let counter = e.add_imm(self.head, 1);
        let finished = self.cx.count(e, counter, split.is);
        let finished = e.add_imm(finished, 1);
        let is_last = e.icmp(IntCC::Equal, finished, split.count);
        e.if_then(is_last, combine);
    }

    pub(super) fn each_token(&self, e: &mut Emit, body: impl FnOnce(&mut Emit, Value)) {
        let zero = e.i64(0);
        e.for_range(zero, self.tokens, 1, body);
    }

    /// The part of a segment that a token sees.
    pub(super) fn view(&self, e: &mut Emit, segment: &ContextSegment, token: Value) -> TokenView {
        let position = e.add(self.position, token);
        let from = first_in_view(e, self.body, position);
        let from = e.b.ins().smax(from, segment.base);
        let last = last_in_view(e, self.body, position, self.end);
        let to = e.add_imm(segment.base, ATTENTION_SEGMENT as i64 - 1);
        let to = e.b.ins().smin(last, to);
        let (first, last) = (block_of(e, from), block_of(e, to));
        let end = e.add_imm(last, 1);
        // A range of positions that is empty may lie inside one block.
        let some = e.icmp(IntCC::SignedLessThanOrEqual, from, to);
        let end = e.select(some, end, first);
        TokenView { from, to, first, end }
    }

    /// Scores, maximum, exponentials, sum and weighted values of all tokens in one segment.
    fn segment(&self, e: &mut Emit, segment: &ContextSegment) {
        let keys = self.cx.body_scratch(e, self.areas.planes);
        let values = e.add_imm(keys, LIST as i64);
        let stride = self.cx.vals[self.body.q].stride();
        let (together, is_rounded) = (tokens_per_call(self.body), query_ukernel(self.body).is_some());
        let tokens_at_once = if is_rounded { 1 } else { together };
        self.each_call(
            e,
            segment,
            tokens_at_once,
            false,
            |e, tokens, &CallSpan { token, first, blocks, .. }| {
                let q = match is_rounded {
                    true => self.rounded_query(e, token),
                    false => self.query(e, token),
                };
                let entry = e.b.ins().isub(first, segment.first);
                let keys = e.at(keys, entry, 8);
                let scores = self.scores(e, segment, token, first);
                let ukernel = score_ukernel(self.body, tokens, stride);
                e.call(self.cx.ukernel(ukernel), &[keys, q, scores, blocks]);
            },
        );
        self.each_token(e, |e, token| {
            let view = self.view(e, segment, token);
            let some = e.icmp(IntCC::SignedLessThan, view.first, view.end);
            e.if_then(some, |e| self.softmax(e, segment, token, &view));
        });
        if weights_ukernel(self.body).is_some() {
            return self.integer_values(e, segment);
        }
        self.each_call(
            e,
            segment,
            together,
            true,
            |e, tokens, &CallSpan { token, first, blocks, columns }| {
                let entry = e.b.ins().isub(first, segment.first);
                let rows = e.at(values, entry, 8);
                let values = self.values(e, token, segment.index);
                let weights = self.scores(e, segment, token, first);
                let ukernel = self.cx.ukernel(value_ukernel(self.body, tokens));
                e.call(ukernel, &[rows, weights, values, blocks, columns.0, columns.1]);
            },
        );
    }

    /// A token's queries of the head's group.
    pub(super) fn query(&self, e: &mut Emit, token: Value) -> Value {
        let q = self.cx.row(e, self.body.q, self.row);
        let q = e.at(q, token, self.cx.vals[self.body.q].stride());
        e.at(q, self.head, self.group * self.body.geometry.head_dim * 4)
    }

    /// Lists the keys and the values of a segment's blocks.
    fn planes(&self, e: &mut Emit, segment: &ContextSegment) {
        let geometry = &self.body.geometry;
        let keys = self.cx.body_scratch(e, self.areas.planes);
        let zero = e.i64(0);
        let count = e.b.ins().isub(segment.end, segment.first);
        e.for_range(zero, count, 1, |e, number| {
            let block = e.add(segment.first, number);
            let key = self.cx.kv_block(e, self.pool, self.table, block, geometry);
            let value = e.add_imm(key, geometry.plane_bytes(KvPlane::K) as i64);
            let entry = e.at(keys, number, 8);
            e.store(key, entry, 0);
            e.store(value, entry, LIST);
        });
    }

    /// Lists as many keys of the segment that comes next, which are prefetched: those of a head's `pool`.
    fn next_keys(&self, e: &mut Emit, segment: &ContextSegment, pool: Value, next: Value, last_block: Value) {
        let list = self.cx.body_scratch(e, self.areas.planes);
        let (zero, count) = (e.i64(0), e.b.ins().isub(segment.end, segment.first));
        let first = e.mul_imm(next, BLOCKS_AHEAD as i64);
        e.for_range(zero, count, 1, |e, number| {
            let block = e.add(first, number);
            let block = e.min_u(block, last_block);
            let key = self.cx.kv_block(e, pool, self.table, block, &self.body.geometry);
            let entry = e.at(list, number, 8);
            e.store(key, entry, 2 * LIST);
        });
    }

    /// A token's scores against a segment's block.
    pub(super) fn scores(&self, e: &mut Emit, segment: &ContextSegment, token: Value, block: Value) -> Value {
        let scores = self.cx.body_scratch(e, self.areas.scores);
        let scores = e.at(scores, token, self.group * SCORE_STRIDE);
        let position = e.mul_imm(block, BLOCK_TOKENS as i64);
        let column = e.b.ins().isub(position, segment.base);
        e.at(scores, column, 4)
    }

    /// A token's weighted values of a segment.
    pub(super) fn values(&self, e: &mut Emit, token: Value, index: Value) -> Value {
        let bytes = self.group * self.body.geometry.v_head_dim * 4;
        let values = e.at(self.results[0], token, self.body.max_segments * bytes);
        e.at(values, index, bytes)
    }

    /// A token's maxima and sums of a segment.
    pub(super) fn norms(&self, e: &mut Emit, token: Value, index: Value) -> [Value; 2] {
        let [_, maxima, sums] = self.results;
        [maxima, sums].map(|area| {
            let area = e.at(area, token, self.body.max_segments * self.group * 4);
            e.at(area, index, self.group * 4)
        })
    }

    /// The range in view as columns of `blocks` blocks from `first` on.
    pub(super) fn columns(
        &self,
        e: &mut Emit,
        view: &TokenView,
        first: Value,
        blocks: Value,
    ) -> (Value, Value) {
        let before = e.mul_imm(first, BLOCK_TOKENS as i64);
        let (zero, all) = (e.i64(0), e.mul_imm(blocks, BLOCK_TOKENS as i64));
        let from = e.b.ins().isub(view.from, before);
        let from = e.b.ins().smax(from, zero);
        let to = e.b.ins().isub(view.to, before);
        let to = e.add_imm(to, 1);
        (from, e.b.ins().smin(to, all))
    }

    /// Exponentials of a token's scores in a segment, or weights, with maxima and sums; no weighted values
    /// yet.
    fn softmax(&self, e: &mut Emit, segment: &ContextSegment, token: Value, view: &TokenView) {
        // Zeros of f32 and of i32 have the same bits.
        let values = self.values(e, token, segment.index);
        floats::zero(e, values, self.group * self.body.geometry.v_head_dim);
        let scores = self.scores(e, segment, token, view.first);
        let blocks = e.b.ins().isub(view.end, view.first);
        if let Some(cap) = cap_ukernel(self.body) {
            e.for_count(self.group, |e, g| {
                let row = e.at(scores, g, SCORE_STRIDE);
                e.call(self.cx.ukernel(cap.clone()), &[row, row, blocks]);
            });
        }
        if weights_ukernel(self.body).is_some() {
            return self.weigh(e, segment, token, view);
        }
        let (from, to) = self.columns(e, view, view.first, blocks);
        let [maxima, sums] = self.norms(e, token, segment.index);
        e.for_count(self.group, |e, g| {
            let row = e.at(scores, g, SCORE_STRIDE);
            let (max, sum) = (e.at(maxima, g, 4), e.at(sums, g, 4));
            e.call(self.cx.ukernel(MicroKernel::Softmax), &[row, blocks, from, to, max, sum]);
        });
    }

    /// Combines a token's segments and stores its output; `run_segment` is the run's first.
    fn combine(&self, e: &mut Emit, token: Value, run_segment: Value) {
        let position = e.add(self.position, token);
        let first = first_in_view(e, self.body, position);
        let last = last_in_view(e, self.body, position, self.end);
        let (first, last) = (segment_of(e, first), segment_of(e, last));
        let index = e.b.ins().isub(first, run_segment);
        let count = e.b.ins().isub(last, first);
        let count = e.add_imm(count, 1);
        let values = self.values(e, token, index);
        let [maxima, sums] = self.norms(e, token, index);
        let sinks = match self.body.sinks {
            Some(id) => {
                let sinks = self.cx.operand(e, id);
                e.at(sinks, self.head, self.group * 4)
            }
            None => e.i64(0),
        };
        let width = self.group * self.body.geometry.v_head_dim;
        let row = e.add(self.row, token);
        let row = self.cx.row(e, self.body.out, row);
        let combine = self.cx.ukernel(combine_ukernel(self.body));
        match self.cx.vals[self.body.out] {
            RowType::Q8(k) => {
                let result = self.cx.body_scratch(e, self.areas.result);
                e.call(combine, &[values, maxima, sums, sinks, result, count]);
                self.turn_back(e, result, width);
                if let Some(store) = &self.body.lora_input {
                    let token = e.add(self.row, token);
                    let shape = ItemShape { units: 1, columns: width };
                    let item = ItemResults { shape, at: result, first: (self.head, width) };
                    store.emit(e, self.cx, &OpSite { row: token, value_row: token, item: Some(item) });
                }
                let target = quantize::Q8Ptr::of_row(e, row, k);
                let block = e.mul_imm(self.head, (width / BLOCK) as i64);
                let target = target.skip(e, block);
                quantize::emit(e, self.cx, result, target, width);
            }
            _ => {
                let target = e.at(row, self.head, width * 4);
                e.call(combine, &[values, maxima, sums, sinks, target, count]);
                self.turn_back(e, target, width);
            }
        }
    }

    /// Takes the transform of values back, in a token's results.
    fn turn_back(&self, e: &mut Emit, results: Value, width: usize) {
        let geometry = &self.body.geometry;
        if geometry.formats.v.descriptor().rotated {
            transform::emit_inverse(e, results, width, hadamard_block(geometry.v_head_dim));
        }
    }
}
