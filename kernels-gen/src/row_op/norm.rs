//! Norms of rows, by their root mean square or around their mean, or of each head.

use super::prelude::*;
use cranelift_codegen::ir::types::F32X4;

/// A norm: see docs/dev/numerics.md.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NormRow<V = ValId, O = OperandId> {
    /// Read: rows, or whole heads; in an epilogue one head.
    pub x: RowPlace<V>,
    /// f32, one for each column, or for each of a head; none is as if all were 1.
    pub weight: Option<O>,
    /// f32, one for each column, added last; of a norm around the mean.
    pub bias: Option<O>,
    /// Added to the mean of squares.
    pub eps: FloatBits,
    /// Elements of a head, if each is normed by itself.
    pub head_dim: Option<usize>,
    /// Whether the mean is taken from the elements first.
    pub is_centred: bool,
    /// Written; results in place.
    pub out: RowPlace<V>,
}

impl<V, O> NormRow<V, O> {
    pub(super) fn facts(&self) -> RowOpFacts<'_, V> {
        let name = match (self.head_dim, self.is_centred) {
            (Some(_), _) => "head_norm",
            (None, true) => "layer_norm",
            (None, false) => "rms_norm",
        };
        RowOpFacts { head_dim: self.head_dim, ..RowOpFacts::on(name, &self.x, self.out.row()) }
    }

    pub(super) fn numbered(&self, names: &mut impl Names<V, O>) -> NormRow {
        let out = self.out.written(names);
        let x = self.x.numbered(names);
        let [weight, bias] =
            [&self.weight, &self.bias].map(|vector| vector.as_ref().map(|v| names.operand(v)));
        let NormRow { eps, head_dim, is_centred, .. } = *self;
        NormRow { x, weight, bias, eps, head_dim, is_centred, out }
    }
}

impl NormRow {
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

    /// Weight and bias, where they are there.
    fn vectors(&self) -> impl Iterator<Item = OperandId> {
        [self.weight, self.bias].into_iter().flatten()
    }

    fn emit_centred(&self, e: &mut Emit, cx: &Cx, [x, out]: [Value; 2], n: usize) {
        let [weight, bias] =
            [self.weight, self.bias].map(|vector| vector.map(|vector| cx.operand(e, vector)));
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
}

impl RowOpCode for NormRow {
    fn check(&self, check: &mut KernelChecker, site: CheckedSite) -> Checked {
        let n = site.input(check, self.x)?;
        let normed = self.normed(n);
        check.multiple(normed, TILE_ROWS)?;
        if self.weight.is_none() && !self.is_centred {
            check.keeps(normed * 4);
        }
        self.vectors().try_for_each(|vector| check.weights(vector, normed * 4))?;
        let is_plain = self.head_dim.is_none() && self.x.row().is_some() && self.out.row().is_some();
        check.ensure(if self.is_centred { is_plain } else { self.bias.is_none() }, || {
            "only norms of whole rows are around the mean, and only those have a bias".to_owned()
        })?;
        match self.head_dim {
            Some(head_dim) => site.heads(check, n, head_dim)?,
            None => check.ensure(site.item.is_none(), || {
                "a norm of whole rows, and an item has a part of a row".to_owned()
            })?,
        }
        site.output(check, self.out, n)
    }

    fn ukernels(&self, vals: &[RowType], _: Option<ItemShape>) -> Vec<MicroKernel> {
        if self.is_centred { vec![] } else { vec![self.ukernel(self.columns(vals))] }
    }

    fn emit(&self, e: &mut Emit, cx: &Cx, site: &OpSite) {
        let (x, out) = (site.place(e, cx, self.x), site.place(e, cx, self.out));
        let n = site.columns(cx, self.x);
        if self.is_centred {
            return self.emit_centred(e, cx, [x, out], n);
        }
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
        if self.weight.is_some() || self.is_centred { 0 } else { ones() }
    }

    fn weights(&self, vals: &[RowType]) -> Vec<(OperandId, usize)> {
        self.vectors().map(|vector| (vector, self.normed(self.columns(vals)) * 4)).collect()
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
