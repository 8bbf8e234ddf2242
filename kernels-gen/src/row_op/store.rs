//! Results as they are: for later steps, or for the adapters that some tokens have.

use super::prelude::*;

/// f32 as they are.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StoreRow<V = ValId, O = OperandId> {
    /// Read.
    pub x: RowPlace<V>,
    /// Written.
    pub out: V,
    /// LoRA targets for which it is kept: rows are written whose token has an adapter at one of them. Without
    /// any, every row is.
    pub lora_targets: Vec<O>,
}

impl<V, O> StoreRow<V, O> {
    /// The results at hand, every row of them.
    pub fn results(out: V) -> StoreRow<V, O> {
        StoreRow { x: RowPlace::Results, out, lora_targets: Vec::new() }
    }

    pub(super) fn facts(&self) -> RowOpFacts<'_, V> {
        let name = if self.lora_targets.is_empty() { "store" } else { "keep" };
        RowOpFacts::on(name, &self.x, Some(&self.out))
    }

    pub(super) fn numbered(&self, names: &mut impl Names<V, O>) -> StoreRow {
        let lora_targets = self.lora_targets.iter().map(|target| names.operand(target)).collect();
        let out = names.write(&self.out);
        StoreRow { x: self.x.numbered(names), out, lora_targets }
    }
}

impl RowOpCode for StoreRow {
    fn check(&self, check: &mut KernelChecker, site: CheckedSite) -> Checked {
        if !self.lora_targets.is_empty() {
            site.has_tokens(check)?;
        }
        let n = site.input(check, self.x)?;
        check.kept_rows(self.out, &self.lora_targets, n, site.rows)
    }

    fn emit(&self, e: &mut Emit, cx: &Cx, site: &OpSite) {
        cx.if_kept(e, &self.lora_targets, site.row, |e| {
            let x = site.place(e, cx, self.x);
            let out = site.part(e, cx, self.out, 4);
            floats::copy(e, x, out, site.columns(cx, self.x));
        });
    }

    fn is_by_columns(&self) -> bool {
        self.lora_targets.is_empty()
    }
}
