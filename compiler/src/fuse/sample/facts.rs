//! Columns and rows of a sample's values: what the ops of its pattern demand of each other, and the rest at random.

use super::pattern::{HIDDEN, ODD, Pattern, Sizes, WIDTHS};
use crate::fuse::guard::{Check, RowKind};
use crate::fuse::rule::{FusionRule, Part, Template};
use crate::graph::OpKind;
use crate::testing::Rng;
use std::collections::BTreeMap;

/// What is known of the pattern's values before they are made.
pub(super) struct Facts {
    /// Class of equal columns, by name.
    class: BTreeMap<String, usize>,
    cols: Vec<usize>,
    pub(super) rows: BTreeMap<String, RowKind>,
    /// Names of routings, and of token ids.
    pub(super) routing: Vec<String>,
    pub(super) ids: Vec<String>,
}

impl Facts {
    pub(super) fn of(
        rule: &FusionRule,
        pattern: &Pattern<'_>,
        sizes: &Sizes,
        seed: u64,
        rng: &mut Rng,
    ) -> Facts {
        let mut class: BTreeMap<String, usize> = BTreeMap::new();
        let mut of = |name: &str| {
            let next = class.len();
            *class.entry(name.to_owned()).or_insert(next)
        };
        let mut same: Vec<(usize, usize)> = Vec::new();
        let mut fixed: Vec<(usize, usize)> = Vec::new();
        let mut rows: BTreeMap<String, RowKind> = BTreeMap::new();
        let mut alike: Vec<(String, String)> = Vec::new();
        let (mut routing, mut ids) = (Vec::new(), Vec::new());
        for (node, op, inputs) in &pattern.nodes {
            let out = node.capture.as_str();
            let mut row = |name: &str, kind| {
                rows.insert(name.to_owned(), kind);
            };
            let classes: Vec<usize> = inputs.iter().map(|name| of(name)).collect();
            let result = of(out);
            match op {
                OpKind::Attention => {
                    fixed.push((classes[0], sizes.kv_heads * sizes.group * sizes.head_dim));
                    fixed.push((classes[1], sizes.kv_heads * sizes.head_dim));
                    same.extend([(classes[1], classes[2]), (classes[0], result)]);
                    inputs.iter().chain([&out]).for_each(|name| row(name, RowKind::Tokens));
                }
                OpKind::RouterTopk => {
                    fixed.push((classes[0], sizes.experts));
                    row(inputs[0], RowKind::Tokens);
                    routing.push(out.to_owned());
                }
                OpKind::Embed => ids.push(inputs[0].to_owned()),
                OpKind::Linear => alike.push((inputs[0].to_owned(), out.to_owned())),
                OpKind::ExpertLinear => {
                    routing.push(inputs[1].to_owned());
                    row(out, RowKind::Slots);
                }
                OpKind::ExpertSum => {
                    routing.push(inputs[1].to_owned());
                    same.push((classes[0], result));
                    row(inputs[0], RowKind::Slots);
                    row(out, RowKind::Tokens);
                }
                OpKind::SelectRows => {
                    same.push((classes[0], result));
                    row(inputs[0], RowKind::Tokens);
                    row(out, RowKind::LogitRows);
                }
                op => {
                    if *op == OpKind::Rope {
                        row(out, RowKind::Tokens);
                    }
                    same.extend(classes.iter().map(|class| (*class, result)));
                    alike.extend(inputs.iter().map(|name| ((*name).to_owned(), out.to_owned())));
                }
            }
        }
        for guard in &rule.guards {
            match &guard.check {
                Check::SameCols { of: names } => {
                    let names: Vec<usize> = names.iter().map(|name| of(pattern.resolve(name))).collect();
                    same.extend(names.windows(2).map(|pair| (pair[0], pair[1])));
                }
                Check::RowsOf { of: name, rows: kind } => {
                    rows.insert(pattern.resolve(name).to_owned(), *kind);
                }
                Check::IsOutput { value } => fixed.push((of(pattern.resolve(value)), sizes.vocab)),
                _ => {}
            }
        }
        if rule.template == Template::ExpertDown
            && let Some((_, _, inputs)) = pattern.nodes.iter().find(|(node, ..)| node.part == Part::Root)
        {
            rows.insert(inputs[0].to_owned(), RowKind::Slots);
        }
        let mut parent: Vec<usize> = (0..class.len()).collect();
        // The classes are few: every pair again until nothing changes.
        for _ in 0..parent.len() {
            for (a, b) in &same {
                let least = parent[*a].min(parent[*b]);
                (parent[*a], parent[*b]) = (least, least);
            }
        }
        let class: BTreeMap<String, usize> = class.into_iter().map(|(name, i)| (name, parent[i])).collect();
        let widths = match seed % 8 {
            3 | 7 => &WIDTHS[4..],
            5 => &ODD,
            _ => &WIDTHS[..5],
        };
        let mut cols: Vec<usize> = parent.iter().map(|_| rng.pick(widths)).collect();
        let heads: Vec<usize> = pattern
            .nodes
            .iter()
            .filter(|(_, op, _)| *op == OpKind::Rope)
            .map(|(node, ..)| class[&node.capture])
            .collect();
        heads.into_iter().for_each(|class| cols[class] = sizes.head_dim * rng.pick(&[1, 3]));
        fixed.into_iter().rev().for_each(|(i, n)| cols[parent[i]] = n);
        for _ in 0..alike.len() {
            for (a, b) in &alike {
                let known = rows.get(a).or_else(|| rows.get(b)).copied();
                if let Some(kind) = known {
                    rows.entry(a.clone()).or_insert(kind);
                    rows.entry(b.clone()).or_insert(kind);
                }
            }
        }
        Facts { class, cols, rows, routing, ids }
    }

    /// Columns of a value.
    pub(super) fn cols(&self, name: &str) -> usize {
        self.class.get(name).map_or(HIDDEN, |class| self.cols[*class])
    }
}
