//! Hands out registers, so that no file numbers them by hand; and gives constants their place.

use super::vector::{Vector, Width};
use iced_x86::IcedError;
use iced_x86::code_asm::{
    AsmMemoryOperand, AsmRegister64, AsmRegisterYmm, AsmRegisterZmm, CodeAssembler, CodeLabel, qword_ptr, r8,
    r9, r10, r11, r12, r13, r14, r15, rax, rbp, rbx, rcx, rdi, rdx, registers::ymm, registers::zmm, rsi, rsp,
};
use kernmill_plan::format::LINE;

/// The first System V parameters of a micro-kernel, in order. Others lie on the stack.
pub const PARAMS: [AsmRegister64; 6] = [rdi, rsi, rdx, rcx, r8, r9];

/// For short-lived values; never handed out.
pub const SCRATCH: AsmRegister64 = rax;

/// General registers that a micro-kernel may be handed, those that need no saving first.
const GENERAL: [AsmRegister64; 14] = [rdi, rsi, rdx, rcx, r8, r9, r10, r11, rbx, rbp, r12, r13, r14, r15];
/// How many of [`GENERAL`] are caller-saved.
const CALLER_SAVED: usize = 8;

/// Sets the label of constants, behind all code, at the start of a line of the cache. A whole vector that lay
/// in two lines would be read from both at every use: on a Zen 3 that costs micro-kernels of MXFP4 up to a
/// quarter (`benches/runs/2026-11-24-zen3.md`).
pub fn constants_here(a: &mut CodeAssembler, label: &mut CodeLabel) -> Result<(), IcedError> {
    let code = a.assemble(0)?.len();
    a.db(&vec![0; code.next_multiple_of(LINE) - code])?;
    a.set_label(label)
}

/// A pool for one micro-kernel. Every vector register is caller-saved.
#[derive(Default)]
pub struct Regs {
    general: usize,
    vector: usize,
}

impl Regs {
    /// A pool in which the first `params` parameters are taken.
    pub fn with_params(params: usize) -> Regs {
        Regs { general: params, vector: 0 }
    }

    /// A general register.
    ///
    /// # Panics
    /// When no register is left: the micro-kernel's tile is too large.
    pub fn general(&mut self) -> AsmRegister64 {
        self.general += 1;
        *GENERAL.get(self.general - 1).expect("the tile needs more general registers than there are")
    }

    /// A vector register.
    ///
    /// # Panics
    /// When no register is left: the micro-kernel's tile is too large.
    pub fn vector(&mut self) -> AsmRegisterZmm {
        self.vector += 1;
        *ZMM.get(self.vector - 1).expect("the tile needs more vector registers than there are")
    }

    /// Several vector registers.
    pub fn vectors(&mut self, count: usize) -> Vec<AsmRegisterZmm> {
        (0..count).map(|_| self.vector()).collect()
    }

    /// The low half of a vector register: one of the sixteen that code without AVX-512 can name.
    ///
    /// # Panics
    /// When no register is left: the micro-kernel's tile is too large.
    pub fn half(&mut self) -> AsmRegisterYmm {
        self.vector += 1;
        *YMM.get(self.vector - 1).expect("the tile needs more 256-bit registers than there are")
    }

    /// Several of them.
    pub fn halves(&mut self, count: usize) -> Vec<AsmRegisterYmm> {
        (0..count).map(|_| self.half()).collect()
    }

    /// The number of a vector register of that width.
    ///
    /// # Panics
    /// When no register is left: the micro-kernel's tile is too large.
    pub fn numbered(&mut self, width: Width) -> Vector {
        self.vector += 1;
        assert!(self.vector <= width.registers(), "the tile needs more vector registers than there are");
        self.vector - 1
    }

    /// Several of them.
    pub fn several_numbered(&mut self, width: Width, count: usize) -> Vec<Vector> {
        (0..count).map(|_| self.numbered(width)).collect()
    }

    /// Pushes the callee-saved registers handed out so far; call after the last [`Regs::general`].
    pub fn save(&self, a: &mut CodeAssembler) -> Result<(), IcedError> {
        self.saved().iter().try_for_each(|register| a.push(*register))
    }

    /// Pops them and returns.
    pub fn restore_and_return(&self, a: &mut CodeAssembler) -> Result<(), IcedError> {
        a.vzeroupper()?;
        self.saved().iter().rev().try_for_each(|register| a.pop(*register))?;
        a.ret()
    }

    /// Where parameter number `index` lies behind [`Regs::save`], from the seventh on.
    pub fn stacked(&self, index: usize) -> AsmMemoryOperand {
        qword_ptr(rsp + 8 * (self.saved().len() + 1 + index - PARAMS.len()))
    }

    fn saved(&self) -> &'static [AsmRegister64] {
        &GENERAL[CALLER_SAVED.min(self.general)..self.general]
    }
}

/// The 512-bit registers, in order.
pub const ZMM: [AsmRegisterZmm; 32] = [
    zmm::zmm0,
    zmm::zmm1,
    zmm::zmm2,
    zmm::zmm3,
    zmm::zmm4,
    zmm::zmm5,
    zmm::zmm6,
    zmm::zmm7,
    zmm::zmm8,
    zmm::zmm9,
    zmm::zmm10,
    zmm::zmm11,
    zmm::zmm12,
    zmm::zmm13,
    zmm::zmm14,
    zmm::zmm15,
    zmm::zmm16,
    zmm::zmm17,
    zmm::zmm18,
    zmm::zmm19,
    zmm::zmm20,
    zmm::zmm21,
    zmm::zmm22,
    zmm::zmm23,
    zmm::zmm24,
    zmm::zmm25,
    zmm::zmm26,
    zmm::zmm27,
    zmm::zmm28,
    zmm::zmm29,
    zmm::zmm30,
    zmm::zmm31,
];

/// The 256-bit registers, in order.
pub const YMM: [AsmRegisterYmm; 16] = [
    ymm::ymm0,
    ymm::ymm1,
    ymm::ymm2,
    ymm::ymm3,
    ymm::ymm4,
    ymm::ymm5,
    ymm::ymm6,
    ymm::ymm7,
    ymm::ymm8,
    ymm::ymm9,
    ymm::ymm10,
    ymm::ymm11,
    ymm::ymm12,
    ymm::ymm13,
    ymm::ymm14,
    ymm::ymm15,
];
