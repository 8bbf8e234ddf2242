//! Wide leaf micro-kernels, assembled: the versions of [`Leaf`]s for vectors that Cranelift does not have.
//!
//! Each has the contract of its leaf and gives the same bits as the 128-bit version; each file says what it needs of the CPU, its
//! tile, and what it clobbers. Leaves without a wide version for a level use the 128-bit one.

mod attention_avx2;
mod attention_avx512;
mod dot_f32_avx2;
mod dot_f32_avx512;
mod dot_q8_avx2;
mod dot_q8_avx512;
mod dot_q8_avx512_bw;
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

/// Machine code of a wide version, constants behind it.
///
/// # Errors
/// Never for the versions here, which a test assembles in every shape that their `serves` admits; an error is a defect.
pub fn assemble(wide: &Wide, leaf: Leaf) -> Result<Vec<u8>, IcedError> {
    let mut code = CodeAssembler::new(64)?;
    (wide.assemble)(&mut code, leaf)?;
    code.assemble(0)
}
