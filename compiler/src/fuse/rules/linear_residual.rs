//! `linear_residual`: see the rule's doc line.

use super::LINEAR;
use crate::fuse::GroupKind;
use crate::fuse::rule::{FusionRule, Part};
use crate::graph::OpKind;

/// The rule.
pub fn rule() -> FusionRule {
    FusionRule::new("linear_residual", GroupKind::LinearResidual, "a projection added to the residual stream")
        .optional(Part::Prologue, "quant", &[OpKind::QuantizeQ8], &["x"])
        .node(Part::Root, "linear", LINEAR, &["quant"])
        .node(Part::Epilogue, "add", &[OpKind::Add], &["linear", "residual"])
        .outputs(&["add"])
}
