//! The rows that wanted rows stand for.

use super::prelude::*;

/// The row that a wanted row stands for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SelectRow<V = ValId> {
    /// Rows of the batch.
    pub x: V,
    /// Wanted rows.
    pub out: V,
}

impl<V> SelectRow<V> {
    pub(super) fn facts(&self) -> RowOpFacts<'_, V> {
        RowOpFacts::new("select_rows", Some(&self.out))
    }

    pub(super) fn numbered<O>(&self, names: &mut impl Names<V, O>) -> SelectRow {
        let out = names.write(&self.out);
        SelectRow { x: names.read(&self.x), out }
    }
}

impl RowOpCode for SelectRow {
    fn check(&self, check: &mut KernelChecker, site: CheckedSite) -> Checked {
        check.rows_are(site.rows, CountedRows::Logits)?;
        let n = check.f32(self.x)?;
        check.access(self.x, CountedRows::Tokens, RowAccess::Read)?;
        check.writes(self.out, RowType::F32(n), site.rows)
    }

    fn emit(&self, e: &mut Emit, cx: &Cx, site: &OpSite) {
        let row = cx.logit_index(e, site.value_row);
        let (x, out) = (cx.row(e, self.x, row), site.val(e, cx, self.out));
        floats::copy(e, x, out, cx.len(self.out));
    }
}
