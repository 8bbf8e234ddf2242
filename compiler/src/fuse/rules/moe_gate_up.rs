//! `moe_gate_up`: see the rule's doc line.

use super::{EXPERT_LINEAR, ROUNDING};
use crate::fuse::GroupKind;
use crate::fuse::rule::{Check, FusionRule, Part};
use crate::graph::OpKind;

/// The rule.
pub fn rule() -> FusionRule {
    let same = Check::SameCols { of: vec!["gate".into(), "up".into()] };
    FusionRule::new(
        "moe_gate_up",
        GroupKind::MoeGateUp,
        "norm, router, the chosen experts' gate and up, activation",
    )
    .node(Part::Prologue, "norm", &[OpKind::RmsNorm], &["x"])
    .node(Part::Prologue, "router", &[OpKind::Linear], &["norm"])
    .node(Part::Prologue, "topk", &[OpKind::RouterTopk], &["router"])
    .optional(Part::Prologue, "quant", ROUNDING, &["norm"])
    .node(Part::Root, "gate", EXPERT_LINEAR, &["quant", "topk"])
    .node(Part::Root, "up", EXPERT_LINEAR, &["quant", "topk"])
    .node(Part::Epilogue, "glu", &[OpKind::Glu], &["gate", "up"])
    .optional(Part::Epilogue, "quant_out", ROUNDING, &["glu"])
    .outputs(&["topk", "quant_out", "glu"])
    .guard(same, "a work item computes the same units of both")
}
