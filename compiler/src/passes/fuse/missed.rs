//! Possible savings of near misses, so that a reader sees the important ones first.

use super::engine::FusionReport;
use super::explain::{per_token, ranges, split_layer};
use super::group::FusedGraph;
use crate::ir::{NodeId, Uses};
use serde::Serialize;

/// Places where a rule nearly applied in the same way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Missed {
    /// The rule.
    pub rule: String,
    /// The value that its first root makes, without the layer.
    pub value: String,
    /// The layers, such as `layers 0..24`; empty for a place in none.
    pub layers: String,
    /// How many places there are.
    pub count: usize,
    /// Parts that the rule was applied without instead; empty when it was not applied.
    pub without: Vec<String>,
    /// Why.
    pub reason: String,
    /// Steps of a run that all places together would save, at most.
    pub steps: usize,
    /// Bytes per token that would not be written, at most.
    pub bytes: usize,
}

/// The near misses of a fusion, what would save most first. Several groups could be one: each of these that
/// has no other members is a step less.
pub fn missed(fused: &FusedGraph, report: &FusionReport) -> Vec<Missed> {
    let uses = Uses::new(&fused.graph);
    let group_of = fused.group_of();
    let mut all: Vec<(Missed, Vec<usize>)> = Vec::new();
    for miss in &report.near_misses {
        let name = &fused.graph.value(fused.graph.node(miss.anchor).output).name;
        let (layer, value) = split_layer(name);
        let reason = match layer {
            Some(layer) => miss.reason.replace(&format!("layers.{layer}."), "layers.*."),
            None => miss.reason.clone(),
        };
        let (steps, bytes) = saved(fused, &uses, &group_of, &miss.members);
        let known = all.iter().position(|(one, _)| {
            one.rule == miss.rule && one.value == value && one.without == miss.without && one.reason == reason
        });
        let index = known.unwrap_or_else(|| {
            let (rule, without) = (miss.rule.clone(), miss.without.clone());
            let layers = String::new();
            let one = Missed { rule, value, layers, count: 0, without, reason, steps: 0, bytes: 0 };
            all.push((one, Vec::new()));
            all.len() - 1
        });
        let (one, layers) = &mut all[index];
        (one.count, one.steps, one.bytes) = (one.count + 1, one.steps + steps, one.bytes + bytes);
        layers.extend(layer);
    }
    let named = all.into_iter().map(|(one, layers)| match layers.is_empty() {
        true => one,
        false => Missed { layers: ranges(&layers), ..one },
    });
    let mut named: Vec<Missed> = named.collect();
    named.sort_by_key(|one| std::cmp::Reverse((one.steps, one.bytes)));
    named
}

/// Steps and bytes per token that are saved when `members` become one group.
fn saved(fused: &FusedGraph, uses: &Uses, group_of: &[usize], members: &[NodeId]) -> (usize, usize) {
    let mut whole: Vec<usize> = members.iter().map(|id| group_of[id.0 as usize]).collect();
    whole.sort_unstable();
    whole.dedup();
    whole.retain(|group| fused.groups[*group].members().iter().all(|id| members.contains(id)));
    let outputs = whole.iter().flat_map(|group| &fused.groups[*group].outputs);
    let inside = |value: &&crate::ir::ValueId| {
        **value != fused.graph.output && uses.users(**value).iter().all(|user| members.contains(user))
    };
    (whole.len().saturating_sub(1), outputs.filter(inside).map(|value| per_token(fused, *value)).sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passes::fuse::{FusedSet, FusionRule, fuse};
    use crate::passes::quant::{Preset, quantise};
    use crate::testing::{ModelShape, build};
    use kernmill_plan::target::Level;

    /// A match that a rule is told to refuse saves what the
    /// rule saves where it is allowed.
    #[test]
    fn a_refused_match_would_save_what_the_rule_saves() {
        let graph = quantise(&build(&ModelShape::mini_gpt_oss()).unwrap(), Preset::Faithful).unwrap();
        let set = FusedSet::builtin();
        let (fused, report) = fuse(&graph, set.rules(), Level::V3);
        // The router has few experts: as a step of its own it would save nothing.
        let rules: Vec<(String, usize)> =
            missed(&fused, &report).into_iter().map(|one| (one.rule, one.steps)).collect();
        assert_eq!(rules, [("moe_router".to_owned(), 0)]);
        // A value that is used once more outside may not stay inside.
        let rules: Vec<FusionRule> = set.rules().cloned().collect();
        let without_outputs: Vec<FusionRule> = rules
            .iter()
            .cloned()
            .map(|rule| match rule.name.as_str() {
                "linear_residual" => FusionRule { outputs: Vec::new(), ..rule },
                _ => rule,
            })
            .collect();
        let (narrow, report) = fuse(&graph, &without_outputs, Level::V3);
        let all = missed(&narrow, &report);
        let of = all.iter().filter(|one| one.rule == "linear_residual").collect::<Vec<_>>();
        let steps: usize = of.iter().map(|one| one.steps).sum();
        assert_eq!(steps, narrow.groups.len() - fused.groups.len(), "{all:#?}");
        assert!(of[0].bytes > 0 && of[0].value.contains("layers.*."), "{all:#?}");
        assert!(all.windows(2).all(|two| two[0].steps >= two[1].steps));
    }
}
