//! Adapters in a graph: which matrix products have a branch for one, and what belongs to a LoRA target.

use super::{Graph, GraphError, Node, NodeId, TensorId, Uses, ValueId};
use kernmill_plan::format::WeightFormat;
use std::collections::BTreeSet;

/// The adapter branch of a matrix product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Branch {
    /// Output of the [`LoraShrink`](super::LoraShrink) that it reads.
    pub shrunk: ValueId,
    /// The LoRA target.
    pub lora_target: u32,
    /// Which of the LoRA target's matrices it multiplies with.
    pub out: usize,
}

/// A matrix of the checkpoint that may have an adapter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoraTargetNode {
    /// The matrices that the graph made of its rows, in order of first use.
    pub tensors: Vec<TensorId>,
}

impl Node {
    /// The shrunk input of a matrix product that has an adapter branch.
    pub fn shrunk(&self) -> Option<ValueId> {
        self.op.matmul().and_then(|op| self.inputs.get(op.plain_inputs())).copied()
    }

    /// Inputs without that of the adapter branch.
    pub fn base_inputs(&self) -> &[ValueId] {
        let plain = self.op.matmul().map_or(self.inputs.len(), |op| op.plain_inputs());
        &self.inputs[..plain.min(self.inputs.len())]
    }
}

impl Graph {
    /// Every LoRA target, by index.
    pub fn lora_targets(&self) -> Vec<LoraTargetNode> {
        let mut lora_targets: Vec<LoraTargetNode> = Vec::new();
        for node in &self.nodes {
            let Some(lora_target) = self.lora_target_of(node) else { continue };
            if lora_targets.len() <= lora_target as usize {
                lora_targets.resize_with(lora_target as usize + 1, LoraTargetNode::default);
            }
            let tensors = &mut lora_targets[lora_target as usize].tensors;
            if !tensors.contains(&node.tensors[0]) {
                tensors.push(node.tensors[0]);
            }
        }
        lora_targets
    }

    /// The LoRA target of a matrix product that has an adapter branch.
    fn lora_target_of(&self, node: &Node) -> Option<u32> {
        let producer = self.nodes.get((node.shrunk()?.0 as usize).checked_sub(1)?)?;
        Some(producer.op.shrink()?.lora_target)
    }

    /// The adapter branch of a node; `lora_targets` are [`Graph::lora_targets`].
    pub fn branch_among(&self, node: &Node, lora_targets: &[LoraTargetNode]) -> Option<Branch> {
        let (shrunk, lora_target) = (node.shrunk()?, self.lora_target_of(node)?);
        let tensors = &lora_targets.get(lora_target as usize)?.tensors;
        let out = tensors.iter().position(|tensor| *tensor == node.tensors[0])?;
        Some(Branch { shrunk, lora_target, out })
    }

    /// The format that adapters' elements are rounded to; `None` without LoRA targets.
    pub fn adapter_format(&self) -> Option<WeightFormat> {
        self.nodes.iter().find_map(|node| Some(node.op.shrink()?.format))
    }

    /// By node, the LoRA targets that it is there for alone: those of a shrink, and of what only shrinks
    /// read. `None` for all other nodes.
    pub fn served_lora_targets(&self) -> Vec<Option<BTreeSet<u32>>> {
        let uses = Uses::new(self);
        let mut served: Vec<Option<BTreeSet<u32>>> = vec![None; self.nodes.len()];
        for (id, node) in self.nodes().rev() {
            served[id.0 as usize] = match node.op.shrink() {
                Some(shrink) => Some(BTreeSet::from([shrink.lora_target])),
                _ if node.output == self.output => None,
                _ => together(uses.users(node.output), &served),
            };
        }
        served
    }

    /// Branches read shrinks and nothing else does; LoRA targets are numbered in order, and each is of one
    /// checkpoint tensor, which has no other.
    pub(super) fn verify_lora_targets(&self) -> Result<(), GraphError> {
        let shrinks = |value: ValueId| {
            (value.0 as usize).checked_sub(1).is_some_and(|i| self.nodes[i].op.shrink().is_some())
        };
        for node in &self.nodes {
            let error = |message: String| {
                Err(GraphError::new(format!("%{} ({})", self.value(node.output).name, node.kind()), message))
            };
            if let Some(value) = node.base_inputs().iter().find(|value| shrinks(**value)) {
                return error(format!("reads the shrink %{} as a plain input", self.value(*value).name));
            }
            if let Some(value) = node.shrunk().filter(|value| !shrinks(*value)) {
                return error(format!("its branch reads %{}, which is no shrink", self.value(value).name));
            }
        }
        let is_too_large =
            |node: &Node| node.op.shrink().is_some_and(|op| op.lora_target as usize >= self.nodes.len());
        if self.nodes.iter().any(is_too_large) {
            return Err(GraphError::new(
                "sites",
                "a LoRA target's number is larger than the number of nodes",
            ));
        }
        let lora_targets = self.lora_targets();
        let mut owners = BTreeSet::new();
        for (index, lora_target) in lora_targets.iter().enumerate() {
            let error = |message: String| Err(GraphError::new(format!("LoRA target {index}"), message));
            let Some(&first) = lora_target.tensors.first() else {
                return error("no matrix product has it".into());
            };
            let key = |id: TensorId| {
                let tensor = self.tensor(id);
                (
                    &tensor.source.name,
                    tensor.role,
                    tensor.shape.last(),
                    tensor.shape.first().filter(|_| tensor.shape.len() == 3),
                )
            };
            if let Some(other) = lora_target.tensors.iter().find(|other| key(**other) != key(first)) {
                let (a, b) = (&self.tensor(first).name, &self.tensor(*other).name);
                return error(format!("@{a} and @{b} are not of one checkpoint tensor"));
            }
            if !owners.insert(&self.tensor(first).source.name) {
                return error(format!("@{} has another LoRA target too", self.tensor(first).name));
            }
        }
        for node in &self.nodes {
            let Some(shrink) = node.op.shrink() else { continue };
            let (lora_target, format) = (shrink.lora_target, shrink.format);
            let at = || format!("%{} (lora_shrink)", self.value(node.output).name);
            let Some(of) =
                lora_targets.get(lora_target as usize).and_then(|lora_target| lora_target.tensors.first())
            else {
                return Err(GraphError::new(
                    at(),
                    format!("LoRA target {lora_target} of {}", lora_targets.len()),
                ));
            };
            if Some(format) != self.adapter_format() {
                return Err(GraphError::new(at(), "adapters of a graph have one format"));
            }
            let (found, expected) =
                (self.value(node.inputs[0]).ty.cols(), self.tensor(*of).shape.last().copied());
            if Some(found) != expected {
                let message = format!("reads {found} columns, its LoRA target has {}", expected.unwrap_or(0));
                return Err(GraphError::new(at(), message));
            }
        }
        Ok(())
    }
}

/// LoRA targets of users that all serve shrinks alone; `None` when one does not, or there are no such
/// targets.
fn together(users: &[NodeId], served: &[Option<BTreeSet<u32>>]) -> Option<BTreeSet<u32>> {
    let mut lora_targets = BTreeSet::new();
    for user in users {
        lora_targets.extend(served[user.0 as usize].as_ref()?);
    }
    (!lora_targets.is_empty()).then_some(lora_targets)
}
