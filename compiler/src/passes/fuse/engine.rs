//! Applies the rules in order: each takes the matches that its guards allow, earlier rules first.

use super::allow::{Matched, also_used, name};
use super::compose::compose;
use super::composition::Composition;
use super::group::{FusedGraph, Group, GroupKind, edges};
use super::matcher::{Match, Partial, Plain};
use super::order::UnitOrder;
use super::rule::FusionRule;
use crate::ir::ops::places::MemberRole;
use crate::ir::{Graph, Node, NodeId, OpKind, Uses, ValueId};
use kernmill_plan::target::Level;
use std::cell::Cell;
use std::collections::BTreeSet;

/// Steps of the search for a rule at one anchor, and at all of them. Of nodes that can stand for each other
/// there are more orders than anyone could wait for.
const ANCHOR_STEPS: usize = 1 << 13;
const RULE_STEPS: usize = 1 << 18;

/// The fusions that were not done, and the reasons.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FusionReport {
    /// Matches that were refused and those that nearly were matches.
    pub near_misses: Vec<NearMiss>,
}

/// A place where a rule nearly applied.
#[derive(Clone, Debug, PartialEq)]
pub struct NearMiss {
    /// Rule.
    pub rule: String,
    /// The node that would have been its first root.
    pub anchor: NodeId,
    /// Optional captures and copies of a repeated one that the rule was applied without instead; empty when
    /// it was not applied.
    pub without: Vec<String>,
    /// Why.
    pub reason: String,
    /// Nodes that would have been one group: those of the whole match, or those that were found of it.
    pub members: Vec<NodeId>,
}

/// Groups the nodes of `graph` by `rules`, in their order, for code of that level; nodes that no rule takes
/// are by themselves.
pub fn fuse<'r>(
    graph: &Graph,
    rules: impl IntoIterator<Item = &'r FusionRule>,
    level: Level,
) -> (FusedGraph, FusionReport) {
    let fusion = Fusion::of(graph, rules, level);
    tracing::debug!(visits = fusion.order.visits(), "searched for circles of groups");
    fusion.finish()
}

struct Fusion<'g> {
    graph: &'g Graph,
    level: Level,
    uses: Uses,
    /// Kinds of the nodes, each once.
    kinds: Vec<OpKind>,
    groups: Vec<Group>,
    /// Index into `groups`, by node.
    group_of: Vec<Option<usize>>,
    order: UnitOrder<'g>,
    report: FusionReport,
    /// Patterns of which one node is missing; of interest only where no other rule applied or nearly did.
    incomplete: Vec<NearMiss>,
    /// Nodes of whole matches that guards refused.
    refused: BTreeSet<NodeId>,
}

/// A whole match that guards turned down.
struct GuardRefusal<'f> {
    reason: String,
    /// Optional captures and copies that it went without.
    absent: &'f [&'f str],
    members: Vec<NodeId>,
}

