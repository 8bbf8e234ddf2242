//! Which tokens and segments attention's work items are made of.

use crate::cx::Cx;
use crate::emit::Emit;
use crate::kernel::AttentionBody;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{InstBuilder, Value};
use kernmill_plan::kv::BLOCK_TOKENS;
use kernmill_plan::numeric::ATTENTION_SEGMENT;

/// Runs for every worker, where there are as many: with fewer, workers wait for each other at a step's end.
const RUNS_PER_WORKER: i64 = 2;

/// How many items a token's segments are.
#[derive(Clone, Copy)]
pub(super) struct AttentionSplit {
    /// 1 if segments are items, or 0.
    pub is: Value,
    /// Segments of a lone token, or 1.
    pub count: Value,
}

impl AttentionSplit {
    pub fn new(e: &mut Emit, cx: &Cx, body: &AttentionBody, tokens: Value) -> AttentionSplit {
        let (zero, one) = (e.i64(0), e.i64(1));
        let last = if body.causal { cx.position(e, zero) } else { cx.last_position(e, zero) };
        let segments = segment_of(e, last);
        let segments = e.add_imm(segments, 1);
        let is = e.icmp(IntCC::Equal, tokens, one);
        let count = e.select(is, segments, one);
        AttentionSplit { is: e.b.ins().uextend(I64, is), count }
    }
}

/// The segment that an item is, where it is one.
#[derive(Clone, Copy)]
pub(super) struct ItemSegment {
    pub split: AttentionSplit,
    /// Number of the segment.
    pub segment: Value,
    /// KV head and segment of the item that the worker will probably take next.
    pub next: [Value; 2],
}

impl ItemSegment {
    /// The part that an item is, and the number of the whole that it is part of. Heads of a segment follow
    /// each other, as they do in a block: what the CPU fetches behind the keys and values of a head is what
    /// workers need next. Of as many workers each takes one item, until the first of them comes back.
    pub fn new(
        e: &mut Emit,
        cx: &Cx,
        split: AttentionSplit,
        item: Value,
        total: Value,
    ) -> (ItemSegment, Value) {
        let wholes = e.b.ins().udiv(total, split.count);
        let place = |e: &mut Emit, item: Value| {
            let segment = e.b.ins().udiv(item, wholes);
            let before = e.b.ins().imul(segment, wholes);
            [e.b.ins().isub(item, before), segment]
        };
        let [whole, segment] = place(e, item);
        let workers = cx.workers(e);
        let next = e.add(item, workers);
        let last = e.add_imm(total, -1);
        let next = e.min_u(next, last);
        let next = place(e, next);
        (ItemSegment { split, segment, next }, whole)
    }
}

/// Calls `body` with the bounds of each longest piece of `first..end` whose tokens follow each other in one
/// sequence.
pub(super) fn each_run(
    e: &mut Emit,
    cx: &Cx,
    first: Value,
    end: Value,
    body: impl FnOnce(&mut Emit, Value, Value),
) {
    let last = e.add_imm(end, -1);
    e.for_carry(first, end, 1, &[first], |e, row, start| {
        let next = e.add_imm(row, 1);
        // The last row is its own successor, which it does not follow.
        let other = e.min_u(next, last);
        let ends = ends_run(e, cx, row, other);
        e.if_then(ends, |e| body(e, start[0], next));
        vec![e.select(ends, next, start[0])]
    });
}

/// Whether the token of batch row `next` is not the one behind that of `row` in its sequence.
fn ends_run(e: &mut Emit, cx: &Cx, row: Value, next: Value) -> Value {
    let (sequence, position) = (cx.sequence(e, row), cx.position(e, row));
    let (next_sequence, next_position) = (cx.sequence(e, next), cx.position(e, next));
    let expected = e.add_imm(position, 1);
    let breaks = e.icmp(IntCC::NotEqual, sequence, next_sequence);
    let jumps = e.icmp(IntCC::NotEqual, next_position, expected);
    e.b.ins().bor(breaks, jumps)
}

/// Tokens of the longest run that is an item where items are runs: all, unless so few runs keep workers
/// waiting for each other.
pub(super) fn longest_run(e: &mut Emit, cx: &Cx, body: &AttentionBody, tokens: Value) -> Value {
    let pairs = e.mul_imm(tokens, body.geometry.kv_heads as i64);
    let workers = cx.workers(e);
    let items = e.mul_imm(workers, RUNS_PER_WORKER);
    let longest = e.b.ins().udiv(pairs, items);
    let (one, most) = (e.i64(1), e.i64(body.tile_tokens as i64));
    let longest = e.b.ins().umax(longest, one);
    e.min_u(longest, most)
}

/// Calls `body` with the bounds of the run that begins with batch row `row`, of at most `longest` tokens.
/// Where the row's token lies inside another's run, nothing is done.
pub(super) fn run_from(
    e: &mut Emit,
    cx: &Cx,
    row: Value,
    longest: Value,
    tokens: Value,
    body: impl FnOnce(&mut Emit, Value, Value),
) {
    let zero = e.i64(0);
    // The first row of the tokens that follow each other up to this one: pieces are counted from there.
    let start = e.for_carry(zero, row, 1, &[zero], |e, before, start| {
        let next = e.add_imm(before, 1);
        let ends = ends_run(e, cx, before, next);
        vec![e.select(ends, next, start[0])]
    });
    let before = e.b.ins().isub(row, start[0]);
    let inside = e.b.ins().urem(before, longest);
    let begins = e.icmp(IntCC::Equal, inside, zero);
    e.if_then(begins, |e| {
        let limit = e.add(row, longest);
        let limit = e.min_u(limit, tokens);
        let last = e.add_imm(limit, -1);
        // The row behind the last that follows: rows behind a break do not belong to the run.
        let end = e.for_carry(row, last, 1, &[limit], |e, before, end| {
            let next = e.add_imm(before, 1);
            let ends = ends_run(e, cx, before, next);
            let sooner = e.min_u(next, end[0]);
            vec![e.select(ends, sooner, end[0])]
        });
        body(e, row, end[0]);
    });
}

/// The segment that a position is in.
pub(super) fn segment_of(e: &mut Emit, position: Value) -> Value {
    e.b.ins().ushr_imm_u(position, i64::from(ATTENTION_SEGMENT.trailing_zeros()))
}

/// The block that a position is in.
pub(super) fn block_of(e: &mut Emit, position: Value) -> Value {
    // A position before the sequence's start is in a block before it.
    e.b.ins().sshr_imm_u(position, i64::from(BLOCK_TOKENS.trailing_zeros()))
}

/// The first position that a token at `position` sees.
pub(super) fn first_in_view(e: &mut Emit, body: &AttentionBody, position: Value) -> Value {
    let zero = e.i64(0);
    match body.window {
        Some(window) => {
            let start = e.add_imm(position, 1 - i64::from(window));
            e.b.ins().smax(start, zero)
        }
        None => zero,
    }
}

/// The last position that a token at `position` sees; `end` is its sequence's last one, where it sees what
/// follows.
pub(super) fn last_in_view(e: &mut Emit, body: &AttentionBody, position: Value, end: Option<Value>) -> Value {
    match (end, body.window) {
        (None, _) => position,
        (Some(end), None) => end,
        (Some(end), Some(window)) => {
            let last = e.add_imm(position, i64::from(window) - 1);
            e.b.ins().smin(last, end)
        }
    }
}
