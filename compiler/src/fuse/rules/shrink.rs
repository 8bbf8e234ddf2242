//! `shrink3`, `shrink2`, `shrink1`, `routed_shrink`: see the rules' doc lines.

use crate::fuse::GroupKind;
use crate::fuse::rule::{FusionRule, Part};
use crate::graph::OpKind;

/// A norm and all shrinks of its result: three, two or one.
pub fn rules() -> Vec<FusionRule> {
    let all = ["a", "b", "c"];
    let rule = |count: usize| {
        let name = format!("shrink{count}");
        let first =
            FusionRule::new(&name, GroupKind::Shrink, "norm, and the A of adapters at all that read it")
                .node(Part::Prologue, "norm", &[OpKind::RmsNorm], &["x"]);
        all[..count]
            .iter()
            .fold(first, |rule, name| rule.node(Part::Root, name, &[OpKind::LoraShrink], &["norm"]))
            .outputs(&all[..count])
    };
    vec![rule(3), rule(2), rule(1)]
}

/// The A of experts' adapters needs the routing.
pub fn routed() -> FusionRule {
    FusionRule::new(
        "routed_shrink",
        GroupKind::Shrink,
        "norm, router, and the A of the chosen experts' adapters",
    )
    .node(Part::Prologue, "norm", &[OpKind::RmsNorm], &["x"])
    .node(Part::Prologue, "router", &[OpKind::Linear], &["norm"])
    .node(Part::Prologue, "topk", &[OpKind::RouterTopk], &["router"])
    .node(Part::Root, "shrink", &[OpKind::LoraShrink], &["norm", "topk"])
    .outputs(&["shrink"])
}
