//! Constants of a micro-kernel: in registers if there are 32 of them, else in memory behind the code.

use super::regs::{Regs, SCRATCH, constants_here};
use super::vector::{Address, Vector, VectorOperand, Vectors, Width};
use iced_x86::IcedError;
use iced_x86::code_asm::{CodeLabel, qword_ptr};

/// As operands, in order. While they are in use, [`SCRATCH`] points to where they are in memory.
pub struct Constants {
    pub operands: Vec<VectorOperand>,
    bits: Vec<u32>,
    label: CodeLabel,
}

impl Constants {
    /// Takes registers if there are many.
    pub fn new(v: &mut Vectors<'_>, regs: &mut Regs, bits: impl IntoIterator<Item = u32>) -> Constants {
        let (width, bits) = (v.width, bits.into_iter().collect::<Vec<_>>());
        let operands = (0..bits.len()).map(|number| match width {
            Width::Half => in_memory(width, number),
            Width::Full => regs.numbered(width).into(),
        });
        Constants { operands: operands.collect(), bits, label: v.a.create_label() }
    }

    /// In given registers.
    pub fn in_registers(v: &mut Vectors<'_>, constants: &[(Vector, u32)]) -> Constants {
        let (registers, bits): (Vec<_>, Vec<_>) = constants.iter().copied().unzip();
        let operands = registers.into_iter().map(VectorOperand::Register).collect();
        Constants { operands, bits, label: v.a.create_label() }
    }

    /// Points [`SCRATCH`] to them and loads the registers.
    pub fn load(&self, v: &mut Vectors<'_>) -> Result<(), IcedError> {
        if self.bits.is_empty() {
            return Ok(());
        }
        v.a.lea(SCRATCH, qword_ptr(self.label))?;
        for (number, operand) in self.operands.iter().enumerate() {
            if let VectorOperand::Register(register) = *operand {
                v.load(register, in_memory(v.width, number))?;
            }
        }
        Ok(())
    }

    /// Sets them down, behind all code.
    pub fn finish(&mut self, v: &mut Vectors<'_>) -> Result<(), IcedError> {
        if self.bits.is_empty() {
            return Ok(());
        }
        constants_here(v.a, &mut self.label)?;
        self.bits.iter().try_for_each(|bits| v.a.dd(&vec![*bits; v.width.constant_bytes() / 4]))
    }

    /// The place behind them.
    pub fn behind(&self, v: &Vectors<'_>) -> Address {
        Address::at(SCRATCH) + self.bits.len() * v.width.constant_bytes()
    }
}

fn in_memory(width: Width, number: usize) -> VectorOperand {
    VectorOperand::Constant(Address::at(SCRATCH) + number * width.constant_bytes())
}
