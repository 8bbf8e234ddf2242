//! Grouped matrices of a mixture of experts.
//!
//! Every worker first groups the batch's slots by expert (a counting sort in its own scratch: a few
//! microseconds for a full prefill chunk, cheaper than a barrier). Then work items are (active expert, rows
//! of its matrices) pairs going up, output tiles going down.

use crate::adapter;
use crate::body::panels::{Panels, RowLimits, many_or_few, with_tiles};
use crate::body::{epilogue, matmul};
use crate::cx::Cx;
use crate::emit::{Emit, MEM};
use crate::kernel::{Body, Domain, Kernel, Mat, MatrixPart, RowType, ValId};
use crate::run::{ItemRun, RowsOf, for_runs, run_of};
use crate::scratch::Scratch;
use crate::ukernel::MicroKernel;
use crate::ukernel::map::Map;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{BlockArg, InstBuilder, Value};

/// The routing that a body follows.
#[derive(Clone, Copy)]
pub struct ExpertRouting {
    /// Value of routing rows.
    pub routing: ValId,
    /// Number of experts.
    pub experts: usize,
    /// Slots per token.
    pub top_k: usize,
}

/// Offsets in the body's scratch.
struct ExpertScratch {
    /// u32 `[experts]` slots per expert.
    counts: usize,
    /// u32 `[experts]` first entry of each expert, then the running cursor while sorting.
    starts: usize,
    /// u32 `[experts]` experts with any slot, ascending.
    active: usize,
    /// u32 `[max_rows]` slots sorted by expert, ascending within one.
    entries: usize,
    /// Going down: pointers `[max_rows]` to the output row of each entry's token.
    targets: usize,
    /// Going down: f32 `[max_rows]` weight of each entry.
    weights: usize,
    /// f32 results of an item, or of several multiplied together, for the largest token group.
    results: usize,
    /// When many rows are multiplied at once.
    panels: Option<Panels>,
    total: usize,
}

fn areas(experts: usize, rows: RowLimits, input: RowType, part: &MatrixPart) -> ExpertScratch {
    let result_bytes = part.result_bytes();
    let mut scratch = Scratch::default();
    let counts = scratch.take(experts * 4);
    let starts = scratch.take(experts * 4);
    let active = scratch.take(experts * 4);
    let entries = scratch.take(rows.max * 4);
    let targets = scratch.take(rows.max * 8);
    let weights = scratch.take(rows.max * 4);
    let results = scratch.take(result_bytes * run_of(part) * matmul::group_sizes(input)[0]);
    let panels = Panels::take(&mut scratch, rows, input, std::slice::from_ref(part));
    ExpertScratch {
        counts,
        starts,
        active,
        entries,
        targets,
        weights,
        results,
        panels,
        total: scratch.used(),
    }
}

/// Micro-kernels of [`down`] besides those that multiply.
pub fn down_ukernels(part: &MatrixPart, out: RowType, residual: Option<RowType>) -> Vec<MicroKernel> {
    let of_run = |columns: usize| {
        let residual = residual.map(|residual| residual_ukernel(columns, out, residual));
        [add_ukernel(part, columns), zero_ukernel(columns, out)].into_iter().chain(residual)
    };
    [1, run_of(part)].into_iter().flat_map(|items| of_run(items * part.rows_per_item)).collect()
}

/// Adds an expert's weighted rows to their tokens'.
fn add_ukernel(part: &MatrixPart, columns: usize) -> MicroKernel {
    MicroKernel::AddWeighted { n: columns, bias: part.mats[0].bias.is_some() }
}

/// Sets columns of every token to zero.
fn zero_ukernel(columns: usize, out: RowType) -> MicroKernel {
    MicroKernel::Map(Map::zero(columns, out.stride()))
}

/// Adds columns of every token of the residual.
fn residual_ukernel(columns: usize, out: RowType, residual: RowType) -> MicroKernel {
    MicroKernel::Map(Map::add(columns, out.stride(), residual.stride()))
}

