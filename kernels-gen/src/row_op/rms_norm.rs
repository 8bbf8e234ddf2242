//! RMS norms.

use super::prelude::*;

/// A norm: see docs/dev/numerics.md.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RmsNormRow<V = ValId, O = OperandId> {
    /// Read.
    pub x: V,
    /// f32, one for each column.
    pub weight: O,
    /// Added to the mean of squares.
    pub eps: FloatBits,
    /// Written.
    pub out: V,
}

impl<V, O> RmsNormRow<V, O> {
    pub(super) fn facts(&self) -> RowOpFacts<'_, V> {
        RowOpFacts::new("rms_norm", Some(&self.out))
    }

    pub(super) fn numbered(&self, names: &mut impl Names<V, O>) -> RmsNormRow {
        let out = names.write(&self.out);
        RmsNormRow { x: names.read(&self.x), weight: names.operand(&self.weight), eps: self.eps, out }
    }
}

impl RmsNormRow {
    fn ukernel(&self, n: usize) -> MicroKernel {
        MicroKernel::RmsNorm { n, eps: self.eps.bits() }
    }
}

impl RowOpCode for RmsNormRow {
    fn check(&self, check: &mut KernelChecker, site: CheckedSite) -> Checked {
        let n = check.f32(self.x)?;
        check.multiple(n, TILE_ROWS)?;
        check.weights(self.weight, n * 4)?;
        check.reads(self.x, RowType::F32(n), site.rows)?;
        check.writes(self.out, RowType::F32(n), site.rows)
    }

    fn ukernels(&self, vals: &[RowType], _: Option<ItemShape>) -> Vec<MicroKernel> {
        vec![self.ukernel(vals[self.x].len())]
    }

    fn emit(&self, e: &mut Emit, cx: &Cx, site: &OpSite) {
        let (x, out) = (site.val(e, cx, self.x), site.val(e, cx, self.out));
        let weight = cx.operand(e, self.weight);
        e.call(cx.ukernel(self.ukernel(cx.len(self.x))), &[x, weight, out]);
    }

    fn weights(&self, vals: &[RowType]) -> Vec<(OperandId, usize)> {
        vec![(self.weight, vals[self.x].len() * 4)]
    }
}
