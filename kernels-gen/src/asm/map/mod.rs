//! `Map` in 256 bits (AVX2, FMA) and in 512 bits (AVX-512 F).
//!
//! The expression becomes a straight line of operations (`expr/lower.rs`), which get registers (`allocate`):
//! inputs are read from memory where they are used, constants stay in registers as long as there are any. A
//! row is walked in turns of up to four vectors, whose operations the CPU overlaps. Clobbers: caller-saved
//! registers, mask register 1, flags.

mod allocate;
#[cfg(test)]
mod tests;

use super::AsmKernel;
use super::regs::{PARAMS, Regs, SCRATCH, constants_here};
use super::vector::{Address, VectorOperand, Vectors, Width};
use crate::expr::lower::ExprProgram;
use crate::ukernel::MicroKernel;
use crate::ukernel::map::{Map, MapDefinition};
use allocate::{Allocated, MapInstruction, MapOperand, allocate};
use iced_x86::IcedError;
use iced_x86::code_asm::{AsmRegister64, CodeAssembler, qword_ptr};
use kernmill_plan::target::Features;

/// 256 bits.
pub const AVX2: AsmKernel = AsmKernel {
    name: "map_avx2",
    needs: Features::FLOOR,
    unless: Features::AVX512,
    serves: |ukernel| serves(ukernel, Width::Half),
    assemble: |a, ukernel| assemble(a, ukernel, Width::Half),
};

/// 512 bits.
pub const AVX512: AsmKernel = AsmKernel {
    name: "map_avx512",
    needs: Features::AVX512,
    unless: Features::NONE,
    serves: |ukernel| serves(ukernel, Width::Full),
    assemble: |a, ukernel| assemble(a, ukernel, Width::Full),
};

/// Vectors of a turn at most.
const TURN: usize = 4;
/// Operations of a turn at most, unless one vector has more.
const TURN_OPS: usize = 512;

fn allocated(map: &Map, width: Width) -> Option<Allocated> {
    allocate(&ExprProgram::of(&map.definition().expr), width.registers())
}

/// Whether the expression fits the registers, and every distance an instruction.
fn serves(ukernel: MicroKernel, width: Width) -> bool {
    let MicroKernel::Map(map) = ukernel else { return false };
    let definition = map.definition();
    let mut distances = definition.inputs.iter().chain([&definition.out, &definition.n]);
    distances.all(|bytes| *bytes < 1 << 28) && allocated(&map, width).is_some()
}

fn assemble(a: &mut CodeAssembler, ukernel: MicroKernel, width: Width) -> Result<(), IcedError> {
    match ukernel {
        MicroKernel::Map(map) => match allocated(&map, width) {
            Some(code) => Assembly { map: map.definition(), code, width }.emit(a),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

struct Assembly<'m> {
    map: &'m MapDefinition,
    code: Allocated,
    width: Width,
}

impl Assembly<'_> {
    fn emit(&self, a: &mut CodeAssembler) -> Result<(), IcedError> {
        let pointers = self.map.inputs.len() + 1;
        let mut regs = Regs::with_params(pointers + 1);
        let (rows, index) = (PARAMS[pointers], regs.general());
        let table = self.table();
        let mut constants = a.create_label();
        regs.save(a)?;
        if !table.is_empty() {
            a.lea(SCRATCH, qword_ptr(constants))?;
        }
        for (bits, register) in &self.code.resident {
            let place = self.constant(&table, *bits);
            Vectors { a: &mut *a, width: self.width }.broadcast(*register, place)?;
        }
        let (mut again, mut done) = (a.create_label(), a.create_label());
        a.test(rows, rows)?;
        a.je(done)?;
        a.set_label(&mut again)?;
        self.row(a, index, &table)?;
        for (pointer, stride) in PARAMS.iter().zip([&self.map.out].into_iter().chain(&self.map.inputs)) {
            if *stride > 0 {
                a.add(*pointer, *stride as i32)?;
            }
        }
        a.dec(rows)?;
        a.jne(again)?;
        a.set_label(&mut done)?;
        regs.restore_and_return(a)?;
        if !table.is_empty() {
            constants_here(a, &mut constants)?;
        }
        table.iter().try_for_each(|bits| a.dd(&vec![*bits; self.width.constant_bytes() / 4]))
    }

    /// Constants in memory, in order.
    fn table(&self) -> Vec<u32> {
        let mut table: Vec<u32> = self.code.resident.keys().copied().collect();
        for arg in self.code.ops.iter().flat_map(MapInstruction::args) {
            if let MapOperand::Constant(bits) = arg
                && !table.contains(&bits)
            {
                table.push(bits);
            }
        }
        table
    }

    fn constant(&self, table: &[u32], bits: u32) -> Address {
        let index = table.iter().position(|other| *other == bits).expect("the table has every constant");
        Address::at(SCRATCH) + index * self.width.constant_bytes()
    }

    /// Every vector of a row.
    fn row(&self, a: &mut CodeAssembler, index: AsmRegister64, table: &[u32]) -> Result<(), IcedError> {
        let vectors = self.map.n / self.width.lanes();
        let bytes = self.width.lanes() * 4;
        let room = (TURN_OPS / self.code.ops.len()).clamp(1, TURN);
        let turn = (1..=room).rev().find(|turn| vectors.is_multiple_of(*turn)).unwrap_or(1);
        if turn == vectors {
            return (0..turn).try_for_each(|vector| self.vector(a, None, vector * bytes, table));
        }
        let mut again = a.create_label();
        a.xor(index, index)?;
        a.set_label(&mut again)?;
        for vector in 0..turn {
            self.vector(a, Some(index), vector * bytes, table)?;
        }
        a.add(index, (turn * bytes) as i32)?;
        a.cmp(index, (self.map.n * 4) as i32)?;
        a.jne(again)
    }

    /// One vector, `offset` bytes behind `index`.
    fn vector(
        &self,
        a: &mut CodeAssembler,
        index: Option<AsmRegister64>,
        offset: usize,
        table: &[u32],
    ) -> Result<(), IcedError> {
        let mut v = Vectors { a, width: self.width };
        let place = |pointer: usize| Address { base: PARAMS[pointer], index, offset };
        let operand = |arg: MapOperand| match arg {
            MapOperand::Register(register) => VectorOperand::Register(register),
            MapOperand::Input(i) => VectorOperand::Memory(place(i + 1)),
            MapOperand::Constant(bits) => VectorOperand::Constant(self.constant(table, bits)),
        };
        for op in &self.code.ops {
            match *op {
                MapInstruction::Load { to, from } => v.load(to, operand(from))?,
                MapInstruction::Lanes { op, to, x, y } => v.lanes(op, to, x, operand(y))?,
                MapInstruction::Fma { form, to, x, y } => v.fma(form, to, x, operand(y))?,
                MapInstruction::Sqrt { to, x } => v.sqrt(to, operand(x))?,
                MapInstruction::ShiftToExponent { to, x } => v.shift_left(to, x, 23)?,
                MapInstruction::ShiftRight { to, x, bits } => v.shift_right(to, x, bits)?,
                MapInstruction::Select { condition, to, a, b, yes, no } => {
                    v.select(condition, to, (a, operand(b)), (operand(yes), no))?;
                }
                MapInstruction::ZeroBelow { to, x, limit, value } => {
                    v.zero_below(to, x, operand(limit), value)?
                }
                MapInstruction::Store { from } => v.store(place(0), from)?,
            }
        }
        Ok(())
    }
}
