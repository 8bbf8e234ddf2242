//! Which group a step computes, which layer a group is of, and which layers are alike.

use kernmill_compiler::ir::{Op, OperandRef, ValueId};
use kernmill_compiler::passes::fuse::{FusedGraph, Group};
use kernmill_compiler::passes::schedule::{Schedule, ScheduledStep};
use kernmill_compiler::pipeline::Compiled;
use std::collections::BTreeMap;

/// Finds the group of a step.
pub struct GroupOf<'a> {
    fused: &'a FusedGraph,
    by_value: BTreeMap<ValueId, usize>,
}

impl<'a> GroupOf<'a> {
    /// Gets ready for the groups of `fused`.
    pub fn new(fused: &'a FusedGraph) -> GroupOf<'a> {
        let groups = fused.group_of();
        let by_value = fused.graph.nodes().map(|(id, node)| (node.output, groups[id.0 as usize]));
        GroupOf { fused, by_value: by_value.collect() }
    }

    /// The group that a step of `schedule` computes, or computes a part of. A step that writes no buffer
    /// writes the cache, for the attention whose cache it is.
    pub fn step(&self, schedule: &Schedule, step: &ScheduledStep) -> Option<usize> {
        match step.writes.first().map(|buffer| schedule.contents[*buffer as usize]) {
            Some(OperandRef::Value(value)) => return self.by_value.get(&value).copied(),
            Some(OperandRef::Panels(panels)) => return Some(panels.group as usize),
            _ => {}
        }
        let layer = step.operands.iter().find_map(|operand| match operand {
            OperandRef::Kv(layer, _) => Some(*layer),
            _ => None,
        })?;
        let attends = |op: &Op| matches!(op, Op::Attention(attention) if attention.layer == layer);
        let (attention, _) = self.fused.graph.nodes().find(|(_, node)| attends(&node.op))?;
        Some(self.fused.kv_writer(attention))
    }
}

/// The layer that a group is of, by the name of its last value.
pub fn layer(fused: &FusedGraph, group: &Group) -> Option<usize> {
    let last = group.members().last().map(|id| fused.graph.node(*id).output)?;
    layer_of(&fused.graph.value(last).name)
}

/// `layers.3.qkv` is of layer 3.
fn layer_of(name: &str) -> Option<usize> {
    name.strip_prefix("layers.")?.split_once('.')?.0.parse().ok()
}

/// Layers that run the same kernels in every class.
pub struct LayerGroup {
    /// The layers, ascending.
    pub layers: Vec<usize>,
    /// Groups of the first of them.
    pub groups: Vec<usize>,
}

/// The distinct kinds of layers, in the order of their first layers.
pub fn layer_kinds(compiled: &Compiled) -> Vec<LayerGroup> {
    let fused = &compiled.fused;
    let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (index, group) in fused.groups.iter().enumerate() {
        if let Some(layer) = layer(fused, group) {
            groups.entry(layer).or_default().push(index);
        }
    }
    let mut kernels: BTreeMap<usize, Vec<(usize, u32)>> = BTreeMap::new();
    for (class, schedule) in compiled.schedules.iter().enumerate() {
        for step in schedule.steps.iter().chain(&schedule.logit_steps) {
            if let Some(layer) = layer_of(&step.label) {
                kernels.entry(layer).or_default().push((class, step.kernel));
            }
        }
    }
    let mut kinds: Vec<LayerGroup> = Vec::new();
    for (layer, groups) in groups {
        let same = |kind: &&mut LayerGroup| kernels.get(&kind.layers[0]) == kernels.get(&layer);
        match kinds.iter_mut().find(same) {
            Some(kind) => kind.layers.push(layer),
            None => kinds.push(LayerGroup { layers: vec![layer], groups }),
        }
    }
    kinds
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernmill_compiler::front::spec::{Spec, lower};
    use kernmill_compiler::pipeline::{CompilerOptions, compile};
    use kernmill_plan::target::Level;

    fn nano(fuse: bool) -> Compiled {
        let text = include_str!("../../../../model-specs/nano/nano.toml");
        let graph = lower(&Spec::parse("nano.toml", text).unwrap()).unwrap();
        compile(&graph, &CompilerOptions { fuse, ..CompilerOptions::new(Level::V3) }).unwrap()
    }

    #[test]
    fn labels_say_their_layer() {
        for (name, expected) in [
            ("layers.3.qkv", Some(3)),
            ("layers.12.a.b", Some(12)),
            ("logits", None),
            ("layers.x.q", None),
            ("layers.3", None),
        ] {
            assert_eq!(layer_of(name), expected, "{name}");
        }
    }

    /// Nano has layers with a window and without one in turn, as GPT-OSS does. The last one computes queries
    /// for the wanted rows alone, by a separate kernel.
    #[test]
    fn layers_are_alike_if_their_kernels_are() {
        let kinds = layer_kinds(&nano(true));
        let layers: Vec<&[usize]> = kinds.iter().map(|kind| &kind.layers[..]).collect();
        assert_eq!(layers, [&[0, 2][..], &[1], &[3]]);
        assert!(kinds.iter().all(|kind| kind.groups.len() == kinds[0].groups.len()));
    }

    #[test]
    fn every_step_is_of_a_group_of_its_layer_and_every_group_has_a_step() {
        for fuse in [true, false] {
            let compiled = nano(fuse);
            let groups = GroupOf::new(&compiled.fused);
            for schedule in &compiled.schedules {
                let mut seen = vec![false; compiled.fused.groups.len()];
                for step in schedule.steps.iter().chain(&schedule.logit_steps) {
                    let group = groups.step(schedule, step).expect("a group");
                    let layer = layer(&compiled.fused, &compiled.fused.groups[group]);
                    assert_eq!(layer, layer_of(&step.label), "{}", step.label);
                    seen[group] = true;
                }
                assert!(seen.iter().all(|seen| *seen), "fuse {fuse}");
            }
        }
    }
}
