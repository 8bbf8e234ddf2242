//! Expressions of rows, of rows of one column, which is every column's, and of vectors.

use super::elementwise;
use super::prelude::*;
use crate::expr::Expr;
use kernmill_plan::format::f32_row_stride;

/// An expression whose inputs are spread over the columns where they have one only.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BroadcastRow<V = ValId, O = OperandId> {
    /// The variables are `inputs`, then `vectors`.
    pub expr: Expr,
    /// Rows of as many columns as the output, or of one.
    pub inputs: Vec<V>,
    /// f32, one for each column, for all rows.
    pub vectors: Vec<O>,
    /// Where the values go.
    pub out: V,
}

impl<V, O> BroadcastRow<V, O> {
    pub(super) fn facts(&self) -> RowOpFacts<'_, V> {
        RowOpFacts::new("broadcast", Some(&self.out))
    }

    pub(super) fn numbered(&self, names: &mut impl Names<V, O>) -> BroadcastRow {
        let out = names.write(&self.out);
        let inputs = self.inputs.iter().map(|input| names.read(input)).collect();
        let vectors = self.vectors.iter().map(|vector| names.operand(vector)).collect();
        BroadcastRow { expr: self.expr.clone(), inputs, vectors, out }
    }
}

impl RowOpCode for BroadcastRow {
    fn check(&self, check: &mut KernelChecker, site: CheckedSite) -> Checked {
        let n = check.f32(self.out)?;
        elementwise::check_variables(check, &self.expr, self.inputs.len() + self.vectors.len())?;
        for input in &self.inputs {
            let columns = check.f32(*input)?;
            check.ensure(columns == n || columns == 1, || format!("{columns} columns, expected {n} or 1"))?;
            check.reads(*input, RowType::F32(columns), site.rows)?;
            if columns != n {
                check.keeps(self.inputs.len() * f32_row_stride(n));
            }
        }
        self.vectors.iter().try_for_each(|vector| check.bias(*vector, n, 1))?;
        check.writes(self.out, RowType::F32(n), site.rows)
    }

    fn ukernels(&self, vals: &[RowType], _: Option<ItemShape>) -> Vec<MicroKernel> {
        elementwise::ukernels(&self.expr, self.inputs.len() + self.vectors.len(), vals[self.out].len())
    }

    fn emit(&self, e: &mut Emit, cx: &Cx, site: &OpSite) {
        let n = cx.len(self.out);
        let mut sources = Vec::new();
        for (i, input) in self.inputs.iter().enumerate() {
            let row = site.val(e, cx, *input);
            sources.push(match cx.len(*input) == n {
                true => row,
                false => {
                    let (work, lanes) = (cx.work_scratch(e), e.load_splat(row, 0));
                    let spread = e.add_imm(work, (i * f32_row_stride(n)) as i64);
                    floats::fill(e, spread, lanes, n.next_multiple_of(TILE_ROWS));
                    spread
                }
            });
        }
        sources.extend(self.vectors.iter().map(|vector| cx.operand(e, *vector)));
        let out = site.val(e, cx, self.out);
        elementwise::emit(e, cx, &self.expr, &sources, out, n);
    }

    fn work_bytes(&self, len: &dyn Fn(ValId) -> usize) -> usize {
        let n = len(self.out);
        match self.inputs.iter().all(|input| len(*input) == n) {
            true => 0,
            false => self.inputs.len() * f32_row_stride(n),
        }
    }

    fn weights(&self, vals: &[RowType]) -> Vec<(OperandId, usize)> {
        self.vectors.iter().map(|vector| (*vector, vals[self.out].len() * 4)).collect()
    }
}
