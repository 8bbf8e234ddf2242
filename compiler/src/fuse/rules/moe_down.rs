//! `moe_down`: see the rule's doc line.

use super::EXPERT_LINEAR;
use crate::fuse::GroupKind;
use crate::fuse::rule::{FusionRule, Part};
use crate::graph::OpKind;

/// The rule.
pub fn rule() -> FusionRule {
    FusionRule::new(
        "moe_down",
        GroupKind::MoeDown,
        "the chosen experts' down, weighted and added to the residual stream",
    )
    .node(Part::Root, "down", EXPERT_LINEAR, &["h", "routing"])
    .node(Part::Epilogue, "sum", &[OpKind::ExpertSum], &["down", "routing"])
    .node(Part::Epilogue, "add", &[OpKind::Add], &["sum", "residual"])
    .outputs(&["add"])
}
