//! Steps over a run's results: bias, then the part's epilogue in order.
//!
//! As much of it as is arithmetic on single elements becomes one map over all rows of the results; the rest
//! goes row by row.

use super::adapters;
use crate::cx::Cx;
use crate::emit::Emit;
use crate::expr::{Binary, Expr};
use crate::kernel::{MatrixPart, RowOp, RowType, ValId};
use crate::row_op::site::{ItemResults, ItemShape, OpSite};
use crate::run::{ItemRun, RowsOf, run_of};
use crate::ukernel::MicroKernel;
use crate::ukernel::map::{MAX_INPUTS, Map};
use cranelift_codegen::ir::Value;
use kernmill_plan::format::{LINE, f32_row_stride};

/// A map over all rows of the results.
struct MapCall {
    map: Map,
    /// The map's inputs, in order.
    inputs: Vec<MapSource>,
    /// Where it writes.
    out: MapTarget,
}

/// An input of a map over all rows.
#[derive(Clone, Copy)]
enum MapSource {
    /// Results of that matrix.
    Results(usize),
    /// Bias of that matrix.
    Bias(usize),
    /// The run's columns of that value.
    Columns(ValId),
}

/// Where a map over all rows writes.
#[derive(Clone, Copy)]
enum MapTarget {
    /// Over the results of that matrix.
    Results(usize),
    /// The run's columns of that value.
    Columns(ValId),
}

/// The steps that run over all rows at once, and how many steps of the epilogue they cover. Biases are always
/// among them.
struct Start {
    calls: Vec<MapCall>,
    done: usize,
}

/// For runs of so many columns. `consecutive`: rows of the results are consecutive rows of values too.
fn start(vals: &[RowType], part: &MatrixPart, columns: usize, consecutive: bool) -> Start {
    match whole(vals, part, columns, consecutive) {
        Some((None, done)) => Start { calls: Vec::new(), done },
        Some((Some(call), done)) => Start { calls: vec![call], done },
        None => Start { calls: biases(part, columns), done: 0 },
    }
}

/// One map for biases, the first expression, and the store behind it, as far as they are there; nothing when
/// it would have too many inputs.
fn whole(
    vals: &[RowType],
    part: &MatrixPart,
    columns: usize,
    consecutive: bool,
) -> Option<(Option<MapCall>, usize)> {
    let mut inputs: Vec<MapSource> = (0..part.mats.len()).map(MapSource::Results).collect();
    let mut operands: Vec<Expr> = (0..part.mats.len()).map(Expr::Var).collect();
    for (m, result) in operands.iter_mut().enumerate() {
        if part.mats[m].bias.is_some() {
            let sum = (Box::new(result.clone()), Box::new(Expr::Var(inputs.len())));
            *result = Expr::Binary(Binary::Add, sum.0, sum.1);
            inputs.push(MapSource::Bias(m));
        }
    }
    let (mut expr, mut done) = (operands[0].clone(), 0);
    if let Some(RowOp::Elementwise(first)) = part.epilogue.first()
        && (consecutive || first.inputs.is_empty())
    {
        operands.extend((0..first.inputs.len()).map(|i| Expr::Var(inputs.len() + i)));
        inputs.extend(first.inputs.iter().map(|val| MapSource::Columns(*val)));
        (expr, done) = (first.expr.substitute(&operands), 1);
    } else if part.mats.len() > 1 {
        return None;
    }
    if inputs.len() > MAX_INPUTS {
        return None;
    }
    let mut out = MapTarget::Results(0);
    if let [RowOp::Store(last)] = &part.epilogue[done..]
        && consecutive
        && last.lora_targets.is_empty()
    {
        (out, done) = (MapTarget::Columns(last.out), done + 1);
    }
    if expr == Expr::Var(0) && matches!(out, MapTarget::Results(_)) {
        return Some((None, done));
    }
    Some((Some(call(vals, part, columns, expr, inputs, out)), done))
}

/// A map for each bias.
fn biases(part: &MatrixPart, columns: usize) -> Vec<MapCall> {
    let biased = part.mats.iter().enumerate().filter(|(_, mat)| mat.bias.is_some());
    biased
        .map(|(m, _)| {
            let sum = Expr::Binary(Binary::Add, Box::new(Expr::Var(0)), Box::new(Expr::Var(1)));
            call(
                &[],
                part,
                columns,
                sum,
                vec![MapSource::Results(m), MapSource::Bias(m)],
                MapTarget::Results(m),
            )
        })
        .collect()
}

fn call(
    vals: &[RowType],
    part: &MatrixPart,
    columns: usize,
    expr: Expr,
    inputs: Vec<MapSource>,
    out: MapTarget,
) -> MapCall {
    let results = part.mats.len() * columns * 4;
    let distance = |source: &MapSource| match source {
        MapSource::Results(_) => results,
        MapSource::Bias(_) => 0,
        MapSource::Columns(val) => vals[*val].stride(),
    };
    let distances: Vec<usize> = inputs.iter().map(distance).collect();
    let to = match out {
        MapTarget::Results(_) => results,
        MapTarget::Columns(val) => vals[val].stride(),
    };
    MapCall { map: Map::new(expr, columns, &distances, to), inputs, out }
}