impl<'g> Fusion<'g> {
    /// The groups that the rules make.
    fn of<'r>(graph: &'g Graph, rules: impl IntoIterator<Item = &'r FusionRule>, level: Level) -> Fusion<'g> {
        let mut kinds: Vec<OpKind> = Vec::new();
        for kind in graph.nodes.iter().map(Node::kind) {
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        let mut fusion = Fusion {
            kinds,
            graph,
            level,
            uses: Uses::new(graph),
            groups: Vec::new(),
            group_of: vec![None; graph.nodes.len()],
            order: UnitOrder::new(graph),
            report: FusionReport::default(),
            incomplete: Vec::new(),
            refused: BTreeSet::new(),
        };
        rules.into_iter().for_each(|rule| fusion.apply(rule));
        fusion
    }

    fn apply(&mut self, rule: &FusionRule) {
        let forms = Plain::forms(rule, &self.kinds);
        let mut left = RULE_STEPS;
        for (anchor, node) in self.graph.nodes() {
            if self.group_of[anchor.0 as usize].is_none() && forms[0].anchor_ops().contains(&node.kind()) {
                let steps = left.min(ANCHOR_STEPS);
                let budget = Cell::new(steps);
                self.apply_at(rule, &forms, anchor, &budget);
                left -= steps - budget.get();
            }
        }
    }

    /// Tries the rule's forms at one anchor, those with most members first.
    fn apply_at(&mut self, rule: &FusionRule, forms: &[Plain], anchor: NodeId, budget: &Cell<usize>) {
        let near = |without, reason, members| {
            let rule = rule.name.clone();
            NearMiss { rule, anchor, without, reason, members }
        };
        let mut refused: Option<GuardRefusal> = None;
        let mut incomplete: Option<(String, Vec<NodeId>)> = None;
        for form in forms {
            match self.try_form(form, anchor, budget) {
                Ok(group) => {
                    if let Some(refusal) = refused {
                        let newly = form.absent.iter().filter(|name| !refusal.absent.contains(name));
                        let without = newly.map(ToString::to_string).collect();
                        self.report.near_misses.push(near(without, refusal.reason, refusal.members));
                    }
                    self.take(group);
                    return;
                }
                Err((_, Some(refusal))) => refused = refused.or(Some(refusal)),
                Err((partial, None)) => {
                    // A copy more is never what is missing; nor is the choice of rows before an unembedding:
                    // without it the matrix is another one.
                    let missing_node = &rule.pattern[partial.stuck_at];
                    let is_possible = missing_node.copy == 0
                        && missing_node.ops.iter().any(|kind| kind.name != "select_rows");
                    if is_possible && partial.matched >= 3 && partial.matched + 1 == form.len() {
                        incomplete.get_or_insert_with(|| (missing(rule, partial.stuck_at), partial.nodes));
                    }
                }
            }
        }
        if budget.get() == 0 {
            let first =
                refused.as_ref().map_or(String::new(), |refusal| format!("; the first: {}", refusal.reason));
            let reason =
                format!("nodes that can stand for each other fit in too many ways to try them all{first}");
            let members = refused.map_or_else(Vec::new, |refusal| refusal.members);
            self.report.near_misses.push(near(Vec::new(), reason, members));
        } else if let Some(refusal) = refused {
            self.refused.extend(&refusal.members);
            self.report.near_misses.push(near(Vec::new(), refusal.reason, refusal.members));
        } else if let Some((reason, members)) = incomplete {
            self.incomplete.push(near(Vec::new(), reason, members));
        }
    }

    /// The group of a match of this form; or how far the search got and the first refusal.
    fn try_form<'f>(
        &self,
        form: &'f Plain,
        anchor: NodeId,
        budget: &Cell<usize>,
    ) -> Result<Group, (Partial, Option<GuardRefusal<'f>>)> {
        let taken = |id: NodeId| self.group_of[id.0 as usize].is_some();
        let mut refusal = None;
        let mut accept = |found: &Match| match self.allow(form, found) {
            Ok(group) => Some(group),
            Err(reason) => {
                let members = found.members(form.rule).into_values().collect();
                refusal.get_or_insert(GuardRefusal { reason, absent: &form.absent, members });
                None
            }
        };
        let result = form.find(self.graph, &self.uses, &taken, anchor, budget, &mut accept);
        result.map_err(|partial| (partial, refusal))
    }

    /// The group that a match becomes, or why it may not.
    fn allow(&self, form: &Plain, found: &Match) -> Result<Group, String> {
        let rule = form.rule;
        Matched { graph: self.graph, uses: &self.uses, level: self.level, form, found }.check()?;
        let captures = found.members(rule);
        let members: Vec<NodeId> = captures.values().copied().collect();
        self.check_outputs(form, found, &members)?;
        self.check_order(&members)?;
        let sorted = |part| {
            let mut nodes = found.part(rule, part);
            nodes.sort();
            nodes
        };
        let mut group = Group {
            rule: Some(rule.name.clone()),
            kind: GroupKind::Fused(rule.template),
            prologue: sorted(MemberRole::Prologue),
            roots: found.part(rule, MemberRole::Root),
            epilogue: sorted(MemberRole::Epilogue),
            captures,
            kv_write: self.kv_write(form, found)?,
            hints: rule.hints,
            inputs: Vec::new(),
            outputs: Vec::new(),
            composition: Composition::Rows(Vec::new()),
        };
        // Both follow from the fields above; the composition from the edges as well.
        group.find_edges(self.graph, &self.uses);
        group.composition = compose(self.graph, &self.uses, &group, rule.template)?;
        Ok(group)
    }

