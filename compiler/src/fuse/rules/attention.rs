//! `attention`: see the rule's doc line.

use crate::fuse::GroupKind;
use crate::fuse::rule::{Check, FusionRule, Part, Quantity};
use crate::graph::OpKind;

/// The rule.
pub fn rule() -> FusionRule {
    let group_cols = Check::MultipleOf { quantity: Quantity::GroupCols("attention".into()), divisor: 32 };
    FusionRule::new("attention", GroupKind::Attention, "attention, and the quantisation of its result")
        .node(Part::Root, "attention", &[OpKind::Attention], &["q", "k", "v"])
        .optional(Part::Epilogue, "quant", &[OpKind::QuantizeQ8], &["attention"])
        .outputs(&["quant", "attention"])
        .guard_with(
            "quant",
            group_cols,
            "a work item is the queries of one KV head and quantises whole blocks",
        )
}
