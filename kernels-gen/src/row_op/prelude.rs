//! Names that the files of operations use.

pub(super) use super::operation::{RowOpCode, RowOpFacts, RowWork};
pub(super) use super::site::{CheckedSite, ItemShape, OpSite, RowPlace};
pub(super) use crate::check::checker::{Checked, CountedRows, KernelChecker, RowAccess};
pub(super) use crate::check::rules::VECTOR;
pub(super) use crate::cx::Cx;
pub(super) use crate::emit::{Emit, LANES, MEM};
pub(super) use crate::floats;
pub(super) use crate::names::Names;
pub(super) use crate::ukernel::MicroKernel;
pub(super) use crate::values::{FloatBits, Mat, OperandId, RowType, ValId};
pub(super) use cranelift_codegen::ir::{InstBuilder, Value};
pub(super) use kernmill_plan::format::{BLOCK, TILE_ROWS};