/// The down matrix as a part; its epilogue is the weighted sum.
pub fn down_part(mat: &Mat, rows_per_item: usize) -> MatrixPart {
    MatrixPart { mats: vec![mat.clone()], interleaved: false, rows_per_item, epilogue: Vec::new() }
}

/// Bytes of the body's scratch.
pub fn scratch_bytes(kernel: &Kernel) -> usize {
    let rows = RowLimits { max: kernel.max_rows, tiling: kernel.tiling };
    match &kernel.body {
        Body::Experts { input, experts, part, .. } => {
            areas(*experts, rows, kernel.vals[*input].row, part).total
        }
        Body::ExpertDown { input, experts, mat, rows_per_item, .. } => {
            let part = down_part(mat, *rows_per_item);
            areas(*experts, rows, kernel.vals[*input].row, &part).total
        }
        _ => 0,
    }
}

/// The grouped batch, as addresses and counts.
struct ExpertGroups {
    counts: Value,
    starts: Value,
    active: Value,
    entries: Value,
    /// Number of active experts.
    active_count: Value,
}

impl ExpertGroups {
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

    /// Token and slot of the entry that is `row` behind `position`.
    fn row(&self, e: &mut Emit, position: Value, row: Value, top_k: usize) -> (Value, Value) {
        let position = e.add(position, row);
        let entry = e.at(self.entries, position, 4);
        let slot = e.load_u32(entry, 0);
        (divide(e, slot, top_k), slot)
    }
}

/// Sorts the batch's slots by expert and fills the row pointer list in the same order.
fn group(
    e: &mut Emit,
    cx: &Cx,
    routed: ExpertRouting,
    areas: &ExpertScratch,
    input: ValId,
    input_slots: bool,
) -> ExpertGroups {
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
        let any = e.b.ins().uextend(I64, any);
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
    ExpertGroups { counts, starts, active, entries, active_count: carried[1] }
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
    routed: ExpertRouting,
    input: ValId,
    input_slots: bool,
    part: &MatrixPart,
    rows: RowLimits,
    dynamic: bool,
) {
    let row_type = cx.vals[input];
    let areas = areas(routed.experts, rows, row_type, part);
    let groups = group(e, cx, routed, &areas, input, input_slots);
    let units = part.items();
    let total = e.mul_imm(groups.active_count, units as i64);
    let finish =
        |e: &mut Emit, item: ItemRun, expert: Value, position: Value, results: Value, rows: Value| {
            let each = |e: &mut Emit, row: Value| groups.row(e, position, row, routed.top_k);
            epilogue::emit(e, cx, part, item, Some(expert), results, rows, RowsOf::Each(&each));
        };
    // `gathered` is the expert whose rows are in the panel.
    let item_body = |e: &mut Emit, index: Value, gathered: Value| -> Value {
        let active = divide(e, index, units);
        let before = e.mul_imm(active, units as i64);
        let item = ItemRun::one(e.b.ins().isub(index, before));
        let (expert, first, count) = groups.expert(e, active);
        let many = |e: &mut Emit, panels: Panels| {
            let is_new = e.icmp(IntCC::NotEqual, active, gathered);
            e.if_then(is_new, |e| panels.gather(e, cx, &part.mats[0], first, count));
            let weights = matmul::tile_bases(e, cx, part, item.first, Some(expert));
            panels.item(e, cx, part, &weights, count);
            let results = cx.body_scratch(e, panels.results());
            finish(e, item, expert, first, results, count);
        };
        many_or_few(e, areas.panels, count, many, |e| {
            let weights = matmul::tile_bases(e, cx, part, item.first, Some(expert));
            epilogue::fetch_biases(e, cx, part, item, Some(expert));
            let finish = |e: &mut Emit, position: Value, results: Value, rows: Value| {
                finish(e, item, expert, position, results, rows);
            };
            each_dot(e, cx, &areas, part, row_type, &weights, (first, count), item, finish);
        });
        active
    };
    with_tiles(e, cx, areas.panels, &part.mats[0], |e| {
        let none = e.i64(-1);
        if dynamic {
            // After routing nobody knows which experts are heavy: workers take items from the step's counter.
            // A worker takes at most every item and then one past the end.
            let zero = e.i64(0);
            let one = e.i64(1);
            let first = cx.take_next(e, one);
            let bound = e.add_imm(total, 1);
            let _ = e.for_carry(zero, bound, 1, &[first, none], |e, _, taken| {
                let (index, gathered) = (taken[0], taken[1]);
                let more = e.icmp(IntCC::UnsignedLessThan, index, total);
                let after = e.b.create_block();
                let (take, skip) = (e.b.create_block(), e.b.create_block());
                let next = e.b.append_block_param(after, I64);
                let now = e.b.append_block_param(after, I64);
                e.b.ins().brif(more, take, &[], skip, &[]);
                e.b.switch_to_block(take);
                e.b.seal_block(take);
                let active = item_body(e, index, gathered);
                let value = cx.take_next(e, one);
                e.b.ins().jump(after, &[BlockArg::Value(value), BlockArg::Value(active)]);
                // Past the end the counter is left alone, so that it cannot wrap.
                e.b.switch_to_block(skip);
                e.b.seal_block(skip);
                e.b.ins().jump(after, &[BlockArg::Value(index), BlockArg::Value(gathered)]);
                e.b.switch_to_block(after);
                e.b.seal_block(after);
                vec![next, now]
            });
        } else {
            cx.distribute_items(e, total, 1, |e, start, end| {
                let _ = e.for_carry(start, end, 1, &[none], |e, index, gathered| {
                    vec![item_body(e, index, gathered[0])]
                });
            });
        }
    });
}

