//! Values along every path: an abstract interpreter over the general registers, the stack, and which
//! registers are defined.

use super::decode::is_branch;
use super::state::{CALLEE_SAVED, KnownValue, MachineState};
use super::uses::{is_read, is_write, reads, writes};
use super::{AsmViolation, SafetyRule, violation};
use crate::asm::regs::PARAMS;
use crate::ukernel::param::{Param, TileState};
use iced_x86::{
    FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register, UsedMemory,
};

/// Bytes of a push.
const SLOT: i64 = 8;

/// Follows every path of the decoded code of a micro-kernel of `size` bytes, constants included.
pub fn follow(
    code: &[Instruction],
    size: u64,
    params: &[Param],
    tiles: TileState,
) -> Result<(), AsmViolation> {
    let code_end = code.last().map_or(0, Instruction::next_ip);
    let flow = Flow { params, tiles, constants: code_end as i64..size as i64 };
    let mut info = InstructionInfoFactory::new();
    // States are kept where paths can meet: at the targets of branches.
    let mut at_target: Vec<Option<MachineState>> = vec![None; code.len()];
    let mut is_target = vec![false; code.len()];
    for branch in code.iter().filter(|i| is_branch(i)) {
        is_target[index_of(code, branch)] = true;
    }
    let mut reached = vec![false; code.len()];
    let mut work = vec![(0, MachineState::entry(params, tiles))];
    while let Some((start, state)) = work.pop() {
        let mut state = state;
        let mut index = start;
        loop {
            let Some(instruction) = code.get(index) else {
                return Err(violation(&code[index - 1], SafetyRule::RunsOff));
            };
            let refuse = |rule| violation(instruction, rule);
            if is_target[index] {
                let met = match &at_target[index] {
                    Some(known) => known.meet(&state).map_err(refuse)?,
                    None => state,
                };
                if at_target[index].as_ref() == Some(&met) {
                    break;
                }
                at_target[index] = Some(met.clone());
                state = met;
            }
            reached[index] = true;
            flow.step(instruction, &mut info, &mut state).map_err(refuse)?;
            match instruction.flow_control() {
                FlowControl::Return => break,
                FlowControl::UnconditionalBranch => index = index_of(code, instruction),
                FlowControl::ConditionalBranch => {
                    work.push((index_of(code, instruction), state.clone()));
                    index += 1;
                }
                _ => index += 1,
            }
        }
    }
    match reached.iter().position(|reached| !reached) {
        Some(index) => Err(violation(&code[index], SafetyRule::Unreached)),
        None => Ok(()),
    }
}

/// Where a branch leads. Decoding has made sure of it.
fn index_of(code: &[Instruction], branch: &Instruction) -> usize {
    code.partition_point(|i| i.ip() < branch.near_branch_target())
}

struct Flow<'a> {
    params: &'a [Param],
    tiles: TileState,
    /// Offsets at which constants may be.
    constants: std::ops::Range<i64>,
}

