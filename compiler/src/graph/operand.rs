//! Operands of kernels, by the graph's names.

use super::{TensorId, ValueId};
use kernmill_kernels_gen::kernel::{Epilogue, Mat, RowOp};
use kernmill_plan::kv::LayerKind;

/// The meaning of an operand address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OperandRef {
    /// A weight.
    Tensor(TensorId),
    /// A value's arena buffer.
    Value(ValueId),
    /// A layer's KV pool.
    Kv(u32, LayerKind),
    /// A rotary table.
    Rope(u32),
    /// A LoRA target of adapters.
    LoraTarget(u32),
}

/// A row operation on the graph's values.
pub type GraphRowOp = RowOp<ValueId, OperandRef>;

/// A step of an epilogue, on the graph's values. It works on one unit of results: at first one for each root,
/// after the first expression one in all.
pub type GraphEpilogue = Epilogue<ValueId, OperandRef>;

/// A matrix of the graph.
pub type GraphMat = Mat<ValueId, OperandRef>;