/// Multiplies a run by dot micro-kernels, a few rows at a time, and calls `finish` with the first row's entry
/// number, the address of the results, and the number of rows.
#[allow(clippy::too_many_arguments)]
fn each_dot(
    e: &mut Emit,
    cx: &Cx,
    areas: &ExpertScratch,
    part: &MatrixPart,
    row_type: RowType,
    weights: &[Value],
    (first, count): (Value, Value),
    run: ItemRun,
    finish: impl Fn(&mut Emit, Value, Value, Value),
) {
    let list = cx.list(e);
    matmul::for_groups(e, row_type, count, |e, group_start, tokens| {
        let results = cx.body_scratch(e, areas.results);
        let position = e.add(first, group_start);
        let rows = e.at(list, position, 8);
        matmul::dots(e, cx, part, row_type, weights, rows, results, tokens, run);
        let tokens = e.i64(tokens as i64);
        finish(e, position, results, tokens);
    });
}

/// For every entry, in their order: the token's row of the output, and the weight.
fn aim(
    e: &mut Emit,
    cx: &Cx,
    routed: ExpertRouting,
    areas: &ExpertScratch,
    groups: &ExpertGroups,
    out: ValId,
) {
    let (targets, weights) = (cx.body_scratch(e, areas.targets), cx.body_scratch(e, areas.weights));
    let slots = cx.rows(e, Domain::Slots(routed.top_k));
    let zero = e.i64(0);
    let first_route = cx.row(e, routed.routing, zero);
    e.for_range(zero, slots, 1, |e, place| {
        let entry = e.at(groups.entries, place, 4);
        let slot = e.load_u32(entry, 0);
        let token = divide(e, slot, routed.top_k);
        let row = cx.row(e, out, token);
        let target = e.at(targets, place, 8);
        e.store(row, target, 0);
        let route = e.at(first_route, slot, 8);
        let weight = e.load(I32, route, 4);
        let place = e.at(weights, place, 4);
        e.store(weight, place, 0);
    });
}

