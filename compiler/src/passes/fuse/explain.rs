//! `kernmill explain`: what fused, what nearly did and why not, and what it saves.

use super::engine::FusionReport;
use super::group::FusedGraph;
use crate::ir::{Rows, Type, Uses, ValueId};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Explains a fusion; what is alike in several layers is one line. Groups for adapters alone are counted
/// apart: batches without one do not run it.
pub fn explain(fused: &FusedGraph, report: &FusionReport) -> String {
    let mut text = String::new();
    let (nodes, groups) = (fused.graph.nodes.len(), fused.groups.len());
    let _ = writeln!(text, "{}: {nodes} nodes in {groups} groups", fused.graph.name);
    let [always, adapters] = counts(fused);
    always.write(&mut text, "  ");
    if adapters.groups > 0 {
        text.push_str("  more where a sequence has an adapter, at most:\n");
        adapters.write(&mut text, "    ");
    }
    text.push_str("fused:\n");
    text.push_str(&collapse(fused.groups.iter().map(|group| {
        let name = group.outputs.first().map_or("?", |&value| &fused.graph.value(value).name);
        let members = |part: &[_]| {
            let names: Vec<&str> = part.iter().map(|&id| fused.graph.node(id).kind().name).collect();
            names.join(" ")
        };
        let what = match &group.rule {
            None => format!("{:16} (by itself)", group.name()),
            Some(rule) => {
                let parts = [&group.prologue, &group.roots, &group.epilogue];
                let parts: Vec<String> = parts.iter().map(|part| format!("[{}]", members(part))).collect();
                format!("{rule:16} {}", parts.join(" "))
            }
        };
        (name, what)
    })));
    text.push_str(&savings(fused));
    if !report.near_misses.is_empty() {
        text.push_str("nearly fused:\n");
        text.push_str(&collapse(report.near_misses.iter().map(|miss| {
            let name = &fused.graph.value(fused.graph.node(miss.anchor).output).name;
            let what = match miss.without.as_slice() {
                [] => format!("{:16} not applied: {}", miss.rule, miss.reason),
                without => format!("{:16} without {}: {}", miss.rule, without.join(", "), miss.reason),
            };
            (name.as_str(), what)
        })));
    }
    text
}

/// Counts of the kernels, barriers and bytes that groups take.
#[derive(Default)]
struct Counts {
    nodes: usize,
    groups: usize,
    /// Bytes per token (one wanted row) of all values that are written to memory, unfused and fused. Keys and
    /// values that go to the cache count in both.
    bytes: [usize; 2],
}

impl Counts {
    fn write(&self, text: &mut String, indent: &str) {
        let Counts { nodes, groups, bytes: [before, after] } = self;
        let barriers = nodes - groups;
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{indent}barriers per run: {nodes} unfused, {groups} fused, {barriers} saved");
        let _ = writeln!(
            text,
            "{indent}intermediate values per token: {before} bytes unfused, {after} fused, {} not written",
            before - after
        );
    }
}

/// The counts of groups that always run, and of those that run for adapters alone.
fn counts(fused: &FusedGraph) -> [Counts; 2] {
    let served = for_adapters(fused);
    let mut counts = <[Counts; 2]>::default();
    for (group, served) in fused.groups.iter().zip(served) {
        let members = group.members();
        let sum =
            |values: &mut dyn Iterator<Item = ValueId>| values.map(|value| per_token(fused, value)).sum();
        let of: [usize; 2] = [
            sum(&mut members.iter().map(|id| fused.graph.node(*id).output)),
            sum(&mut group.outputs.iter().copied()),
        ];
        let counts = &mut counts[usize::from(served)];
        counts.nodes += members.len();
        counts.groups += 1;
        counts.bytes.iter_mut().zip(of).for_each(|(sum, more)| *sum += more);
    }
    counts
}

/// By group, whether adapters alone need what it writes.
pub(super) fn for_adapters(fused: &FusedGraph) -> Vec<bool> {
    let (uses, served) = (Uses::new(&fused.graph), fused.graph.served_lora_targets());
    let is_served = |value: &ValueId| uses.producer(*value).is_some_and(|id| served[id.0 as usize].is_some());
    fused.groups.iter().map(|group| group.outputs.iter().all(is_served)).collect()
}

