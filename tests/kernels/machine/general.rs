//! General registers, flags, the stack.

use super::flags::Flags;
use super::{Fault, Machine};
use iced_x86::{Instruction, Mnemonic, OpKind, Register};

/// Bits of an operand of so many bytes.
fn mask(bytes: usize) -> u64 {
    if bytes == 8 { u64::MAX } else { (1 << (8 * bytes)) - 1 }
}

fn sign_bit(value: u64, bytes: usize) -> bool {
    value >> (8 * bytes - 1) & 1 == 1
}

impl Machine {
    pub fn general(&self, register: Register) -> u64 {
        let value = self.general[register.number()];
        if register.is_gpr32() { value & mask(4) } else { value }
    }

    /// A write of 32 bits clears the upper half.
    pub fn set_general(&mut self, register: Register, value: u64) {
        self.general[register.number()] = if register.is_gpr32() { value & mask(4) } else { value };
    }

    fn mask(&self, register: Register) -> u64 {
        self.masks[register.number()]
    }

    pub fn pop(&mut self) -> Result<u64, Fault> {
        let top = self.general(Register::RSP);
        let value = self.memory.load_number(top, 8)?;
        self.set_general(Register::RSP, top + 8);
        Ok(value)
    }

    fn push(&mut self, value: u64) -> Result<(), Fault> {
        let top = self.general(Register::RSP) - 8;
        self.memory.store(top, &value.to_le_bytes())?;
        self.set_general(Register::RSP, top);
        Ok(())
    }

    fn operand_bytes(i: &Instruction) -> Result<usize, Fault> {
        match i.op0_kind() {
            OpKind::Register if i.op0_register().is_gpr64() => Ok(8),
            OpKind::Register if i.op0_register().is_gpr32() => Ok(4),
            OpKind::Memory if matches!(i.memory_size().size(), 4 | 8) => Ok(i.memory_size().size()),
            _ => Err("operand size not modelled".to_owned()),
        }
    }

    fn read(&mut self, i: &Instruction, operand: u32, bytes: usize) -> Result<u64, Fault> {
        match i.op_kind(operand) {
            OpKind::Register if i.op_register(operand).is_gpr() => Ok(self.general(i.op_register(operand))),
            OpKind::Memory => {
                let address = self.address(i)?;
                self.memory.load_number(address, bytes)
            }
            OpKind::Immediate8
            | OpKind::Immediate32
            | OpKind::Immediate64
            | OpKind::Immediate8to32
            | OpKind::Immediate8to64
            | OpKind::Immediate32to64 => Ok(i.immediate(operand) & mask(bytes)),
            _ => Err("operand not modelled".to_owned()),
        }
    }

    fn write(&mut self, i: &Instruction, value: u64, bytes: usize) -> Result<(), Fault> {
        if i.op0_kind() == OpKind::Memory {
            let address = self.address(i)?;
            return self.memory.store(address, &value.to_le_bytes()[..bytes]);
        }
        self.set_general(i.op0_register(), value);
        Ok(())
    }

    /// Zero and sign follow the result.
    fn result_flags(&mut self, value: u64, bytes: usize, carry: Option<bool>, overflow: Option<bool>) {
        let value = value & mask(bytes);
        self.flags = Flags { carry, zero: Some(value == 0), sign: Some(sign_bit(value, bytes)), overflow };
    }

