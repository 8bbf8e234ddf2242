//! Registers that an instruction reads and writes.

use super::SafetyRule;
use super::state::{KnownValue, MachineState};
use iced_x86::{Instruction, InstructionInfo, Mnemonic, OpAccess, OpKind, Register};

/// Registers that are read as data must be defined, and numbers.
pub fn reads(i: &Instruction, used: &InstructionInfo, state: &MachineState) -> Result<(), SafetyRule> {
    // A register may be an operand that is read, or only (part of) its address.
    let operand = |register: Register| {
        (0..i.op_count()).any(|op| {
            i.op_kind(op) == OpKind::Register
                && i.op_register(op).full_register() == register.full_register()
                && is_read(used.op_access(op))
        })
    };
    for use_ in used.used_registers() {
        let register = use_.register();
        if !is_read(use_.access()) || all_ones(i) {
            continue;
        }
        let of_address = [i.memory_base(), i.memory_index()].contains(&register);
        if register.is_gpr() && (operand(register) || !of_address) {
            match state.get(register) {
                KnownValue::Number => {}
                _ if register.full_register() == Register::RSP => return Err(SafetyRule::StackPointer),
                KnownValue::Undefined | KnownValue::Callers(_) => {
                    return Err(SafetyRule::Undefined(register));
                }
                _ => return Err(SafetyRule::PointerAsNumber(register)),
            }
        }
        let undefined = (register.is_vector_register() && state.vectors & 1 << register.number() == 0)
            || (register.is_k() && state.masks & 1 << register.number() == 0);
        if undefined {
            return Err(SafetyRule::Undefined(register));
        }
    }
    Ok(())
}

pub fn is_read(access: OpAccess) -> bool {
    matches!(access, OpAccess::Read | OpAccess::CondRead | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
}

pub fn is_write(access: OpAccess) -> bool {
    matches!(access, OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
}

/// Comparing a register with itself, or the constant truth: defined whatever the register holds.
fn all_ones(i: &Instruction) -> bool {
    let compare = matches!(
        i.mnemonic(),
        Mnemonic::Vpcmpeqb | Mnemonic::Vpcmpeqw | Mnemonic::Vpcmpeqd | Mnemonic::Vpcmpeqq
    ) && i.op1_kind() == OpKind::Register
        && i.op2_kind() == OpKind::Register
        && i.op1_register() == i.op2_register();
    let truth = matches!(i.mnemonic(), Mnemonic::Vpternlogd | Mnemonic::Vpternlogq)
        && i.op2_kind() == OpKind::Register
        && i.immediate8() == 0xff
        && i.op_mask() == Register::None;
    compare || truth
}

pub fn writes(
    i: &Instruction,
    used: &InstructionInfo,
    state: &mut MachineState,
    result: KnownValue,
) -> Result<(), SafetyRule> {
    for op in 0..i.op_count() {
        if i.op_kind(op) == OpKind::Register {
            let register = i.op_register(op);
            state.wide |= register.is_ymm() || register.is_zmm();
        }
    }
    for use_ in used.used_registers() {
        let register = use_.register();
        if !is_write(use_.access()) {
            continue;
        }
        let sure = matches!(use_.access(), OpAccess::Write | OpAccess::ReadWrite);
        if register.full_register() == Register::RSP {
            return Err(SafetyRule::StackPointer);
        } else if register.is_gpr() {
            let explicit = i.op_count() > 0
                && i.op0_kind() == OpKind::Register
                && i.op0_register().full_register() == register.full_register();
            // Parts of 8 and 16 bits, and writes on a condition, may leave what was there: of a number, a
            // number.
            let part = register.is_gpr8() || register.is_gpr16() || !sure;
            if part && state.get(register) != KnownValue::Number {
                return Err(SafetyRule::Undefined(register));
            }
            let value = if explicit && !part { result } else { KnownValue::Number };
            state.set(register, value);
        } else if register.is_vector_register() && sure {
            state.vectors |= 1 << register.number();
        } else if register.is_k() && sure {
            state.masks |= 1 << register.number();
        } else if !register.is_vector_register() && !register.is_k() && !register.is_tmm() {
            return Err(SafetyRule::Foreign("other registers"));
        }
    }
    Ok(())
}
