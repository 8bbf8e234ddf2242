//! Registers for a straight line of operations. Nothing is spilled: a program that needs more registers than
//! there are is refused, and the 128-bit version serves.

use crate::asm::vector::{Condition, Fma, Lanes, Vector};
use crate::expr::lower::{Program, Source, Step};
use std::collections::{BTreeMap, BTreeSet};

/// A second source: in a register, or read from memory by the instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arg {
    Register(Vector),
    Input(usize),
    Constant(u32),
}

/// An instruction, or two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    Load {
        to: Vector,
        from: Arg,
    },
    Lanes {
        op: Lanes,
        to: Vector,
        x: Vector,
        y: Arg,
    },
    Fma {
        form: Fma,
        to: Vector,
        x: Vector,
        y: Arg,
    },
    Sqrt {
        to: Vector,
        x: Arg,
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
        limit: Arg,
        value: Vector,
    },
    Select {
        condition: Condition,
        to: Vector,
        a: Vector,
        b: Arg,
        yes: Arg,
        no: Vector,
    },
    Store {
        from: Vector,
    },
}

impl Op {
    /// Sources that may lie in memory.
    pub fn args(&self) -> Vec<Arg> {
        match *self {
            Op::Load { from: arg, .. }
            | Op::Lanes { y: arg, .. }
            | Op::Fma { y: arg, .. }
            | Op::Sqrt { x: arg, .. }
            | Op::ZeroBelow { limit: arg, .. } => vec![arg],
            Op::Select { b, yes, .. } => vec![b, yes],
            Op::ShiftToExponent { .. } | Op::ShiftRight { .. } | Op::Store { .. } => Vec::new(),
        }
    }
}

/// Code for one vector of each input.
#[derive(Debug)]
pub struct Allocated {
    pub ops: Vec<Op>,
    /// Constants that stay in registers.
    pub resident: BTreeMap<u32, Vector>,
}

/// Allocates `registers` registers; as many constants as have room stay in registers, those read most often
/// first.
pub fn allocate(program: &Program, registers: usize) -> Option<Allocated> {
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
    ops: Vec<Op>,
}

