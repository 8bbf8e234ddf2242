//! Where operations work: on a row of values, or on an item's results for a row.

use super::quantize::Q8Ptr;
use crate::check::checker::{Checked, CountedRows, KernelChecker, RowAccess};
use crate::cx::Cx;
use crate::emit::Emit;
use crate::names::Names;
use crate::values::{RowType, ValId};
use cranelift_codegen::ir::Value;
use kernmill_plan::format::BLOCK;

/// The place that an operation reads, or writes: f32, unless the operation says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RowPlace<V = ValId> {
    /// A row of a value.
    Row(V),
    /// In an epilogue: the results at hand.
    Results,
}

impl<V> RowPlace<V> {
    /// The place by numbers, as one that is read.
    pub(super) fn numbered<O>(&self, names: &mut impl Names<V, O>) -> RowPlace {
        self.row().map_or(RowPlace::Results, |x| RowPlace::Row(names.read(x)))
    }

    /// The place by numbers, as one that is written.
    pub(super) fn written<O>(&self, names: &mut impl Names<V, O>) -> RowPlace {
        self.row().map_or(RowPlace::Results, |out| RowPlace::Row(names.write(out)))
    }

    /// The value.
    pub(super) fn row(&self) -> Option<&V> {
        match self {
            RowPlace::Row(val) => Some(val),
            RowPlace::Results => None,
        }
    }
}

/// The rows that an operation works on, for its check.
#[derive(Clone, Copy)]
pub(crate) struct CheckedSite {
    pub rows: CountedRows,
    /// None for rows of values.
    pub item: Option<CheckedItem>,
}

/// The results at hand, for the check of an operation on them.
#[derive(Clone, Copy)]
pub(crate) struct CheckedItem {
    /// Columns of all items together.
    pub n: usize,
    pub rows_per_item: usize,
    /// Results that are there: one for each matrix, until they are combined.
    pub units: usize,
    /// Whether slots are those of a routing.
    pub is_routed: bool,
}

impl CheckedSite {
    /// Columns of a place, which is read: of results, one unit.
    pub fn input(self, check: &mut KernelChecker, x: RowPlace) -> Checked<usize> {
        match (x, self.item) {
            (RowPlace::Row(x), _) => {
                let n = check.f32(x)?;
                check.access(x, self.rows, RowAccess::Read)?;
                Ok(n)
            }
            (RowPlace::Results, Some(CheckedItem { n, units, .. })) => {
                check.ensure(units == 1, || format!("{units} units, expected them to be combined"))?;
                Ok(n)
            }
            (RowPlace::Results, None) => check.wrong("no results are at hand"),
        }
    }

    /// `n` columns of a place are written.
    pub fn output(self, check: &mut KernelChecker, out: RowPlace, n: usize) -> Checked {
        match (out, self.item) {
            (RowPlace::Row(out), None) => check.writes(out, RowType::F32(n), self.rows),
            (RowPlace::Results, Some(_)) => Ok(()),
            _ => check.wrong("does not write where it reads"),
        }
    }

    /// Columns are whole groups of `of`: those of a row, or those of an item, which divide all.
    pub fn groups(self, check: &KernelChecker, n: usize, of: usize) -> Checked {
        match self.item {
            None => check.multiple(n, of),
            Some(CheckedItem { rows_per_item, .. }) => {
                check.multiple(rows_per_item, of)?;
                check.multiple(n, rows_per_item)
            }
        }
    }

    /// Heads: an item is one.
    pub fn heads(self, check: &KernelChecker, n: usize, head_dim: usize) -> Checked {
        if let Some(CheckedItem { rows_per_item, .. }) = self.item {
            check.ensure(rows_per_item == head_dim, || {
                format!("items of {rows_per_item} rows, heads of {head_dim}")
            })?;
        }
        check.multiple(n, head_dim)
    }

    /// Adapters are those of a token: rows must be tokens', or slots of routed ones.
    pub fn has_tokens(self, check: &KernelChecker) -> Checked {
        let is_routed = self.item.is_some_and(|item| item.is_routed);
        let known = match self.rows {
            CountedRows::Tokens => true,
            CountedRows::Slots(_) => is_routed,
            CountedRows::Logits => false,
        };
        check.ensure(known, || format!("its rows are {:?}, and no token of them is known", self.rows))
    }
}

/// The sizes of an item's results for a row: `[units][columns]` f32.
#[derive(Clone, Copy)]
pub(crate) struct ItemShape {
    pub units: usize,
    pub columns: usize,
}

/// An item's results for a row.
#[derive(Clone, Copy)]
pub(crate) struct ItemResults {
    pub shape: ItemShape,
    /// Where they are, in scratch.
    pub at: Value,
    /// The first column, in groups of so many.
    pub first: (Value, usize),
}

impl ItemResults {
    /// Addresses of each unit.
    pub fn units(&self, e: &mut Emit) -> Vec<Value> {
        (0..self.shape.units).map(|unit| e.add_imm(self.at, (unit * self.shape.columns * 4) as i64)).collect()
    }
}

/// The row for which an operation is emitted.
#[derive(Clone, Copy)]
pub(crate) struct OpSite {
    /// Row of the batch: whose position, sequence and adapters they are.
    pub row: Value,
    /// Row of values.
    pub value_row: Value,
    /// None where operations work on rows of values.
    pub item: Option<ItemResults>,
}

impl OpSite {
    /// A row of values.
    pub fn row(row: Value) -> OpSite {
        OpSite { row, value_row: row, item: None }
    }

    /// The results at hand, which the checker has seen to.
    pub fn results(&self) -> ItemResults {
        self.item.expect("results are at hand in an epilogue")
    }

    /// Address of a value's row.
    pub fn val(&self, e: &mut Emit, cx: &Cx, val: ValId) -> Value {
        cx.row(e, val, self.value_row)
    }

    /// Address of a place.
    pub fn place(&self, e: &mut Emit, cx: &Cx, place: RowPlace) -> Value {
        match place {
            RowPlace::Row(val) => self.val(e, cx, val),
            RowPlace::Results => self.results().at,
        }
    }

    /// Columns of a place.
    pub fn columns(&self, cx: &Cx, place: RowPlace) -> usize {
        match place {
            RowPlace::Row(val) => cx.len(val),
            RowPlace::Results => self.results().shape.columns,
        }
    }

    /// Address of the columns of a value's row that belong to the site: all, or the item's. An element has so
    /// many bytes.
    pub fn part(&self, e: &mut Emit, cx: &Cx, val: ValId, bytes: usize) -> Value {
        let row = self.val(e, cx, val);
        match self.item {
            None => row,
            Some(ItemResults { first: (first, group), .. }) => e.at(row, first, group * bytes),
        }
    }

    /// Address of the site's columns of a q8 row.
    pub fn q8_part(&self, e: &mut Emit, cx: &Cx, val: ValId) -> Q8Ptr {
        let row = self.val(e, cx, val);
        let row = Q8Ptr::of_row(e, row, cx.len(val));
        match self.item {
            None => row,
            Some(ItemResults { first: (first, group), .. }) => {
                let block = e.mul_imm(first, (group / BLOCK) as i64);
                row.skip(e, block)
            }
        }
    }
}