/// Micro-kernels that [`emit`] calls.
pub fn ukernels(vals: &[RowType], part: &MatrixPart, consecutive: bool) -> Vec<MicroKernel> {
    let of_run = |columns: usize| {
        let start = start(vals, part, columns, consecutive);
        let maps = start.calls.iter().map(|call| MicroKernel::Map(call.map.clone()));
        let rest = (start.done..part.epilogue.len())
            .flat_map(|i| part.epilogue[i].code().ukernels(vals, Some(shape(part, i, columns))));
        maps.chain(rest).collect::<Vec<_>>()
    };
    [1, run_of(part)].into_iter().flat_map(|items| of_run(items * part.rows_per_item)).collect()
}

/// The results that a step finds: those of each matrix, or those that the steps before made of them.
fn shape(part: &MatrixPart, step: usize, columns: usize) -> ItemShape {
    ItemShape { units: if step == 0 { part.mats.len() } else { 1 }, columns }
}

/// `results` is `[rows][mats][columns]` f32 in scratch, for a run.
#[allow(clippy::too_many_arguments)]
pub fn emit(
    e: &mut Emit,
    cx: &Cx,
    part: &MatrixPart,
    items: ItemRun,
    expert: Option<Value>,
    results: Value,
    rows: Value,
    rows_of: RowsOf,
) {
    adapters::expand(e, cx, part, items, expert, results, rows, rows_of);
    let consecutive = matches!(rows_of, RowsOf::From(_));
    let start = start(&cx.vals, part, items.columns(part), consecutive);
    for call in &start.calls {
        run(e, cx, part, call, items, expert, results, rows, rows_of);
    }
    if start.done == part.epilogue.len() {
        return;
    }
    let zero = e.i64(0);
    e.for_range(zero, rows, 1, |e, i| {
        let (row, value_row) = match rows_of {
            RowsOf::From(first) => {
                let row = e.add(first, i);
                (row, row)
            }
            RowsOf::Each(each) => each(e, i),
        };
        let results = e.at(results, i, items.row_bytes(part));
        for (i, step) in part.epilogue.iter().enumerate().skip(start.done) {
            let first = (items.first, part.rows_per_item);
            let item = ItemResults { shape: shape(part, i, items.columns(part)), at: results, first };
            step.code().emit(e, cx, &OpSite { row, value_row, item: Some(item) });
        }
    });
}

/// Calls a map over all rows.
#[allow(clippy::too_many_arguments)]
fn run(
    e: &mut Emit,
    cx: &Cx,
    part: &MatrixPart,
    call: &MapCall,
    items: ItemRun,
    expert: Option<Value>,
    results: Value,
    rows: Value,
    rows_of: RowsOf,
) {
    let columns = |e: &mut Emit, val: ValId| match rows_of {
        RowsOf::From(first) => {
            let row = cx.row(e, val, first);
            let offset = items.offset(e, part);
            e.add(row, offset)
        }
        RowsOf::Each(_) => results,
    };
    let result = |e: &mut Emit, m: usize| e.add_imm(results, (m * items.columns(part) * 4) as i64);
    let mut args = vec![match call.out {
        MapTarget::Results(m) => result(e, m),
        MapTarget::Columns(val) => columns(e, val),
    }];
    for source in &call.inputs {
        args.push(match source {
            MapSource::Results(m) => result(e, *m),
            MapSource::Bias(m) => bias(e, cx, part, *m, items, expert),
            MapSource::Columns(val) => columns(e, *val),
        });
    }
    args.push(rows);
    e.call(cx.ukernel(MicroKernel::Map(call.map.clone())), &args);
}

/// Asks for a run's biases before its weights are multiplied. They come from memory as well, a few lines at a
/// time, which no CPU foresees: the epilogue would wait for them.
pub fn fetch_biases(e: &mut Emit, cx: &Cx, part: &MatrixPart, items: ItemRun, expert: Option<Value>) {
    let biased: Vec<usize> = (0..part.mats.len()).filter(|m| part.mats[*m].bias.is_some()).collect();
    let lines = (items.columns(part) * 4).div_ceil(LINE);
    for pair in biased.chunks(2) {
        let first = bias(e, cx, part, pair[0], items, expert);
        // Of one matrix the halves.
        let (second, lines) = match pair.get(1) {
            Some(m) => (bias(e, cx, part, *m, items, expert), lines),
            None => (e.add_imm(first, (lines / 2 * LINE) as i64), lines.div_ceil(2)),
        };
        let lines = e.i64(lines as i64);
        e.call(cx.ukernel(MicroKernel::Prefetch), &[first, second, lines]);
    }
}

/// The micro-kernel of [`fetch_biases`], where it has something to do.
pub fn fetch_ukernel(part: &MatrixPart) -> Option<MicroKernel> {
    part.mats.iter().any(|mat| mat.bias.is_some()).then_some(MicroKernel::Prefetch)
}

/// Address of a run's biases of matrix `m`, which has some.
pub fn bias(
    e: &mut Emit,
    cx: &Cx,
    part: &MatrixPart,
    m: usize,
    items: ItemRun,
    expert: Option<Value>,
) -> Value {
    let mat = &part.mats[m];
    let mut bias = cx.operand(e, mat.bias.expect("only matrices with biases are asked for theirs"));
    if let Some(expert) = expert {
        bias = e.at(bias, expert, f32_row_stride(mat.n));
    }
    let offset = items.offset(e, part);
    e.add(bias, offset)
}
