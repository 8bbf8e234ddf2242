//! Expressions over f32. Rows are padded to whole tiles, so a short last vector is computed whole.

use super::prelude::*;
use crate::expr::Expr;
use crate::math;
use crate::ukernel::map::{MAX_INPUTS, Map};
use cranelift_codegen::ir::types::F32X4;

/// An expression of f32.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ElementwiseRow<V = ValId> {
    /// The variables are the results at hand, if it is their place that the values take (of an epilogue's
    /// first step those of each matrix, of later ones those that there are), then `inputs`.
    pub expr: Expr,
    /// Rows; of results the same columns.
    pub inputs: Vec<V>,
    /// Where the values go.
    pub out: RowPlace<V>,
}

impl<V> ElementwiseRow<V> {
    pub(super) fn facts(&self) -> RowOpFacts<'_, V> {
        RowOpFacts::on("elementwise", &self.out, self.out.row())
    }

    pub(super) fn numbered<O>(&self, names: &mut impl Names<V, O>) -> ElementwiseRow {
        let out = self.out.written(names);
        let inputs = self.inputs.iter().map(|input| names.read(input)).collect();
        ElementwiseRow { expr: self.expr.clone(), inputs, out }
    }
}

impl RowOpCode for ElementwiseRow {
    fn check(&self, check: &mut KernelChecker, site: CheckedSite) -> Checked {
        let (n, units) = match (self.out, site.item) {
            (RowPlace::Row(out), _) => (check.f32(out)?, 0),
            (RowPlace::Results, item) => item.map_or((0, 0), |item| (item.n, item.units)),
        };
        check_variables(check, &self.expr, units + self.inputs.len())?;
        for input in &self.inputs {
            check.reads(*input, RowType::F32(n), site.rows)?;
        }
        site.output(check, self.out, n)
    }

    fn ukernels(&self, vals: &[RowType], item: Option<ItemShape>) -> Vec<MicroKernel> {
        let (units, n) = match (self.out, item) {
            (RowPlace::Row(out), _) => (0, vals[out].len()),
            (RowPlace::Results, item) => item.map_or((0, 0), |item| (item.units, item.columns)),
        };
        ukernels(&self.expr, units + self.inputs.len(), n)
    }

    fn emit(&self, e: &mut Emit, cx: &Cx, site: &OpSite) {
        let mut sources = match self.out {
            RowPlace::Row(_) => Vec::new(),
            RowPlace::Results => site.results().units(e),
        };
        for input in &self.inputs {
            sources.push(site.part(e, cx, *input, 4));
        }
        let out = site.place(e, cx, self.out);
        emit(e, cx, &self.expr, &sources, out, site.columns(cx, self.out));
    }

    fn is_by_columns(&self) -> bool {
        true
    }
}

/// An expression of so many inputs reads no others.
pub(super) fn check_variables(check: &KernelChecker, expr: &Expr, inputs: usize) -> Checked {
    let vars = variables(expr);
    check.ensure(vars <= inputs, || format!("its expression reads {vars} inputs, there are {inputs}"))
}

/// Micro-kernels that [`emit`] calls.
pub(super) fn ukernels(expr: &Expr, inputs: usize, n: usize) -> Vec<MicroKernel> {
    map(expr, inputs, n).map(MicroKernel::Map).into_iter().collect()
}

/// One more than the highest variable of an expression.
fn variables(expr: &Expr) -> usize {
    let own = if let Expr::Var(i) = expr { i + 1 } else { 0 };
    expr.children().into_iter().map(variables).fold(own, usize::max)
}

/// The map of an expression over one row, if it has not too many inputs.
fn map(expr: &Expr, inputs: usize, n: usize) -> Option<Map> {
    (inputs <= MAX_INPUTS).then(|| Map::new(expr.clone(), n.next_multiple_of(TILE_ROWS), &vec![0; inputs], 0))
}

/// `out[i] = expr(inputs[..][i])` for i < n. `out` may be one of the inputs.
pub(super) fn emit(e: &mut Emit, cx: &Cx, expr: &Expr, inputs: &[Value], out: Value, n: usize) {
    if let Some(map) = map(expr, inputs.len(), n) {
        let rows = e.i64(1);
        e.call(cx.ukernel(MicroKernel::Map(map)), &[&[out], inputs, &[rows]].concat());
        return;
    }
    floats::vectors(e, n, |e, offset| {
        let values: Vec<Value> = inputs
            .iter()
            .map(|x| {
                let ptr = e.add(*x, offset);
                e.load(F32X4, ptr, 0)
            })
            .collect();
        let result = math::expr(e, expr, &values);
        let ptr = e.add(out, offset);
        e.store(result, ptr, 0);
    });
}
