//! Grouped matrices of a mixture of experts.
//!
//! Every worker first groups the batch's slots by expert (a counting sort in its own scratch: a few microseconds for a full
//! prefill chunk, cheaper than a barrier). Then work items are (active expert, unit) pairs going up, output tiles going down.

use crate::body::{Cx, epilogue, matmul};
use crate::emit::{Emit, LANES, MEM};
use crate::kernel::{Body, Domain, Kernel, Mat, Part, RowType, ValId};
use crate::scratch::Scratch;
use crate::stage::elementwise;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{F32X4, I32};
use cranelift_codegen::ir::{InstBuilder, Value};
use kernmill_plan::format::{TILE_ROWS, f32_row_stride};

/// The routing that a body follows.
#[derive(Clone, Copy)]
pub struct Routed {
    /// Value of routing rows.
    pub routing: ValId,
    /// Number of experts.
    pub experts: usize,
    /// Slots per token.
    pub top_k: usize,
}

/// Offsets in the body's scratch.
struct Areas {
    /// u32 `[experts]` slots per expert.
    counts: usize,
    /// u32 `[experts]` first entry of each expert, then the running cursor while sorting.
    starts: usize,
    /// u32 `[experts]` experts with any slot, ascending.
    active: usize,
    /// u32 `[max_rows]` slots sorted by expert, ascending within one.
    entries: usize,
    /// f32 results of a unit for the largest token group.
    results: usize,
    /// f32 `[tokens][16]` sums of a down tile.
    sums: usize,
    total: usize,
}

fn areas(experts: usize, max_rows: usize, input: RowType, unit_bytes: usize) -> Areas {
    let mut scratch = Scratch::default();
    let counts = scratch.take(experts * 4);
    let starts = scratch.take(experts * 4);
    let active = scratch.take(experts * 4);
    let entries = scratch.take(max_rows * 4);
    let results = scratch.take(unit_bytes * matmul::group_sizes(input)[0]);
    let sums = scratch.take(max_rows * TILE_ROWS * 4);
    Areas { counts, starts, active, entries, results, sums, total: scratch.used() }
}

/// Bytes of the body's scratch.
pub fn scratch_bytes(kernel: &Kernel) -> usize {
    match &kernel.body {
        Body::Experts { input, experts, part, .. } => {
            areas(*experts, kernel.max_rows, kernel.vals[*input].row, matmul::unit_bytes(part)).total
        }
        Body::ExpertDown { input, experts, .. } => {
            areas(*experts, kernel.max_rows, kernel.vals[*input].row, TILE_ROWS * 4).total
        }
        _ => 0,
    }
}

/// The grouped batch, as addresses and counts.
struct Groups {
    counts: Value,
    starts: Value,
    active: Value,
    entries: Value,
    /// Number of active experts.
    active_count: Value,
}

impl Groups {
    /// Expert number `index` of the active ones: its id, its first entry, its slots.
    fn expert(&self, e: &mut Emit, index: Value) -> (Value, Value, Value) {
        let read = |e: &mut Emit, base: Value, index: Value| {
            let ptr = e.at(base, index, 4);
            e.load_u32(ptr, 0)
        };
        let expert = read(e, self.active, index);
        let count = read(e, self.counts, expert);
        // The sort's cursor stands behind the expert's last entry.
        let end = read(e, self.starts, expert);
        let start = e.b.ins().isub(end, count);
        (expert, start, count)
    }
}

