//! Roundings: f32 to q8, bf16, and the formats of the KV cache.

use super::prelude::*;
use super::{bf16, kv, quantize};
use kernmill_plan::format::Q8Row;
use kernmill_plan::kv::KvRow;

/// f32 to fewer bits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RoundRow<V = ValId> {
    /// Read.
    pub x: RowPlace<V>,
    /// The format.
    pub to: RoundTo,
    /// Written.
    pub out: V,
}

/// A format that f32 are rounded to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RoundTo {
    /// Blocks of q8.
    Q8,
    /// Blocks of q8, and blocks of q8 of what those leave.
    Q8x2,
    /// bf16.
    Bf16,
    /// A format of the KV cache.
    Kv(KvRow),
}

impl<V> RoundRow<V> {
    pub(super) fn facts(&self) -> RowOpFacts<'_, V> {
        let (name, is_by_blocks) = match self.to {
            RoundTo::Q8 | RoundTo::Q8x2 => ("quantize_q8", true),
            RoundTo::Bf16 => ("bf16_cast", true),
            RoundTo::Kv(_) => ("kv_cast", false),
        };
        RowOpFacts { is_by_blocks, ..RowOpFacts::on(name, &self.x, Some(&self.out)) }
    }

    pub(super) fn numbered<O>(&self, names: &mut impl Names<V, O>) -> RoundRow {
        let out = names.write(&self.out);
        RoundRow { x: self.x.numbered(names), to: self.to, out }
    }
}

impl RowOpCode for RoundRow {
    fn check(&self, check: &mut KernelChecker, site: CheckedSite) -> Checked {
        let n = site.input(check, self.x)?;
        let row = match (self.to, site.item) {
            (RoundTo::Q8, _) => {
                site.groups(check, n, BLOCK)?;
                RowType::Q8(n)
            }
            (RoundTo::Q8x2, _) => {
                site.groups(check, n, BLOCK)?;
                // A block less its first term.
                check.keeps(BLOCK * 4);
                RowType::Q8x2(n)
            }
            (RoundTo::Bf16, _) => {
                site.groups(check, n, 2 * VECTOR)?;
                RowType::Bf16(n)
            }
            (RoundTo::Kv(to), None) => {
                check.multiple(n, if to.format.is_scaled() { to.head_dim } else { VECTOR })?;
                RowType::kv(to, n)
            }
            (RoundTo::Kv(to), Some(item)) => {
                check.ensure(!to.format.is_scaled(), || {
                    format!("rounds to {to}, whose heads are rounded where they are whole")
                })?;
                // The last item's padding is stored too.
                let (stored, row) = (to.bytes(n.next_multiple_of(item.rows_per_item)), RowType::kv(to, n));
                let stride = row.stride();
                check.ensure(stored <= stride, || format!("{stored} bytes of a row, which has {stride}"))?;
                row
            }
        };
        check.writes(self.out, row, site.rows)
    }

    fn ukernels(&self, _: &[RowType], _: Option<ItemShape>) -> Vec<MicroKernel> {
        let is_q8 = matches!(self.to, RoundTo::Q8 | RoundTo::Q8x2);
        is_q8.then_some(MicroKernel::Quantize).into_iter().collect()
    }

    fn emit(&self, e: &mut Emit, cx: &Cx, site: &OpSite) {
        let (x, n) = (site.place(e, cx, self.x), site.columns(cx, self.x));
        match self.to {
            RoundTo::Q8 => {
                let out = site.q8_part(e, cx, self.out);
                quantize::emit(e, cx, x, out, n);
            }
            RoundTo::Q8x2 => {
                let first = site.q8_part(e, cx, self.out);
                let second = first.behind(e, Q8Row { k: cx.len(self.out) }.stride());
                quantize::emit(e, cx, x, first, n);
                quantize::emit_rest(e, cx, x, (first, second), n);
            }
            RoundTo::Bf16 => {
                let out = site.part(e, cx, self.out, 2);
                bf16::emit(e, x, out, n);
            }
            RoundTo::Kv(to) => {
                // Rows of heads with scales are whole.
                let out = site.part(e, cx, self.out, to.bytes(1));
                kv::cast(e, x, out, n, to);
            }
        }
    }

    fn work_bytes(&self, _: &dyn Fn(ValId) -> usize) -> usize {
        if self.to == RoundTo::Q8x2 { BLOCK * 4 } else { 0 }
    }
}
