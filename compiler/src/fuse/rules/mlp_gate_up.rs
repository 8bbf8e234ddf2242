//! `mlp_gate_up`: see the rule's doc line.

use super::LINEAR;
use crate::fuse::GroupKind;
use crate::fuse::rule::{Check, FusionRule, Part};
use crate::graph::OpKind;

/// The rule.
pub fn rule() -> FusionRule {
    let same = Check::SameCols { of: vec!["gate".into(), "up".into()] };
    FusionRule::new("mlp_gate_up", GroupKind::MlpGateUp, "norm, dense gate and up, activation")
        .node(Part::Prologue, "norm", &[OpKind::RmsNorm], &["x"])
        .optional(Part::Prologue, "quant", &[OpKind::QuantizeQ8], &["norm"])
        .node(Part::Root, "gate", LINEAR, &["quant"])
        .node(Part::Root, "up", LINEAR, &["quant"])
        .node(Part::Epilogue, "glu", &[OpKind::Glu], &["gate", "up"])
        .optional(Part::Epilogue, "quant_out", &[OpKind::QuantizeQ8], &["glu"])
        .outputs(&["quant_out", "glu"])
        .guard(same, "a work item computes the same units of both")
}
