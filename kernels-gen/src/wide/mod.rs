//! Wide leaf micro-kernels, assembled: the versions of [`Leaf`]s for vectors that Cranelift does not have.
//!
//! Each has the contract of its leaf and gives the same bits as the 128-bit version; each file says what it needs of the CPU, its
//! tile, and what it clobbers. Leaves without a wide version for a level use the 128-bit one.

mod attention_avx512;
pub mod check;
mod dot_f32_avx512;
mod dot_q8_avx512;
mod gemm_q8_avx512;
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
    gemm_q8_avx512::DECODE,
    gemm_q8_avx512::GEMM,
    dot_f32_avx512::WIDE,
    attention_avx512::SCORE,
    attention_avx512::VALUE,
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
    check::check(&bytes, &leaf.contract(), level)?;
    Ok(bytes)
}
