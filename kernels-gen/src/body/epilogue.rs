//! What becomes of a unit of results: bias, then the part's epilogue in order.
//!
//! As much of it as is arithmetic on single elements becomes one map over all rows of the results; the rest goes row by row.

use crate::body::matmul::unit_bytes;
use crate::body::{Cx, adapter};
use crate::emit::Emit;
use crate::expr::{Binary, Expr};
use crate::kernel::{Epilogue, Part, RowType, ValId};
use crate::leaf::Leaf;
use crate::leaf::map::{MAX_INPUTS, Map};
use crate::stage::{bf16, elementwise, kv, quantize, rope};
use cranelift_codegen::ir::Value;
use kernmill_plan::format::{BLOCK, f32_row_stride};

/// Which rows of the batch the results belong to.
#[derive(Clone, Copy)]
pub enum RowsOf<'f> {
    /// Consecutive ones from this on, in batch and output alike.
    From(Value),
    /// For result row i: the batch row (positions, sequences) and the row of outputs and residuals.
    Each(&'f dyn Fn(&mut Emit, Value) -> (Value, Value)),
}

/// The part of an epilogue that one map computes.
struct Prefix {
    map: Map,
    /// Matrices whose results are inputs, in order; biases of those that have one follow.
    mats: usize,
    /// Then the same columns of that value.
    add: Option<ValId>,
    /// Where the map writes, if not over the first matrix's results.
    store: Option<ValId>,
    /// Steps of the epilogue that are done with it.
    done: usize,
}

/// Nothing when there is no arithmetic to do. `consecutive`: rows of the results are consecutive rows of values too.
fn prefix(vals: &[RowType], part: &Part, consecutive: bool) -> Option<Prefix> {
    let mut steps = part.epilogue.iter().peekable();
    let add = |a: Expr, b: Expr| Expr::Binary(Binary::Add, Box::new(a), Box::new(b));
    let mats = part.mats.len();
    let mut inputs = vec![unit_bytes(part); mats];
    let mut biased = Vec::new();
    for (m, mat) in part.mats.iter().enumerate() {
        if mat.bias.is_some() {
            biased.push(add(Expr::Var(m), Expr::Var(inputs.len())));
            inputs.push(0);
        } else {
            biased.push(Expr::Var(m));
        }
    }
    let mut expr = match steps.peek() {
        Some(Epilogue::Combine { expr }) => {
            steps.next();
            expr.substitute(&biased)
        }
        _ => biased[0].clone(),
    };
    let mut added = None;
    if let Some(Epilogue::Add { x }) = steps.peek()
        && consecutive
        && inputs.len() < MAX_INPUTS
    {
        steps.next();
        added = Some(*x);
        expr = add(expr, Expr::Var(inputs.len()));
        inputs.push(vals[*x].stride());
    }
    let mut stored = None;
    if let Some(Epilogue::Store { out }) = steps.peek()
        && consecutive
    {
        steps.next();
        stored = Some(*out);
    }
    if expr == Expr::Var(0) && stored.is_none() {
        return None;
    }
    let out = stored.map_or(unit_bytes(part), |out| vals[out].stride());
    let map = Map::new(expr, part.unit, &inputs, out);
    Some(Prefix { map, mats, add: added, store: stored, done: part.epilogue.len() - steps.len() })
}

/// Leaves that [`emit`] calls.
pub fn leaves(vals: &[RowType], part: &Part, consecutive: bool) -> Vec<Leaf> {
    let prefix = prefix(vals, part, consecutive);
    let done = prefix.as_ref().map_or(0, |prefix| prefix.done);
    let map = prefix.map(|prefix| Leaf::Map(prefix.map));
    let rest = part.epilogue[done..].iter().filter_map(|step| match step {
        Epilogue::Quantize { .. } => Some(Leaf::Quantize),
        Epilogue::Combine { expr } => elementwise::map(expr, part.mats.len(), part.unit).map(Leaf::Map),
        _ => None,
    });
    map.into_iter().chain(rest).collect()
}

