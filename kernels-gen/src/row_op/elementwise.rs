//! Expressions over f32. In a prologue their inputs may also be vectors, and rows of one column, which is
//! every column's. Rows are padded to whole tiles, so a short last vector is computed whole.

use super::prelude::*;
use crate::expr::Expr;
use crate::math;
use crate::ukernel::map::{MAX_INPUTS, Map};
use cranelift_codegen::ir::types::F32X4;
use kernmill_plan::format::f32_row_stride;

/// An expression of f32.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ElementwiseRow<V = ValId, O = OperandId> {
    /// The variables are the results at hand, if it is their place that the values take (of an epilogue's
    /// first step those of each matrix, of later ones those that there are), then `inputs`, then `vectors`.
    pub expr: Expr,
    /// Rows; of results the same columns. Beside rows they have as many columns as the output, or one.
    pub inputs: Vec<V>,
    /// f32, one for each column, for all rows; none in an epilogue.
    pub vectors: Vec<O>,
    /// Where the values go.
    pub out: RowPlace<V>,
}

impl<V, O> ElementwiseRow<V, O> {
    pub(super) fn facts(&self) -> RowOpFacts<'_, V> {
        RowOpFacts::on("elementwise", &self.out, self.out.row())
    }

    pub(super) fn numbered(&self, names: &mut impl Names<V, O>) -> ElementwiseRow {
        let out = self.out.written(names);
        let inputs = self.inputs.iter().map(|input| names.read(input)).collect();
        let vectors = self.vectors.iter().map(|vector| names.operand(vector)).collect();
        ElementwiseRow { expr: self.expr.clone(), inputs, vectors, out }
    }
}

impl ElementwiseRow {
    /// Whether the input is one column of an output of more.
    fn is_spread(&self, input: ValId, len: &dyn Fn(ValId) -> usize) -> bool {
        self.out.row().is_some_and(|out| len(*out) != 1 && len(input) == 1)
    }
}

impl RowOpCode for ElementwiseRow {
    fn check(&self, check: &mut KernelChecker, site: CheckedSite) -> Checked {
        let (n, units) = match (self.out, site.item) {
            (RowPlace::Row(out), _) => (check.f32(out)?, 0),
            (RowPlace::Results, item) => item.map_or((0, 0), |item| (item.n, item.units)),
        };
        let (vars, known) = (variables(&self.expr), units + self.inputs.len() + self.vectors.len());
        check.ensure(vars <= known, || format!("its expression reads {vars} inputs, there are {known}"))?;
        for input in &self.inputs {
            let is_spread = self.out.row().is_some() && n != 1 && check.f32(*input)? == 1;
            if is_spread {
                check.keeps(self.inputs.len() * f32_row_stride(n));
            }
            check.reads(*input, RowType::F32(if is_spread { 1 } else { n }), site.rows)?;
        }
        check.ensure(self.vectors.is_empty() || self.out.row().is_some(), || {
            "vectors beside results".to_owned()
        })?;
        self.vectors.iter().try_for_each(|vector| check.bias(*vector, n, 1))?;
        site.output(check, self.out, n)
    }

    fn ukernels(&self, vals: &[RowType], item: Option<ItemShape>) -> Vec<MicroKernel> {
        let (units, n) = match (self.out, item) {
            (RowPlace::Row(out), _) => (0, vals[out].len()),
            (RowPlace::Results, item) => item.map_or((0, 0), |item| (item.units, item.columns)),
        };
        let inputs = units + self.inputs.len() + self.vectors.len();
        map(&self.expr, inputs, n).into_iter().map(MicroKernel::Map).collect()
    }

    fn emit(&self, e: &mut Emit, cx: &Cx, site: &OpSite) {
        let mut sources = match self.out {
            RowPlace::Row(_) => Vec::new(),
            RowPlace::Results => site.results().units(e),
        };
        let n = site.columns(cx, self.out);
        for (i, input) in self.inputs.iter().enumerate() {
            let part = site.part(e, cx, *input, 4);
            sources.push(match self.is_spread(*input, &|val| cx.len(val)) {
                false => part,
                true => {
                    let (work, lanes) = (cx.work_scratch(e), e.load_splat(part, 0));
                    let spread = e.add_imm(work, (i * f32_row_stride(n)) as i64);
                    floats::fill(e, spread, lanes, n.next_multiple_of(TILE_ROWS));
                    spread
                }
            });
        }
        sources.extend(self.vectors.iter().map(|vector| cx.operand(e, *vector)));
        let out = site.place(e, cx, self.out);
        emit(e, cx, &self.expr, &sources, out, n);
    }

    fn work_bytes(&self, len: &dyn Fn(ValId) -> usize) -> usize {
        let is_spread = self.inputs.iter().any(|input| self.is_spread(*input, len));
        let n = self.out.row().filter(|_| is_spread).map_or(0, |out| f32_row_stride(len(*out)));
        self.inputs.len() * n
    }

    fn weights(&self, vals: &[RowType]) -> Vec<(OperandId, usize)> {
        let n = self.out.row().map_or(0, |out| vals[*out].len());
        self.vectors.iter().map(|vector| (*vector, n * 4)).collect()
    }

    fn is_by_columns(&self) -> bool {
        true
    }
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
fn emit(e: &mut Emit, cx: &Cx, expr: &Expr, inputs: &[Value], out: Value, n: usize) {
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
