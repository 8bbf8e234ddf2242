//! Registers for a straight line of operations. Nothing is spilled: a program that needs more registers than
//! there are is refused, and the 128-bit version serves.

use crate::asm::vector::{Condition, Fma, Lanes, Vector};
use crate::expr::lower::{ExprOperand, ExprProgram, ExprStep};
use std::collections::{BTreeMap, BTreeSet};

/// A second source: in a register, or read from memory by the instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapOperand {
    Register(Vector),
    Input(usize),
    Constant(u32),
}

/// An instruction, or two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapInstruction {
    Load {
        to: Vector,
        from: MapOperand,
    },
    Lanes {
        op: Lanes,
        to: Vector,
        x: Vector,
        y: MapOperand,
    },
    Fma {
        form: Fma,
        to: Vector,
        x: Vector,
        y: MapOperand,
    },
    Sqrt {
        to: Vector,
        x: MapOperand,
    },
    /// i32 lanes by 23 bits.
    ShiftToExponent {
        to: Vector,
        x: Vector,
    },
    ShiftRight {
        to: Vector,
        x: Vector,
        bits: u32,
    },
    ZeroBelow {
        to: Vector,
        x: Vector,
        limit: MapOperand,
        value: Vector,
    },
    Select {
        condition: Condition,
        to: Vector,
        a: Vector,
        b: MapOperand,
        yes: MapOperand,
        no: Vector,
    },
    Store {
        from: Vector,
    },
}

impl MapInstruction {
    /// Sources that may lie in memory.
    pub fn args(&self) -> Vec<MapOperand> {
        match *self {
            MapInstruction::Load { from: arg, .. }
            | MapInstruction::Lanes { y: arg, .. }
            | MapInstruction::Fma { y: arg, .. }
            | MapInstruction::Sqrt { x: arg, .. }
            | MapInstruction::ZeroBelow { limit: arg, .. } => vec![arg],
            MapInstruction::Select { b, yes, .. } => vec![b, yes],
            MapInstruction::ShiftToExponent { .. }
            | MapInstruction::ShiftRight { .. }
            | MapInstruction::Store { .. } => Vec::new(),
        }
    }
}

/// Code for one vector of each input.
#[derive(Debug)]
pub struct Allocated {
    pub ops: Vec<MapInstruction>,
    /// Constants that stay in registers.
    pub resident: BTreeMap<u32, Vector>,
}

/// Allocates `registers` registers; as many constants as have room stay in registers, those read most often
/// first.
pub fn allocate(program: &ExprProgram, registers: usize) -> Option<Allocated> {
    let (_, used) = Allocator::run(program, registers, &BTreeMap::new())?;
    let constants = program.constants();
    let resident = (used..registers).rev().zip(&constants).map(|(register, (bits, _))| (*bits, register));
    let resident: BTreeMap<u32, Vector> = resident.collect();
    // Constants in registers leave as many others as were needed without.
    let (ops, _) = Allocator::run(program, registers - resident.len(), &resident)?;
    Some(Allocated { ops, resident })
}

struct Allocator<'a> {
    resident: &'a BTreeMap<u32, Vector>,
    /// The last step that reads each step's result.
    last_use: Vec<usize>,
    /// Where each step's result is.
    place: Vec<Vector>,
    free: BTreeSet<Vector>,
    /// One more than the highest register taken.
    used: usize,
    ops: Vec<MapInstruction>,
}

