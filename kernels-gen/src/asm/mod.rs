//! Assembled micro-kernel micro-kernels, assembled: the versions of [`MicroKernel`]s for vectors that
//! Cranelift does not have.
//!
//! Each has the contract of its micro-kernel and gives the same bits as the 128-bit version; each file says
//! what it needs of the CPU, its tile, and what it clobbers. Micro-kernels without an assembled version for
//! a level use the 128-bit one.

mod add_dot;
mod add_weighted;
mod attention;
mod block_decoder;
pub mod check;
mod constants;
mod decoder;
mod dot_f32;
mod dot_q8_avx2;
mod dot_q8_avx512;
mod dot_q8_avx512_bw;
mod dot_q8x4_avx2;
mod dot_q8x4_avx512;
mod exp;
mod gemm_bf16_amx;
mod gemm_bf16_avx512;
mod gemm_q8_avx2;
mod gemm_q8_avx2_plain;
mod gemm_q8_avx512;
mod gemm_q8_avx512_bw;
mod gemm_strip_amx;
mod integers;
mod key_blocks;
mod kv_elements;
mod loop_shape;
mod map;
mod narrow;
#[cfg(test)]
mod port_counts;
mod prefetch;
mod quantize;
mod regs;
mod rms_norm;
mod score_integers;
mod softmax;
mod stored;
mod strip_sums;
mod strip_tiles;
mod tile_decoder;
mod value_bytes;
mod value_integers;
mod vector;
mod weights;

pub use regs::{YMM, ZMM};

use crate::ukernel::MicroKernel;
use iced_x86::IcedError;
use iced_x86::code_asm::CodeAssembler;
use kernmill_plan::target::{Features, Level};
use std::fmt;

/// One assembled version of a micro-kernel.
pub struct AsmKernel {
    /// Name in listings.
    pub name: &'static str,
    /// Features that its instructions are of.
    pub needs: Features,
    /// Features of CPUs on which it is left out, because it is the slower way there; none if it is good
    /// everywhere.
    pub unless: Features,
    /// Whether it computes that micro-kernel.
    pub serves: fn(MicroKernel) -> bool,
    assemble: fn(&mut CodeAssembler, MicroKernel) -> Result<(), IcedError>,
}

impl AsmKernel {
    /// Whether code that may use these features takes it.
    pub fn is_for(&self, features: Features) -> bool {
        features.has(self.needs) && (self.unless.is_empty() || !features.has(self.unless))
    }
}

impl fmt::Debug for AsmKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Every assembled version; of those that serve a micro-kernel, the widest with the most features first.
pub const ALL: &[AsmKernel] = &[
    dot_q8x4_avx512::VBMI,
    dot_q8x4_avx512::VBMI_LINEAR,
    dot_q8x4_avx512::PLAIN,
    dot_q8x4_avx512::PLAIN_LINEAR,
    dot_q8x4_avx2::VNNI,
    dot_q8x4_avx2::PLAIN,
    dot_q8_avx512::VBMI,
    dot_q8_avx512::VBMI_LINEAR,
    dot_q8_avx512::PLAIN,
    dot_q8_avx512::PLAIN_LINEAR,
    dot_q8_avx512_bw::WIDE,
    dot_q8_avx2::VNNI,
    dot_q8_avx2::PLAIN,
    gemm_q8_avx512::DECODE,
    gemm_q8_avx512::GEMM,
    gemm_q8_avx512::GEMM_ADDS,
    gemm_q8_avx512_bw::WIDE,
    gemm_q8_avx2::DECODE,
    gemm_q8_avx2::VNNI,
    gemm_q8_avx2_plain::WIDE,
    prefetch::WIDE,
    gemm_bf16_amx::GEMM,
    gemm_bf16_amx::ON,
    gemm_bf16_amx::OFF,
    gemm_strip_amx::GEMM,
    strip_tiles::ON,
    gemm_bf16_avx512::DECODE,
    gemm_bf16_avx512::GEMM,
    dot_f32::AVX512,
    dot_f32::AVX2,
    attention::SCORE_AVX512,
    attention::VALUE_AVX512,
    attention::SCORE_AVX2,
    attention::VALUE_AVX2,
    score_integers::AVX512_VNNI,
    score_integers::AVX_VNNI,
    score_integers::AVX2,
    weights::AVX512,
    value_bytes::AVX512_VNNI,
    value_integers::AVX512_VNNI,
    value_integers::AVX512,
    weights::AVX2,
    value_integers::AVX2,
    softmax::SOFTMAX_AVX512,
    softmax::COMBINE_AVX512,
    softmax::SOFTMAX_AVX2,
    softmax::COMBINE_AVX2,
    map::AVX512,
    map::AVX2,
    quantize::AVX512,
    quantize::AVX2,
    rms_norm::AVX512,
    rms_norm::AVX2,
    add_dot::AVX512,
    add_dot::AVX2,
    add_weighted::AVX512,
    add_weighted::AVX2,
];

