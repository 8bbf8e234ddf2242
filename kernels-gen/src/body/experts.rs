//! Grouped matrices of a mixture of experts.
//!
//! Every worker first groups the batch's slots by expert. Then work items are (active expert, rows of its
//! matrices) pairs going up, output tiles going down.

use crate::body::expert_groups::{ActiveExpert, ExpertGroups, ExpertRouting, GroupScratch, divide, group};
use crate::body::panels::{Panels, many_or_few, with_tiles};
use crate::body::{adapters, epilogue, matmul};
use crate::cx::Cx;
use crate::emit::Emit;
use crate::kernel::{Body, Domain, Kernel, MatrixPart, RowType, ValId};
use crate::run::{ItemRun, RowsOf, for_runs, run_of};
use crate::scratch::Scratch;
use crate::ukernel::MicroKernel;
use crate::ukernel::map::Map;
use cranelift_codegen::ir::types::I32;
use cranelift_codegen::ir::{InstBuilder, Value};
use kernmill_plan::format::TILE_ROWS;

/// Bytes that a worker takes from the counter at once, at least: the weights behind the end of what it took
/// are fetched before another worker is found to have them.
const CLAIM_BYTES: usize = 96 << 10;
/// Items that are taken at once, at most, however small they are.
const MOST_CLAIMED: usize = 16;

