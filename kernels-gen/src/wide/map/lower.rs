//! An expression as a straight line of vector operations, every common part once.

use crate::expr::{Binary, Expr, Unary};
use crate::wide::vector::Lanes;
use kernmill_plan::numeric::{
    EXP_MAX, EXP_MIN, EXP_POLY, GELU_CUBIC, GELU_SCALE, LN2_HI, LN2_LO, LOG2E, ROUND_MAGIC,
};
use std::collections::BTreeMap;

/// An operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// A vector of input i.
    Input(usize),
    /// Every lane these bits.
    Constant(u32),
    /// What step i gave.
    Step(usize),
}

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// `x op y`.
    Lanes(Lanes, Source, Source),
    /// `x * y + z`, rounded once.
    Fma(Source, Source, Source),
    /// Square root.
    Sqrt(Source),
    /// The float of bits `p + (t << 23)`.
    AddExponent(Source, Source),
    /// `x < limit ? +0 : value`.
    ZeroBelow { x: Source, limit: Source, value: Source },
}

impl Step {
    /// Operands, in the order in which they are written above.
    pub fn sources(&self) -> Vec<Source> {
        match *self {
            Step::Lanes(_, x, y) | Step::AddExponent(x, y) => vec![x, y],
            Step::Fma(x, y, z) => vec![x, y, z],
            Step::Sqrt(x) => vec![x],
            Step::ZeroBelow { x, limit, value } => vec![x, limit, value],
        }
    }
}

/// Steps in order, and what comes out.
#[derive(Debug)]
pub struct Program {
    pub steps: Vec<Step>,
    pub result: Source,
}

impl Program {
    pub fn of(expr: &Expr) -> Program {
        let mut lowering = Lowering::default();
        let result = lowering.expr(expr);
        Program { steps: lowering.steps, result }
    }

    /// How often each input and constant is read, the most often first.
    pub fn constants(&self) -> Vec<(u32, usize)> {
        let mut uses: BTreeMap<u32, usize> = BTreeMap::new();
        for source in self.steps.iter().flat_map(Step::sources).chain([self.result]) {
            if let Source::Constant(bits) = source {
                *uses.entry(bits).or_default() += 1;
            }
        }
        let mut uses: Vec<(u32, usize)> = uses.into_iter().collect();
        uses.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        uses
    }
}

#[derive(Default)]
struct Lowering {
    steps: Vec<Step>,
    known: BTreeMap<Step, usize>,
}

fn constant(value: f32) -> Source {
    Source::Constant(value.to_bits())
}

/// Registers that a tree needs at a time, inputs and constants staying in memory.
fn need(expr: &Expr) -> usize {
    match expr {
        Expr::Var(_) | Expr::Const(_) => 0,
        Expr::Unary(_, a) => need(a).max(1),
        Expr::Binary(_, a, b) => {
            let (a, b) = (need(a), need(b));
            if a == b { a + 1 } else { a.max(b) }
        }
    }
}

impl Lowering {
    fn step(&mut self, step: Step) -> Source {
        let next = self.steps.len();
        let index = *self.known.entry(step).or_insert(next);
        if index == next {
            self.steps.push(step);
        }
        Source::Step(index)
    }

    fn lanes(&mut self, op: Lanes, x: Source, y: Source) -> Source {
        self.step(Step::Lanes(op, x, y))
    }

    fn fma(&mut self, x: Source, y: Source, z: Source) -> Source {
        self.step(Step::Fma(x, y, z))
    }

    fn expr(&mut self, expr: &Expr) -> Source {
        match expr {
            Expr::Var(i) => Source::Input(*i),
            Expr::Const(c) => constant(*c),
            Expr::Unary(op, a) => {
                let a = self.expr(a);
                self.unary(*op, a)
            }
            Expr::Binary(op, a, b) => {
                // The side that needs more registers goes first: the other's result would occupy one meanwhile.
                let (x, y) = if need(b) > need(a) {
                    let y = self.expr(b);
                    (self.expr(a), y)
                } else {
                    let x = self.expr(a);
                    (x, self.expr(b))
                };
                let op = match op {
                    Binary::Add => Lanes::Add,
                    Binary::Sub => Lanes::Sub,
                    Binary::Mul => Lanes::Mul,
                    Binary::Div => Lanes::Div,
                    Binary::Min => Lanes::Min,
                    Binary::Max => Lanes::Max,
                };
                self.lanes(op, x, y)
            }
        }
    }

    fn unary(&mut self, op: Unary, x: Source) -> Source {
        match op {
            Unary::Neg => self.lanes(Lanes::Xor, x, Source::Constant(0x8000_0000)),
            Unary::Exp => self.exp(x),
            Unary::Sigmoid => self.sigmoid(x),
            Unary::Silu => {
                let sigmoid = self.sigmoid(x);
                self.lanes(Lanes::Mul, x, sigmoid)
            }
            Unary::Tanh => self.tanh(x),
            Unary::Gelu => self.gelu(x),
            Unary::Sqrt => self.step(Step::Sqrt(x)),
            Unary::Rsqrt => {
                let root = self.step(Step::Sqrt(x));
                self.lanes(Lanes::Div, constant(1.0), root)
            }
        }
    }

    fn exp(&mut self, x: Source) -> Source {
        let magic = constant(ROUND_MAGIC);
        let clamped = self.lanes(Lanes::Min, x, constant(EXP_MAX));
        let t = self.fma(clamped, constant(LOG2E), magic);
        let n = self.lanes(Lanes::Sub, t, magic);
        let r = self.fma(n, constant(-LN2_HI), clamped);
        let r = self.fma(n, constant(-LN2_LO), r);
        let p = EXP_POLY[1..].iter().fold(constant(EXP_POLY[0]), |p, c| self.fma(p, r, constant(*c)));
        let value = self.step(Step::AddExponent(p, t));
        self.step(Step::ZeroBelow { x, limit: constant(EXP_MIN), value })
    }

    fn sigmoid(&mut self, x: Source) -> Source {
        let negated = self.lanes(Lanes::Sub, constant(0.0), x);
        let power = self.exp(negated);
        let denominator = self.lanes(Lanes::Add, constant(1.0), power);
        self.lanes(Lanes::Div, constant(1.0), denominator)
    }

    fn tanh(&mut self, x: Source) -> Source {
        let doubled = self.lanes(Lanes::Mul, constant(2.0), x);
        let sigmoid = self.sigmoid(doubled);
        let sigmoid = self.lanes(Lanes::Mul, constant(2.0), sigmoid);
        self.lanes(Lanes::Sub, sigmoid, constant(1.0))
    }

    fn gelu(&mut self, x: Source) -> Source {
        let squared = self.lanes(Lanes::Mul, x, x);
        let cubed = self.lanes(Lanes::Mul, squared, x);
        let term = self.lanes(Lanes::Mul, constant(GELU_CUBIC), cubed);
        let inner = self.lanes(Lanes::Add, x, term);
        let inner = self.lanes(Lanes::Mul, constant(GELU_SCALE), inner);
        let tanh = self.tanh(inner);
        let factor = self.lanes(Lanes::Add, constant(1.0), tanh);
        let halved = self.lanes(Lanes::Mul, constant(0.5), x);
        self.lanes(Lanes::Mul, halved, factor)
    }
}
