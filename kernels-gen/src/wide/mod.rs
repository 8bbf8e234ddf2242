//! Wide leaf micro-kernels, assembled: the versions of [`Leaf`]s for vectors that Cranelift does not have.
//!
//! Each has the contract of its leaf and gives the same bits as the 128-bit version; each file says what it needs of the CPU, its
//! tile, and what it clobbers. Leaves without a wide version for a level use the 128-bit one.

mod attention_avx2;
mod attention_avx512;
pub mod check;
mod dot_adjacent_avx512;
mod dot_f32_avx2;
mod dot_f32_avx512;
mod dot_q8_avx2;
mod dot_q8_avx512;
mod dot_q8_avx512_bw;
mod gemm_bf16_amx;
mod gemm_bf16_avx512;
mod gemm_q8_avx2;
mod gemm_q8_avx512;
mod gemm_q8_avx512_bw;
mod regs;

pub(crate) use regs::ZMM;

use crate::leaf::Leaf;
use iced_x86::IcedError;
use iced_x86::code_asm::CodeAssembler;
use kernmill_plan::target::Level;

/// One wide version of a leaf.
pub struct Wide {
    /// Name in listings.
    pub name: &'static str,
    /// Whether code of that level may use it.
    pub levels: fn(Level) -> bool,
    /// Whether it computes that leaf.
    pub serves: fn(Leaf) -> bool,
    assemble: fn(&mut CodeAssembler, Leaf) -> Result<(), IcedError>,
}

/// Every wide version, best first.
pub const ALL: &[Wide] = &[
    dot_adjacent_avx512::WIDE,
    dot_q8_avx512::WIDE,
    dot_q8_avx512_bw::WIDE,
    dot_q8_avx2::VNNI,
    dot_q8_avx2::PLAIN,
    gemm_q8_avx512::DECODE,
    gemm_q8_avx512::GEMM,
    gemm_q8_avx512_bw::WIDE,
    gemm_q8_avx2::DECODE,
    gemm_q8_avx2::VNNI,
    gemm_q8_avx2::PLAIN,
    gemm_bf16_amx::GEMM,
    gemm_bf16_amx::ON,
    gemm_bf16_amx::OFF,
    gemm_bf16_avx512::DECODE,
    gemm_bf16_avx512::GEMM,
    dot_f32_avx512::WIDE,
    dot_f32_avx2::WIDE,
    attention_avx512::SCORE,
    attention_avx512::VALUE,
    attention_avx2::SCORE,
    attention_avx2::VALUE,
];

/// The wide version that serves a leaf at a level, if any.
pub fn find(leaf: Leaf, level: Level) -> Option<&'static Wide> {
    ALL.iter().find(|wide| (wide.levels)(level) && (wide.serves)(leaf))
}

/// Why a wide version is no code. A defect of the version.
#[derive(Debug, thiserror::Error)]
pub enum AssembleError {
    /// The assembler refused it.
    #[error(transparent)]
    Assembler(#[from] IcedError),
    /// It breaks a rule.
    #[error(transparent)]
    Check(#[from] check::Violation),
}

/// Machine code of a wide version, constants behind it, checked against the leaf's contract and the level's features.
///
/// # Errors
/// Never for the versions here: an error is a defect.
pub fn assemble(wide: &Wide, leaf: Leaf, level: Level) -> Result<Vec<u8>, AssembleError> {
    let mut code = CodeAssembler::new(64)?;
    (wide.assemble)(&mut code, leaf)?;
    let bytes = code.assemble(0)?;
    check::check(&bytes, &leaf.contract(), leaf.tiles(), level)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::leaf::gemm_bf16::Shape;
    use iced_x86::{Decoder, DecoderOptions, EncodingKind, FlowControl};
    use kernmill_plan::format::WeightFormat;
    use kernmill_plan::kv::KvElem;

    fn leaves() -> Vec<Leaf> {
        let mut leaves = Vec::new();
        for format in WeightFormat::ALL {
            for k in [32, 64, 2880] {
                for tokens in (1..=8).filter(|_| format.is_blocked()) {
                    leaves.push(Leaf::DotQ8 { format, k, tokens });
                }
                for (tokens, pairs) in [(1, false), (2, true)].into_iter().filter(|_| format.is_blocked()) {
                    leaves.push(Leaf::DotAdjacent { format, k, tokens, pairs });
                }
                leaves.extend((1..=2).map(|tokens| Leaf::DotF32 { format, k, tokens }));
            }
            if format.is_blocked() {
                leaves.push(Leaf::Decode { format });
            } else {
                leaves.extend((1..=50).map(|k| Leaf::DotF32 { format, k, tokens: 1 }));
            }
        }
        for (small, tiles) in [(false, 1), (false, 2), (true, 1), (true, 2)] {
            leaves.extend((1..=6).map(|tokens| Leaf::GemmQ8 { small, tiles, tokens }));
        }
        for (tiles, groups) in [(1, 1), (1, 2), (2, 1), (2, 2)] {
            leaves.push(Leaf::GemmBf16(Shape { tiles, groups, stride: 256, gap: 128 }));
        }
        leaves.extend([Leaf::DecodeBf16, Leaf::TilesOn, Leaf::TilesOff]);
        for elem in [KvElem::F16, KvElem::F32] {
            for (head_dim, group) in (1..=9).flat_map(|group| [(8, group), (80, group), (128, group)]) {
                leaves.push(Leaf::Score { elem, head_dim, group, scale: 0 });
                leaves.push(Leaf::Value { elem, head_dim, group });
            }
        }
        leaves
    }

    #[test]
    fn every_shape_assembles_in_its_level_s_encoding() {
        for level in Level::ALL {
            for leaf in leaves() {
                let Some(wide) = find(leaf, level) else { continue };
                let code = assemble(wide, leaf, level).unwrap();
                let mut returned = false;
                for instruction in &mut Decoder::new(64, &code, DecoderOptions::NONE) {
                    if instruction.flow_control() == FlowControl::Return {
                        returned = true;
                        break;
                    }
                    assert!(!instruction.is_invalid(), "{leaf} for {}", level.name());
                    let evex = instruction.encoding() == EncodingKind::EVEX;
                    assert!(
                        !evex || level >= Level::V4,
                        "{leaf} for {}: {:?}",
                        level.name(),
                        instruction.code()
                    );
                }
                assert!(returned, "{leaf} for {}", level.name());
            }
        }
    }

    #[test]
    fn every_level_has_wide_dots_and_gemms() {
        for level in Level::ALL {
            for format in WeightFormat::ALL.into_iter().filter(|format| format.is_blocked()) {
                assert!(find(Leaf::DotQ8 { format, k: 64, tokens: 8 }, level).is_some());
                assert!(find(Leaf::Decode { format }, level).is_some());
            }
            for small in [false, true] {
                assert!(find(Leaf::GemmQ8 { small, tiles: 2, tokens: 6 }, level).is_some());
            }
        }
    }
}
