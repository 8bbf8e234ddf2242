//! Lists of pointers to rows, for micro-kernels: one for each row of q8 that an input row consists of.

use crate::cx::Cx;
use crate::emit::Emit;
use crate::kernel::{RowType, ValId};
use cranelift_codegen::ir::Value;
use kernmill_plan::format::Q8Row;

/// The lists of an input's rows, one behind the other in the kernel's own area for them.
#[derive(Clone, Copy)]
pub struct TermLists {
    input: ValId,
    row: RowType,
    max_rows: usize,
}

/// Lists that the rows of a type take: at least one.
pub fn lists_of(row: RowType) -> usize {
    row.q8_terms().max(1)
}

impl TermLists {
    /// The lists of a kernel's `input`, each with room for `max_rows` rows.
    pub fn new(cx: &Cx, input: ValId, max_rows: usize) -> TermLists {
        TermLists { input, row: cx.vals[input], max_rows }
    }

    /// Address of a term's list.
    pub fn list(&self, e: &mut Emit, cx: &Cx, term: usize) -> Value {
        let list = cx.list(e);
        e.add_imm(list, (term * self.max_rows * 8) as i64)
    }

    /// Addresses of all lists.
    pub fn all(&self, e: &mut Emit, cx: &Cx) -> Vec<Value> {
        (0..lists_of(self.row)).map(|term| self.list(e, cx, term)).collect()
    }

    /// Writes the pointers to rows `start..end`.
    pub fn fill(&self, e: &mut Emit, cx: &Cx, (start, end): (Value, Value)) {
        let (lists, k) = (self.all(e, cx), self.row.len());
        e.for_range(start, end, 1, |e, row| {
            let source = cx.row(e, self.input, row);
            for (term, list) in lists.iter().enumerate() {
                let source = e.add_imm(source, (term * Q8Row { k }.stride()) as i64);
                let entry = e.at(*list, row, 8);
                e.store(source, entry, 0);
            }
        });
    }
}
