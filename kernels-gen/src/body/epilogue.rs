//! Steps over a run's results: bias, then the part's epilogue in order.
//!
//! As much of it as is arithmetic on single elements becomes one map over all rows of the results; the rest
//! goes row by row.

use crate::adapter;
use crate::cx::Cx;
use crate::emit::Emit;
use crate::expr::{Binary, Expr};
use crate::kernel::{Epilogue, MatrixPart, RowType, ValId};
use crate::row_op::{bf16, elementwise, hadamard, kv, quantize, rope};
use crate::run::{ItemRun, RowsOf, run_of};
use crate::ukernel::MicroKernel;
use crate::ukernel::map::{MAX_INPUTS, Map};
use cranelift_codegen::ir::Value;
use kernmill_plan::format::{BLOCK, LINE, f32_row_stride};
use kernmill_plan::kv::hadamard_block;

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
    if let Some(Epilogue::Map { expr: first, inputs: others }) = part.epilogue.first()
        && (consecutive || others.is_empty())
    {
        operands.extend((0..others.len()).map(|i| Expr::Var(inputs.len() + i)));
        inputs.extend(others.iter().map(|val| MapSource::Columns(*val)));
        (expr, done) = (first.substitute(&operands), 1);
    } else if part.mats.len() > 1 {
        return None;
    }
    if inputs.len() > MAX_INPUTS {
        return None;
    }
    let mut out = MapTarget::Results(0);
    if let [Epilogue::Store { out: val }] = part.epilogue[done..]
        && consecutive
    {
        (out, done) = (MapTarget::Columns(val), done + 1);
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
        let rest = part.epilogue.iter().enumerate().skip(start.done).filter_map(|(i, step)| match step {
            Epilogue::Quantize { .. } => Some(MicroKernel::Quantize),
            Epilogue::Map { expr, inputs } => {
                elementwise::map(expr, results_before(part, i) + inputs.len(), columns).map(MicroKernel::Map)
            }
            _ => None,
        });
        maps.chain(rest).collect::<Vec<_>>()
    };
    [1, run_of(part)].into_iter().flat_map(|items| of_run(items * part.rows_per_item)).collect()
}

/// Results that a step finds: one for each matrix, or the one that the steps before made of them.
fn results_before(part: &MatrixPart, step: usize) -> usize {
    if step == 0 { part.mats.len() } else { 1 }
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
    adapter::expand(e, cx, part, items, expert, results, rows, rows_of);
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
        let (row, out_row) = match rows_of {
            RowsOf::From(first) => {
                let row = e.add(first, i);
                (row, row)
            }
            RowsOf::Each(each) => each(e, i),
        };
        let results = e.at(results, i, items.row_bytes(part));
        for (i, step) in part.epilogue.iter().enumerate().skip(start.done) {
            one_step(e, cx, part, (step, results_before(part, i)), items, results, row, out_row);
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

/// A step for one row.
#[allow(clippy::too_many_arguments)]
fn one_step(
    e: &mut Emit,
    cx: &Cx,
    part: &MatrixPart,
    (step, count): (&Epilogue, usize),
    items: ItemRun,
    results: Value,
    row: Value,
    out_row: Value,
) {
    let width = items.columns(part);
    let columns = |e: &mut Emit, row: Value, bytes: usize| e.at(row, items.first, part.rows_per_item * bytes);
    match step {
        Epilogue::Map { expr, inputs } => {
            let mut sources: Vec<Value> =
                (0..count).map(|m| e.add_imm(results, (m * width * 4) as i64)).collect();
            for val in inputs {
                let row = cx.row(e, *val, out_row);
                sources.push(columns(e, row, 4));
            }
            elementwise::emit(e, cx, expr, &sources, results, width);
        }
        Epilogue::Rope { table } => {
            let table = cx.rope_row(e, *table, width, row);
            rope::emit(e, results, table, results, width);
        }
        Epilogue::Hadamard { head_dim } => {
            hadamard::emit(e, results, results, width, hadamard_block(*head_dim));
        }
        Epilogue::Store { out } => {
            let out = cx.row(e, *out, out_row);
            let out = columns(e, out, 4);
            elementwise::copy(e, results, out, width);
        }
        Epilogue::SaveLoraInput(lora_input) => cx.if_lora_input(e, lora_input, row, |e| {
            let out = cx.row(e, lora_input.out, out_row);
            let out = columns(e, out, 4);
            elementwise::copy(e, results, out, width);
        }),
        Epilogue::Quantize { out } => {
            let target = cx.row(e, *out, out_row);
            let target = quantize::Q8Ptr::of_row(e, target, cx.len(*out));
            let block = e.mul_imm(items.first, (part.rows_per_item / BLOCK) as i64);
            let target = target.skip(e, block);
            quantize::emit(e, cx, results, target, width);
        }
        Epilogue::Bf16Cast { out } => {
            let out = cx.row(e, *out, out_row);
            let out = columns(e, out, 2);
            bf16::emit(e, results, out, width);
        }
        Epilogue::KvCast { to, out } => {
            let out = cx.row(e, *out, out_row);
            let out = columns(e, out, to.bytes(1));
            kv::cast(e, results, out, width, *to);
        }
        Epilogue::KvWrite { pool, plane, kind, geometry } => {
            let slot = cx.kv_slot(e, *pool, *kind, geometry, row);
            kv::write_head(e, results, slot, items.first, *plane, geometry);
        }
    }
}
