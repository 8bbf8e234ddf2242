//! Finds one match of a pattern around an anchor node, by backtracking.
//!
//! An optional node is either there or stands for its first input. A repeated one is there once or several
//! times. Each choice gives a plain pattern ([`Plain`]), and only plain patterns are matched.

use super::rule::FusionRule;
use crate::ir::ops::places::MemberRole;
use crate::ir::{Graph, NodeId, OpKind, Uses, ValueId};
use kernmill_kernels_gen::expr::Expr;
use std::cell::Cell;
use std::collections::BTreeMap;

/// A pattern without optional nodes, and with a certain number of copies of a repeated one.
pub(super) struct Plain<'r> {
    pub rule: &'r FusionRule,
    /// Indices into the rule's pattern of the nodes that are there, in an order in which each but the first
    /// is connected to an earlier one; the first is the first root.
    order: Vec<usize>,
    /// Per pattern node its inputs, absent nodes resolved.
    inputs: Vec<Vec<InputSource>>,
    /// Optional captures and copies that are left out.
    pub absent: Vec<&'r str>,
}

#[derive(Clone, Copy, PartialEq)]
enum InputSource {
    /// Output of that pattern node.
    Node(usize),
    /// Outside value of that number.
    Outside(usize),
}

/// Matched nodes by pattern index.
#[derive(Clone)]
pub(super) struct Match {
    nodes: Vec<Option<NodeId>>,
    /// The matched nodes' inputs, in the pattern's order.
    inputs: Vec<Vec<ValueId>>,
    outside: Vec<Option<ValueId>>,
}

/// How far an unsuccessful search got.
pub(super) struct Partial {
    /// Nodes matched at best.
    pub matched: usize,
    /// Capture that nothing fitted.
    pub stuck_at: usize,
    /// The nodes that were matched at best.
    pub nodes: Vec<NodeId>,
}

impl<'r> Plain<'r> {
    /// The plain forms of a rule for graphs that have such ops, those with most nodes first. Each form is
    /// tried at each anchor, so that optional nodes whose ops no node has are left out of all of them.
    pub fn forms(rule: &'r FusionRule, kinds: &[OpKind]) -> Vec<Plain<'r>> {
        let optional = |wanted: bool| -> Vec<usize> {
            let of_graph = |i: usize| rule.pattern[i].ops.iter().any(|op| kinds.contains(op));
            (0..rule.pattern.len()).filter(|&i| rule.pattern[i].optional && of_graph(i) == wanted).collect()
        };
        let (optional, never) = (optional(true), optional(false));
        let copies = rule.pattern.iter().map(|node| node.copy).max().unwrap_or(0);
        // Which optional nodes are left out, as a mask, and which is the last copy of a repeated one.
        let mut choices: Vec<(u32, usize)> =
            (0..1u32 << optional.len()).flat_map(|mask| (0..=copies).map(move |last| (mask, last))).collect();
        choices.sort_by_key(|(mask, last)| mask.count_ones() as usize + copies - last);
        let form = |(mask, last): (u32, usize)| {
            let left_out =
                |i: &usize| optional.iter().position(|o| o == i).is_some_and(|b| mask >> b & 1 == 1);
            Plain::new(rule, &|i| rule.pattern[*i].copy > last || never.contains(i) || left_out(i))
        };
        choices.into_iter().map(form).collect()
    }

    fn new(rule: &'r FusionRule, is_absent: &dyn Fn(&usize) -> bool) -> Plain<'r> {
        let mut outside: Vec<&str> = Vec::new();
        let mut resolve = |name: &'r str| {
            let mut name = name;
            while let Some(i) = rule.pattern.iter().position(|node| node.capture == name) {
                if !is_absent(&i) {
                    return InputSource::Node(i);
                }
                name = &rule.pattern[i].inputs[0];
            }
            InputSource::Outside(outside.iter().position(|o| *o == name).unwrap_or_else(|| {
                outside.push(name);
                outside.len() - 1
            }))
        };
        let inputs: Vec<Vec<InputSource>> =
            rule.pattern.iter().map(|node| node.inputs.iter().map(|name| resolve(name)).collect()).collect();
        let present: Vec<usize> = (0..rule.pattern.len()).filter(|i| !is_absent(i)).collect();
        let order = connected_order(rule, &present, &inputs);
        let absent =
            (0..rule.pattern.len()).filter(is_absent).map(|i| rule.pattern[i].capture.as_str()).collect();
        Plain { rule, order, inputs, absent }
    }

    /// Pattern nodes that are there.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Ops of the first root.
    pub fn anchor_ops(&self) -> &'r [OpKind] {
        &self.rule.pattern[self.order[0]].ops
    }

