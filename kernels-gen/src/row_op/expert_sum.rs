//! Weighted sum of a token's expert rows, in ascending expert id.

use super::prelude::*;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::F32X4;

/// Weighted sum of a token's expert rows, in ascending expert id.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ExpertSumRow<V = ValId> {
    /// A row of each slot.
    pub y: V,
    /// The chosen experts and their weights.
    pub routing: V,
    /// Slots of a token.
    pub top_k: usize,
    /// The sum.
    pub out: V,
}

impl<V> ExpertSumRow<V> {
    pub(super) fn facts(&self) -> RowOpFacts<'_, V> {
        RowOpFacts::new("expert_sum", Some(&self.out))
    }

    pub(super) fn numbered<O>(&self, names: &mut impl Names<V, O>) -> ExpertSumRow {
        let out = names.write(&self.out);
        let (y, routing) = (names.read(&self.y), names.read(&self.routing));
        ExpertSumRow { y, routing, top_k: self.top_k, out }
    }
}

impl RowOpCode for ExpertSumRow {
    fn check(&self, check: &mut KernelChecker, site: CheckedSite) -> Checked {
        check.rows_are(site.rows, CountedRows::Tokens)?;
        let n = check.f32(self.y)?;
        check.reads(self.routing, RowType::Routing(self.top_k), site.rows)?;
        check.access(self.y, CountedRows::Slots(self.top_k), RowAccess::Read)?;
        check.keeps(self.top_k * 8);
        check.writes(self.out, RowType::F32(n), site.rows)
    }

    fn emit(&self, e: &mut Emit, cx: &Cx, site: &OpSite) {
        let first = e.mul_imm(site.value_row, self.top_k as i64);
        let rows = cx.row(e, self.y, first);
        let (routes, out) = (site.val(e, cx, self.routing), site.val(e, cx, self.out));
        let work = cx.work_scratch(e);
        emit(e, (rows, cx.vals[self.y].stride()), routes, work, out, self.top_k, cx.len(self.out));
    }

    fn work_bytes(&self, _: &dyn Fn(ValId) -> usize) -> usize {
        self.top_k * 8
    }

    fn work(&self, len: &dyn Fn(ValId) -> usize) -> Option<RowWork> {
        Some(RowWork { elements: len(self.out) * self.top_k, weights: 0 })
    }
}

/// `out[i] = sum over slots by ascending expert of weight * rows[slot][i]`. `work` has room for `top_k` u64.
fn emit(
    e: &mut Emit,
    (rows, row_stride): (Value, usize),
    routes: Value,
    work: Value,
    out: Value,
    top_k: usize,
    n: usize,
) {
    // The rank of a slot is the number of slots before it in (expert, slot) order.
    let experts: Vec<Value> = (0..top_k).map(|slot| e.load_u32(routes, slot * 8)).collect();
    for (slot, expert) in experts.iter().enumerate() {
        let mut rank = e.i64(0);
        for (other, other_expert) in experts.iter().enumerate() {
            if other != slot {
                let cc = if other < slot { IntCC::UnsignedLessThanOrEqual } else { IntCC::UnsignedLessThan };
                let before = e.icmp(cc, *other_expert, *expert);
                let before = e.b.ins().uextend(cranelift_codegen::ir::types::I64, before);
                rank = e.add(rank, before);
            }
        }
        let place = e.at(work, rank, 8);
        let index = e.i64(slot as i64);
        e.b.ins().store(MEM, index, place, 0);
    }
    floats::zero(e, out, n);
    e.for_count(top_k, |e, rank| {
        let place = e.at(work, rank, 8);
        let slot = e.load(cranelift_codegen::ir::types::I64, place, 0);
        let route = e.at(routes, slot, 8);
        let weight = e.load_splat(route, 4);
        let row = e.at(rows, slot, row_stride);
        floats::vectors(e, n, |e, offset| {
            let (x, out) = (e.add(row, offset), e.add(out, offset));
            let (value, sum) = (e.load(F32X4, x, 0), e.load(F32X4, out, 0));
            let sum = e.fma(weight, value, sum);
            e.store(sum, out, 0);
        });
    });
}
