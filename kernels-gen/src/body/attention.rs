//! Attention over the paged KV cache: work items are (token, KV head), each with its group of query heads.
//!
//! Keys are split into segments of 1024 absolute positions. Per segment: scores, their maximum, exponentials and their sum, weighted
//! values; at the end the segments are combined in ascending order (docs/numerics.md).

use crate::body::Cx;
use crate::emit::Emit;
use crate::kernel::{AttentionBody, Domain, RowType};
use crate::leaf::Leaf;
use crate::leaf::attention::SCORE_STRIDE;
use crate::math;
use crate::scratch::Scratch;
use crate::stage::{elementwise, quantize};
use cranelift_codegen::ir::types::{F32, F32X4};
use cranelift_codegen::ir::{InstBuilder, Value};
use kernmill_plan::format::BLOCK;
use kernmill_plan::kv::BLOCK_TOKENS;
use kernmill_plan::numeric::ATTENTION_SEGMENT;

/// A block of one head takes some 300 cycles and a line comes from memory in about 500.
const BLOCKS_AHEAD: i64 = 4;

/// Offsets in the body's scratch.
struct Areas {
    /// f32 `[group][1024]` scores, then their exponentials.
    scores: usize,
    /// f32 `[segments][group][head_dim]` weighted values.
    values: usize,
    /// f32 `[segments][group]` maxima.
    maxima: usize,
    /// f32 `[segments][group]` sums.
    sums: usize,
    /// f32 `[group][head_dim]` result before quantisation.
    result: usize,
    total: usize,
}

fn areas(body: &AttentionBody) -> Areas {
    let (group, head_dim) = (body.heads / body.geometry.kv_heads, body.geometry.head_dim);
    let mut scratch = Scratch::default();
    let scores = scratch.take(group * SCORE_STRIDE);
    let values = scratch.take(body.max_segments * group * head_dim * 4);
    let maxima = scratch.take(body.max_segments * group * 4);
    let sums = scratch.take(body.max_segments * group * 4);
    let result = scratch.take(group * head_dim * 4);
    Areas { scores, values, maxima, sums, result, total: scratch.used() }
}

/// Bytes of the body's scratch.
pub fn scratch_bytes(body: &AttentionBody) -> usize {
    areas(body).total
}

fn score_leaf(body: &AttentionBody) -> Leaf {
    let (elem, head_dim) = (body.geometry.elem, body.geometry.head_dim);
    let group = body.heads / body.geometry.kv_heads;
    Leaf::Score { elem, head_dim, group, scale: body.scale.to_bits() }
}

fn value_leaf(body: &AttentionBody) -> Leaf {
    let (elem, head_dim) = (body.geometry.elem, body.geometry.head_dim);
    Leaf::Value { elem, head_dim, group: body.heads / body.geometry.kv_heads }
}

/// Leaves that the body calls.
pub fn leaves(body: &AttentionBody) -> [Leaf; 3] {
    [score_leaf(body), value_leaf(body), Leaf::Quantize]
}

pub fn emit(e: &mut Emit, cx: &Cx, body: &AttentionBody) {
    let heads = body.geometry.kv_heads;
    let tokens = cx.rows(e, Domain::Tokens);
    let total = e.mul_imm(tokens, heads as i64);
    // Later tokens of a prompt see more keys.
    cx.take_each(e, total, |e, item| {
        let divisor = e.i64(heads as i64);
        let token = e.b.ins().udiv(item, divisor);
        let before = e.mul_imm(token, heads as i64);
        let head = e.b.ins().isub(item, before);
        let item = Item::new(e, cx, body, token, head);
        item.emit(e, cx, body);
    });
}

/// One token and KV head.
struct Item {
    areas: Areas,
    group: usize,
    token: Value,
    head: Value,
    /// `[group][head_dim]` queries.
    q: Value,
    pool: Value,
    table: Value,
    /// First and last position in view.
    first: Value,
    last: Value,
}

impl Item {
    fn new(e: &mut Emit, cx: &Cx, body: &AttentionBody, token: Value, head: Value) -> Item {
        let group = body.heads / body.geometry.kv_heads;
        let row = cx.row(e, body.q, token);
        let q = e.at(row, head, group * body.geometry.head_dim * 4);
        let pool = cx.operand(e, body.pool);
        let table = cx.block_table(e, body.kind, token);
        let last = cx.position(e, token);
        let zero = e.i64(0);
        let first = match body.window {
            Some(window) => {
                let start = e.add_imm(last, 1 - i64::from(window));
                e.b.ins().smax(start, zero)
            }
            None => zero,
        };
        Item { areas: areas(body), group, token, head, q, pool, table, first, last }
    }

    fn emit(&self, e: &mut Emit, cx: &Cx, body: &AttentionBody) {
        let shift = i64::from(ATTENTION_SEGMENT.trailing_zeros());
        let first_segment = e.b.ins().ushr_imm_u(self.first, shift);
        let last_segment = e.b.ins().ushr_imm_u(self.last, shift);
        let end = e.add_imm(last_segment, 1);
        e.for_range(first_segment, end, 1, |e, segment| {
            let index = e.b.ins().isub(segment, first_segment);
            self.segment(e, cx, body, segment, index);
        });
        let count = e.b.ins().isub(end, first_segment);
        self.combine(e, cx, body, count);
    }

