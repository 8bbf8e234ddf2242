//! Loading cached keys and values as f32, with the constants that it takes.

use super::regs::{Regs, low_half, ymm_half};
use iced_x86::IcedError;
use iced_x86::code_asm::{
    AsmMemoryOperand, AsmRegisterYmm, AsmRegisterZmm, CodeAssembler, CodeLabel, dword_ptr, qword_ptr,
    xmmword_ptr, ymmword_ptr, zmmword_ptr,
};
use kernmill_plan::kv::KvFormat;

/// Mask for a sign-extended E4M3 that has been shifted by 7: the rest is an f16, but for its second bit.
const FP8_MASK: u32 = 0xbfff_bfff;
/// The factor of that f16.
const FP8_FACTOR: f32 = 256.0;
/// Loads in 512 bits, 16 elements to a vector.
pub struct Wide {
    elem: KvFormat,
    /// Mask and factor of fp8.
    registers: Vec<AsmRegisterZmm>,
    constants: [CodeLabel; 2],
}

impl Wide {
    /// Takes registers for constants, if there are any.
    pub fn new(a: &mut CodeAssembler, regs: &mut Regs, elem: KvFormat) -> Wide {
        let registers = if elem == KvFormat::Fp8 { 2 } else { 0 };
        Wide { elem, registers: regs.vectors(registers), constants: [a.create_label(), a.create_label()] }
    }

    /// Loads the constants.
    pub fn setup(&self, a: &mut CodeAssembler) -> Result<(), IcedError> {
        let mut constants = self.registers.iter().zip(self.constants);
        constants.try_for_each(|(register, constant)| a.vpbroadcastd(*register, dword_ptr(constant)))
    }

    /// The constants, behind all code.
    pub fn finish(&mut self, a: &mut CodeAssembler) -> Result<(), IcedError> {
        if self.elem != KvFormat::Fp8 {
            return Ok(());
        }
        a.set_label(&mut self.constants[0])?;
        a.dd(&[FP8_MASK])?;
        a.set_label(&mut self.constants[1])?;
        a.dd(&[FP8_FACTOR.to_bits()])
    }

    /// Loads 16 elements that lie beside each other.
    pub fn load(
        &self,
        a: &mut CodeAssembler,
        to: AsmRegisterZmm,
        from: AsmMemoryOperand,
    ) -> Result<(), IcedError> {
        match self.elem {
            KvFormat::F16 => a.vcvtph2ps(to, ymmword_ptr(from)),
            KvFormat::F32 => a.vmovups(to, zmmword_ptr(from)),
            KvFormat::Fp8 => {
                let half = ymm_half(to);
                a.vpmovsxbw(half, xmmword_ptr(from))?;
                a.vpsllw(half, half, 7)?;
                a.vpandd(half, half, ymm_half(self.registers[0]))?;
                a.vcvtph2ps(to, half)?;
                a.vmulps(to, to, self.registers[1])
            }
            // Their scores and values are sums of integers.
            KvFormat::Int8 | KvFormat::Int4 => Ok(()),
        }
    }
}

/// Loads in 256 bits, 8 elements to a vector.
pub struct Narrow {
    elem: KvFormat,
    constants: [CodeLabel; 2],
}

impl Narrow {
    /// Constants of a format.
    pub fn new(a: &mut CodeAssembler, elem: KvFormat) -> Narrow {
        Narrow { elem, constants: [a.create_label(), a.create_label()] }
    }

    /// The constants, behind all code.
    pub fn finish(&mut self, a: &mut CodeAssembler) -> Result<(), IcedError> {
        let constants = match self.elem {
            KvFormat::Fp8 => [[FP8_MASK; 8], [FP8_FACTOR.to_bits(); 8]],
            _ => return Ok(()),
        };
        a.set_label(&mut self.constants[0])?;
        a.dd(&constants[0])?;
        a.set_label(&mut self.constants[1])?;
        a.dd(&constants[1])
    }

    /// Loads 8 elements that lie beside each other.
    pub fn load(
        &self,
        a: &mut CodeAssembler,
        to: AsmRegisterYmm,
        from: AsmMemoryOperand,
    ) -> Result<(), IcedError> {
        match self.elem {
            KvFormat::F16 => a.vcvtph2ps(to, xmmword_ptr(from)),
            KvFormat::F32 => a.vmovups(to, ymmword_ptr(from)),
            KvFormat::Fp8 => {
                let quarter = low_half(to);
                a.vpmovsxbw(quarter, qword_ptr(from))?;
                a.vpsllw(quarter, quarter, 7)?;
                a.vpand(quarter, quarter, xmmword_ptr(self.constants[0]))?;
                a.vcvtph2ps(to, quarter)?;
                a.vmulps(to, to, ymmword_ptr(self.constants[1]))
            }
            // Their scores and values are sums of integers.
            KvFormat::Int8 | KvFormat::Int4 => Ok(()),
        }
    }
}
