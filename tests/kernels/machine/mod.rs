//! An interpreter of machine code: exactly the instructions that the AVX-512 and AMX micro-kernels use,
//! decoded with iced-x86.
//!
//! Memory is a list of regions with bounds; anything outside is a fault, as is a misaligned access where the
//! instruction asks for alignment, a flag that the instruction left undefined, or an instruction that is not
//! modelled. The micro-kernels run here and on the CPU with equal bits (`replay.rs`), which is what makes the
//! interpreter believable for instructions that the CPU lacks.

mod flags;
mod float;
mod general;
mod lanes;
mod memory;
mod tile;
mod tiles;
mod vector;

pub use float::flushed_fma;
pub use memory::{Fault, Memory, Region};

use flags::Flags;
use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Formatter, Instruction, Mnemonic, NasmFormatter, Register,
};
use std::collections::BTreeMap;
use tiles::Tiles;

/// Bytes of a zmm register.
const VECTOR: usize = 64;
/// Where the caller of a micro-kernel would be.
const RETURN: u64 = 0x5e17_0000;
/// A stack for the micro-kernel, aligned as at a call.
const STACK: u64 = 0x7fff_0000;
const STACK_BYTES: usize = 1024;
/// Instructions until a micro-kernel is taken to hang.
const PATIENCE: usize = 1_000_000;

/// The CPU.
pub struct Machine {
    general: [u64; 16],
    flags: Flags,
    vectors: [[u8; VECTOR]; 32],
    masks: [u64; 8],
    tiles: Option<Tiles>,
    pub memory: Memory,
}

impl Machine {
    /// Registers hold recognisable rubbish.
    pub fn new(memory: Memory) -> Machine {
        Machine {
            general: std::array::from_fn(|i| 0xdead_beef_0000_0000 | i as u64),
            flags: Flags::default(),
            vectors: std::array::from_fn(|i| [0xa0 | i as u8; VECTOR]),
            masks: [0xaaaa_aaaa_5555_5555; 8],
            tiles: None,
            memory,
        }
    }

    /// Calls the function at the start of `code`, which lies at `address`, by the System V convention.
    pub fn call(&mut self, code: &[u8], address: u64, args: &[u64]) -> Result<(), Fault> {
        let params = [Register::RDI, Register::RSI, Register::RDX, Register::RCX, Register::R8, Register::R9];
        for (register, value) in params.into_iter().zip(args) {
            self.set_general(register, *value);
        }
        self.memory.add(Region { address, bytes: code.to_vec(), writable: false });
        // The place to return to, and above it the arguments that have no register.
        let stacked = args.get(params.len()..).unwrap_or_default();
        let mut stack = vec![0; STACK_BYTES];
        stack.extend(stacked.iter().flat_map(|value| value.to_le_bytes()));
        stack[STACK_BYTES - 8..][..8].copy_from_slice(&RETURN.to_le_bytes());
        self.memory.add(Region { address: STACK - STACK_BYTES as u64, bytes: stack, writable: true });
        self.set_general(Register::RSP, STACK - 8);
        let (before, vectors) = (self.general, self.vectors);
        self.run(code, address)?;

        let saved =
            [Register::RBX, Register::RBP, Register::R12, Register::R13, Register::R14, Register::R15];
        if let Some(register) = saved.into_iter().find(|r| self.general[r.number()] != before[r.number()]) {
            return Err(format!("{register:?} came back changed"));
        }
        if self.general(Register::RSP) != STACK {
            return Err("the stack came back unbalanced".to_owned());
        }
        let used = |now: &[u8], before: &[u8]| now != before && now.iter().any(|byte| *byte != 0);
        if self.vectors.iter().zip(&vectors).take(16).any(|(now, before)| used(&now[16..], &before[16..])) {
            return Err("upper halves of vector registers came back in use".to_owned());
        }
        Ok(())
    }

    /// Whether tiles are configured.
    pub fn has_tiles(&self) -> bool {
        self.tiles.is_some()
    }

    fn run(&mut self, code: &[u8], address: u64) -> Result<(), Fault> {
        let mut decoded = BTreeMap::new();
        let mut at = address;
        for _ in 0..PATIENCE {
            if at == RETURN {
                return Ok(());
            }
            let instruction = *decoded.entry(at).or_insert_with(|| {
                let offset = (at - address) as usize;
                let bytes = code.get(offset..).unwrap_or_default();
                Decoder::with_ip(64, bytes, at, DecoderOptions::NONE).decode()
            });
            at = self.step(&instruction).map_err(|fault| {
                let mut text = String::new();
                NasmFormatter::new().format(&instruction, &mut text);
                format!("{:#x}: `{text}`: {fault}", at.wrapping_sub(address))
            })?;
        }
        Err("does not end".to_owned())
    }

    /// Executes one instruction; where the next one is.
    fn step(&mut self, i: &Instruction) -> Result<u64, Fault> {
        match i.flow_control() {
            FlowControl::Return if i.mnemonic() == Mnemonic::Ret => return self.pop(),
            FlowControl::ConditionalBranch => {
                let taken = self.flags.holds(i.condition_code())?;
                return Ok(if taken { i.near_branch_target() } else { i.next_ip() });
            }
            FlowControl::UnconditionalBranch => return Ok(i.near_branch_target()),
            FlowControl::Next => {}
            _ => return Err("not modelled".to_owned()),
        }
        if !self.general_instruction(i)? && !self.tile_instruction(i)? && !self.vector_instruction(i)? {
            return Err("not modelled".to_owned());
        }
        Ok(i.next_ip())
    }

    /// The address of the memory operand.
    fn address(&self, i: &Instruction) -> Result<u64, Fault> {
        if i.is_ip_rel_memory_operand() {
            return Ok(i.ip_rel_memory_address());
        }
        let part = |register: Register| match register {
            Register::None => Ok(0),
            register if register.is_gpr64() => Ok(self.general(register)),
            _ => Err("address of another size".to_owned()),
        };
        let index = part(i.memory_index())?.wrapping_mul(u64::from(i.memory_index_scale()));
        Ok(part(i.memory_base())?.wrapping_add(index).wrapping_add(i.memory_displacement64()))
    }
}