    /// Scores, maximum, exponentials, sum and weighted values of one segment, kept as number `index`.
    fn segment(&self, e: &mut Emit, cx: &Cx, body: &AttentionBody, segment: Value, index: Value) {
        let (group, head_dim, geometry) = (self.group, body.geometry.head_dim, &body.geometry);
        let scores = cx.body_scratch(e, self.areas.scores);
        let base = e.mul_imm(segment, ATTENTION_SEGMENT as i64);
        let from = e.b.ins().smax(self.first, base);
        let segment_last = e.add_imm(base, ATTENTION_SEGMENT as i64 - 1);
        let to = e.b.ins().smin(self.last, segment_last);
        let block_shift = i64::from(BLOCK_TOKENS.trailing_zeros());
        let first_block = e.b.ins().ushr_imm_u(from, block_shift);
        let last_block = e.b.ins().ushr_imm_u(to, block_shift);
        let end_block = e.add_imm(last_block, 1);
        let head_offset = e.mul_imm(self.head, (geometry.k_offset(1) - geometry.k_offset(0)) as i64);

        e.for_range(first_block, end_block, 1, |e, block| {
            let address = cx.kv_block(e, self.pool, self.table, block, geometry);
            let keys = e.add(address, head_offset);
            let keys = e.add_imm(keys, geometry.k_offset(0) as i64);
            let position = e.mul_imm(block, BLOCK_TOKENS as i64);
            let column = e.b.ins().isub(position, base);
            let out = e.at(scores, column, 4);
            let ahead = self.later_block(e, cx, body, block, last_block);
            let ahead = e.add(ahead, head_offset);
            let ahead = e.add_imm(ahead, geometry.k_offset(0) as i64);
            e.call(cx.leaf(score_leaf(body)), &[keys, self.q, out, ahead]);
        });

        // Columns of the first and the last block that are out of view.
        let first_column = e.mul_imm(first_block, BLOCK_TOKENS as i64);
        let first_column = e.b.ins().isub(first_column, base);
        let end_column = e.mul_imm(end_block, BLOCK_TOKENS as i64);
        let end_column = e.b.ins().isub(end_column, base);
        let from_column = e.b.ins().isub(from, base);
        let to_column = e.b.ins().isub(to, base);
        let to_column = e.add_imm(to_column, 1);
        let values = cx.body_scratch(e, self.areas.values);
        let values = e.at(values, index, group * head_dim * 4);
        let maxima = cx.body_scratch(e, self.areas.maxima);
        let maxima = e.at(maxima, index, group * 4);
        let sums = cx.body_scratch(e, self.areas.sums);
        let sums = e.at(sums, index, group * 4);
        e.for_count(group, |e, g| {
            let row = e.at(scores, g, SCORE_STRIDE);
            for (start, end) in [(first_column, from_column), (to_column, end_column)] {
                e.for_range(start, end, 1, |e, column| {
                    let place = e.at(row, column, 4);
                    let masked = e.b.ins().f32const(f32::NEG_INFINITY);
                    e.store(masked, place, 0);
                });
            }
            let max = row_max(e, row, first_column, end_column);
            let place = e.at(maxima, g, 4);
            e.store(max, place, 0);
            let sum = row_exp(e, row, first_column, end_column, max);
            let place = e.at(sums, g, 4);
            e.store(sum, place, 0);
        });

        elementwise::zero(e, values, group * head_dim);
        e.for_range(first_block, end_block, 1, |e, block| {
            let address = cx.kv_block(e, self.pool, self.table, block, geometry);
            let rows = e.add(address, head_offset);
            let rows = e.add_imm(rows, geometry.v_offset(0) as i64);
            let position = e.mul_imm(block, BLOCK_TOKENS as i64);
            let column = e.b.ins().isub(position, base);
            let weights = e.at(scores, column, 4);
            let zero = e.i64(0);
            let first = e.b.ins().isub(from, position);
            let first = e.b.ins().smax(first, zero);
            let end = e.b.ins().isub(to, position);
            let end = e.add_imm(end, 1);
            let all = e.i64(BLOCK_TOKENS as i64);
            let end = e.b.ins().smin(end, all);
            let ahead = self.later_block(e, cx, body, block, last_block);
            let ahead = e.add(ahead, head_offset);
            let ahead = e.add_imm(ahead, geometry.v_offset(0) as i64);
            e.call(cx.leaf(value_leaf(body)), &[rows, weights, values, first, end, ahead]);
        });
    }

    /// Address of the block that leaves prefetch from while they work on `block`.
    fn later_block(&self, e: &mut Emit, cx: &Cx, body: &AttentionBody, block: Value, last: Value) -> Value {
        let later = e.add_imm(block, BLOCKS_AHEAD);
        let later = e.min_u(later, last);
        cx.kv_block(e, self.pool, self.table, later, &body.geometry)
    }

