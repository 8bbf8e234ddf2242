//! Knowledge about registers and the stack at a place of the code.

use super::SafetyRule;
use crate::asm::regs::PARAMS;
use crate::ukernel::param::{Param, TileState};
use iced_x86::Register;

/// Whose values the caller wants back.
pub const CALLEE_SAVED: [Register; 6] =
    [Register::RBX, Register::RBP, Register::R12, Register::R13, Register::R14, Register::R15];

/// Knowledge about a general register or a place on the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnownValue {
    /// Never written, or different things on different paths.
    Undefined,
    /// No pointer.
    Number,
    /// Somewhere in the memory of that parameter.
    Pointer(usize),
    /// Somewhere in a row of a list, for reading.
    Row,
    /// Somewhere in a row of a list, for reading and writing.
    Target,
    /// An address at this offset in the micro-kernel.
    Constant(i64),
    /// The caller's value in a callee-saved register.
    Callers(Register),
}

impl KnownValue {
    /// The value of parameter number `index`.
    pub fn of(param: &Param, index: usize) -> KnownValue {
        if *param == Param::Number { KnownValue::Number } else { KnownValue::Pointer(index) }
    }

    pub fn meet(self, other: KnownValue) -> KnownValue {
        if self == other { self } else { KnownValue::Undefined }
    }

    /// The sum, if it is a pointer or a number.
    pub fn plus(self, other: KnownValue) -> Option<KnownValue> {
        match (self, other) {
            (KnownValue::Number, KnownValue::Number) => Some(KnownValue::Number),
            (
                pointer @ (KnownValue::Pointer(_) | KnownValue::Row | KnownValue::Target),
                KnownValue::Number,
            )
            | (
                KnownValue::Number,
                pointer @ (KnownValue::Pointer(_) | KnownValue::Row | KnownValue::Target),
            ) => Some(pointer),
            _ => None,
        }
    }

    pub fn plus_constant(self, constant: i64) -> KnownValue {
        match self {
            KnownValue::Constant(offset) => KnownValue::Constant(offset + constant),
            other => other,
        }
    }
}

/// Knowledge at a place of the code.
#[derive(Clone, Debug, PartialEq)]
pub struct MachineState {
    /// By register number.
    pub general: [KnownValue; 16],
    /// Pushed eight bytes, the last on top.
    pub stack: Vec<KnownValue>,
    /// Bit per vector register that has been written.
    pub vectors: u32,
    /// Bit per mask register that has been written.
    pub masks: u8,
    /// Whether a ymm or zmm register was used since the last vzeroupper.
    pub wide: bool,
    /// Whether tiles are configured, which makes them zero.
    pub configured: bool,
}

impl MachineState {
    pub fn entry(params: &[Param], tiles: TileState) -> MachineState {
        let mut general = [KnownValue::Undefined; 16];
        for register in CALLEE_SAVED {
            general[register.number()] = KnownValue::Callers(register);
        }
        for (index, (param, register)) in params.iter().zip(PARAMS).enumerate() {
            general[Register::from(register).number()] = KnownValue::of(param, index);
        }
        MachineState {
            general,
            stack: Vec::new(),
            vectors: 0,
            masks: 0,
            wide: false,
            configured: tiles.before,
        }
    }

    /// The facts that hold whichever way the place was reached.
    pub fn meet(&self, other: &MachineState) -> Result<MachineState, SafetyRule> {
        if self.stack.len() != other.stack.len() {
            return Err(SafetyRule::StackMeet);
        }
        if self.configured != other.configured {
            return Err(SafetyRule::Tiles);
        }
        Ok(MachineState {
            general: std::array::from_fn(|i| self.general[i].meet(other.general[i])),
            stack: self.stack.iter().zip(&other.stack).map(|(a, b)| a.meet(*b)).collect(),
            vectors: self.vectors & other.vectors,
            masks: self.masks & other.masks,
            wide: self.wide || other.wide,
            configured: self.configured,
        })
    }

    pub fn get(&self, register: Register) -> KnownValue {
        self.general[register.full_register().number()]
    }

    pub fn set(&mut self, register: Register, value: KnownValue) {
        self.general[register.full_register().number()] = value;
    }

    /// A register's value, which must be a defined one of the micro-kernel's own.
    pub fn defined(&self, register: Register) -> Result<KnownValue, SafetyRule> {
        match self.get(register) {
            KnownValue::Undefined | KnownValue::Callers(_) => Err(SafetyRule::Undefined(register)),
            value => Ok(value),
        }
    }
}
