//! Columns and rows of a sample's values: what the ops of its pattern demand of each other, and the rest at
//! random.

use super::pattern::{HIDDEN, ODD, SamplePattern, WIDTHS};
use crate::ir::RowKind;
use crate::ir::ops::places::{KernelTemplate, MemberRole};
use crate::ir::ops::sample::{KnownValues, Sizes};
use crate::passes::fuse::guard::GuardCheck;
use crate::passes::fuse::rule::FusionRule;
use crate::random::Rng;
use std::collections::BTreeMap;

/// Facts about the pattern's values before they are made.
pub(super) struct PatternValues {
    /// Class of equal columns, by name.
    class: BTreeMap<String, usize>,
    cols: Vec<usize>,
    pub(super) rows: BTreeMap<String, RowKind>,
    /// Names of routings, and of token ids.
    pub(super) routing: Vec<String>,
    pub(super) ids: Vec<String>,
}

impl PatternValues {
    pub(super) fn of(
        rule: &FusionRule,
        pattern: &SamplePattern<'_>,
        sizes: &Sizes,
        seed: u64,
        rng: &mut Rng,
    ) -> PatternValues {
        let mut known = KnownValues::new(sizes);
        for (node, op, inputs) in &pattern.nodes {
            inputs.iter().chain([&node.capture.as_str()]).for_each(|name| {
                known.class(name);
            });
            (op.facts)(&mut known, inputs, &node.capture);
        }
        for guard in &rule.guards {
            match &guard.check {
                GuardCheck::SameCols { of: names } => {
                    let names: Vec<&str> = names.iter().map(|name| pattern.resolve(name)).collect();
                    names.windows(2).for_each(|pair| known.same_cols(pair[0], pair[1]));
                }
                GuardCheck::RowsOf { of: name, rows: kind } => known.rows_are(pattern.resolve(name), *kind),
                GuardCheck::IsOutput { value } => known.cols_are(pattern.resolve(value), sizes.vocab),
                _ => {}
            }
        }
        let KnownValues { class, same, fixed, heads, mut rows, alike, routing, ids, .. } = known;
        if rule.template == KernelTemplate::ExpertDown
            && let Some((_, _, inputs)) =
                pattern.nodes.iter().find(|(node, ..)| node.part == MemberRole::Root)
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
        heads.into_iter().for_each(|class| cols[parent[class]] = sizes.head_dim * rng.pick(&[1, 3]));
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
        PatternValues { class, cols, rows, routing, ids }
    }

    /// Columns of a value.
    pub(super) fn cols(&self, name: &str) -> usize {
        self.class.get(name).map_or(HIDDEN, |class| self.cols[*class])
    }
}
