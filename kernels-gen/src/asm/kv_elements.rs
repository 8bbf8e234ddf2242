//! Loading cached keys and values as f32, with the constants that it takes.

use super::regs::{Regs, constants_here, low_half, ymm_half};
use iced_x86::IcedError;
use iced_x86::code_asm::{
    AsmMemoryOperand, AsmRegisterYmm, AsmRegisterZmm, CodeAssembler, CodeLabel, dword_ptr, qword_ptr,
    xmmword_ptr, ymmword_ptr, zmmword_ptr,
};
use kernmill_plan::kv::KvFormat;

/// What is left of a sign-extended E4M3 that has been shifted by 7: an f16, but for its second bit.
const FP8_MASK: u32 = 0xbfff_bfff;
/// What that f16 is multiplied with.
const FP8_FACTOR: f32 = 256.0;
/// What is added to integers of 4 bits.
const INT4_ZERO: f32 = 8.0;

/// Loads in 512 bits, 16 elements to a vector.
pub struct Wide {
    elem: KvFormat,
    /// Mask and factor of fp8, or the 16 numbers of int4.
    registers: Vec<AsmRegisterZmm>,
    constants: [CodeLabel; 2],
}

impl Wide {
    /// Takes registers for constants, if there are any.
    pub fn new(a: &mut CodeAssembler, regs: &mut Regs, elem: KvFormat) -> Wide {
        let registers = match elem {
            KvFormat::Fp8 => 2,
            KvFormat::Int4 => 1,
            _ => 0,
        };
        Wide { elem, registers: regs.vectors(registers), constants: [a.create_label(), a.create_label()] }
    }

    /// Loads the constants.
    pub fn setup(&self, a: &mut CodeAssembler) -> Result<(), IcedError> {
        if let ([table], KvFormat::Int4) = (&self.registers[..], self.elem) {
            return a.vmovups(*table, zmmword_ptr(self.constants[0]));
        }
        let mut constants = self.registers.iter().zip(self.constants);
        constants.try_for_each(|(register, constant)| a.vpbroadcastd(*register, dword_ptr(constant)))
    }

    /// The constants, behind all code.
    pub fn finish(&mut self, a: &mut CodeAssembler) -> Result<(), IcedError> {
        match self.elem {
            KvFormat::Fp8 => {
                a.set_label(&mut self.constants[0])?;
                a.dd(&[FP8_MASK])?;
                a.set_label(&mut self.constants[1])?;
                a.dd(&[FP8_FACTOR.to_bits()])
            }
            KvFormat::Int4 => {
                constants_here(a, &mut self.constants[0])?;
                a.dd(&std::array::from_fn::<u32, 16, _>(|code| (code as f32 - INT4_ZERO).to_bits()))
            }
            _ => Ok(()),
        }
    }

    /// Loads columns of a value row from number `start` on, a multiple of as many as there are; `row` gives
    /// the address of so many bytes into the row.
    pub fn load_columns(
        &self,
        a: &mut CodeAssembler,
        columns: &[AsmRegisterZmm],
        start: usize,
        row: impl Fn(usize) -> AsmMemoryOperand,
    ) -> Result<(), IcedError> {
        if self.elem != KvFormat::Int4 {
            for (vector, column) in columns.iter().enumerate() {
                self.load(a, *column, row(self.elem.elements_bytes(start + vector * 16)))?;
            }
            return Ok(());
        }
        // 32 columns lie in 16 bytes: the first 16 in the low halves. A look-up takes the low half of an
        // index and no more of it.
        for (pair, columns) in columns.chunks_exact(2).enumerate() {
            let (low, high) = (columns[0], columns[1]);
            a.vpmovzxbd(low, xmmword_ptr(row(self.elem.elements_bytes(start + pair * 32))))?;
            a.vpsrld(high, low, 4)?;
            a.vpermps(low, low, self.registers[0])?;
            a.vpermps(high, high, self.registers[0])?;
        }
        Ok(())
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
            KvFormat::Int8 => {
                a.vpmovsxbd(to, xmmword_ptr(from))?;
                a.vcvtdq2ps(to, to)
            }
            KvFormat::Fp8 => {
                let half = ymm_half(to);
                a.vpmovsxbw(half, xmmword_ptr(from))?;
                a.vpsllw(half, half, 7)?;
                a.vpandd(half, half, ymm_half(self.registers[0]))?;
                a.vcvtph2ps(to, half)?;
                a.vmulps(to, to, self.registers[1])
            }
            // Two vectors at a time, and no keys.
            KvFormat::Int4 => Ok(()),
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
            KvFormat::Int4 => [[15; 8], [INT4_ZERO.to_bits(); 8]],
            _ => return Ok(()),
        };
        a.set_label(&mut self.constants[0])?;
        a.dd(&constants[0])?;
        a.set_label(&mut self.constants[1])?;
        a.dd(&constants[1])
    }

    /// Loads columns of a value row from number `start` on, a multiple of as many as there are; `row` gives
    /// the address of so many bytes into the row.
    pub fn load_columns(
        &self,
        a: &mut CodeAssembler,
        columns: &[AsmRegisterYmm],
        start: usize,
        row: impl Fn(usize) -> AsmMemoryOperand,
    ) -> Result<(), IcedError> {
        for (vector, column) in columns.iter().enumerate() {
            let first = start + vector * 8;
            if self.elem != KvFormat::Int4 {
                self.load(a, *column, row(self.elem.elements_bytes(first)))?;
                continue;
            }
            // 32 columns lie in 16 bytes: the first 16 in the low halves.
            a.vpmovzxbd(*column, qword_ptr(row(first / 32 * 16 + first % 16)))?;
            if first % 32 >= 16 {
                a.vpsrld(*column, *column, 4)?;
            }
            a.vpand(*column, *column, ymmword_ptr(self.constants[0]))?;
            a.vcvtdq2ps(*column, *column)?;
            a.vsubps(*column, *column, ymmword_ptr(self.constants[1]))?;
        }
        Ok(())
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
            KvFormat::Int8 => {
                a.vpmovsxbd(to, qword_ptr(from))?;
                a.vcvtdq2ps(to, to)
            }
            KvFormat::Fp8 => {
                let quarter = low_half(to);
                a.vpmovsxbw(quarter, qword_ptr(from))?;
                a.vpsllw(quarter, quarter, 7)?;
                a.vpand(quarter, quarter, xmmword_ptr(self.constants[0]))?;
                a.vcvtph2ps(to, quarter)?;
                a.vmulps(to, to, ymmword_ptr(self.constants[1]))
            }
            // Values, by `load_columns`, and no keys.
            KvFormat::Int4 => Ok(()),
        }
    }
}
