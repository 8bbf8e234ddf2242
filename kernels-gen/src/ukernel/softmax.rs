//! Attention's softmax: the exponentials of one query head's scores in a segment, and the combination of
//! segments.
//!
//! - softmax: `fn(row: *mut f32, blocks: u64, first: u64, end: u64, max: *mut f32, sum: *mut f32)`: `row` is
//!   `[blocks][16]` scores, of which columns `first..end` are in view. `max` receives the largest of these
//!   (by `max` of docs/dev/numerics.md: 16 lanes from -infinity, a later score as its first operand, then the
//!   tree of the lane sum with the upper lanes as first operands); `row` becomes `exp(score - max)` in view
//!   and +0 elsewhere; `sum` receives the lane sum. The range begins in the first block and ends in the last.
//! - combine: `fn(values: *const f32, maxima: *const f32, sums: *const f32, sinks: *const f32, out: *mut
//!   f32, segments: u64)`: `values` is `[segments][group][head_dim]`, `maxima` and `sums`
//!   `[segments][group]`, `sinks` `[group]` (a number without sinks); `out`, `[group][head_dim]`, receives
//!   the attention's result.

use crate::emit::{Emit, LANES};
use crate::math;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{F32X4, I32, I32X4};
use cranelift_codegen::ir::{InstBuilder, Value};
use kernmill_plan::kv::BLOCK_TOKENS;

/// Vectors of a block.
const VECTORS: usize = BLOCK_TOKENS / LANES;

pub fn softmax(e: &mut Emit, params: &[Value]) {
    let &[row, blocks, first, end, max_out, sum_out] = params else { unreachable!("six parameters") };
    let last = e.add_imm(blocks, -1);
    let zero = e.i64(0);
    for (block, bound, from) in [(zero, first, true), (last, end, false)] {
        let row = e.at(row, block, BLOCK_TOKENS * 4);
        let before = e.mul_imm(block, BLOCK_TOKENS as i64);
        let bound = e.b.ins().isub(bound, before);
        mask(e, row, bound, from);
    }
    let least = e.splat_f32(f32::NEG_INFINITY);
    let max = e.for_carry(zero, blocks, 1, &[least; VECTORS], |e, block, max| {
        let row = e.at(row, block, BLOCK_TOKENS * 4);
        max.iter()
            .enumerate()
            .map(|(i, max)| {
                let scores = e.load(F32X4, row, i * 16);
                e.fmax(scores, *max)
            })
            .collect()
    });
    let (a, b) = (e.fmax(max[2], max[0]), e.fmax(max[3], max[1]));
    let max = e.fmax(b, a);
    let swapped = e.swap_halves(max);
    let max = e.fmax(swapped, max);
    let swapped = e.swap_pairs(max);
    let max = e.fmax(swapped, max);
    let max = e.b.ins().extractlane(max, 0);
    e.store(max, max_out, 0);
    let max = e.splat(max);
    let none = e.splat_f32(0.0);
    let lanes = e.for_carry(zero, blocks, 1, &[none; VECTORS], |e, block, lanes| {
        let row = e.at(row, block, BLOCK_TOKENS * 4);
        lanes
            .iter()
            .enumerate()
            .map(|(i, lane)| {
                let score = e.load(F32X4, row, i * 16);
                let difference = e.fsub(score, max);
                let power = math::exp(e, difference);
                e.store(power, row, i * 16);
                e.fadd(*lane, power)
            })
            .collect()
    });
    let sum = e.lane_tree([lanes[0], lanes[1], lanes[2], lanes[3]]);
    e.store(sum, sum_out, 0);
}

/// Puts -infinity in a block's columns before `bound`, or from it on.
fn mask(e: &mut Emit, row: Value, bound: Value, before: bool) {
    let bound = e.b.ins().ireduce(I32, bound);
    let bound = e.splat(bound);
    for i in 0..VECTORS {
        let mut bytes = [0; 16];
        for (lane, column) in bytes.chunks_exact_mut(4).zip((i * LANES) as u32..) {
            lane.copy_from_slice(&column.to_le_bytes());
        }
        let columns = e.bytes(bytes);
        let columns = e.cast(I32X4, columns);
        let earlier = e.b.ins().icmp(IntCC::SignedGreaterThan, bound, columns);
        let earlier = e.cast(F32X4, earlier);
        let (scores, hidden) = (e.load(F32X4, row, i * 16), e.splat_f32(f32::NEG_INFINITY));
        let (then, otherwise) = if before { (hidden, scores) } else { (scores, hidden) };
        let masked = e.b.ins().bitselect(earlier, then, otherwise);
        e.store(masked, row, i * 16);
    }
}

pub fn combine(e: &mut Emit, params: &[Value], head_dim: usize, group: usize, with_sinks: bool) {
    let &[values, maxima, sums, sinks, out, segments] = params else { unreachable!("six parameters") };
    let zero = e.i64(0);
    e.for_count(group, |e, g| {
        let sink = with_sinks.then(|| {
            let place = e.at(sinks, g, 4);
            e.load_splat(place, 0)
        });
        let start = sink.unwrap_or_else(|| e.splat_f32(f32::NEG_INFINITY));
        let maxima = e.at(maxima, g, 4);
        let max = e.for_carry(zero, segments, 1, &[start], |e, segment, max| {
            let place = e.at(maxima, segment, group * 4);
            let value = e.load_splat(place, 0);
            vec![e.fmax(value, max[0])]
        })[0];
        let factor = |e: &mut Emit, segment| {
            let place = e.at(maxima, segment, group * 4);
            let value = e.load_splat(place, 0);
            let difference = e.fsub(value, max);
            math::exp(e, difference)
        };
        let sums = e.at(sums, g, 4);
        let none = e.splat_f32(0.0);
        let mut total = e.for_carry(zero, segments, 1, &[none], |e, segment, total| {
            let factor = factor(e, segment);
            let place = e.at(sums, segment, group * 4);
            let sum = e.load_splat(place, 0);
            vec![e.fma(factor, sum, total[0])]
        })[0];
        if let Some(sink) = sink {
            let difference = e.fsub(sink, max);
            let power = math::exp(e, difference);
            total = e.fadd(total, power);
        }
        let (values, out) = (e.at(values, g, head_dim * 4), e.at(out, g, head_dim * 4));
        e.for_count(head_dim / LANES, |e, vector| {
            let (values, out) = (e.at(values, vector, 16), e.at(out, vector, 16));
            let sum = e.for_carry(zero, segments, 1, &[none], |e, segment, sum| {
                let factor = factor(e, segment);
                let place = e.at(values, segment, group * head_dim * 4);
                let value = e.load(F32X4, place, 0);
                vec![e.fma(factor, value, sum[0])]
            })[0];
            let result = e.fdiv(sum, total);
            e.store(result, out, 0);
        });
    });
}