/// Offsets in the body's scratch.
struct ExpertScratch {
    groups: GroupScratch,
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

fn areas(kernel: &Kernel, experts: usize, input: ValId, part: &MatrixPart) -> ExpertScratch {
    let (rows, input) = (kernel.max_rows, kernel.vals[input].row);
    let mut scratch = Scratch::default();
    let groups = GroupScratch::take(&mut scratch, experts, rows);
    let targets = scratch.take(rows * 8);
    let weights = scratch.take(rows * 4);
    let results = scratch.take(part.result_bytes() * run_of(part) * matmul::group_sizes(input)[0]);
    let panels = Panels::take(&mut scratch, kernel, std::slice::from_ref(part)).pop();
    ExpertScratch { groups, targets, weights, results, panels, total: scratch.used() }
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

/// Bytes of the body's scratch.
pub fn scratch_bytes(kernel: &Kernel) -> usize {
    match &kernel.body {
        Body::Experts { input, experts, part, .. } => areas(kernel, *experts, *input, part).total,
        Body::ExpertDown { input, experts, mat, rows_per_item, .. } => {
            areas(kernel, *experts, *input, &MatrixPart::down(mat, *rows_per_item)).total
        }
        _ => 0,
    }
}

/// Groups the batch, and fills the panels that are the worker's own.
fn grouped(
    e: &mut Emit,
    cx: &Cx,
    routed: ExpertRouting,
    areas: &ExpertScratch,
    input: (ValId, bool),
) -> ExpertGroups {
    let group_rows = areas.panels.as_ref().map_or(1, Panels::group_rows);
    let groups = group(e, cx, routed, &areas.groups, input, group_rows);
    if let Some((panels, own)) = areas.panels.as_ref().and_then(|panels| Some((panels, panels.own()?))) {
        let zero = e.i64(0);
        let (base, slots) = (panels.group(e, cx, zero), cx.rows(e, Domain::Slots(routed.top_k)));
        groups.fill(e, cx, own, base, (zero, slots));
    }
    groups
}

/// Items of a part that a worker takes from the counter at once, at least.
pub fn claim_run(part: &MatrixPart) -> usize {
    let bytes: usize = part.mats.iter().map(|mat| mat.format.tile(mat.k).bytes()).sum();
    let bytes = bytes * part.rows_per_item / TILE_ROWS;
    CLAIM_BYTES.div_ceil(bytes.max(1)).next_power_of_two().min(MOST_CLAIMED)
}

/// Gate/up (or any grouped matrix): output rows are slots.
pub fn up(
    e: &mut Emit,
    cx: &Cx,
    kernel: &Kernel,
    routed: ExpertRouting,
    input: (ValId, bool),
    part: &MatrixPart,
    even_rows: usize,
) {
    let row_type = cx.vals[input.0];
    let areas = areas(kernel, routed.experts, input.0, part);
    let groups = grouped(e, cx, routed, &areas, input);
    let finish =
        |e: &mut Emit, item: ItemRun, expert: Value, position: Value, results: Value, rows: Value| {
            let each = |e: &mut Emit, row: Value| groups.row(e, position, row, routed.top_k);
            epilogue::emit(e, cx, part, item, Some(expert), results, rows, RowsOf::Each(&each));
        };
    let item_body = |e: &mut Emit, active: Value, item: Value| {
        let item = ItemRun::one(item);
        let ActiveExpert { expert, first, count } = groups.expert(e, active);
        let many = |e: &mut Emit, panels: &Panels| {
            let weights = matmul::tile_bases(e, cx, part, item.first, Some(expert));
            let group = groups.panel(e, expert);
            let panel = panels.group(e, cx, group);
            panels.item(e, cx, part, &weights, (panel, count));
            let results = cx.body_scratch(e, panels.results());
            finish(e, item, expert, first, results, count);
        };
        many_or_few(e, areas.panels.as_ref(), count, many, |e| {
            let weights = matmul::tile_bases(e, cx, part, item.first, Some(expert));
            epilogue::fetch_biases(e, cx, part, item, Some(expert));
            let finish = |e: &mut Emit, position: Value, results: Value, rows: Value| {
                finish(e, item, expert, position, results, rows);
            };
            each_dot(e, cx, &areas, part, row_type, &weights, (first, count), item, finish);
        });
    };
    // An expert's items cost as much as it has rows, or as reading them.
    let cost = |e: &mut Emit, active: Value| {
        let (rows, least) = (groups.expert(e, active).count, e.i64(even_rows as i64));
        e.b.ins().umax(rows, least)
    };
    with_tiles(e, cx, areas.panels.as_ref(), |e| {
        cx.distribute_by_cost(e, (groups.active_count, part.items()), cost, claim_run(part), item_body);
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
    matmul::for_groups(e, cx, (part, row_type), count, |e, group_start, tokens| {
        let results = cx.body_scratch(e, areas.results);
        let position = e.add(first, group_start);
        let rows = e.at(list, position, 8);
        matmul::dots(e, cx, part, row_type, weights, &[rows], results, tokens, run);
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
    kernel: &Kernel,
    routed: ExpertRouting,
    input: ValId,
    part: &MatrixPart,
    residual: Option<ValId>,
    out: ValId,
) {
    let row_type = cx.vals[input];
    let mat = &part.mats[0];
    let areas = areas(kernel, routed.experts, input, part);
    let groups = grouped(e, cx, routed, &areas, (input, true));
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
            let ActiveExpert { expert, first, count } = groups.expert(e, active);
            let add = |e: &mut Emit, run: ItemRun, position: Value, results: Value, rows: Value| {
                let each = |e: &mut Emit, row: Value| groups.row(e, position, row, routed.top_k);
                adapters::expand(e, cx, part, run, Some(expert), results, rows, RowsOf::Each(&each));
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
            let many = |e: &mut Emit, panels: &Panels| {
                let group = groups.panel(e, expert);
                let panel = panels.group(e, cx, group);
                e.for_range(start, end, 1, |e, item| {
                    let weights = matmul::tile_bases(e, cx, part, item, Some(expert));
                    panels.item(e, cx, part, &weights, (panel, count));
                    let results = cx.body_scratch(e, panels.results());
                    add(e, ItemRun::one(item), first, results, count);
                });
            };
            many_or_few(e, areas.panels.as_ref(), count, many, |e| {
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
    with_tiles(e, cx, areas.panels.as_ref(), |e| cx.distribute_items(e, total, run_of(part), columns));
}