/// `results` is `[rows][mats][unit]` f32 in scratch, for item `item`.
#[allow(clippy::too_many_arguments)]
pub fn emit(
    e: &mut Emit,
    cx: &Cx,
    part: &Part,
    item: Value,
    expert: Option<Value>,
    results: Value,
    rows: Value,
    rows_of: RowsOf,
) {
    adapter::expand(e, cx, part, item, expert, results, rows, rows_of);
    let consecutive = matches!(rows_of, RowsOf::From(_));
    let prefix = prefix(&cx.vals, part, consecutive);
    if let Some(prefix) = &prefix {
        run(e, cx, part, prefix, item, expert, results, rows, rows_of);
    }
    let rest = &part.epilogue[prefix.as_ref().map_or(0, |prefix| prefix.done)..];
    if rest.is_empty() {
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
        let results = e.at(results, i, unit_bytes(part));
        for step in rest {
            one_step(e, cx, part, step, item, results, row, out_row);
        }
    });
}

/// Calls the map.
#[allow(clippy::too_many_arguments)]
fn run(
    e: &mut Emit,
    cx: &Cx,
    part: &Part,
    prefix: &Prefix,
    item: Value,
    expert: Option<Value>,
    results: Value,
    rows: Value,
    rows_of: RowsOf,
) {
    let unit_columns = part.unit * 4;
    let columns = |e: &mut Emit, val: ValId| match rows_of {
        RowsOf::From(first) => {
            let row = cx.row(e, val, first);
            e.at(row, item, unit_columns)
        }
        RowsOf::Each(_) => results,
    };
    let out = prefix.store.map_or(results, |val| columns(e, val));
    let mut args = vec![out];
    args.extend((0..prefix.mats).map(|m| e.add_imm(results, (m * unit_columns) as i64)));
    for mat in &part.mats {
        if let Some(bias) = mat.bias {
            let mut bias = cx.operand(e, bias);
            if let Some(expert) = expert {
                bias = e.at(bias, expert, f32_row_stride(mat.n));
            }
            args.push(e.at(bias, item, unit_columns));
        }
    }
    args.extend(prefix.add.map(|val| columns(e, val)));
    args.push(rows);
    e.call(cx.leaf(Leaf::Map(prefix.map)), &args);
}

/// A step for one row.
#[allow(clippy::too_many_arguments)]
fn one_step(
    e: &mut Emit,
    cx: &Cx,
    part: &Part,
    step: &Epilogue,
    item: Value,
    results: Value,
    row: Value,
    out_row: Value,
) {
    let unit = part.unit;
    match step {
        Epilogue::Combine { expr } => {
            let units: Vec<Value> =
                (0..part.mats.len()).map(|m| e.add_imm(results, (m * unit * 4) as i64)).collect();
            elementwise::emit(e, cx, expr, &units, results, unit);
        }
        Epilogue::Rope { table } => {
            let table = cx.rope_row(e, *table, unit, row);
            rope::emit(e, results, table, results, unit);
        }
        Epilogue::Add { x } => {
            let x = cx.row(e, *x, out_row);
            let x = e.at(x, item, unit * 4);
            elementwise::add_in_place(e, results, x, unit);
        }
        Epilogue::Store { out } => {
            let out = cx.row(e, *out, out_row);
            let out = e.at(out, item, unit * 4);
            elementwise::copy(e, results, out, unit);
        }
        Epilogue::Keep(kept) => cx.if_kept(e, kept, row, |e| {
            let out = cx.row(e, kept.out, out_row);
            let out = e.at(out, item, unit * 4);
            elementwise::copy(e, results, out, unit);
        }),
        Epilogue::Quantize { out } => {
            let target = cx.row(e, *out, out_row);
            let target = quantize::Q8Ptr::of_row(e, target, cx.len(*out));
            let block = e.mul_imm(item, (unit / BLOCK) as i64);
            let target = target.skip(e, block);
            quantize::emit(e, cx, results, target, unit);
        }
        Epilogue::Bf16Cast { out } => {
            let out = cx.row(e, *out, out_row);
            let out = e.at(out, item, unit * 2);
            bf16::emit(e, results, out, unit);
        }
        Epilogue::KvWrite { pool, plane, kind, geometry } => {
            let slot = cx.kv_slot(e, *pool, *kind, geometry, row);
            kv::write_head(e, results, slot, item, *plane, geometry);
        }
    }
}
