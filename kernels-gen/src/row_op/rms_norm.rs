//! RMS norms, of rows or of each head.

use super::prelude::*;

/// A norm: see docs/dev/numerics.md.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RmsNormRow<V = ValId, O = OperandId> {
    /// Read: rows, or whole heads; in an epilogue one head.
    pub x: RowPlace<V>,
    /// f32, one for each column, or for each of a head; none is as if all were 1.
    pub weight: Option<O>,
    /// Added to the mean of squares.
    pub eps: FloatBits,
    /// Elements of a head, if each is normed by itself.
    pub head_dim: Option<usize>,
    /// Written; results in place.
    pub out: RowPlace<V>,
}

impl<V, O> RmsNormRow<V, O> {
    pub(super) fn facts(&self) -> RowOpFacts<'_, V> {
        let name = if self.head_dim.is_some() { "head_norm" } else { "rms_norm" };
        RowOpFacts { head_dim: self.head_dim, ..RowOpFacts::on(name, &self.x, self.out.row()) }
    }

    pub(super) fn numbered(&self, names: &mut impl Names<V, O>) -> RmsNormRow {
        let out = self.out.written(names);
        let (x, weight) = (self.x.numbered(names), self.weight.as_ref().map(|weight| names.operand(weight)));
        RmsNormRow { x, weight, eps: self.eps, head_dim: self.head_dim, out }
    }
}

impl RmsNormRow {
    fn ukernel(&self, n: usize) -> MicroKernel {
        MicroKernel::RmsNorm { n: self.normed(n), eps: self.eps.bits() }
    }

    /// Elements that are normed together.
    fn normed(&self, columns: usize) -> usize {
        self.head_dim.unwrap_or(columns)
    }

    /// Columns of rows that are normed whole.
    fn columns(&self, vals: &[RowType]) -> usize {
        self.x.row().map_or(0, |x| vals[*x].len())
    }
}

impl RowOpCode for RmsNormRow {
    fn check(&self, check: &mut KernelChecker, site: CheckedSite) -> Checked {
        let n = site.input(check, self.x)?;
        let normed = self.normed(n);
        check.multiple(normed, TILE_ROWS)?;
        match self.weight {
            Some(weight) => check.weights(weight, normed * 4)?,
            None => check.keeps(normed * 4),
        }
        match self.head_dim {
            Some(head_dim) => site.heads(check, n, head_dim)?,
            None => check.ensure(site.item.is_none(), || {
                "a norm of whole rows, and an item has a part of a row".to_owned()
            })?,
        }
        site.output(check, self.out, n)
    }

    fn ukernels(&self, vals: &[RowType], _: Option<ItemShape>) -> Vec<MicroKernel> {
        vec![self.ukernel(self.columns(vals))]
    }

    fn emit(&self, e: &mut Emit, cx: &Cx, site: &OpSite) {
        let (x, out) = (site.place(e, cx, self.x), site.place(e, cx, self.out));
        let n = site.columns(cx, self.x);
        let weight = match self.weight {
            Some(weight) => cx.operand(e, weight),
            None => {
                let (ones, one) = (cx.work_scratch(e), e.splat_f32(1.0));
                floats::fill(e, ones, one, self.normed(n));
                ones
            }
        };
        let norm = cx.ukernel(self.ukernel(n));
        match self.head_dim.filter(|head_dim| *head_dim < n) {
            None => e.call(norm, &[x, weight, out]),
            Some(head_dim) => e.for_count(n / head_dim, |e, head| {
                let (x, out) = (e.at(x, head, head_dim * 4), e.at(out, head, head_dim * 4));
                e.call(norm, &[x, weight, out]);
            }),
        }
    }

    fn work_bytes(&self, len: &dyn Fn(ValId) -> usize) -> usize {
        let ones = || self.normed(self.x.row().map_or(0, |x| len(*x))) * 4;
        if self.weight.is_some() { 0 } else { ones() }
    }

    fn weights(&self, vals: &[RowType]) -> Vec<(OperandId, usize)> {
        self.weight.iter().map(|weight| (*weight, self.normed(self.columns(vals)) * 4)).collect()
    }
}
