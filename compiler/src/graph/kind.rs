//! Ops without their attributes: what patterns and tables name.

use super::Op;
use std::fmt;

/// An [`Op`] without its attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum OpKind {
    Embed,
    RmsNorm,
    Linear,
    QuantLinear,
    QuantizeQ8,
    Bf16Cast,
    Rope,
    KvCast,
    Attention,
    RouterTopk,
    ExpertLinear,
    QuantExpertLinear,
    Bf16ExpertLinear,
    ExpertSum,
    Glu,
    Elementwise,
    Add,
    Mul,
    SelectRows,
    LoraShrink,
}

impl OpKind {
    /// Inputs of a matrix product without an adapter; `None` for other ops.
    pub fn plain_inputs(self) -> Option<usize> {
        match self {
            OpKind::Linear | OpKind::QuantLinear => Some(1),
            OpKind::ExpertLinear | OpKind::QuantExpertLinear | OpKind::Bf16ExpertLinear => Some(2),
            _ => None,
        }
    }

    /// Every kind, in the order of [`Op`].
    pub const ALL: [OpKind; 20] = [
        OpKind::Embed,
        OpKind::RmsNorm,
        OpKind::Linear,
        OpKind::QuantLinear,
        OpKind::QuantizeQ8,
        OpKind::Bf16Cast,
        OpKind::Rope,
        OpKind::KvCast,
        OpKind::Attention,
        OpKind::RouterTopk,
        OpKind::ExpertLinear,
        OpKind::QuantExpertLinear,
        OpKind::Bf16ExpertLinear,
        OpKind::ExpertSum,
        OpKind::Glu,
        OpKind::Elementwise,
        OpKind::Add,
        OpKind::Mul,
        OpKind::SelectRows,
        OpKind::LoraShrink,
    ];

    /// The name in graph text, specs and listings.
    pub fn name(self) -> &'static str {
        match self {
            OpKind::Embed => "embed",
            OpKind::RmsNorm => "rms_norm",
            OpKind::Linear => "linear",
            OpKind::QuantLinear => "quant_linear",
            OpKind::QuantizeQ8 => "quantize_q8",
            OpKind::Bf16Cast => "bf16_cast",
            OpKind::Rope => "rope",
            OpKind::KvCast => "kv_cast",
            OpKind::Attention => "attention",
            OpKind::RouterTopk => "router_topk",
            OpKind::ExpertLinear => "expert_linear",
            OpKind::QuantExpertLinear => "quant_expert_linear",
            OpKind::Bf16ExpertLinear => "bf16_expert_linear",
            OpKind::ExpertSum => "expert_sum",
            OpKind::Glu => "glu",
            OpKind::Elementwise => "elementwise",
            OpKind::Add => "add",
            OpKind::Mul => "mul",
            OpKind::SelectRows => "select_rows",
            OpKind::LoraShrink => "lora_shrink",
        }
    }

    /// The kind of that name.
    pub fn from_name(name: &str) -> Option<OpKind> {
        OpKind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

impl fmt::Display for OpKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Op {
    /// The op without its attributes.
    pub fn kind(&self) -> OpKind {
        match self {
            Op::Embed => OpKind::Embed,
            Op::RmsNorm { .. } => OpKind::RmsNorm,
            Op::Linear(_) => OpKind::Linear,
            Op::QuantLinear => OpKind::QuantLinear,
            Op::QuantizeQ8 => OpKind::QuantizeQ8,
            Op::Bf16Cast => OpKind::Bf16Cast,
            Op::Rope { .. } => OpKind::Rope,
            Op::KvCast => OpKind::KvCast,
            Op::Attention(_) => OpKind::Attention,
            Op::RouterTopk { .. } => OpKind::RouterTopk,
            Op::ExpertLinear => OpKind::ExpertLinear,
            Op::QuantExpertLinear => OpKind::QuantExpertLinear,
            Op::Bf16ExpertLinear => OpKind::Bf16ExpertLinear,
            Op::ExpertSum => OpKind::ExpertSum,
            Op::Glu { .. } => OpKind::Glu,
            Op::Elementwise { .. } => OpKind::Elementwise,
            Op::Add => OpKind::Add,
            Op::Mul => OpKind::Mul,
            Op::SelectRows => OpKind::SelectRows,
            Op::LoraShrink { .. } => OpKind::LoraShrink,
        }
    }
}