/// The assembled versions that serve a micro-kernel at a level, in the order of [`ALL`]. The 128-bit
/// version serves it besides.
pub fn candidates(ukernel: &MicroKernel, level: Level) -> impl Iterator<Item = &'static AsmKernel> {
    ALL.iter().filter(move |wide| wide.is_for(level.features()) && (wide.serves)(ukernel.clone()))
}

/// The first of the [`candidates`], if any.
pub fn find(ukernel: &MicroKernel, level: Level) -> Option<&'static AsmKernel> {
    candidates(ukernel, level).next()
}

/// Why an assembled version is no code. A defect of the version.
#[derive(Debug, thiserror::Error)]
pub enum AssembleError {
    /// The assembler refused it.
    #[error(transparent)]
    Assembler(#[from] IcedError),
    /// The version breaks a rule.
    #[error(transparent)]
    Check(#[from] check::AsmViolation),
}

/// Machine code of an assembled version, constants behind it, checked against the micro-kernel's contract
/// and the features that it states.
///
/// # Errors
/// Never for the versions here: an error is a defect.
pub fn assemble(wide: &AsmKernel, ukernel: &MicroKernel) -> Result<Vec<u8>, AssembleError> {
    let mut code = CodeAssembler::new(64)?;
    (wide.assemble)(&mut code, ukernel.clone())?;
    let bytes = code.assemble(0)?;
    check::check(&bytes, &ukernel.contract(), ukernel.tiles(), wide.needs)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ukernel::gemm_bf16::Shape;
    use crate::ukernel::gemm_q8::{Decoded, DotStep, Overlap};
    use crate::ukernel::gemm_tiles::{Strip, TileElement, TileShapes};
    use crate::ukernel::map::Map;
    use crate::ukernel::{QueryHeads, TileOrder};
    use iced_x86::{Decoder, DecoderOptions, EncodingKind, FlowControl};
    use kernmill_plan::format::WeightFormat;
    use kernmill_plan::kv::KvFormat;

    fn ukernels() -> Vec<MicroKernel> {
        let mut ukernels = Vec::new();
        for format in WeightFormat::ALL {
            let is_super = format.is_blocked() && format.parts().is_super();
            for k in if is_super { [256, 512, 2816] } else { [32, 64, 2880] } {
                for tokens in (1..=8).filter(|_| format.is_blocked()) {
                    ukernels.push(MicroKernel::DotQ8 { format, k, tokens });
                }
                let adjacent = [(1, TileOrder::Straight), (2, TileOrder::Pairs), (2, TileOrder::Straight)];
                for (tokens, order) in adjacent.into_iter().filter(|_| format.is_blocked()) {
                    ukernels.push(MicroKernel::DotQ8x4 { format, k, tokens, order });
                }
                ukernels.extend([1, 2, 4].map(|tokens| MicroKernel::DotF32 { format, k, tokens }));
            }
            if format.is_blocked() {
                ukernels.extend([MicroKernel::Decode { format }, MicroKernel::DecodeWords { format }]);
            } else {
                ukernels.extend((1..=50).map(|k| MicroKernel::DotF32 { format, k, tokens: 1 }));
                ukernels.extend([1, 6].map(|tokens| MicroKernel::AddDot { format, tokens }));
            }
        }
        for (weights, tiles) in Decoded::all().into_iter().flat_map(|weights| [(weights, 1), (weights, 2)]) {
            ukernels.extend((1..=6).map(|tokens| MicroKernel::GemmQ8 { weights, tiles, tokens }));
        }
        for (tokens, gap) in (1..=6).flat_map(|tokens| [(tokens, 64), (tokens, 4096)]) {
            ukernels.push(MicroKernel::GemmDecode(Overlap { tokens, stride: 128, gap }));
        }
        ukernels.push(MicroKernel::Prefetch);
        for (tiles, groups) in [(1, 1), (1, 2), (2, 1), (2, 2)] {
            ukernels.push(MicroKernel::GemmBf16(Shape { tiles, groups, stride: 256, gap: 128 }));
        }
        for format in WeightFormat::blocked().filter(|format| TileElement::serves(*format)) {
            let strip = |tiles| Strip { format, tiles, k: 2880, stride: 256, gap: 128 };
            ukernels.extend([1, 2].map(|tiles| MicroKernel::GemmStrip(strip(tiles))));
        }
        let shapes = TileElement::ALL.map(TileShapes::Strip);
        ukernels.extend(shapes.into_iter().chain([TileShapes::Whole]).map(MicroKernel::TilesOn));
        ukernels.extend([MicroKernel::DecodeBf16, MicroKernel::TilesOff]);
        for elem in KvFormat::ALL {
            let multiple = elem.descriptor().head_multiple;
            let shapes = (1..=9).flat_map(|group| [(8_usize, group), (80, group), (96, group), (128, group)]);
            for (head_dim, group) in shapes.filter(|(head_dim, _)| head_dim.is_multiple_of(multiple)) {
                let queries = QueryHeads::of_token(group);
                ukernels.extend(match elem.is_scaled() {
                    true => [
                        MicroKernel::IntegerScore { elem, head_dim, group },
                        MicroKernel::IntegerValue { elem, head_dim, group, stride: group * head_dim * 4 },
                    ],
                    false => [
                        MicroKernel::Score { elem, head_dim, queries, scale: 0 },
                        MicroKernel::Value { elem, head_dim, queries },
                    ],
                });
                ukernels.push(MicroKernel::Weights { group });
                let sinks = elem == KvFormat::F16;
                ukernels.push(MicroKernel::Combine { head_dim, group, sinks });
            }
        }
        ukernels.push(MicroKernel::Softmax);
        for n in [16, 32, 48, 64, 2880] {
            ukernels.push(MicroKernel::RmsNorm { n, eps: 0 });
            ukernels.push(MicroKernel::Map(Map::add(n, 4 * n, 0)));
            ukernels.push(MicroKernel::Map(Map::zero(n, 4 * n)));
        }
        for n in [16, 32, 64] {
            ukernels.extend([false, true].map(|bias| MicroKernel::AddWeighted { n, bias }));
        }
        ukernels.push(MicroKernel::Quantize);
        ukernels
    }

    #[test]
    fn every_shape_assembles_in_its_level_s_encoding() {
        for level in Level::ALL {
            for ukernel in ukernels() {
                for wide in candidates(&ukernel, level) {
                    let what = format!("{} of {ukernel} for {}", wide.name, level.name());
                    let code = assemble(wide, &ukernel).unwrap_or_else(|error| panic!("{what}: {error}"));
                    let mut returned = false;
                    for instruction in &mut Decoder::new(64, &code, DecoderOptions::NONE) {
                        if instruction.flow_control() == FlowControl::Return {
                            returned = true;
                            break;
                        }
                        assert!(!instruction.is_invalid(), "{what}");
                        let evex = instruction.encoding() == EncodingKind::EVEX;
                        assert!(
                            !evex || level.features().has(Features::AVX512),
                            "{what}: {:?}",
                            instruction.code()
                        );
                    }
                    assert!(returned, "{what}");
                }
            }
        }
    }

    #[test]
    fn every_level_has_wide_dots_and_gemms() {
        for level in Level::ALL {
            for format in WeightFormat::blocked() {
                let k = 256;
                assert!(find(&MicroKernel::DotQ8 { format, k, tokens: 8 }, level).is_some());
                assert!(find(&MicroKernel::DotF32 { format, k, tokens: 1 }, level).is_some());
                let weights = DotStep::at(level).decoded(format);
                assert!(find(&MicroKernel::decoding(weights, format), level).is_some());
                assert!(find(&MicroKernel::GemmQ8 { weights, tiles: 2, tokens: 6 }, level).is_some());
            }
        }
    }
}
