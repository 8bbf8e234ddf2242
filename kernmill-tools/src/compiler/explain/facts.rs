//! The contents of reports about a compiled model, in any form.

use super::crowds::CrowdSpeeds;
use super::kinds::{BatchShape, kind};
use crate::compiler::estimate::MemoryEstimate;
use crate::compiler::machine::Description;
use crate::compiler::tensors::packed_bytes;
use kernmill_compiler::ir::{Graph, NodeId, OperandRef, Role};
use kernmill_compiler::passes::fuse::{FusedGraph, Group, Missed};
use kernmill_compiler::passes::schedule::ScheduledStep;
use kernmill_compiler::pipeline::Compiled;
use kernmill_compiler::simulate::SimulatedMachine;
use std::collections::BTreeMap;

/// Everything that is shown.
pub struct PageContent<'a> {
    /// The graph that was compiled.
    pub graph: &'a Graph,
    /// The result of its compilation.
    pub compiled: &'a Compiled,
    /// The machine that it is explained for, if it is described.
    pub machine: Option<&'a Description>,
    /// Whether preset `fast` has made its choices without weights.
    pub assumed: bool,
    /// A note if the weights take more than in their files.
    pub grown: Option<String>,
    /// The memory that running takes.
    pub memory: &'a MemoryEstimate,
    /// Decoding at the start, decoding in a full context, a prompt of a chunk.
    pub batches: &'a [BatchShape; 3],
    /// The machine that the batches run on.
    pub simulated: &'a SimulatedMachine,
    /// Speeds by numbers of workers, if the machine is described.
    pub crowds: &'a [CrowdSpeeds],
    /// Near misses, what would save most first.
    pub missed: &'a [Missed],
}

impl PageContent<'_> {
    /// Bytes of the cache that a token of a long context takes: layers that see a window keep no more than
    /// that.
    pub fn kv_token_bytes(&self) -> u64 {
        let kv = &self.compiled.program.model.kv;
        kv.layers.iter().map(|layer| kv.geometry(layer.kind).token_bytes() as u64).sum()
    }

    /// The computation of a kind of step.
    pub fn members(&self, name: &str) -> String {
        let group = self.compiled.fused.groups.iter().find(|group| is_of(&self.compiled.fused, group, name));
        group.map_or_else(String::new, |group| members(&self.compiled.fused, group))
    }

    /// Formats of the weights that steps of a kind read, with the bytes that are packed in each.
    pub fn weights_of(&self, name: &str) -> BTreeMap<&'static str, u64> {
        let mut all = BTreeMap::new();
        let schedule = self.compiled.schedules.first();
        for step in
            schedule.into_iter().flat_map(|schedule| schedule.steps.iter().chain(&schedule.logit_steps))
        {
            if step.lora_targets.is_empty() && kind(&step.label) == name {
                weights(self.compiled, step)
                    .into_iter()
                    .for_each(|(format, bytes)| *all.entry(format).or_default() += bytes);
            }
        }
        all
    }

    /// Kinds of steps that run for adapters alone, with their number.
    pub fn for_adapters(&self) -> BTreeMap<&str, usize> {
        let mut kinds = BTreeMap::new();
        if let Some(class) = self.compiled.program.classes.first() {
            let steps = class.steps.iter().filter(|step| !step.lora_targets.is_empty());
            steps.for_each(|step| *kinds.entry(kind(&step.label)).or_default() += 1);
        }
        kinds
    }

    /// Operations per second of the machine's integer units, if it is described.
    pub fn peak(&self) -> Option<f64> {
        Some(self.machine?.workers().tops_per_s * 1e12)
    }
}

/// Formats of the matrices and tables that a step reads, with the bytes that are packed in each.
pub fn weights(compiled: &Compiled, step: &ScheduledStep) -> BTreeMap<&'static str, u64> {
    let (graph, mut formats) = (&compiled.fused.graph, BTreeMap::new());
    for (at, operand) in step.operands.iter().enumerate() {
        let OperandRef::Tensor(id) = operand else { continue };
        let tensor = graph.tensor(*id);
        let is_vector = matches!(tensor.role, Role::Vector | Role::ExpertVector);
        if !is_vector && !step.operands[..at].contains(operand) {
            *formats.entry(tensor.format.name()).or_default() += packed_bytes(graph, &compiled.layout, *id);
        }
    }
    formats
}

/// Whether steps of that kind compute the group: the kind is its rule or op, or what a single node makes.
fn is_of(fused: &FusedGraph, group: &Group, name: &str) -> bool {
    if group.rule.is_some() {
        return group.name() == name;
    }
    let value = group.outputs.first().map(|value| fused.graph.value(*value).name.as_str());
    group.name() == name || value.is_some_and(|value| kind(value) == name)
}

/// Ops of a group's prologue, roots and epilogue, equal neighbours counted.
pub fn members(fused: &FusedGraph, group: &Group) -> String {
    let part = |nodes: &[NodeId]| {
        let names = nodes.iter().map(|id| fused.graph.node(*id).kind().name);
        let names: Vec<&str> = names.collect();
        let runs = names.chunk_by(|a, b| a == b).map(|run| match run.len() {
            1 => run[0].to_owned(),
            n => format!("{n} {}", run[0]),
        });
        runs.collect::<Vec<_>>().join(" ")
    };
    let parts = [&group.prologue, &group.roots, &group.epilogue].map(|nodes| part(nodes));
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" | ")
}