    /// The graph value that a capture stands for in a match: its output, or its input's when it is absent;
    /// nothing where it is a copy of another node.
    pub fn value_of(&self, graph: &Graph, found: &Match, capture: &str) -> Option<ValueId> {
        let i = self.rule.pattern.iter().position(|node| node.capture == capture)?;
        let mut source = InputSource::Node(i);
        if found.nodes[i].is_none() {
            if self.rule.pattern[i].copy > 0 {
                return None;
            }
            // Inputs of absent nodes are resolved past other absent ones.
            source = self.inputs[i][0];
        }
        match source {
            InputSource::Node(i) => found.nodes[i].map(|id| graph.node(id).output),
            InputSource::Outside(i) => found.outside[i],
        }
    }

    /// Searches a match whose first root is `anchor`. `taken` tells nodes that other groups hold. `accept`
    /// may turn a complete match down, then the search goes on, for as many steps as `budget` has left.
    ///
    /// # Errors
    /// How far it got.
    pub fn find<T>(
        &self,
        graph: &Graph,
        uses: &Uses,
        taken: &dyn Fn(NodeId) -> bool,
        anchor: NodeId,
        budget: &Cell<usize>,
        accept: &mut dyn FnMut(&Match) -> Option<T>,
    ) -> Result<T, Partial> {
        let outside =
            self.inputs.iter().flatten().map(|s| if let InputSource::Outside(i) = s { i + 1 } else { 0 });
        let mut search = Search {
            plain: self,
            graph,
            uses,
            taken,
            accept,
            budget,
            partial: Partial { matched: 0, stuck_at: self.order[0], nodes: Vec::new() },
        };
        let start = Match {
            nodes: vec![None; self.rule.pattern.len()],
            inputs: vec![Vec::new(); self.rule.pattern.len()],
            outside: vec![None; outside.max().unwrap_or(0)],
        };
        search.extend(0, &start, Some(anchor)).ok_or(search.partial)
    }
}

/// Starts at the first root and takes nodes that a taken one reads, that read a taken one, or that share an
/// outside value.
fn connected_order(rule: &FusionRule, present: &[usize], inputs: &[Vec<InputSource>]) -> Vec<usize> {
    let first = present.iter().copied().find(|&i| rule.pattern[i].part == MemberRole::Root);
    let mut order: Vec<usize> = first.into_iter().collect();
    while order.len() < present.len() {
        let linked = |i: usize| {
            order.iter().any(|&o| {
                inputs[o].contains(&InputSource::Node(i))
                    || inputs[i].contains(&InputSource::Node(o))
                    || inputs[i].iter().any(|source| inputs[o].contains(source))
            })
        };
        let left = || present.iter().copied().filter(|i| !order.contains(i));
        let next = left().find(|&i| linked(i)).or_else(|| left().next());
        order.extend(next);
    }
    order
}

struct Search<'s, 'r, T> {
    plain: &'s Plain<'r>,
    graph: &'s Graph,
    uses: &'s Uses,
    taken: &'s dyn Fn(NodeId) -> bool,
    accept: &'s mut dyn FnMut(&Match) -> Option<T>,
    budget: &'s Cell<usize>,
    partial: Partial,
}

impl<T> Search<'_, '_, T> {
    /// Extends `found`, which has the first `depth` nodes of the order, to a whole match.
    fn extend(&mut self, depth: usize, found: &Match, anchor: Option<NodeId>) -> Option<T> {
        let Some(&i) = self.plain.order.get(depth) else { return (self.accept)(found) };
        if depth > self.partial.matched || depth == 0 {
            let nodes = found.nodes.iter().flatten().copied().collect();
            self.partial = Partial { matched: depth, stuck_at: i, nodes };
        }
        let candidates = anchor.map_or_else(|| self.candidates(i, found), |anchor| vec![anchor]);
        for id in candidates {
            for inputs in self.input_orders(i, id) {
                self.budget.set(self.budget.get().checked_sub(1)?);
                if let Some(next) = self.bind(i, id, inputs, found)
                    && let Some(result) = self.extend(depth + 1, &next, None)
                {
                    return Some(result);
                }
            }
        }
        None
    }