impl Allocator<'_> {
    fn run(
        program: &Program,
        registers: usize,
        resident: &BTreeMap<u32, Vector>,
    ) -> Option<(Vec<Op>, usize)> {
        let mut last_use = vec![0; program.steps.len()];
        let result = std::iter::once((program.steps.len(), program.result));
        let reads = program
            .steps
            .iter()
            .enumerate()
            .flat_map(|(i, step)| step.sources().into_iter().map(move |s| (i, s)));
        for (reader, source) in reads.chain(result) {
            if let Source::Step(i) = source {
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
        allocator.ops.push(Op::Store { from });
        Some((allocator.ops, allocator.used))
    }

    fn take(&mut self) -> Option<Vector> {
        let register = self.free.pop_first()?;
        self.used = self.used.max(register + 1);
        Some(register)
    }

    fn arg(&self, source: Source) -> Arg {
        match source {
            Source::Input(i) => Arg::Input(i),
            Source::Constant(bits) => {
                self.resident.get(&bits).map_or(Arg::Constant(bits), |r| Arg::Register(*r))
            }
            Source::Step(i) => Arg::Register(self.place[i]),
        }
    }

    /// The source's register, or a new one that it is loaded to (true).
    fn in_register(&mut self, source: Source) -> Option<(Vector, bool)> {
        let from = self.arg(source);
        if let Arg::Register(register) = from {
            return Some((register, false));
        }
        let to = self.take()?;
        self.ops.push(Op::Load { to, from });
        Some((to, true))
    }

    /// Whether the step being placed is the last to read the source.
    fn dies(&self, source: Source) -> bool {
        matches!(source, Source::Step(i) if self.last_use[i] == self.place.len())
    }

    /// Frees the registers of sources that die, except one that has become the result's.
    fn release(&mut self, sources: &[Source], result: Option<Vector>) {
        for source in sources {
            if let (true, Arg::Register(register)) = (self.dies(*source), self.arg(*source))
                && Some(register) != result
            {
                self.free.insert(register);
            }
        }
    }

    /// Places one step; the register of its result.
    fn step(&mut self, step: Step) -> Option<Vector> {
        match step {
            Step::Lanes(op, x, y) => {
                let (x_register, loaded) = self.in_register(x)?;
                let arg = self.arg(y);
                let to = if loaded {
                    self.release(&[y], None);
                    x_register
                } else {
                    self.release(&[x, y], None);
                    self.take()?
                };
                self.ops.push(Op::Lanes { op, to, x: x_register, y: arg });
                Some(to)
            }
            Step::Fma(x, y, z) => {
                let to = self.fma(x, y, z)?;
                self.release(&[x, y, z], Some(to));
                Some(to)
            }
            Step::Sqrt(x) => {
                let arg = self.arg(x);
                self.release(&[x], None);
                let to = self.take()?;
                self.ops.push(Op::Sqrt { to, x: arg });
                Some(to)
            }
            Step::AddExponent(p, t) => {
                let (t_register, loaded) = self.in_register(t)?;
                let to = if loaded { t_register } else { self.take()? };
                self.ops.push(Op::ShiftToExponent { to, x: t_register });
                let y = self.arg(p);
                self.ops.push(Op::Lanes { op: Lanes::AddInt, to, x: to, y });
                self.release(&[p, t], None);
                Some(to)
            }
            Step::ShiftRight(x, bits) => {
                let (x_register, loaded) = self.in_register(x)?;
                self.release(&[x], None);
                let to = if loaded { x_register } else { self.take()? };
                self.ops.push(Op::ShiftRight { to, x: x_register, bits });
                Some(to)
            }
            Step::Select { condition, a, b, yes, no } => {
                let (a_register, a_loaded) = self.in_register(a)?;
                let (no_register, no_loaded) = self.in_register(no)?;
                let to = if a_loaded { a_register } else { self.take()? };
                let (b_arg, yes_arg) = (self.arg(b), self.arg(yes));
                self.ops.push(Op::Select {
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
            Step::ZeroBelow { x, limit, value } => {
                let (x_register, x_loaded) = self.in_register(x)?;
                let (value_register, value_loaded) = self.in_register(value)?;
                let to = if x_loaded { x_register } else { self.take()? };
                let limit_arg = self.arg(limit);
                self.ops.push(Op::ZeroBelow { to, x: x_register, limit: limit_arg, value: value_register });
                if value_loaded {
                    self.free.insert(value_register);
                }
                self.release(&[x, limit, value], None);
                Some(to)
            }
        }
    }

    /// `x * y + z` in the form whose destination is a source that nobody needs any more, if there is one.
    fn fma(&mut self, x: Source, y: Source, z: Source) -> Option<Vector> {
        let (ax, ay, az) = (self.arg(x), self.arg(y), self.arg(z));
        let own = |source: Source, others: [Source; 2]| match self.arg(source) {
            Arg::Register(register) if self.dies(source) && !others.contains(&source) => Some(register),
            _ => None,
        };
        let (own_x, own_y, own_z) = (own(x, [y, z]), own(y, [x, z]), own(z, [x, y]));
        let (form, to, first, second) = match (own_x, own_y, own_z, ax, ay, az) {
            (_, _, Some(to), Arg::Register(first), second, _) => (Fma::F231, to, first, second),
            (_, _, Some(to), second, Arg::Register(first), _) => (Fma::F231, to, first, second),
            (Some(to), _, _, _, Arg::Register(first), second) => (Fma::F213, to, first, second),
            (_, Some(to), _, Arg::Register(first), _, second) => (Fma::F213, to, first, second),
            (Some(to), _, _, _, second, Arg::Register(first)) => (Fma::F132, to, first, second),
            (_, Some(to), _, second, _, Arg::Register(first)) => (Fma::F132, to, first, second),
            _ => {
                let to = self.take()?;
                self.ops.push(Op::Load { to, from: az });
                if let (Arg::Register(first), second) | (second, Arg::Register(first)) = (ax, ay) {
                    (Fma::F231, to, first, second)
                } else {
                    let (first, _) = self.in_register(x)?;
                    self.free.insert(first);
                    (Fma::F231, to, first, ay)
                }
            }
        };
        self.ops.push(Op::Fma { form, to, x: first, y: second });
        Some(to)
    }
}
