//! `qkv`: see the rule's doc line.

use super::LINEAR;
use crate::fuse::GroupKind;
use crate::fuse::rule::{Check, FusionRule, Part};
use crate::graph::OpKind;

/// The rule.
pub fn rule() -> FusionRule {
    let only = |value: &str| Check::UsedOnlyBy { value: value.into(), user: "attention".into() };
    FusionRule::new("qkv", GroupKind::Qkv, "norm, q/k/v projections, RoPE, and the write to the KV cache")
        .node(Part::Prologue, "norm", &[OpKind::RmsNorm], &["x"])
        .optional(Part::Prologue, "quant", &[OpKind::QuantizeQ8], &["norm"])
        .node(Part::Root, "q", LINEAR, &["quant"])
        .node(Part::Root, "k", LINEAR, &["quant"])
        .node(Part::Root, "v", LINEAR, &["quant"])
        .optional(Part::Epilogue, "rope_q", &[OpKind::Rope], &["q"])
        .optional(Part::Epilogue, "rope_k", &[OpKind::Rope], &["k"])
        .optional(Part::Epilogue, "cast_k", &[OpKind::KvCast], &["rope_k"])
        .optional(Part::Epilogue, "cast_v", &[OpKind::KvCast], &["v"])
        .node(Part::Context, "attention", &[OpKind::Attention], &["rope_q", "cast_k", "cast_v"])
        .outputs(&["rope_q", "cast_k", "cast_v"])
        .guard(only("cast_k"), "the kernel writes the keys to the KV cache only")
        .guard(only("cast_v"), "the kernel writes the values to the KV cache only")
}
