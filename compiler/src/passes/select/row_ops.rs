//! Row operations of the graph with the numbers of a kernel.

use super::builder::KernelBuilder;
use super::{SelectError, Selector};
use crate::ir::ops::Packed;
use crate::ir::{Graph, GraphMat, GraphRowOp, Node, NodeId, OperandRef, Role, TensorId, ValueId};
use crate::passes::fuse::row_steps;
use kernmill_kernels_gen::kernel::{MatAdapter, OperandId, RowOp, ValId};
use kernmill_kernels_gen::names::Names;
use kernmill_plan::format::TILE_ROWS;

impl Packed for Selector<'_> {
    fn graph(&self) -> &Graph {
        self.graph
    }

    fn mat(&self, node: &Node) -> GraphMat {
        let tensor = self.graph.tensor(node.tensors[0]);
        let placement = self.layout.placement(node.tensors[0]);
        let dims = &tensor.shape[tensor.shape.len() - 2..];
        let experts = tensor.role == Role::ExpertMatrix;
        GraphMat {
            operand: OperandRef::Tensor(node.tensors[0]),
            format: tensor.format,
            n: dims[0],
            k: dims[1],
            tile_stride: placement.tile_stride as usize,
            expert_stride: if experts { placement.expert_stride as usize } else { 0 },
            bias: node.tensors.get(1).map(|bias| OperandRef::Tensor(*bias)),
            term: 0,
            adapter: self.adapter(node),
        }
    }

    fn row_bytes(&self, table: TensorId) -> usize {
        self.layout.placement(table).tile_stride as usize
    }
}

impl Selector<'_> {
    fn adapter(&self, node: &Node) -> Option<MatAdapter<ValueId, OperandRef>> {
        let branch = self.graph.branch_among(node, self.lora_targets)?;
        let before = &self.lora_targets[branch.lora_target as usize].tensors[..branch.out];
        let tiles = |id: &TensorId| {
            let shape = &self.graph.tensor(*id).shape;
            shape[shape.len() - 2].div_ceil(TILE_ROWS)
        };
        Some(MatAdapter {
            lora_target: OperandRef::LoraTarget(branch.lora_target),
            shrunk: branch.shrunk,
            format: self.graph.adapter_format()?,
            first_tile: before.iter().map(tiles).sum(),
        })
    }

    /// Row-wise nodes as row operations.
    pub(super) fn row_steps(
        &self,
        nodes: &[NodeId],
        outputs: &[ValueId],
    ) -> Result<Vec<GraphRowOp>, SelectError> {
        row_steps(self, self.uses, nodes, outputs)
            .map_err(|id| self.bug(self.graph.node(id), "is not a row stage of its own"))
    }

    /// Prologue nodes as row operations of the kernel being built, on rows of the worker's own.
    pub(super) fn local_row_ops(
        &self,
        b: &mut KernelBuilder,
        nodes: &[NodeId],
        outputs: &[ValueId],
    ) -> Result<Vec<RowOp>, SelectError> {
        let mut row_ops = Vec::with_capacity(nodes.len());
        for step in self.row_steps(nodes, outputs)? {
            // Inputs first: an operation may read what an earlier one made, under the same value id.
            self.inputs(&step).iter().filter(|value| **value != ValueId(0)).for_each(|value| {
                b.input(*value);
            });
            row_ops.push(step.numbered(&mut Local { b: &mut *b, outputs }));
        }
        Ok(row_ops)
    }

    /// The values that a row operation reads, in order.
    fn inputs<'s>(&'s self, step: &'s GraphRowOp) -> &'s [ValueId] {
        match step {
            RowOp::Elementwise(op) => &op.inputs,
            other => other.facts().out.map_or(&[], |out| &self.graph.node(NodeId(out.0 - 1)).inputs),
        }
    }

    pub(super) fn bug(&self, node: &Node, message: &str) -> SelectError {
        SelectError::Bug { node: self.graph.value(node.output).name.clone(), message: message.to_owned() }
    }
}

/// A kernel's numbers, where what is written is a row of the worker's own.
struct Local<'l, 'b> {
    b: &'l mut KernelBuilder<'b>,
    /// Values that later steps read besides.
    outputs: &'l [ValueId],
}

impl Names<ValueId, OperandRef> for Local<'_, '_> {
    fn read(&mut self, value: &ValueId) -> ValId {
        self.b.input(*value)
    }

    fn write(&mut self, value: &ValueId) -> ValId {
        self.b.local(*value, self.outputs.contains(value))
    }

    fn operand(&mut self, operand: &OperandRef) -> OperandId {
        self.b.operand(*operand)
    }
}