    /// The attention whose keys and values the rule writes to the cache: they are read from there alone.
    fn kv_write(&self, form: &Plain, found: &Match) -> Result<Option<NodeId>, String> {
        let written: Vec<ValueId> =
            form.rule.kv_write.iter().filter_map(|name| form.value_of(self.graph, found, name)).collect();
        let [keys, values] = written[..] else { return Ok(None) };
        let reads = |id: &NodeId| {
            let node = self.graph.node(*id);
            node.op.attention().is_some_and(|a| !a.shared) && node.inputs[1..] == [keys, values]
        };
        let Some(attention) = self.uses.users(keys).iter().copied().find(reads) else {
            let (keys, values) = (name(self.graph, keys), name(self.graph, values));
            return Err(format!("no attention reads {keys} as its keys and {values} as its values"));
        };
        for value in [keys, values] {
            let mut users = self.uses.users(value).iter();
            if let Some(&other) = users.find(|user| !self.graph.read_one_cache(attention, **user)) {
                let also = also_used(self.graph, value, other);
                return Err(format!("{also} (the kernel writes it to the KV cache only)"));
            }
        }
        Ok(Some(attention))
    }

    /// Values of members that the rule does not hand out must stay inside.
    fn check_outputs(&self, form: &Plain, found: &Match, members: &[NodeId]) -> Result<(), String> {
        let allowed: BTreeSet<ValueId> =
            form.rule.outputs.iter().filter_map(|name| form.value_of(self.graph, found, name)).collect();
        let (_, outputs) = edges(self.graph, &self.uses, members);
        match outputs.into_iter().find(|value| !allowed.contains(value)) {
            None => Ok(()),
            Some(value) => {
                let used = match self.uses.users(value).iter().find(|user| !members.contains(user)) {
                    Some(&user) => also_used(self.graph, value, user),
                    None => format!("value {} is the graph's output", name(self.graph, value)),
                };
                Err(format!("{used} (the rule does not name it in `outputs`)"))
            }
        }
    }

    /// No path may leave the group and come back, through nodes or other groups: the groups must have an
    /// order.
    fn check_order(&self, members: &[NodeId]) -> Result<(), String> {
        let Some((outside, member)) = self.order.way_back(&self.uses, members) else { return Ok(()) };
        let value_of = |id: NodeId| name(self.graph, self.graph.node(id).output);
        Err(format!(
            "{}, which {} needs, depends on another member and is outside the group",
            value_of(outside),
            value_of(member)
        ))
    }

    fn take(&mut self, group: Group) {
        let members = group.members();
        for id in &members {
            self.group_of[id.0 as usize] = Some(self.groups.len());
        }
        if members.len() > 1 {
            self.order.join(&self.uses, &members);
        }
        self.groups.push(group);
    }

    fn finish(mut self) -> (FusedGraph, FusionReport) {
        let left = |miss: &NearMiss| {
            self.group_of[miss.anchor.0 as usize].is_none() && !self.refused.contains(&miss.anchor)
        };
        self.report.near_misses.extend(self.incomplete.iter().filter(|miss| left(miss)).cloned());
        for (id, _) in self.graph.nodes() {
            if self.group_of[id.0 as usize].is_none() {
                self.take(Group::single(self.graph, &self.uses, id));
            }
        }
        let groups = executable_order(self.graph, &self.uses, self.groups, &self.group_of);
        (FusedGraph { graph: self.graph.clone(), groups }, self.report)
    }
}

fn missing(rule: &FusionRule, at: usize) -> String {
    let node = &rule.pattern[at];
    let ops: Vec<&str> = node.ops.iter().map(|op| op.name).collect();
    let (ops, inputs) = (ops.join(" or "), node.inputs.join(", "));
    format!("no node that is still free fits `{}`, expected {ops} of {inputs}", node.capture)
}

