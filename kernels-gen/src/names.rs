//! Names of the compiler, and the kernel's numbers for them.
//!
//! The order in which numbers are asked for is part of a kernel's identity: what an operation is given first
//! has the lower number.

use crate::values::{Mat, MatAdapter, OperandId, ValId};

/// The numbers that a kernel gives to values `V` and operands `O`.
pub trait Names<V, O> {
    /// Number of a value that the kernel reads.
    fn read(&mut self, value: &V) -> ValId;
    /// Number of a value that the kernel writes.
    fn write(&mut self, value: &V) -> ValId;
    /// Number of an operand.
    fn operand(&mut self, operand: &O) -> OperandId;
}

impl<V, O> Mat<V, O> {
    /// The matrix by numbers.
    pub fn numbered(&self, names: &mut impl Names<V, O>) -> Mat {
        let adapter = self.adapter.as_ref().map(|adapter| MatAdapter {
            lora_target: names.operand(&adapter.lora_target),
            shrunk: names.read(&adapter.shrunk),
            format: adapter.format,
            first_tile: adapter.first_tile,
        });
        Mat {
            operand: names.operand(&self.operand),
            format: self.format,
            n: self.n,
            k: self.k,
            tile_stride: self.tile_stride,
            expert_stride: self.expert_stride,
            bias: self.bias.as_ref().map(|bias| names.operand(bias)),
            term: self.term,
            adapter,
        }
    }
}