impl Flow<'_> {
    fn step(
        &self,
        i: &Instruction,
        info: &mut InstructionInfoFactory,
        state: &mut MachineState,
    ) -> Result<(), SafetyRule> {
        if stack_pointer(i, state)? {
            return Ok(());
        }
        if i.mnemonic() == Mnemonic::Ret {
            return self.at_return(state);
        }
        if i.mnemonic() == Mnemonic::Vzeroupper {
            state.wide = false;
            state.vectors = 0;
            return Ok(());
        }
        tile_configuration(i, state)?;
        let mut loaded = KnownValue::Number;
        let used = info.info(i);
        for memory in used.used_memory() {
            loaded = self.access(i, memory, state)?;
        }
        let result = match pointer_arithmetic(i, state)? {
            Some(value) => value,
            None => {
                reads(i, used, state)?;
                if i.mnemonic() == Mnemonic::Mov { loaded } else { KnownValue::Number }
            }
        };
        writes(i, used, state, result)
    }

    /// A memory operand: whether it may be accessed, and what a load of eight bytes gives.
    fn access(
        &self,
        i: &Instruction,
        memory: &UsedMemory,
        state: &mut MachineState,
    ) -> Result<KnownValue, SafetyRule> {
        // lea computes, a prefetch accesses nothing: any address will do that is one.
        if matches!(memory.access(), OpAccess::NoMemAccess | OpAccess::None) {
            return address(i, state).map(|_| KnownValue::Number);
        }
        let (load, store) = (is_read(memory.access()), is_write(memory.access()));
        let bytes = i.memory_size().size().max(1) as i64;
        if memory.base() == Register::RSP {
            if memory.index() != Register::None {
                return Err(SafetyRule::Stack);
            }
            let displacement = memory.displacement() as i64;
            let argument = self.argument(displacement, state);
            return match argument {
                Some(value) if load && !store && bytes == SLOT && i.mnemonic() == Mnemonic::Mov => Ok(value),
                _ => stack_access(i, displacement, bytes, load, store, state),
            };
        }
        match address(i, state)? {
            KnownValue::Constant(offset) => {
                if store {
                    return Err(SafetyRule::StoreReadOnly);
                }
                if offset < self.constants.start || offset + bytes > self.constants.end {
                    return Err(SafetyRule::Constant);
                }
                Ok(KnownValue::Number)
            }
            KnownValue::Row if store => Err(SafetyRule::StoreReadOnly),
            KnownValue::Row | KnownValue::Target => Ok(KnownValue::Number),
            KnownValue::Pointer(index) => {
                let param = &self.params[index];
                if store && !matches!(param, Param::Write(_) | Param::Update(_)) {
                    return Err(SafetyRule::Store(index));
                }
                match param {
                    _ if !load => Ok(KnownValue::Number),
                    Param::Read(_) | Param::Update(_) => Ok(KnownValue::Number),
                    Param::Rows(_) if i.mnemonic() == Mnemonic::Mov && bytes == SLOT => Ok(KnownValue::Row),
                    Param::Targets { .. } if i.mnemonic() == Mnemonic::Mov && bytes == SLOT => {
                        Ok(KnownValue::Target)
                    }
                    _ => Err(SafetyRule::Load(index)),
                }
            }
            _ => Err(SafetyRule::Address),
        }
    }

    /// The parameter at `rsp + displacement`: those behind the sixth lie there, above the place to return to.
    fn argument(&self, displacement: i64, state: &MachineState) -> Option<KnownValue> {
        let above = displacement - (state.stack.len() as i64 + 1) * SLOT;
        let index = PARAMS.len() + usize::try_from(above).ok()? / SLOT as usize;
        let param = self.params.get(index).filter(|_| above % SLOT == 0)?;
        Some(KnownValue::of(param, index))
    }

    fn at_return(&self, state: &MachineState) -> Result<(), SafetyRule> {
        if !state.stack.is_empty() {
            return Err(SafetyRule::Unbalanced);
        }
        for register in CALLEE_SAVED {
            if state.get(register) != KnownValue::Callers(register) {
                return Err(SafetyRule::CalleeSaved(register));
            }
        }
        if state.configured != self.tiles.after {
            return Err(SafetyRule::Tiles);
        }
        if state.wide { Err(SafetyRule::UpperHalves) } else { Ok(()) }
    }
}

/// Push, pop, and constants added to the stack pointer. Whether it was one of these.
fn stack_pointer(i: &Instruction, state: &mut MachineState) -> Result<bool, SafetyRule> {
    let first = (i.op_count() > 0 && i.op0_kind() == OpKind::Register).then(|| i.op0_register());
    match (i.mnemonic(), first) {
        (Mnemonic::Push, Some(register)) if register.is_gpr64() && register != Register::RSP => {
            state.stack.push(state.get(register));
            Ok(true)
        }
        (Mnemonic::Pop, Some(register)) if register.is_gpr64() && register != Register::RSP => {
            let value = state.stack.pop().ok_or(SafetyRule::Stack)?;
            state.set(register, value);
            Ok(true)
        }
        (Mnemonic::Add | Mnemonic::Sub, Some(Register::RSP)) => {
            let constant =
                immediate(i).filter(|c| c % SLOT == 0 && *c >= 0).ok_or(SafetyRule::StackPointer)?;
            let slots = (constant / SLOT) as usize;
            if i.mnemonic() == Mnemonic::Sub {
                // More than a page would step over the guard of the caller's stack.
                if slots * SLOT as usize > 4096 {
                    return Err(SafetyRule::StackPointer);
                }
                state.stack.resize(state.stack.len() + slots, KnownValue::Undefined);
            } else {
                let left = state.stack.len().checked_sub(slots).ok_or(SafetyRule::Stack)?;
                state.stack.truncate(left);
            }
            Ok(true)
        }
        (Mnemonic::Ret, _) => Ok(false),
        _ if i.is_stack_instruction() => Err(SafetyRule::StackPointer),
        _ => Ok(false),
    }
}

/// Tiles are there between configuration and release.
fn tile_configuration(i: &Instruction, state: &mut MachineState) -> Result<(), SafetyRule> {
    match i.mnemonic() {
        Mnemonic::Ldtilecfg => {
            if !matches!(address(i, state)?, KnownValue::Constant(_)) {
                return Err(SafetyRule::Tiles);
            }
            state.configured = true;
        }
        Mnemonic::Tilerelease => state.configured = false,
        _ => {
            let names = |op| i.op_kind(op) == OpKind::Register && i.op_register(op).is_tmm();
            if (0..i.op_count()).any(names) && !state.configured {
                return Err(SafetyRule::Tiles);
            }
        }
    }
    Ok(())
}

