//! Each instruction by itself, and the shape of the code.

use super::{AsmViolation, SafetyRule, violation};
use iced_x86::{
    CodeSize, CpuidFeature, Decoder, DecoderOptions, EncodingKind, FlowControl, Instruction, Mnemonic,
    OpKind, Register, RflagsBits, RoundingControl,
};
use kernmill_plan::target::Features;
use std::collections::BTreeSet;

/// Features of every x86-64 CPU that micro-kernels may use. (`SSE` is for the prefetches: its vector
/// instructions are refused.)
const ALWAYS: &[CpuidFeature] = &[
    CpuidFeature::INTEL8086,
    CpuidFeature::INTEL186,
    CpuidFeature::INTEL386,
    CpuidFeature::X64,
    CpuidFeature::CMOV,
    CpuidFeature::MULTIBYTENOP,
    CpuidFeature::SSE,
];

/// Instruction sets that each feature grants.
const GRANTED: &[(Features, &[CpuidFeature])] = &[
    (Features::AVX2, &[CpuidFeature::AVX, CpuidFeature::AVX2]),
    (Features::FMA, &[CpuidFeature::FMA]),
    (Features::F16C, &[CpuidFeature::F16C]),
    (Features::BMI1, &[CpuidFeature::BMI1]),
    (Features::BMI2, &[CpuidFeature::BMI2]),
    (Features::LZCNT, &[CpuidFeature::LZCNT]),
    (Features::POPCNT, &[CpuidFeature::POPCNT]),
    (Features::AVX_VNNI, &[CpuidFeature::AVX_VNNI]),
    (Features::AVX512F, &[CpuidFeature::AVX512F]),
    (Features::AVX512BW, &[CpuidFeature::AVX512BW]),
    (Features::AVX512CD, &[CpuidFeature::AVX512CD]),
    (Features::AVX512DQ, &[CpuidFeature::AVX512DQ]),
    (Features::AVX512VL, &[CpuidFeature::AVX512VL]),
    (Features::AVX512_VNNI, &[CpuidFeature::AVX512_VNNI]),
    (Features::AVX512_VBMI, &[CpuidFeature::AVX512_VBMI]),
    (Features::AMX_TILE, &[CpuidFeature::AMX_TILE]),
    (Features::AMX_BF16, &[CpuidFeature::AMX_BF16]),
    (Features::AMX_INT8, &[CpuidFeature::AMX_INT8]),
];

/// The features that code for these features may use.
fn granted(features: Features) -> impl Iterator<Item = CpuidFeature> {
    let granted = GRANTED.iter().filter(move |(feature, _)| features.has(*feature));
    granted.flat_map(|(_, sets)| sets.iter()).copied()
}

/// The instructions in order, all of them from the first byte to the constants.
pub fn decode(bytes: &[u8], features: Features) -> Result<Vec<Instruction>, AsmViolation> {
    let features: Vec<CpuidFeature> = granted(features).chain(ALWAYS.iter().copied()).collect();
    let mut decoder = Decoder::with_ip(64, bytes, 0, DecoderOptions::NONE);
    let mut code: Vec<Instruction> = Vec::with_capacity(bytes.len() / 6);
    let mut targets = BTreeSet::new();
    loop {
        let instruction = decoder.decode();
        if instruction.is_invalid() {
            let last = code.last().unwrap_or(&instruction);
            let rule = if decoder.can_decode() || code.is_empty() {
                SafetyRule::Undecodable
            } else {
                SafetyRule::RunsOff
            };
            return Err(violation(last, rule));
        }
        alone(&instruction, &features).map_err(|rule| violation(&instruction, rule))?;
        let flow = instruction.flow_control();
        if matches!(flow, FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch) {
            targets.insert(instruction.near_branch_target());
        }
        code.push(instruction);
        let ends = matches!(flow, FlowControl::Return | FlowControl::UnconditionalBranch);
        // Unsigned: a target before the first byte is a huge one.
        let further = targets.last().is_some_and(|t| *t >= instruction.next_ip() && *t < bytes.len() as u64);
        if ends && !further {
            break;
        }
    }
    for branch in code.iter().filter(|i| targets.contains(&i.near_branch_target()) && is_branch(i)) {
        if code.binary_search_by_key(&branch.near_branch_target(), Instruction::ip).is_err() {
            return Err(violation(branch, SafetyRule::Branch));
        }
    }
    Ok(code)
}

/// Whether it is a direct jump.
pub fn is_branch(instruction: &Instruction) -> bool {
    matches!(instruction.flow_control(), FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch)
}

fn alone(i: &Instruction, features: &[CpuidFeature]) -> Result<(), SafetyRule> {
    let plain_return = matches!(i.flow_control(), FlowControl::Return)
        && i.mnemonic() == Mnemonic::Ret
        && i.op_count() == 0
        && i.code_size() != CodeSize::Code16;
    let direct = is_branch(i) && (0..i.op_count()).all(|op| i.op_kind(op) == OpKind::NearBranch64);
    if i.flow_control() != FlowControl::Next && !plain_return && !direct {
        return Err(SafetyRule::ControlFlow);
    }
    if matches!(i.mnemonic(), Mnemonic::Ldmxcsr | Mnemonic::Vldmxcsr | Mnemonic::Fldcw | Mnemonic::Fninit) {
        return Err(SafetyRule::FloatControl);
    }
    if i.rflags_modified() & RflagsBits::DF != 0 {
        return Err(SafetyRule::Direction);
    }
    if i.is_string_instruction() {
        return Err(SafetyRule::Foreign("string instructions"));
    }
    if i.is_privileged() {
        return Err(SafetyRule::Foreign("privileged instructions"));
    }
    if i.has_lock_prefix() || i.has_rep_prefix() || i.has_repne_prefix() {
        return Err(SafetyRule::Foreign("lock and repeat prefixes"));
    }
    if i.segment_prefix() != Register::None {
        return Err(SafetyRule::Foreign("segments"));
    }
    if i.is_vsib() {
        return Err(SafetyRule::Foreign("gathers and scatters"));
    }
    if let Some(missing) = i.cpuid_features().iter().find(|f| !features.contains(f)) {
        return Err(SafetyRule::Feature(format!("{missing:?}")));
    }
    let vectors = (0..i.op_count())
        .any(|op| i.op_kind(op) == OpKind::Register && i.op_register(op).is_vector_register());
    if vectors && !matches!(i.encoding(), EncodingKind::VEX | EncodingKind::EVEX) {
        return Err(SafetyRule::Legacy);
    }
    if !matches!(i.rounding_control(), RoundingControl::None | RoundingControl::RoundToNearest) {
        return Err(SafetyRule::Rounding);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_feature_grants_something() {
        for (name, feature) in Features::NAMED {
            assert!(granted(*feature).next().is_some(), "{name}");
        }
    }
}
