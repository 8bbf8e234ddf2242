//! Each instruction by itself, and the shape of the code.

use super::{Rule, Violation, violation};
use iced_x86::{
    CodeSize, CpuidFeature, Decoder, DecoderOptions, EncodingKind, FlowControl, Instruction, Mnemonic,
    OpKind, Register, RflagsBits, RoundingControl,
};
use kernmill_plan::target::Level;
use std::collections::BTreeSet;

/// What every x86-64 CPU has and micro-kernels may use. (`SSE` is for the prefetches: its vector instructions are refused.)
const ALWAYS: &[CpuidFeature] = &[
    CpuidFeature::INTEL8086,
    CpuidFeature::INTEL186,
    CpuidFeature::INTEL386,
    CpuidFeature::X64,
    CpuidFeature::CMOV,
    CpuidFeature::MULTIBYTENOP,
    CpuidFeature::SSE,
];

/// What a feature of [`Level::features`] grants.
fn granted(feature: &str) -> &'static [CpuidFeature] {
    match feature {
        "avx2" => &[CpuidFeature::AVX, CpuidFeature::AVX2],
        "fma" => &[CpuidFeature::FMA],
        "f16c" => &[CpuidFeature::F16C],
        "bmi1" => &[CpuidFeature::BMI1],
        "bmi2" => &[CpuidFeature::BMI2],
        "lzcnt" => &[CpuidFeature::LZCNT],
        "popcnt" => &[CpuidFeature::POPCNT],
        "avx_vnni" => &[CpuidFeature::AVX_VNNI],
        "avx512f" => &[CpuidFeature::AVX512F],
        "avx512bw" => &[CpuidFeature::AVX512BW],
        "avx512cd" => &[CpuidFeature::AVX512CD],
        "avx512dq" => &[CpuidFeature::AVX512DQ],
        "avx512vl" => &[CpuidFeature::AVX512VL],
        "avx512_vnni" => &[CpuidFeature::AVX512_VNNI],
        "amx_tile" => &[CpuidFeature::AMX_TILE],
        "amx_bf16" => &[CpuidFeature::AMX_BF16],
        "avx512vbmi" => &[CpuidFeature::AVX512_VBMI],
        _ => &[],
    }
}

/// The instructions in order, all of them from the first byte to the constants.
pub fn decode(bytes: &[u8], level: Level) -> Result<Vec<Instruction>, Violation> {
    let features: Vec<CpuidFeature> =
        level.features().iter().flat_map(|f| granted(f)).chain(ALWAYS).copied().collect();
    let mut decoder = Decoder::with_ip(64, bytes, 0, DecoderOptions::NONE);
    let mut code: Vec<Instruction> = Vec::with_capacity(bytes.len() / 6);
    let mut targets = BTreeSet::new();
    loop {
        let instruction = decoder.decode();
        if instruction.is_invalid() {
            let last = code.last().unwrap_or(&instruction);
            let rule =
                if decoder.can_decode() || code.is_empty() { Rule::Undecodable } else { Rule::RunsOff };
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
            return Err(violation(branch, Rule::Branch));
        }
    }
    Ok(code)
}

/// Whether it is a direct jump.
pub fn is_branch(instruction: &Instruction) -> bool {
    matches!(instruction.flow_control(), FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch)
}

fn alone(i: &Instruction, features: &[CpuidFeature]) -> Result<(), Rule> {
    let plain_return = matches!(i.flow_control(), FlowControl::Return)
        && i.mnemonic() == Mnemonic::Ret
        && i.op_count() == 0
        && i.code_size() != CodeSize::Code16;
    let direct = is_branch(i) && (0..i.op_count()).all(|op| i.op_kind(op) == OpKind::NearBranch64);
    if i.flow_control() != FlowControl::Next && !plain_return && !direct {
        return Err(Rule::ControlFlow);
    }
    if matches!(i.mnemonic(), Mnemonic::Ldmxcsr | Mnemonic::Vldmxcsr | Mnemonic::Fldcw | Mnemonic::Fninit) {
        return Err(Rule::FloatControl);
    }
    if i.rflags_modified() & RflagsBits::DF != 0 {
        return Err(Rule::Direction);
    }
    if i.is_string_instruction() {
        return Err(Rule::Foreign("string instructions"));
    }
    if i.is_privileged() {
        return Err(Rule::Foreign("privileged instructions"));
    }
    if i.has_lock_prefix() || i.has_rep_prefix() || i.has_repne_prefix() {
        return Err(Rule::Foreign("lock and repeat prefixes"));
    }
    if i.segment_prefix() != Register::None {
        return Err(Rule::Foreign("segments"));
    }
    if i.is_vsib() {
        return Err(Rule::Foreign("gathers and scatters"));
    }
    if let Some(missing) = i.cpuid_features().iter().find(|f| !features.contains(f)) {
        return Err(Rule::Feature(format!("{missing:?}")));
    }
    let vectors = (0..i.op_count())
        .any(|op| i.op_kind(op) == OpKind::Register && i.op_register(op).is_vector_register());
    if vectors && !matches!(i.encoding(), EncodingKind::VEX | EncodingKind::EVEX) {
        return Err(Rule::Legacy);
    }
    if !matches!(i.rounding_control(), RoundingControl::None | RoundingControl::RoundToNearest) {
        return Err(Rule::Rounding);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_feature_of_every_level_grants_something() {
        for feature in Level::ALL.into_iter().flat_map(Level::features) {
            assert!(!granted(feature).is_empty(), "{feature}");
        }
    }
}
