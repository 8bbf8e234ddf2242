//! Operands of kernels, by the graph's names.

use super::{TensorId, ValueId};
use kernmill_kernels_gen::kernel::{Mat, RowOp};
use kernmill_plan::kv::LayerKind;

/// The meaning of an operand address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OperandRef {
    /// A weight.
    Tensor(TensorId),
    /// A value's arena buffer.
    Value(ValueId),
    /// A buffer of panels.
    Panels(PanelBuffer),
    /// A layer's KV pool.
    Kv(u32, LayerKind),
    /// A rotary table.
    Rope(u32),
    /// A LoRA target of adapters.
    LoraTarget(u32),
}

/// A buffer of panels: rows of a value, laid out for the matrices of one kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PanelBuffer {
    /// Index of the fused group whose matrices these are.
    pub group: u32,
    /// Number of the first of these matrices' parts in the group.
    pub part: u32,
    /// Bytes of the largest batch's.
    pub bytes: u64,
}

/// A row operation on the graph's values. As a step of an epilogue it works on one unit of results: at first
/// there is one for each root, after the first expression one in all.
pub type GraphRowOp = RowOp<ValueId, OperandRef>;

/// A matrix of the graph.
pub type GraphMat = Mat<ValueId, OperandRef>;
