//! `exp` of docs/dev/numerics.md in wide vectors, and the constants it needs: emitted into the micro-kernels
//! that use it.

use super::predicates::{LESS, NOT_LESS};
use iced_x86::IcedError;
use iced_x86::code_asm::{
    AsmMemoryOperand, AsmRegister64, AsmRegisterYmm, AsmRegisterZmm, CodeAssembler, CodeLabel, dword_ptr, k1,
    qword_ptr, ymmword_ptr,
};
use kernmill_plan::numeric::{EXP_MAX, EXP_MIN, EXP_POLY, LN2_HI, LN2_LO, LOG2E, ROUND_MAGIC};

/// In the order of their use; the polynomial's coefficients follow.
const FIRST: [f32; 6] = [EXP_MAX, LOG2E, ROUND_MAGIC, -LN2_HI, -LN2_LO, EXP_MIN];
/// Constants in all.
pub const CONSTANTS: usize = FIRST.len() + EXP_POLY.len();

fn constants() -> impl Iterator<Item = u32> {
    FIRST.into_iter().chain(EXP_POLY).map(f32::to_bits)
}

/// Sixteen lanes; the constants are in registers.
pub struct Exp512 {
    constants: Vec<AsmRegisterZmm>,
    /// For intermediate values.
    temporary: [AsmRegisterZmm; 2],
}

impl Exp512 {
    /// In [`CONSTANTS`] registers and two more.
    pub fn new(constants: Vec<AsmRegisterZmm>, temporary: [AsmRegisterZmm; 2]) -> Exp512 {
        assert_eq!(constants.len(), CONSTANTS);
        Exp512 { constants, temporary }
    }

    /// Loads the constants from `label`, through a register that is free for the moment.
    pub fn load(
        &self,
        a: &mut CodeAssembler,
        base: AsmRegister64,
        label: CodeLabel,
    ) -> Result<(), IcedError> {
        a.lea(base, qword_ptr(label))?;
        for (i, constant) in self.constants.iter().enumerate() {
            a.vpbroadcastd(*constant, dword_ptr(base + i * 4))?;
        }
        Ok(())
    }

    /// The constants, where `label` stands.
    pub fn data(a: &mut CodeAssembler) -> Result<(), IcedError> {
        a.dd(&constants().collect::<Vec<_>>())
    }

    /// `x = exp(x)`. Clobbers k1.
    pub fn emit(&self, a: &mut CodeAssembler, x: AsmRegisterZmm) -> Result<(), IcedError> {
        let &[max, log2e, magic, hi, lo, min] = &self.constants[..FIRST.len()] else {
            unreachable!("as many as FIRST")
        };
        let poly = &self.constants[FIRST.len()..];
        let [t, p] = self.temporary;
        a.vcmpps(k1, x, min, NOT_LESS)?;
        a.vminps(x, x, max)?;
        a.vmovaps(t, x)?;
        a.vfmadd213ps(t, log2e, magic)?;
        a.vsubps(p, t, magic)?;
        a.vfmadd231ps(x, p, hi)?;
        a.vfmadd231ps(x, p, lo)?;
        a.vmovaps(p, poly[0])?;
        for coefficient in &poly[1..] {
            a.vfmadd213ps(p, x, *coefficient)?;
        }
        a.vpslld(t, t, 23)?;
        a.vpaddd(x.k1().z(), p, t)
    }
}

/// Eight lanes; the constants are read from memory behind the code.
pub struct Exp256 {
    base: AsmRegister64,
    temporary: [AsmRegisterYmm; 3],
}

impl Exp256 {
    /// With a register for the constants' address, and three for intermediate values.
    pub fn new(base: AsmRegister64, temporary: [AsmRegisterYmm; 3]) -> Exp256 {
        Exp256 { base, temporary }
    }

    /// Points the register to `label`.
    pub fn load(&self, a: &mut CodeAssembler, label: CodeLabel) -> Result<(), IcedError> {
        a.lea(self.base, qword_ptr(label))
    }

    /// The constants, where `label` stands: each a whole vector.
    pub fn data(a: &mut CodeAssembler) -> Result<(), IcedError> {
        constants().try_for_each(|constant| a.dd(&[constant; 8]))
    }

    fn constant(&self, index: usize) -> AsmMemoryOperand {
        ymmword_ptr(self.base + index * 32)
    }

    /// `x = exp(x)`.
    pub fn emit(&self, a: &mut CodeAssembler, x: AsmRegisterYmm) -> Result<(), IcedError> {
        let [max, log2e, magic, hi, lo, min] = std::array::from_fn(|i| self.constant(i));
        let [t, p, small] = self.temporary;
        a.vcmpps(small, x, min, LESS)?;
        a.vminps(x, x, max)?;
        a.vmovups(t, log2e)?;
        a.vfmadd213ps(t, x, magic)?;
        a.vsubps(p, t, magic)?;
        a.vfmadd231ps(x, p, hi)?;
        a.vfmadd231ps(x, p, lo)?;
        a.vmovups(p, self.constant(FIRST.len()))?;
        for coefficient in 1..EXP_POLY.len() {
            a.vfmadd213ps(p, x, self.constant(FIRST.len() + coefficient))?;
        }
        a.vpslld(t, t, 23)?;
        a.vpaddd(p, p, t)?;
        a.vandnps(x, small, p)
    }
}