impl Allocator<'_> {
    fn run(
        program: &ExprProgram,
        registers: usize,
        resident: &BTreeMap<u32, Vector>,
    ) -> Option<(Vec<MapInstruction>, usize)> {
        let mut last_use = vec![0; program.steps.len()];
        let result = std::iter::once((program.steps.len(), program.result));
        let reads = program
            .steps
            .iter()
            .enumerate()
            .flat_map(|(i, step)| step.sources().into_iter().map(move |s| (i, s)));
        for (reader, source) in reads.chain(result) {
            if let ExprOperand::Step(i) = source {
                last_use[i] = reader;
            }
        }
        let free = (0..registers).collect();
        let mut allocator =
            Allocator { resident, last_use, place: Vec::new(), free, used: 0, ops: Vec::new() };
        for step in &program.steps {
            let place = allocator.step(*step)?;
            allocator.place.push(place);
        }
        let (from, _) = allocator.in_register(program.result)?;
        allocator.ops.push(MapInstruction::Store { from });
        Some((allocator.ops, allocator.used))
    }

    fn take(&mut self) -> Option<Vector> {
        let register = self.free.pop_first()?;
        self.used = self.used.max(register + 1);
        Some(register)
    }

    fn arg(&self, source: ExprOperand) -> MapOperand {
        match source {
            ExprOperand::Input(i) => MapOperand::Input(i),
            ExprOperand::Constant(bits) => {
                self.resident.get(&bits).map_or(MapOperand::Constant(bits), |r| MapOperand::Register(*r))
            }
            ExprOperand::Step(i) => MapOperand::Register(self.place[i]),
        }
    }

    /// The source's register, or a new one that it is loaded to (true).
    fn in_register(&mut self, source: ExprOperand) -> Option<(Vector, bool)> {
        let from = self.arg(source);
        if let MapOperand::Register(register) = from {
            return Some((register, false));
        }
        let to = self.take()?;
        self.ops.push(MapInstruction::Load { to, from });
        Some((to, true))
    }

    /// Whether the step being placed is the last to read the source.
    fn dies(&self, source: ExprOperand) -> bool {
        matches!(source, ExprOperand::Step(i) if self.last_use[i] == self.place.len())
    }

    /// Frees the registers of sources that die, except one that has become the result's.
    fn release(&mut self, sources: &[ExprOperand], result: Option<Vector>) {
        for source in sources {
            if let (true, MapOperand::Register(register)) = (self.dies(*source), self.arg(*source))
                && Some(register) != result
            {
                self.free.insert(register);
            }
        }
    }

    /// Places one step; the register of its result.
    fn step(&mut self, step: ExprStep) -> Option<Vector> {
        match step {
            ExprStep::Lanes(op, x, y) => {
                let (x_register, loaded) = self.in_register(x)?;
                let arg = self.arg(y);
                let to = if loaded {
                    self.release(&[y], None);
                    x_register
                } else {
                    self.release(&[x, y], None);
                    self.take()?
                };
                self.ops.push(MapInstruction::Lanes { op, to, x: x_register, y: arg });
                Some(to)
            }
            ExprStep::Fma(x, y, z) => {
                let to = self.fma(x, y, z)?;
                self.release(&[x, y, z], Some(to));
                Some(to)
            }
            ExprStep::Sqrt(x) => {
                let arg = self.arg(x);
                self.release(&[x], None);
                let to = self.take()?;
                self.ops.push(MapInstruction::Sqrt { to, x: arg });
                Some(to)
            }
            ExprStep::AddExponent(p, t) => {
                let (t_register, loaded) = self.in_register(t)?;
                let to = if loaded { t_register } else { self.take()? };
                self.ops.push(MapInstruction::ShiftToExponent { to, x: t_register });
                let y = self.arg(p);
                self.ops.push(MapInstruction::Lanes { op: Lanes::AddInt, to, x: to, y });
                self.release(&[p, t], None);
                Some(to)
            }
            ExprStep::ShiftRight(x, bits) => {
                let (x_register, loaded) = self.in_register(x)?;
                self.release(&[x], None);
                let to = if loaded { x_register } else { self.take()? };
                self.ops.push(MapInstruction::ShiftRight { to, x: x_register, bits });
                Some(to)
            }
            ExprStep::Select { condition, a, b, yes, no } => {
                let (a_register, a_loaded) = self.in_register(a)?;
                let (no_register, no_loaded) = self.in_register(no)?;
                let to = if a_loaded { a_register } else { self.take()? };
                let (b_arg, yes_arg) = (self.arg(b), self.arg(yes));
                self.ops.push(MapInstruction::Select {
                    condition,
                    to,
                    a: a_register,
                    b: b_arg,
                    yes: yes_arg,
                    no: no_register,
                });
                if no_loaded {
                    self.free.insert(no_register);
                }
                self.release(&[a, b, yes, no], None);
                Some(to)
            }
            ExprStep::ZeroBelow { x, limit, value } => {
                let (x_register, x_loaded) = self.in_register(x)?;
                let (value_register, value_loaded) = self.in_register(value)?;
                let to = if x_loaded { x_register } else { self.take()? };
                let limit_arg = self.arg(limit);
                self.ops.push(MapInstruction::ZeroBelow {
                    to,
                    x: x_register,
                    limit: limit_arg,
                    value: value_register,
                });
                if value_loaded {
                    self.free.insert(value_register);
                }
                self.release(&[x, limit, value], None);
                Some(to)
            }
        }
    }

    /// `x * y + z` in the form whose destination is a source that nobody needs any more, if there is one.
    fn fma(&mut self, x: ExprOperand, y: ExprOperand, z: ExprOperand) -> Option<Vector> {
        let (ax, ay, az) = (self.arg(x), self.arg(y), self.arg(z));
        let own = |source: ExprOperand, others: [ExprOperand; 2]| match self.arg(source) {
            MapOperand::Register(register) if self.dies(source) && !others.contains(&source) => {
                Some(register)
            }
            _ => None,
        };
        let (own_x, own_y, own_z) = (own(x, [y, z]), own(y, [x, z]), own(z, [x, y]));
        let (form, to, first, second) = match (own_x, own_y, own_z, ax, ay, az) {
            (_, _, Some(to), MapOperand::Register(first), second, _) => (Fma::F231, to, first, second),
            (_, _, Some(to), second, MapOperand::Register(first), _) => (Fma::F231, to, first, second),
            (Some(to), _, _, _, MapOperand::Register(first), second) => (Fma::F213, to, first, second),
            (_, Some(to), _, MapOperand::Register(first), _, second) => (Fma::F213, to, first, second),
            (Some(to), _, _, _, second, MapOperand::Register(first)) => (Fma::F132, to, first, second),
            (_, Some(to), _, second, _, MapOperand::Register(first)) => (Fma::F132, to, first, second),
            _ => {
                let to = self.take()?;
                self.ops.push(MapInstruction::Load { to, from: az });
                if let (MapOperand::Register(first), second) | (second, MapOperand::Register(first)) =
                    (ax, ay)
                {
                    (Fma::F231, to, first, second)
                } else {
                    let (first, _) = self.in_register(x)?;
                    self.free.insert(first);
                    (Fma::F231, to, first, ay)
                }
            }
        };
        self.ops.push(MapInstruction::Fma { form, to, x: first, y: second });
        Some(to)
    }
}