/// Sorts the batch's slots by expert and fills the row pointer list in the same order.
fn group(e: &mut Emit, cx: &Cx, routed: Routed, areas: &Areas, input: ValId, input_slots: bool) -> Groups {
    let counts = cx.body_scratch(e, areas.counts);
    let starts = cx.body_scratch(e, areas.starts);
    let active = cx.body_scratch(e, areas.active);
    let entries = cx.body_scratch(e, areas.entries);
    let list = cx.list(e);
    let slots = cx.rows(e, Domain::Slots(routed.top_k));
    let zero = e.i64(0);
    e.for_count(routed.experts, |e, expert| {
        let count = e.at(counts, expert, 4);
        let zero = e.i32(0);
        e.store(zero, count, 0);
    });
    let first_route = cx.row(e, routed.routing, zero);
    let expert_of = |e: &mut Emit, slot: Value| {
        let route = e.at(first_route, slot, 8);
        let expert = e.load_u32(route, 0);
        // Routing written by top-k is in range; the bound keeps any other bytes from leading outside.
        let last = e.i64(routed.experts as i64 - 1);
        e.min_u(expert, last)
    };
    let increment = |e: &mut Emit, counter: Value| {
        let old = e.load(I32, counter, 0);
        let new = e.b.ins().iadd_imm_s(old, 1);
        e.store(new, counter, 0);
    };
    e.for_range(zero, slots, 1, |e, slot| {
        let expert = expert_of(e, slot);
        let counter = e.at(counts, expert, 4);
        increment(e, counter);
    });
    let (start, end) = (e.i64(0), e.i64(routed.experts as i64));
    let carried = e.for_carry(start, end, 1, &[zero, zero], |e, expert, carried| {
        let (used, found) = (carried[0], carried[1]);
        let (counter, cursor) = (e.at(counts, expert, 4), e.at(starts, expert, 4));
        e.b.ins().istore32(MEM, used, cursor, 0);
        let place = e.at(active, found, 4);
        let count = e.load_u32(counter, 0);
        // Written always, kept only when the expert has slots: the next one overwrites it otherwise.
        e.b.ins().istore32(MEM, expert, place, 0);
        let zero = e.i64(0);
        let any = e.icmp(IntCC::NotEqual, count, zero);
        let any = e.b.ins().uextend(cranelift_codegen::ir::types::I64, any);
        vec![e.add(used, count), e.add(found, any)]
    });
    e.for_range(zero, slots, 1, |e, slot| {
        let expert = expert_of(e, slot);
        let cursor = e.at(starts, expert, 4);
        let place = e.load_u32(cursor, 0);
        increment(e, cursor);
        let entry = e.at(entries, place, 4);
        e.b.ins().istore32(MEM, slot, entry, 0);
        let input_row = if input_slots { slot } else { divide(e, slot, routed.top_k) };
        let source = cx.row(e, input, input_row);
        let pointer = e.at(list, place, 8);
        e.store(source, pointer, 0);
    });
    Groups { counts, starts, active, entries, active_count: carried[1] }
}

fn divide(e: &mut Emit, value: Value, by: usize) -> Value {
    if by == 1 {
        return value;
    }
    let by = e.i64(by as i64);
    e.b.ins().udiv(value, by)
}

/// Gate/up (or any grouped matrix): output rows are slots.
#[allow(clippy::too_many_arguments)]
pub fn up(
    e: &mut Emit,
    cx: &Cx,
    routed: Routed,
    input: ValId,
    input_slots: bool,
    part: &Part,
    max_rows: usize,
    dynamic: bool,
) {
    let row_type = cx.vals[input];
    let areas = areas(routed.experts, max_rows, row_type, matmul::unit_bytes(part));
    let groups = group(e, cx, routed, &areas, input, input_slots);
    let list = cx.list(e);
    let units = part.items();
    let total = e.mul_imm(groups.active_count, units as i64);
    let item_body = |e: &mut Emit, index: Value| {
        let active = divide(e, index, units);
        let before = e.mul_imm(active, units as i64);
        let item = e.b.ins().isub(index, before);
        let (expert, first, count) = groups.expert(e, active);
        let weights = matmul::tile_bases(e, cx, part, item, Some(expert));
        matmul::for_groups(e, row_type, count, |e, group_start, tokens| {
            let results = cx.body_scratch(e, areas.results);
            let position = e.add(first, group_start);
            let rows = e.at(list, position, 8);
            matmul::dots(e, cx, part, row_type, &weights, rows, results, tokens);
            for t in 0..tokens {
                let entry = e.at(groups.entries, position, 4);
                let slot = e.load_u32(entry, t * 4);
                let token = divide(e, slot, routed.top_k);
                let results = e.add_imm(results, (t * matmul::unit_bytes(part)) as i64);
                epilogue::emit(e, cx, part, item, Some(expert), results, token, slot);
            }
        });
    };
    if dynamic {
        // After routing nobody knows which experts are heavy: workers take items from the step's counter. A worker takes at most
        // every item and then one past the end.
        let zero = e.i64(0);
        let first = cx.take_next(e);
        let bound = e.add_imm(total, 1);
        let _ = e.for_carry(zero, bound, 1, &[first], |e, _, taken| {
            let index = taken[0];
            let more = e.icmp(IntCC::UnsignedLessThan, index, total);
            e.if_then(more, |e| item_body(e, index));
            // Past the end the counter is left alone, so that it cannot wrap.
            let after = e.b.create_block();
            let (take, skip) = (e.b.create_block(), e.b.create_block());
            let next = e.b.append_block_param(after, cranelift_codegen::ir::types::I64);
            e.b.ins().brif(more, take, &[], skip, &[]);
            e.b.switch_to_block(take);
            e.b.seal_block(take);
            let value = cx.take_next(e);
            e.b.ins().jump(after, &[cranelift_codegen::ir::BlockArg::Value(value)]);
            e.b.switch_to_block(skip);
            e.b.seal_block(skip);
            e.b.ins().jump(after, &[cranelift_codegen::ir::BlockArg::Value(index)]);
            e.b.switch_to_block(after);
            e.b.seal_block(after);
            vec![next]
        });
    } else {
        let (start, end) = cx.share(e, total);
        e.for_range(start, end, 1, item_body);
    }
}