/// The savings of each rule: barriers of a run, bytes per token that are not written.
fn savings(fused: &FusedGraph) -> String {
    let mut rules: Vec<((&str, bool), [usize; 3])> = Vec::new();
    for (group, adapters) in fused.groups.iter().zip(for_adapters(fused)) {
        if group.rule.is_none() {
            continue;
        }
        let key = (group.name(), adapters);
        let index = rules.iter().position(|(other, _)| *other == key).unwrap_or_else(|| {
            rules.push((key, [0; 3]));
            rules.len() - 1
        });
        let members = group.members();
        let values = members.iter().map(|id| fused.graph.node(*id).output);
        let kept = values.filter(|value| !group.outputs.contains(value)).map(|value| per_token(fused, value));
        let more = [1, members.len() - 1, kept.sum()];
        rules[index].1.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
    }
    let mut text = String::new();
    if !rules.is_empty() {
        text.push_str("saved:\n");
    }
    for ((name, adapters), [groups, barriers, bytes]) in rules {
        let count = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        let (groups, barriers) = (count(groups, "group"), count(barriers, "barrier"));
        let when = if adapters { ", with an adapter" } else { "" };
        let _ = writeln!(text, "  {name:25} {groups}, {barriers}, {bytes} bytes per token{when}");
    }
    text
}

/// Bytes of a value for a token (one wanted row).
pub(super) fn per_token(fused: &FusedGraph, value: ValueId) -> usize {
    let ty: Type = fused.graph.value(value).ty;
    let rows = if let Rows::Slots(k) = ty.rows() { k as usize } else { 1 };
    rows * ty.row_bytes()
}

/// Bytes per token (one wanted row) of all values that the groups write, those for adapters included.
pub fn value_bytes(fused: &FusedGraph) -> usize {
    fused.groups.iter().flat_map(|group| &group.outputs).map(|value| per_token(fused, *value)).sum()
}

/// One line per distinct text in order of first appearance, the names it holds for collapsed by their layer
/// number.
fn collapse<'n>(items: impl Iterator<Item = (&'n str, String)>) -> String {
    let mut lines: Vec<(String, String)> = Vec::new();
    let mut layers: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (name, what) in items {
        let (layer, generic) = split_layer(name);
        let what = match layer {
            Some(layer) => what.replace(&format!("layers.{layer}."), "layers.*."),
            None => what,
        };
        let known = lines.iter().position(|line| line.0 == generic && line.1 == what);
        let index = known.unwrap_or_else(|| {
            lines.push((generic, what));
            lines.len() - 1
        });
        layers.entry(index).or_default().extend(layer);
    }
    let mut text = String::new();
    for (i, (generic, what)) in lines.iter().enumerate() {
        let range =
            layers.get(&i).filter(|l| !l.is_empty()).map_or(String::new(), |l| format!("  {}", ranges(l)));
        let _ = writeln!(text, "  %{generic:24} {what}{range}");
    }
    text
}

/// `layers.3.q` is layer 3 of `layers.*.q`.
pub(super) fn split_layer(name: &str) -> (Option<usize>, String) {
    let parts: Vec<&str> = name.split('.').collect();
    let at = parts.windows(2).position(|pair| pair[0] == "layers" && pair[1].parse::<usize>().is_ok());
    match at {
        None => (None, name.into()),
        Some(at) => {
            let mut generic = parts.clone();
            generic[at + 1] = "*";
            (parts[at + 1].parse().ok(), generic.join("."))
        }
    }
}

/// `layers 0..24` or `layers 0,2..5` (ends excluded).
pub(super) fn ranges(layers: &[usize]) -> String {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for &layer in layers {
        match runs.last_mut() {
            Some((_, end)) if *end == layer => *end += 1,
            _ => runs.push((layer, layer + 1)),
        }
    }
    let text = |(start, end): &(usize, usize)| {
        if start + 1 == *end { start.to_string() } else { format!("{start}..{end}") }
    };
    let runs: Vec<String> = runs.iter().map(text).collect();
    format!("layers {}", runs.join(","))
}
