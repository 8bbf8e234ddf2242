//! `hadamard`: heads through a Hadamard transform, to keys that integers of few bits keep well.

use super::prelude::*;
use super::transform;
use kernmill_plan::kv::hadamard_block;

/// Each head through a Hadamard transform.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HadamardRow<V = ValId> {
    /// Read: whole heads; in an epilogue one.
    pub x: RowPlace<V>,
    /// Elements of a head.
    pub head_dim: usize,
    /// Written; results in place.
    pub out: RowPlace<V>,
}

impl<V> HadamardRow<V> {
    pub(super) fn facts(&self) -> RowOpFacts<'_, V> {
        RowOpFacts { head_dim: Some(self.head_dim), ..RowOpFacts::on("hadamard", &self.x, self.out.row()) }
    }

    pub(super) fn numbered<O>(&self, names: &mut impl Names<V, O>) -> HadamardRow {
        let out = self.out.written(names);
        HadamardRow { x: self.x.numbered(names), head_dim: self.head_dim, out }
    }
}

impl RowOpCode for HadamardRow {
    fn check(&self, check: &mut KernelChecker, site: CheckedSite) -> Checked {
        let n = site.input(check, self.x)?;
        site.output(check, self.out, n)?;
        site.heads(check, n, self.head_dim)?;
        check.hadamard(n, self.head_dim)
    }

    fn emit(&self, e: &mut Emit, cx: &Cx, site: &OpSite) {
        let (x, out) = (site.place(e, cx, self.x), site.place(e, cx, self.out));
        transform::emit(e, x, out, site.columns(cx, self.x), hadamard_block(self.head_dim));
    }
}