/// Groups in an order in which each follows those it reads from; of several that could be next, the one whose
/// first node comes first in the graph.
fn executable_order(
    graph: &Graph,
    uses: &Uses,
    groups: Vec<Group>,
    group_of: &[Option<usize>],
) -> Vec<Group> {
    let first: Vec<NodeId> = groups.iter().map(|g| g.members()[0]).collect();
    let mut waits_for: Vec<BTreeSet<usize>> = groups
        .iter()
        .map(|group| {
            let producers = group.inputs.iter().filter_map(|&value| uses.producer(value));
            producers.filter_map(|node| group_of[node.0 as usize]).collect()
        })
        .collect();
    let mut ready: BTreeSet<(NodeId, usize)> =
        (0..groups.len()).filter(|&g| waits_for[g].is_empty()).map(|g| (first[g], g)).collect();
    let mut order = Vec::with_capacity(groups.len());
    while let Some((_, g)) = ready.pop_first() {
        order.push(g);
        for value in &groups[g].outputs {
            for user in uses.users(*value) {
                let Some(other) = group_of[user.0 as usize] else { continue };
                if other != g && waits_for[other].remove(&g) && waits_for[other].is_empty() {
                    ready.insert((first[other], other));
                }
            }
        }
    }
    debug_assert_eq!(order.len(), groups.len(), "groups of {} have a cycle", graph.name);
    let mut groups: Vec<Option<Group>> = groups.into_iter().map(Some).collect();
    order.into_iter().filter_map(|g| groups[g].take()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::spec::{Spec, lower};
    use crate::passes::fuse::FusedSet;
    use crate::passes::quant::{Preset, quantise};
    use crate::testing::{ModelShape, build};

    /// Nodes that the search for circles looks at, and nodes of the model.
    fn visits(graph: &Graph) -> (u64, u64) {
        let graph = quantise(graph, Preset::Faithful).unwrap();
        let fusion = Fusion::of(&graph, FusedSet::builtin().rules(), Level::V4Vnni);
        assert!(!fusion.groups.is_empty());
        (fusion.order.visits(), graph.nodes.len() as u64)
    }

    /// The nano model, with a chain of sums between the norm and the queries of each layer.
    fn chained(layers: usize) -> Graph {
        let add = |i: usize| {
            let of = if i == 0 { "attn_in".to_owned() } else { format!("sum{}", i - 1) };
            format!("  {{ out = \"sum{i}\", op = \"add\", inputs = [\"{of}\", \"attn_in\"] }},\n")
        };
        let q = |of: &str| format!("  {{ out = \"q\", op = \"linear\", input = \"{of}\"");
        let sums: String = (0..12).map(add).collect();
        let text = include_str!("../../../../model-specs/nano/nano.toml")
            .replace("layers         = 4", &format!("layers = {layers}"))
            .replace(&q("attn_in"), &(sums + &q("sum11")));
        lower(&Spec::parse("chained.toml", &text).unwrap()).unwrap()
    }

    #[test]
    fn the_search_for_circles_is_linear_in_the_number_of_layers() {
        let layered =
            |shape: ModelShape| move |layers: usize| build(&ModelShape { layers, ..shape.clone() }).unwrap();
        let models: [&dyn Fn(usize) -> Graph; 3] =
            [&layered(ModelShape::mini_gpt_oss()), &layered(ModelShape::mini_llama()), &chained];
        for (n, model) in models.into_iter().enumerate() {
            let (few, _) = visits(&model(8));
            for layers in [16, 64, 256] {
                let (many, nodes) = visits(&model(layers));
                assert!(many > nodes / 4, "model {n}: {many} for {nodes} nodes");
                assert!(many < 60 * nodes, "model {n}: {many} for {nodes} nodes");
                assert!(many <= (few * layers as u64 / 8) * 11 / 10, "model {n}: {many}, of 8 layers {few}");
            }
        }
    }
}
