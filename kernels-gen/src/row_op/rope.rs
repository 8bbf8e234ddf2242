//! Half-split rotation of one head.

use super::prelude::*;
use cranelift_codegen::ir::types::F32X4;
use kernmill_plan::contract::Need;
use kernmill_plan::limit;

/// Rotates each head.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RopeRow<V = ValId, O = OperandId> {
    /// Read: whole heads; in an epilogue one.
    pub x: RowPlace<V>,
    /// The rotary table.
    pub table: O,
    /// Elements of a head.
    pub head_dim: usize,
    /// Written; results in place.
    pub out: RowPlace<V>,
}

impl<V, O> RopeRow<V, O> {
    pub(super) fn facts(&self) -> RowOpFacts<'_, V> {
        RowOpFacts { head_dim: Some(self.head_dim), ..RowOpFacts::on("rope", &self.x, self.out.row()) }
    }

    pub(super) fn numbered(&self, names: &mut impl Names<V, O>) -> RopeRow {
        let out = self.out.written(names);
        let table = names.operand(&self.table);
        RopeRow { x: self.x.numbered(names), table, head_dim: self.head_dim, out }
    }
}

impl RowOpCode for RopeRow {
    fn check(&self, check: &mut KernelChecker, site: CheckedSite) -> Checked {
        let RopeRow { x, table, head_dim, out } = *self;
        check.rows_are(site.rows, CountedRows::Tokens)?;
        let group = 2 * VECTOR;
        check.ensure((1..=limit::HEAD_DIM).contains(&head_dim) && head_dim.is_multiple_of(group), || {
            format!("heads of {head_dim}, expected a multiple of {group} up to {}", limit::HEAD_DIM)
        })?;
        // Rows of the table are read whole.
        match check.known(table)? {
            None => check.set(table, Need::Rope { head_dim: head_dim as u32 })?,
            Some(Need::Rope { head_dim: known }) if known as usize == head_dim => {}
            Some(other) => return check.conflict(table, other, "a rotary table of another size"),
        }
        let n = site.input(check, x)?;
        site.heads(check, n, head_dim)?;
        site.output(check, out, n)
    }

    fn emit(&self, e: &mut Emit, cx: &Cx, site: &OpSite) {
        let (x, out) = (site.place(e, cx, self.x), site.place(e, cx, self.out));
        let table = cx.rope_row(e, self.table, self.head_dim, site.row);
        if site.item.is_some() {
            return emit(e, x, table, out, self.head_dim);
        }
        e.for_count(site.columns(cx, self.x) / self.head_dim, |e, head| {
            let (x, out) = (e.at(x, head, self.head_dim * 4), e.at(out, head, self.head_dim * 4));
            emit(e, x, table, out, self.head_dim);
        });
    }
}

/// Rotates `head_dim` f32 (a multiple of 8) at `x` into `out`, which may be `x`. `table` is `[cos; half][sin;
/// half]`.
fn emit(e: &mut Emit, x: Value, table: Value, out: Value, head_dim: usize) {
    let half = head_dim / 2;
    e.for_count(half / LANES, |e, i| {
        let (x, table, out) = (e.at(x, i, 16), e.at(table, i, 16), e.at(out, i, 16));
        let (lo, hi) = (e.load(F32X4, x, 0), e.load(F32X4, x, half * 4));
        let (cos, sin) = (e.load(F32X4, table, 0), e.load(F32X4, table, half * 4));
        let (lo_cos, hi_sin) = (e.fmul(lo, cos), e.fmul(hi, sin));
        let (hi_cos, lo_sin) = (e.fmul(hi, cos), e.fmul(lo, sin));
        let new_lo = e.fsub(lo_cos, hi_sin);
        let new_hi = e.fadd(hi_cos, lo_sin);
        e.store(new_lo, out, 0);
        e.store(new_hi, out, half * 4);
    });
}
