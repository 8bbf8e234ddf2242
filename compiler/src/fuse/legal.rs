//! Which ops may be where in a kernel, as data.

use super::rule::{Part, Template};
use crate::graph::OpKind;

const DENSE: &[OpKind] = &[OpKind::Linear, OpKind::QuantLinear];
const GROUPED: &[OpKind] = &[OpKind::ExpertLinear, OpKind::QuantExpertLinear, OpKind::Bf16ExpertLinear];
const ROW_WISE: &[OpKind] = &[
    OpKind::Embed,
    OpKind::RmsNorm,
    OpKind::QuantizeQ8,
    OpKind::Bf16Cast,
    OpKind::Rope,
    OpKind::KvCast,
    OpKind::RouterTopk,
    OpKind::ExpertSum,
    OpKind::Glu,
    OpKind::Elementwise,
    OpKind::Add,
    OpKind::Mul,
    OpKind::SelectRows,
];
/// Row-wise ops, and a small matrix such as a router's.
const PROLOGUE: &[OpKind] = &[
    OpKind::RmsNorm,
    OpKind::QuantizeQ8,
    OpKind::Bf16Cast,
    OpKind::Rope,
    OpKind::RouterTopk,
    OpKind::Glu,
    OpKind::Elementwise,
    OpKind::Add,
    OpKind::Mul,
    OpKind::SelectRows,
    OpKind::Linear,
];
const EPILOGUE: &[OpKind] = &[
    OpKind::Glu,
    OpKind::Elementwise,
    OpKind::Add,
    OpKind::Mul,
    OpKind::Rope,
    OpKind::QuantizeQ8,
    OpKind::Bf16Cast,
    OpKind::KvCast,
];

/// Ops that may be in a part of a kernel of that template.
pub(crate) fn legal_ops(template: Template, part: Part) -> &'static [OpKind] {
    match (template, part) {
        (_, Part::Context) => &OpKind::ALL,
        (Template::Rows, Part::Root | Part::Epilogue) => ROW_WISE,
        (Template::Matmul, Part::Root) => DENSE,
        (Template::Experts | Template::ExpertDown, Part::Root) => GROUPED,
        (Template::Attention, Part::Root) => &[OpKind::Attention],
        (Template::Shrink, Part::Root) => &[OpKind::LoraShrink],
        (Template::Matmul | Template::Experts | Template::Shrink, Part::Prologue) => PROLOGUE,
        (Template::Matmul | Template::Experts, Part::Epilogue) => EPILOGUE,
        (Template::ExpertDown, Part::Epilogue) => &[OpKind::ExpertSum, OpKind::Add],
        (Template::Attention, Part::Epilogue) => &[OpKind::QuantizeQ8],
        (Template::Rows | Template::ExpertDown | Template::Attention, Part::Prologue)
        | (Template::Shrink, Part::Epilogue) => &[],
    }
}
