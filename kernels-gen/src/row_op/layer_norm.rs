//! Layer norms of rows.

use super::prelude::*;
use cranelift_codegen::ir::types::F32X4;

/// A norm of a row around its mean: see docs/dev/numerics.md.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LayerNormRow<V = ValId, O = OperandId> {
    /// Read.
    pub x: V,
    /// f32, one for each column, if they are not all 1.
    pub weight: Option<O>,
    /// Added last; f32, one for each column.
    pub bias: Option<O>,
    /// Added to the variance.
    pub eps: FloatBits,
    /// The normed row.
    pub out: V,
}

impl<V, O> LayerNormRow<V, O> {
    pub(super) fn facts(&self) -> RowOpFacts<'_, V> {
        RowOpFacts::new("layer_norm", Some(&self.out))
    }

    pub(super) fn numbered(&self, names: &mut impl Names<V, O>) -> LayerNormRow {
        let out = names.write(&self.out);
        let x = names.read(&self.x);
        let [weight, bias] =
            [&self.weight, &self.bias].map(|vector| vector.as_ref().map(|v| names.operand(v)));
        LayerNormRow { x, weight, bias, eps: self.eps, out }
    }
}

impl RowOpCode for LayerNormRow {
    fn check(&self, check: &mut KernelChecker, site: CheckedSite) -> Checked {
        let n = check.f32(self.x)?;
        check.multiple(n, TILE_ROWS)?;
        for vector in [self.weight, self.bias].into_iter().flatten() {
            check.weights(vector, n * 4)?;
        }
        check.reads(self.x, RowType::F32(n), site.rows)?;
        check.writes(self.out, RowType::F32(n), site.rows)
    }

    fn emit(&self, e: &mut Emit, cx: &Cx, site: &OpSite) {
        let (x, out) = (site.val(e, cx, self.x), site.val(e, cx, self.out));
        let [weight, bias] =
            [self.weight, self.bias].map(|vector| vector.map(|vector| cx.operand(e, vector)));
        let n = cx.len(self.x);
        let count = e.b.ins().f32const(n as f32);
        let sum = lane_sum(e, x, n, |e, x, lane| e.fadd(lane, x));
        let mean = e.fdiv(sum, count);
        let mean = e.splat(mean);
        let sum = lane_sum(e, x, n, |e, x, lane| {
            let difference = e.fsub(x, mean);
            e.fma(difference, difference, lane)
        });
        let variance = e.fdiv(sum, count);
        let eps = e.b.ins().f32const(f32::from_bits(self.eps.bits()));
        let shifted = e.fadd(variance, eps);
        let root = e.b.ins().sqrt(shifted);
        let one = e.b.ins().f32const(1.0);
        let r = e.fdiv(one, root);
        let r = e.splat(r);
        floats::vectors(e, n, |e, offset| {
            let load = |e: &mut Emit, base| {
                let ptr = e.add(base, offset);
                e.load(F32X4, ptr, 0)
            };
            let x = load(e, x);
            let difference = e.fsub(x, mean);
            let mut y = e.fmul(difference, r);
            if let Some(weight) = weight {
                let weight = load(e, weight);
                y = e.fmul(y, weight);
            }
            if let Some(bias) = bias {
                let bias = load(e, bias);
                y = e.fadd(y, bias);
            }
            let out = e.add(out, offset);
            e.store(y, out, 0);
        });
    }

    fn weights(&self, vals: &[RowType]) -> Vec<(OperandId, usize)> {
        let vectors = [self.weight, self.bias].into_iter().flatten();
        vectors.map(|vector| (vector, vals[self.x].len() * 4)).collect()
    }
}

/// The lane sum of `n` numbers at `x`, a multiple of 16, that `add` adds to a lane.
fn lane_sum(e: &mut Emit, x: Value, n: usize, add: impl Fn(&mut Emit, Value, Value) -> Value) -> Value {
    let (start, end, zero) = (e.i64(0), e.i64((n * 4) as i64), e.splat_f32(0.0));
    let lanes = e.for_carry(start, end, 64, &[zero; 4], |e, offset, lanes| {
        let ptr = e.add(x, offset);
        let part = |(i, lane): (usize, &Value)| {
            let x = e.load(F32X4, ptr, i * 16);
            add(e, x, *lane)
        };
        lanes.iter().enumerate().map(part).collect()
    });
    e.lane_tree([lanes[0], lanes[1], lanes[2], lanes[3]])
}
