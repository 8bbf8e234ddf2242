//! The built-in fusion rules, one file each.

mod attention;
mod linear_residual;
mod logits;
mod mlp_gate_up;
mod moe_down;
mod moe_gate_up;
mod norm_quant;
mod qkv;
mod shrink;

use super::rule::FusionRule;
use crate::graph::OpKind;

/// Every built-in rule, in the order in which they are tried: an earlier rule takes its nodes first.
pub fn builtin() -> Vec<FusionRule> {
    let mut rules = vec![
        qkv::rule(),
        attention::rule(),
        linear_residual::rule(),
        moe_gate_up::rule(),
        moe_down::rule(),
        mlp_gate_up::rule(),
        logits::rule(),
        norm_quant::rule(),
        shrink::routed(),
    ];
    rules.extend(shrink::rules());
    rules
}

/// A matrix product on f32 or q8 activations.
const LINEAR: &[OpKind] = &[OpKind::Linear, OpKind::QuantLinear];
/// A grouped matrix product on f32, q8 or bf16 activations.
const EXPERT_LINEAR: &[OpKind] = &[OpKind::ExpertLinear, OpKind::QuantExpertLinear, OpKind::Bf16ExpertLinear];
/// The rounding of a matrix product's activations.
const ROUNDING: &[OpKind] = &[OpKind::QuantizeQ8, OpKind::Bf16Cast];