    /// Combines `count` segments in ascending order, adds the sink, stores the output.
    fn combine(&self, e: &mut Emit, cx: &Cx, body: &AttentionBody, count: Value) {
        let (group, head_dim) = (self.group, body.geometry.head_dim);
        let values = cx.body_scratch(e, self.areas.values);
        let maxima = cx.body_scratch(e, self.areas.maxima);
        let sums = cx.body_scratch(e, self.areas.sums);
        let result = cx.body_scratch(e, self.areas.result);
        let sinks = body.sinks.map(|id| {
            let sinks = cx.operand(e, id);
            e.at(sinks, self.head, group * 4)
        });
        let zero = e.i64(0);
        e.for_count(group, |e, g| {
            let sink = sinks.map(|sinks| {
                let ptr = e.at(sinks, g, 4);
                e.load_splat(ptr, 0)
            });
            let start = sink.unwrap_or_else(|| e.splat_f32(f32::NEG_INFINITY));
            let own_max = e.at(maxima, g, 4);
            let max = e.for_carry(zero, count, 1, &[start], |e, segment, max| {
                let ptr = e.at(own_max, segment, group * 4);
                let value = e.load_splat(ptr, 0);
                vec![e.fmax(value, max[0])]
            })[0];
            let out = e.at(result, g, head_dim * 4);
            elementwise::zero(e, out, head_dim);
            let own_sum = e.at(sums, g, 4);
            let own_values = e.at(values, g, head_dim * 4);
            let none = e.splat_f32(0.0);
            let mut total = e.for_carry(zero, count, 1, &[none], |e, segment, total| {
                let (max_ptr, sum_ptr) =
                    (e.at(own_max, segment, group * 4), e.at(own_sum, segment, group * 4));
                let segment_max = e.load_splat(max_ptr, 0);
                let difference = e.fsub(segment_max, max);
                let factor = math::exp(e, difference);
                let sum = e.load_splat(sum_ptr, 0);
                let row = e.at(own_values, segment, group * head_dim * 4);
                elementwise::vectors(e, head_dim, |e, offset| {
                    let (x, out) = (e.add(row, offset), e.add(out, offset));
                    let (value, old) = (e.load(F32X4, x, 0), e.load(F32X4, out, 0));
                    let new = e.fma(factor, value, old);
                    e.store(new, out, 0);
                });
                vec![e.fma(factor, sum, total[0])]
            })[0];
            if let Some(sink) = sink {
                let difference = e.fsub(sink, max);
                let power = math::exp(e, difference);
                total = e.fadd(total, power);
            }
            elementwise::vectors(e, head_dim, |e, offset| {
                let out = e.add(out, offset);
                let value = e.load(F32X4, out, 0);
                let value = e.fdiv(value, total);
                e.store(value, out, 0);
            });
        });
        let width = group * head_dim;
        let row = cx.row(e, body.out, self.token);
        match cx.vals[body.out] {
            RowType::Q8(k) => {
                let target = quantize::Q8Ptr::of_row(e, row, k);
                let block = e.mul_imm(self.head, (width / BLOCK) as i64);
                let target = target.skip(e, block);
                quantize::emit(e, cx, result, target, width);
            }
            _ => {
                let target = e.at(row, self.head, width * 4);
                elementwise::copy(e, result, target, width);
            }
        }
    }
}

/// Largest of `row[start..end]`, whole vectors.
fn row_max(e: &mut Emit, row: Value, start: Value, end: Value) -> Value {
    let least = e.splat_f32(f32::NEG_INFINITY);
    let max = e.for_carry(start, end, 4, &[least], |e, column, max| {
        let ptr = e.at(row, column, 4);
        let values = e.load(F32X4, ptr, 0);
        vec![e.fmax(values, max[0])]
    })[0];
    let swapped = e.swap_halves(max);
    let max = e.fmax(swapped, max);
    let swapped = e.swap_pairs(max);
    let max = e.fmax(swapped, max);
    e.b.ins().extractlane(max, 0)
}

/// Replaces `row[start..end]` (whole blocks of 16) by `exp(x - max)`; their lane sum.
fn row_exp(e: &mut Emit, row: Value, start: Value, end: Value, max: Value) -> Value {
    debug_assert_eq!(e.b.func.dfg.value_type(max), F32);
    let max = e.splat(max);
    let zero = e.splat_f32(0.0);
    let lanes = e.for_carry(start, end, BLOCK_TOKENS as i64, &[zero; 4], |e, column, lanes| {
        let ptr = e.at(row, column, 4);
        lanes
            .iter()
            .enumerate()
            .map(|(i, lane)| {
                let score = e.load(F32X4, ptr, i * 16);
                let difference = e.fsub(score, max);
                let power = math::exp(e, difference);
                e.store(power, ptr, i * 16);
                e.fadd(*lane, power)
            })
            .collect()
    });
    e.lane_tree([lanes[0], lanes[1], lanes[2], lanes[3]])
}