/// Down: each worker owns output tiles and adds the experts in ascending id.
#[allow(clippy::too_many_arguments)]
pub fn down(
    e: &mut Emit,
    cx: &Cx,
    routed: Routed,
    input: ValId,
    mat: &Mat,
    residual: Option<ValId>,
    out: ValId,
    max_rows: usize,
) {
    let row_type = cx.vals[input];
    let part = Part { mats: vec![mat.clone()], unit: TILE_ROWS, epilogue: Vec::new() };
    let areas = areas(routed.experts, max_rows, row_type, TILE_ROWS * 4);
    let groups = group(e, cx, routed, &areas, input, true);
    let list = cx.list(e);
    let tokens = cx.rows(e, Domain::Tokens);
    let sums = cx.body_scratch(e, areas.sums);
    let total = e.i64(part.items() as i64);
    let (start, end) = cx.share(e, total);
    let zero = e.i64(0);
    let first_route = cx.row(e, routed.routing, zero);
    e.for_range(start, end, 1, |e, tile| {
        let zero = e.i64(0);
        e.for_range(zero, tokens, 1, |e, token| {
            let sum = e.at(sums, token, TILE_ROWS * 4);
            elementwise::zero(e, sum, TILE_ROWS);
        });
        e.for_range(zero, groups.active_count, 1, |e, active| {
            let (expert, first, count) = groups.expert(e, active);
            let weights = matmul::tile_bases(e, cx, &part, tile, Some(expert));
            let bias = mat.bias.map(|bias| {
                let bias = cx.operand(e, bias);
                let bias = e.at(bias, expert, f32_row_stride(mat.n));
                e.at(bias, tile, TILE_ROWS * 4)
            });
            matmul::for_groups(e, row_type, count, |e, group_start, size| {
                let results = cx.body_scratch(e, areas.results);
                let position = e.add(first, group_start);
                let rows = e.at(list, position, 8);
                matmul::dots(e, cx, &part, row_type, &weights, rows, results, size);
                for t in 0..size {
                    let entry = e.at(groups.entries, position, 4);
                    let slot = e.load_u32(entry, t * 4);
                    let token = divide(e, slot, routed.top_k);
                    let route = e.at(first_route, slot, 8);
                    let weight = e.load_splat(route, 4);
                    let sum = e.at(sums, token, TILE_ROWS * 4);
                    for i in 0..TILE_ROWS / LANES {
                        let mut y = e.load(F32X4, results, (t * TILE_ROWS + i * LANES) * 4);
                        if let Some(bias) = bias {
                            let b = e.load(F32X4, bias, i * LANES * 4);
                            y = e.fadd(y, b);
                        }
                        let old = e.load(F32X4, sum, i * LANES * 4);
                        let new = e.fma(weight, y, old);
                        e.store(new, sum, i * LANES * 4);
                    }
                }
            });
        });
        e.for_range(zero, tokens, 1, |e, token| {
            let sum = e.at(sums, token, TILE_ROWS * 4);
            if let Some(residual) = residual {
                let x = cx.row(e, residual, token);
                let x = e.at(x, tile, TILE_ROWS * 4);
                elementwise::add_in_place(e, sum, x, TILE_ROWS);
            }
            let target = cx.row(e, out, token);
            let target = e.at(target, tile, TILE_ROWS * 4);
            elementwise::copy(e, sum, target, TILE_ROWS);
        });
    });
}