    fn candidates(&self, i: usize, found: &Match) -> Vec<NodeId> {
        for (j, sources) in self.plain.inputs.iter().enumerate() {
            if found.nodes[j].is_some()
                && let Some(port) = sources.iter().position(|source| *source == InputSource::Node(i))
            {
                return self.uses.producer(found.inputs[j][port]).into_iter().collect();
            }
        }
        for source in &self.plain.inputs[i] {
            let value = match *source {
                InputSource::Node(j) => found.nodes[j].map(|id| self.graph.node(id).output),
                InputSource::Outside(j) => found.outside[j],
            };
            if let Some(value) = value {
                return self.uses.users(value).to_vec();
            }
        }
        self.graph.nodes().map(|(id, _)| id).collect()
    }

    fn input_orders(&self, i: usize, id: NodeId) -> Vec<Vec<ValueId>> {
        // Adapter branches are no part of patterns.
        let inputs = self.graph.node(id).base_inputs();
        let mut orders = vec![inputs.to_vec()];
        if self.plain.rule.pattern[i].commutative && inputs.len() == 2 {
            orders.push(vec![inputs[1], inputs[0]]);
        }
        orders
    }

    /// Whether copies are in the graph's order: any other order of theirs is the same match.
    fn follows(&self, i: usize, id: NodeId, found: &Match) -> bool {
        self.plain.rule.pattern[i].copy == 0 || found.nodes[i - 1].is_none_or(|before| before < id)
    }

    /// `found` with pattern node `i` bound to `id`, if it fits.
    fn bind(&self, i: usize, id: NodeId, inputs: Vec<ValueId>, found: &Match) -> Option<Match> {
        let pattern = &self.plain.rule.pattern[i];
        let node = self.graph.node(id);
        let same_expr = |wanted: &Expr| node.op.def().expr().as_ref() == Some(wanted);
        let fits = pattern.ops.contains(&node.kind())
            && pattern.expr.as_ref().is_none_or(same_expr)
            && inputs.len() == pattern.inputs.len()
            && !found.nodes.contains(&Some(id))
            && (pattern.part == MemberRole::Context || !(self.taken)(id))
            && self.follows(i, id, found);
        if !fits {
            return None;
        }
        let mut next = found.clone();
        for (source, &value) in self.plain.inputs[i].iter().zip(&inputs) {
            match *source {
                InputSource::Node(j) => {
                    if found.nodes[j].is_some_and(|other| self.graph.node(other).output != value) {
                        return None;
                    }
                }
                InputSource::Outside(j) => match next.outside[j] {
                    Some(bound) if bound != value => return None,
                    _ => next.outside[j] = Some(value),
                },
            }
        }
        for (j, sources) in self.plain.inputs.iter().enumerate() {
            if found.nodes[j].is_some() {
                let mut ports = sources.iter().zip(&found.inputs[j]);
                if ports.any(|(source, value)| *source == InputSource::Node(i) && *value != node.output) {
                    return None;
                }
            }
        }
        next.nodes[i] = Some(id);
        next.inputs[i] = inputs;
        Some(next)
    }
}

impl Match {
    /// The node that a capture matched.
    pub fn node(&self, rule: &FusionRule, capture: &str) -> Option<NodeId> {
        let i = rule.pattern.iter().position(|node| node.capture == capture)?;
        self.nodes[i]
    }

    /// Matched nodes of that part, in the pattern's order.
    pub fn part(&self, rule: &FusionRule, part: MemberRole) -> Vec<NodeId> {
        let of_part = rule.pattern.iter().zip(&self.nodes).filter(|(node, _)| node.part == part);
        of_part.filter_map(|(_, id)| *id).collect()
    }

    /// Every matched node that becomes a member, by capture.
    pub fn members(&self, rule: &FusionRule) -> BTreeMap<String, NodeId> {
        let inside =
            rule.pattern.iter().zip(&self.nodes).filter(|(node, _)| node.part != MemberRole::Context);
        inside.filter_map(|(node, id)| id.map(|id| (node.capture.clone(), id))).collect()
    }
}
