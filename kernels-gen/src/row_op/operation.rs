//! The interface of every operation to the compiler, the checker and the generator.

use super::site::{CheckedSite, ItemShape, OpSite, RowPlace};
use crate::check::checker::{Checked, KernelChecker};
use crate::cx::Cx;
use crate::emit::Emit;
use crate::ukernel::MicroKernel;
use crate::values::{Mat, OperandId, RowType, ValId};
use kernmill_plan::kv::KvPlane;

/// Properties of an operation, whatever the names of its values `V`.
#[derive(Clone, Copy, Debug)]
pub struct RowOpFacts<'o, V> {
    /// The name in listings.
    pub name: &'static str,
    /// The value that it writes; none if it changes the results at hand or writes to the KV cache.
    pub out: Option<&'o V>,
    /// Whether it works on the results at hand, and so in an epilogue.
    pub is_on_results: bool,
    /// Elements of the heads that it works on one by one. In an epilogue an item is such a head.
    pub head_dim: Option<usize>,
    /// Whether it writes whole blocks of 32 columns.
    pub is_by_blocks: bool,
    /// Keys or values, if it writes some to the KV cache.
    pub cached: Option<KvPlane>,
}

impl<'o, V> RowOpFacts<'o, V> {
    /// An operation that knows rows of values only.
    pub(super) fn new(name: &'static str, out: Option<&'o V>) -> Self {
        RowOpFacts { name, out, is_on_results: false, head_dim: None, is_by_blocks: false, cached: None }
    }

    /// An operation on that place.
    pub(super) fn on(name: &'static str, place: &RowPlace<V>, out: Option<&'o V>) -> Self {
        RowOpFacts { is_on_results: place.row().is_none(), ..RowOpFacts::new(name, out) }
    }
}

/// Arithmetic of an operation for one row, for the cost model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowWork {
    /// Elements of rows that go through something cheap (a norm, a rounding, an expression).
    pub elements: usize,
    /// Weights of a matrix.
    pub weights: usize,
}

/// The checks, the code and the cost of an operation of a kernel.
pub(crate) trait RowOpCode {
    /// Checks all that it reads and writes.
    fn check(&self, check: &mut KernelChecker, site: CheckedSite) -> Checked;

    /// Micro-kernels that [`Self::emit`] calls, for rows or for an item's results.
    fn ukernels(&self, _vals: &[RowType], _item: Option<ItemShape>) -> Vec<MicroKernel> {
        Vec::new()
    }

    /// Emits it for one row.
    fn emit(&self, e: &mut Emit, cx: &Cx, site: &OpSite);

    /// Bytes of scratch that [`Self::emit`] works in, where rows have as many elements as `len` says.
    fn work_bytes(&self, _len: &dyn Fn(ValId) -> usize) -> usize {
        0
    }

    /// Weights that it reads from end to end for a row, with their bytes. Rows of tables are few bytes, and
    /// left out.
    fn weights(&self, _vals: &[RowType]) -> Vec<(OperandId, usize)> {
        Vec::new()
    }

    /// The matrix that it multiplies with.
    fn mat(&self) -> Option<&Mat> {
        None
    }

    /// Whether it works on single columns of results, so that an item may have any.
    fn is_by_columns(&self) -> bool {
        false
    }

    /// The arithmetic, where rows have as many elements as `len` says, if it is another than an element's for
    /// each that is written.
    fn work(&self, _len: &dyn Fn(ValId) -> usize) -> Option<RowWork> {
        None
    }
}
