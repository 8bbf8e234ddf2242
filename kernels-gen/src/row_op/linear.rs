//! Small matrices, all of each by one worker.

use super::prelude::*;
use crate::adapter;

/// A small matrix times a row.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LinearRow<V = ValId, O = OperandId> {
    /// Read.
    pub x: V,
    /// The matrix.
    pub mat: Mat<V, O>,
    /// The product.
    pub out: V,
}

impl<V, O> LinearRow<V, O> {
    pub(super) fn facts(&self) -> RowOpFacts<'_, V> {
        RowOpFacts::new("linear", Some(&self.out))
    }

    pub(super) fn numbered(&self, names: &mut impl Names<V, O>) -> LinearRow {
        let out = names.write(&self.out);
        LinearRow { x: names.read(&self.x), mat: self.mat.numbered(names), out }
    }
}

impl RowOpCode for LinearRow {
    fn check(&self, check: &mut KernelChecker, site: CheckedSite) -> Checked {
        let (mat, input) = (&self.mat, check.row(self.x)?);
        check.matrix(mat, input, 1)?;
        if mat.adapter.is_some() {
            check.rows_are(site.rows, CountedRows::Tokens)?;
        }
        check.adapter(mat, CountedRows::Tokens, 0)?;
        check.access(self.x, site.rows, RowAccess::Read)?;
        // The list of one row.
        check.keeps(8);
        check.writes(self.out, RowType::F32(mat.n), site.rows)
    }

    fn ukernels(&self, vals: &[RowType], _: Option<ItemShape>) -> Vec<MicroKernel> {
        vec![dot_ukernel(&self.mat, vals[self.x], 1)]
    }

    fn emit(&self, e: &mut Emit, cx: &Cx, site: &OpSite) {
        let mat = &self.mat;
        let ukernel = dot_ukernel(mat, cx.vals[self.x], 1);
        let (x, out) = (site.val(e, cx, self.x), site.val(e, cx, self.out));
        let list = cx.linear_list(e);
        e.store(x, list, 0);
        let base = cx.operand(e, mat.operand);
        let stride = e.i64(0);
        e.for_count(mat.n.div_ceil(TILE_ROWS), |e, tile| {
            let weights = e.at(base, tile, mat.tile_stride);
            let out = e.at(out, tile, TILE_ROWS * 4);
            e.call(cx.ukernel(ukernel), &[weights, list, out, stride]);
        });
        adapter::expand_row(e, cx, mat, site.row, out);
        if let Some(bias) = mat.bias {
            let bias = cx.operand(e, bias);
            floats::add_in_place(e, out, bias, mat.n);
        }
    }

    fn weights(&self, _: &[RowType]) -> Vec<(OperandId, usize)> {
        let mat = &self.mat;
        let matrix = (mat.operand, mat.n.div_ceil(TILE_ROWS) * mat.tile_stride);
        [Some(matrix), mat.bias.map(|bias| (bias, mat.n * 4))].into_iter().flatten().collect()
    }

    fn mat(&self) -> Option<&Mat> {
        Some(&self.mat)
    }

    fn work(&self, _: &dyn Fn(ValId) -> usize) -> Option<RowWork> {
        Some(RowWork { elements: 0, weights: self.mat.n * self.mat.k })
    }
}

/// The dot micro-kernel for `tokens` rows of an input of that type.
pub(crate) fn dot_ukernel(mat: &Mat, input: RowType, tokens: usize) -> MicroKernel {
    let (format, k) = (mat.format, mat.k);
    match input {
        RowType::Q8(_) | RowType::Q8x2(_) => MicroKernel::DotQ8 { format, k, tokens },
        _ => MicroKernel::DotF32 { format, k, tokens },
    }
}