    /// Executes it if it is one of these.
    pub fn general_instruction(&mut self, i: &Instruction) -> Result<bool, Fault> {
        match i.mnemonic() {
            Mnemonic::Nop
            | Mnemonic::Prefetcht0
            | Mnemonic::Prefetcht1
            | Mnemonic::Prefetcht2
            | Mnemonic::Prefetchnta => {}
            Mnemonic::Push => {
                let value = self.read(i, 0, 8)?;
                self.push(value)?;
            }
            Mnemonic::Pop => {
                let value = self.pop()?;
                self.set_general(i.op0_register(), value);
            }
            Mnemonic::Lea => {
                let address = self.address(i)?;
                self.set_general(i.op0_register(), address);
            }
            Mnemonic::Mov => {
                let bytes = Self::operand_bytes(i)?;
                let value = self.read(i, 1, bytes)?;
                self.write(i, value, bytes)?;
            }
            Mnemonic::Cmovg => {
                let value = self.read(i, 1, Self::operand_bytes(i)?)?;
                if self.flags.holds(i.condition_code())? {
                    self.set_general(i.op0_register(), value);
                }
            }
            Mnemonic::Add | Mnemonic::Sub | Mnemonic::Cmp => self.add_or_subtract(i)?,
            Mnemonic::Xor | Mnemonic::And | Mnemonic::Or | Mnemonic::Test => {
                let bytes = Self::operand_bytes(i)?;
                let (a, b) = (self.read(i, 0, bytes)?, self.read(i, 1, bytes)?);
                let value = match i.mnemonic() {
                    Mnemonic::Xor => a ^ b,
                    Mnemonic::Or => a | b,
                    _ => a & b,
                };
                self.result_flags(value, bytes, Some(false), Some(false));
                if i.mnemonic() != Mnemonic::Test {
                    self.write(i, value, bytes)?;
                }
            }
            Mnemonic::Shl | Mnemonic::Shr => {
                let bytes = Self::operand_bytes(i)?;
                let (a, count) = (self.read(i, 0, bytes)?, self.read(i, 1, bytes)?);
                let value = if i.mnemonic() == Mnemonic::Shl { a << count & mask(bytes) } else { a >> count };
                self.flags = Flags::default();
                self.write(i, value, bytes)?;
            }
            Mnemonic::Kortestd => {
                let [a, b] = [i.op0_register(), i.op1_register()].map(|mask| self.mask(mask) as u32);
                self.flags = Flags {
                    carry: Some(a | b == u32::MAX),
                    zero: Some(a | b == 0),
                    sign: Some(false),
                    overflow: Some(false),
                };
            }
            Mnemonic::Inc | Mnemonic::Dec => {
                let bytes = Self::operand_bytes(i)?;
                let old = self.read(i, 0, bytes)?;
                let up = i.mnemonic() == Mnemonic::Inc;
                let value = if up { old.wrapping_add(1) } else { old.wrapping_sub(1) } & mask(bytes);
                // The smallest number is reached upwards by overflow, and left downwards by it.
                let smallest = 1 << (8 * bytes - 1);
                self.result_flags(
                    value,
                    bytes,
                    self.flags.carry,
                    Some(if up { value } else { old } == smallest),
                );
                self.write(i, value, bytes)?;
            }
            Mnemonic::Imul if i.op_count() >= 2 => {
                let bytes = Self::operand_bytes(i)?;
                let first = if i.op_count() == 3 { 1 } else { 0 };
                let (a, b) = (self.read(i, first, bytes)?, self.read(i, first + 1, bytes)?);
                self.flags = Flags::default();
                self.set_general(i.op0_register(), a.wrapping_mul(b));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn add_or_subtract(&mut self, i: &Instruction) -> Result<(), Fault> {
        let bytes = Self::operand_bytes(i)?;
        let (a, b) = (self.read(i, 0, bytes)?, self.read(i, 1, bytes)?);
        let add = i.mnemonic() == Mnemonic::Add;
        let value = if add { a.wrapping_add(b) } else { a.wrapping_sub(b) } & mask(bytes);
        let carry = if add { value < a } else { a < b };
        let [a_sign, b_sign, sign] = [a, b, value].map(|x| sign_bit(x, bytes));
        let overflow = a_sign != sign && (a_sign == b_sign) == add;
        self.result_flags(value, bytes, Some(carry), Some(overflow));
        if i.mnemonic() != Mnemonic::Cmp {
            self.write(i, value, bytes)?;
        }
        Ok(())
    }
}
