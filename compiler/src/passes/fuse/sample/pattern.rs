//! The pattern that a sample is made around, and the sizes it may have.

use crate::ir::OpKind;
use crate::passes::fuse::rule::{FusionRule, PatternNode};
use crate::random::Rng;
use std::collections::BTreeMap;

/// Width of a sample's embedding and experts.
pub(super) const HIDDEN: usize = 64;

/// Columns that are free: whole blocks, odd numbers of them, and GPT-OSS's width.
pub(super) const WIDTHS: [usize; 6] = [32, 64, 96, 160, 288, 2880];

/// Columns that are no whole blocks, for the presets that quantise nothing.
pub(super) const ODD: [usize; 6] = [16, 48, 80, 112, 144, 208];

/// A pattern without roundings, and without the optional nodes and the copies that this sample leaves out.
pub(super) struct SamplePattern<'r> {
    pub nodes: Vec<(&'r PatternNode, OpKind, Vec<&'r str>)>,
    /// The name that stands in for a left-out node.
    pub alias: BTreeMap<&'r str, &'r str>,
}

impl<'r> SamplePattern<'r> {
    pub fn new(rule: &'r FusionRule, rng: &mut Rng) -> SamplePattern<'r> {
        let by_presets = |op: &OpKind| op.by_presets;
        let mut alias: BTreeMap<&str, &str> = BTreeMap::new();
        let mut kept = Vec::new();
        let last = match rule.pattern.iter().map(|node| node.copy).max() {
            None | Some(0) => 0,
            Some(last) => rng.below(last + 1),
        };
        for node in rule.pattern.iter().filter(|node| node.copy <= last) {
            let out = node.ops.iter().all(by_presets) || node.optional && rng.one_in(3);
            match out {
                true => drop(alias.insert(&node.capture, &node.inputs[0])),
                false => kept.push(node),
            }
        }
        let resolve = |name: &'r str| {
            let mut name = name;
            while let Some(next) = alias.get(name) {
                name = next;
            }
            name
        };
        // A shrink comes with the matrix that it belongs to.
        let plain = |op: OpKind, inputs: usize| {
            let name = match op.name {
                "lora_shrink" if inputs > 1 => "expert_linear",
                "quant_linear" | "lora_shrink" => "linear",
                "quant_expert_linear" | "bf16_expert_linear" => "expert_linear",
                name => name,
            };
            OpKind::from_name(name).unwrap_or(op)
        };
        let nodes = kept.into_iter().map(|node| {
            let ops = node.ops.iter().copied().filter(|op| !op.by_presets);
            let ops: Vec<OpKind> = ops.map(|op| plain(op, node.inputs.len())).collect();
            (node, rng.pick(&ops), node.inputs.iter().map(|name| resolve(name)).collect())
        });
        let mut left: Vec<(&PatternNode, OpKind, Vec<&str>)> = nodes.collect();
        // Inputs first.
        let mut nodes: Vec<(&PatternNode, OpKind, Vec<&str>)> = Vec::with_capacity(left.len());
        while !left.is_empty() {
            let waits =
                |inputs: &[&str]| left.iter().any(|(other, ..)| inputs.contains(&other.capture.as_str()));
            match left.iter().position(|(_, _, inputs)| !waits(inputs)) {
                Some(next) => nodes.push(left.remove(next)),
                None => break,
            }
        }
        SamplePattern { nodes, alias }
    }

    pub fn resolve<'n>(&self, name: &'n str) -> &'n str
    where
        'r: 'n,
    {
        let mut name = name;
        while let Some(next) = self.alias.get(name) {
            name = next;
        }
        name
    }
}