/// A load or store at `rsp + displacement`.
fn stack_access(
    i: &Instruction,
    displacement: i64,
    bytes: i64,
    load: bool,
    store: bool,
    state: &mut MachineState,
) -> Result<KnownValue, SafetyRule> {
    let size = state.stack.len() as i64 * SLOT;
    if displacement < 0 || displacement + bytes > size {
        return Err(SafetyRule::Stack);
    }
    // The top of the stack is its lowest address.
    let first = ((size - displacement - bytes) / SLOT) as usize;
    let last = ((size - displacement - 1) / SLOT) as usize;
    let whole = bytes == SLOT && displacement % SLOT == 0 && i.mnemonic() == Mnemonic::Mov;
    if store {
        let value = match i.op1_kind() {
            OpKind::Register if whole && i.op1_register().is_gpr64() => state.get(i.op1_register()),
            _ => KnownValue::Number,
        };
        // The caller's values stay where they were pushed.
        if state.stack[first..=last].iter().any(|slot| matches!(slot, KnownValue::Callers(_))) {
            return Err(SafetyRule::Stack);
        }
        state.stack[first..=last].fill(value);
    }
    if load && whole {
        return Ok(state.stack[first]);
    }
    if load && state.stack[first..=last].iter().any(|slot| *slot != KnownValue::Number) {
        return Err(SafetyRule::Stack);
    }
    Ok(KnownValue::Number)
}

/// Where the memory operand's address comes from.
fn address(i: &Instruction, state: &MachineState) -> Result<KnownValue, SafetyRule> {
    if i.is_ip_rel_memory_operand() {
        return Ok(KnownValue::Constant(i.ip_rel_memory_address() as i64));
    }
    let (base, index) = (i.memory_base(), i.memory_index());
    if base == Register::RSP || index == Register::RSP {
        return Err(SafetyRule::StackPointer);
    }
    let full = |register: Register| register == Register::None || register.is_gpr64();
    if !full(base) || !full(index) {
        return Err(SafetyRule::Address);
    }
    let constant = i.memory_displacement64() as i64;
    let sum = match (base, index) {
        (Register::None, Register::None) => None,
        (base, Register::None) => Some(state.defined(base)?.plus_constant(constant)),
        (base, index) => {
            let index_value = state.defined(index)?;
            let scaled = match index_value {
                KnownValue::Number => Some(KnownValue::Number),
                value if i.memory_index_scale() == 1 => Some(value),
                _ => None,
            };
            let base = if base == Register::None { KnownValue::Number } else { state.defined(base)? };
            scaled.and_then(|scaled| base.plus(scaled))
        }
    };
    sum.ok_or(SafetyRule::Address)
}

/// The value of an instruction that may give a pointer, if this is one.
fn pointer_arithmetic(i: &Instruction, state: &MachineState) -> Result<Option<KnownValue>, SafetyRule> {
    if i.mnemonic() == Mnemonic::Lea {
        let value = address(i, state)?;
        let whole = value == KnownValue::Number || i.op0_register().is_gpr64();
        return if whole { Ok(Some(value)) } else { Err(SafetyRule::PointerAsNumber(i.memory_base())) };
    }
    // Anything may be kept on the stack, as by a push.
    if i.mnemonic() == Mnemonic::Mov && i.op1_kind() == OpKind::Register && i.memory_base() == Register::RSP {
        return Ok(Some(KnownValue::Number));
    }
    if i.op_count() == 0 || i.op0_kind() != OpKind::Register || !i.op0_register().is_gpr64() {
        return Ok(None);
    }
    let register = i.op0_register();
    let second = (i.op_count() > 1 && i.op1_kind() == OpKind::Register).then(|| i.op1_register());
    Ok(match (i.mnemonic(), second) {
        (Mnemonic::Mov, Some(from)) if from.is_gpr64() && from != Register::RSP => Some(state.defined(from)?),
        (Mnemonic::Add, Some(other)) if other.is_gpr64() && other != Register::RSP => {
            let sum = state.defined(register)?.plus(state.defined(other)?);
            Some(sum.ok_or(SafetyRule::PointerAsNumber(register))?)
        }
        // A number less a pointer is nothing; a pointer less a number is a pointer.
        (Mnemonic::Sub, Some(other)) if other.is_gpr64() && other != register && other != Register::RSP => {
            match (state.defined(register)?, state.defined(other)?) {
                (value, KnownValue::Number) => {
                    Some(value.plus(KnownValue::Number).ok_or(SafetyRule::PointerAsNumber(register))?)
                }
                (a, b) if a == b => Some(KnownValue::Number),
                _ => return Err(SafetyRule::PointerAsNumber(other)),
            }
        }
        (Mnemonic::Add | Mnemonic::Sub, None) => match immediate(i) {
            Some(constant) => {
                let constant = if i.mnemonic() == Mnemonic::Add { constant } else { -constant };
                Some(state.defined(register)?.plus_constant(constant))
            }
            None => None,
        },
        (Mnemonic::Inc, _) => Some(state.defined(register)?.plus_constant(1)),
        (Mnemonic::Dec, _) => Some(state.defined(register)?.plus_constant(-1)),
        // Pointers may be compared: the flags say nothing of memory.
        (Mnemonic::Cmp, Some(other)) if other.is_gpr64() => {
            state.defined(register)?;
            state.defined(other)?;
            Some(KnownValue::Number)
        }
        _ => None,
    })
}

fn immediate(i: &Instruction) -> Option<i64> {
    matches!(i.op1_kind(), OpKind::Immediate8to64 | OpKind::Immediate32to64).then(|| i.immediate(1) as i64)
}
