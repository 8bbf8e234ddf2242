//! `norm_quant`: see the rule's doc line.

use super::ROUNDING;
use crate::fuse::GroupKind;
use crate::fuse::rule::{FusionRule, Part};
use crate::graph::OpKind;

/// The rule.
pub fn rule() -> FusionRule {
    FusionRule::new(
        "norm_quant",
        GroupKind::NormQuant,
        "a norm left by itself, and the quantisation of its result",
    )
    .node(Part::Root, "norm", &[OpKind::RmsNorm], &["x"])
    .node(Part::Epilogue, "quant", ROUNDING, &["norm"])
    .outputs(&["norm", "quant"])
}
