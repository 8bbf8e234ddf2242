//! `logits`: see the rule's doc line.

use super::LINEAR;
use crate::fuse::GroupKind;
use crate::fuse::rule::{Check, FusionRule, Part};
use crate::graph::OpKind;

/// The rule.
pub fn rule() -> FusionRule {
    let is_output = Check::IsOutput { value: "linear".into() };
    FusionRule::new("logits", GroupKind::Logits, "the wanted rows, norm, unembedding")
        .node(Part::Prologue, "select", &[OpKind::SelectRows], &["x"])
        .node(Part::Prologue, "norm", &[OpKind::RmsNorm], &["select"])
        .optional(Part::Prologue, "quant", &[OpKind::QuantizeQ8], &["norm"])
        .node(Part::Root, "linear", LINEAR, &["quant"])
        .outputs(&["linear"])
        .guard(is_output, "the kernel writes the slab of logits")
}