/// Down: each worker owns output columns and adds the experts in ascending id, one after the other, so that
/// it reads each expert's share of weights from one end to the other.
#[allow(clippy::too_many_arguments)]
pub fn down(
    e: &mut Emit,
    cx: &Cx,
    routed: ExpertRouting,
    input: ValId,
    part: &MatrixPart,
    residual: Option<ValId>,
    out: ValId,
    rows: RowLimits,
) {
    let row_type = cx.vals[input];
    let mat = &part.mats[0];
    let areas = areas(routed.experts, rows, row_type, part);
    let groups = group(e, cx, routed, &areas, input, true);
    let tokens = cx.rows(e, Domain::Tokens);
    let total = e.i64(part.items() as i64);
    let zero = e.i64(0);
    let first_out = cx.row(e, out, zero);
    aim(e, cx, routed, &areas, &groups, out);
    let columns = |e: &mut Emit, start: Value, end: Value| {
        for_runs(e, start, end, run_of(part), |e, run| {
            let offset = run.offset(e, part);
            let place = e.add(first_out, offset);
            e.call(cx.ukernel(zero_ukernel(run.columns(part), cx.vals[out])), &[place, tokens]);
        });
        e.for_range(zero, groups.active_count, 1, |e, active| {
            let (expert, first, count) = groups.expert(e, active);
            let add = |e: &mut Emit, run: ItemRun, position: Value, results: Value, rows: Value| {
                let each = |e: &mut Emit, row: Value| groups.row(e, position, row, routed.top_k);
                adapter::expand(e, cx, part, run, Some(expert), results, rows, RowsOf::Each(&each));
                let targets = cx.body_scratch(e, areas.targets);
                let targets = e.at(targets, position, 8);
                let weights = cx.body_scratch(e, areas.weights);
                let weights = e.at(weights, position, 4);
                let bias = match mat.bias {
                    Some(_) => epilogue::bias(e, cx, part, 0, run, Some(expert)),
                    None => results,
                };
                let offset = run.offset(e, part);
                e.call(
                    cx.ukernel(add_ukernel(part, run.columns(part))),
                    &[results, bias, weights, targets, offset, rows],
                );
            };
            let many = |e: &mut Emit, panels: Panels| {
                panels.gather(e, cx, mat, first, count);
                e.for_range(start, end, 1, |e, item| {
                    let weights = matmul::tile_bases(e, cx, part, item, Some(expert));
                    panels.item(e, cx, part, &weights, count);
                    let results = cx.body_scratch(e, panels.results());
                    add(e, ItemRun::one(item), first, results, count);
                });
            };
            many_or_few(e, areas.panels, count, many, |e| {
                for_runs(e, start, end, run_of(part), |e, run| {
                    let weights = matmul::tile_bases(e, cx, part, run.first, Some(expert));
                    epilogue::fetch_biases(e, cx, part, run, Some(expert));
                    let add = |e: &mut Emit, position: Value, results: Value, rows: Value| {
                        add(e, run, position, results, rows);
                    };
                    each_dot(e, cx, &areas, part, row_type, &weights, (first, count), run, add);
                });
            });
        });
        if let Some(residual) = residual {
            let first = cx.row(e, residual, zero);
            for_runs(e, start, end, run_of(part), |e, run| {
                let offset = run.offset(e, part);
                let (place, x) = (e.add(first_out, offset), e.add(first, offset));
                let ukernel = residual_ukernel(run.columns(part), cx.vals[out], cx.vals[residual]);
                e.call(cx.ukernel(ukernel), &[place, place, x, tokens]);
            });
        }
    };
    with_tiles(e, cx, areas.panels, &part.mats[0], |e| {
        if areas.panels.is_some_and(|panels| panels.are_costly(rows.max)) {
            // They are filled for a range of columns at once: no tail.
            let (start, end) = cx.share(e, total);
            columns(e, start, end);
        } else {
            cx.distribute_items(e, total, run_of(part), columns);
        }
    });
}
