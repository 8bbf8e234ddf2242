//! An expression as a straight line of vector operations, every common part once. Whatever the width of
//! vectors, code is made of this.

use super::{Binary, Compare, Expr, Unary};
use kernmill_plan::numeric::{
    EXP_MAX, EXP_MIN, EXP_POLY, GELU_CUBIC, GELU_SCALE, LN2_HI, LN2_LO, LOG_LOW, LOG_POLY, LOG2E,
    ROUND_MAGIC, TAIL_END, TAIL_MIDDLE, TAIL_POLY,
};
use std::collections::BTreeMap;

/// An operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExprOperand {
    /// A vector of input i.
    Input(usize),
    /// Every lane these bits.
    Constant(u32),
    /// The result of step i.
    Step(usize),
}

/// `x op y`, lane by lane. Subtraction, division, minimum and maximum as the instructions of that name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lanes {
    /// f32.
    Add,
    /// f32.
    Sub,
    /// f32.
    Mul,
    /// f32.
    Div,
    /// `x < y ? x : y`.
    Min,
    /// `x > y ? x : y`.
    Max,
    /// Bits.
    Xor,
    /// Bits.
    And,
    /// Bits.
    Or,
    /// Wrapping i32.
    AddInt,
}

/// A condition on two f32 lanes; none holds for a NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Condition {
    /// `x < y`.
    Less,
    /// `x <= y`.
    LessEqual,
    /// `x == y`.
    Equal,
}

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExprStep {
    /// `x op y`.
    Lanes(Lanes, ExprOperand, ExprOperand),
    /// `x * y + z`, rounded once.
    Fma(ExprOperand, ExprOperand, ExprOperand),
    /// Square root.
    Sqrt(ExprOperand),
    /// The float of bits `p + (t << 23)`.
    AddExponent(ExprOperand, ExprOperand),
    /// `x < limit ? +0 : value`.
    ZeroBelow { x: ExprOperand, limit: ExprOperand, value: ExprOperand },
    /// Bits moved down by so many, zeros following.
    ShiftRight(ExprOperand, u32),
    /// `a condition b ? yes : no`.
    Select { condition: Condition, a: ExprOperand, b: ExprOperand, yes: ExprOperand, no: ExprOperand },
}

impl ExprStep {
    /// Operands, in the order in which they are written above.
    pub fn sources(&self) -> Vec<ExprOperand> {
        match *self {
            ExprStep::Lanes(_, x, y) | ExprStep::AddExponent(x, y) => vec![x, y],
            ExprStep::Fma(x, y, z) => vec![x, y, z],
            ExprStep::Sqrt(x) | ExprStep::ShiftRight(x, _) => vec![x],
            ExprStep::ZeroBelow { x, limit, value } => vec![x, limit, value],
            ExprStep::Select { a, b, yes, no, .. } => vec![a, b, yes, no],
        }
    }
}

/// Steps in order, and what comes out.
#[derive(Debug)]
pub struct ExprProgram {
    pub steps: Vec<ExprStep>,
    pub result: ExprOperand,
}

impl ExprProgram {
    pub fn of(expr: &Expr) -> ExprProgram {
        let mut lowering = ExprLowering::default();
        let result = lowering.expr(expr);
        ExprProgram { steps: lowering.steps, result }
    }

    /// How often each input and constant is read, the most often first.
    pub fn constants(&self) -> Vec<(u32, usize)> {
        let mut uses: BTreeMap<u32, usize> = BTreeMap::new();
        for source in self.steps.iter().flat_map(ExprStep::sources).chain([self.result]) {
            if let ExprOperand::Constant(bits) = source {
                *uses.entry(bits).or_default() += 1;
            }
        }
        let mut uses: Vec<(u32, usize)> = uses.into_iter().collect();
        uses.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        uses
    }
}

#[derive(Default)]
struct ExprLowering {
    steps: Vec<ExprStep>,
    known: BTreeMap<ExprStep, usize>,
}

const SIGN: ExprOperand = ExprOperand::Constant(0x8000_0000);
const MAGNITUDE: ExprOperand = ExprOperand::Constant(0x7fff_ffff);
const ONE: u32 = 1.0f32.to_bits();

fn constant(value: f32) -> ExprOperand {
    ExprOperand::Constant(value.to_bits())
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
        Expr::Select(_, parts) => {
            parts.iter().enumerate().map(|(before, part)| need(part) + before).max().unwrap_or(0)
        }
    }
}

impl ExprLowering {
    fn step(&mut self, step: ExprStep) -> ExprOperand {
        let next = self.steps.len();
        let index = *self.known.entry(step).or_insert(next);
        if index == next {
            self.steps.push(step);
        }
        ExprOperand::Step(index)
    }

    fn lanes(&mut self, op: Lanes, x: ExprOperand, y: ExprOperand) -> ExprOperand {
        self.step(ExprStep::Lanes(op, x, y))
    }

    fn fma(&mut self, x: ExprOperand, y: ExprOperand, z: ExprOperand) -> ExprOperand {
        self.step(ExprStep::Fma(x, y, z))
    }

    fn expr(&mut self, expr: &Expr) -> ExprOperand {
        match expr {
            Expr::Var(i) => ExprOperand::Input(*i),
            Expr::Const(c) => constant(*c),
            Expr::Unary(op, a) => {
                let a = self.expr(a);
                self.unary(*op, a)
            }
            Expr::Binary(op, a, b) => {
                // The side that needs more registers goes first: the other's result would occupy one
                // meanwhile.
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
            Expr::Select(compare, parts) => {
                let [a, b, yes, no] = parts.each_ref().map(|part| self.expr(part));
                let (condition, a, b) = match compare {
                    Compare::Less => (Condition::Less, a, b),
                    Compare::LessEqual => (Condition::LessEqual, a, b),
                    Compare::Greater => (Condition::Less, b, a),
                    Compare::GreaterEqual => (Condition::LessEqual, b, a),
                    Compare::Equal => (Condition::Equal, a, b),
                };
                self.select(condition, a, b, yes, no)
            }
        }
    }

    fn select(
        &mut self,
        condition: Condition,
        a: ExprOperand,
        b: ExprOperand,
        yes: ExprOperand,
        no: ExprOperand,
    ) -> ExprOperand {
        self.step(ExprStep::Select { condition, a, b, yes, no })
    }

    fn horner(&mut self, coefficients: &[f32], x: ExprOperand) -> ExprOperand {
        coefficients[1..].iter().fold(constant(coefficients[0]), |p, c| self.fma(p, x, constant(*c)))
    }

    fn unary(&mut self, op: Unary, x: ExprOperand) -> ExprOperand {
        match op {
            Unary::Neg => self.lanes(Lanes::Xor, x, SIGN),
            Unary::Exp => self.exp(x),
            Unary::Sigmoid => self.sigmoid(x),
            Unary::Silu => {
                let sigmoid = self.sigmoid(x);
                self.lanes(Lanes::Mul, x, sigmoid)
            }
            Unary::Tanh => self.tanh(x),
            Unary::Gelu => self.gelu(x),
            Unary::Sqrt => self.step(ExprStep::Sqrt(x)),
            Unary::Rsqrt => {
                let root = self.step(ExprStep::Sqrt(x));
                self.lanes(Lanes::Div, constant(1.0), root)
            }
            Unary::Abs => self.lanes(Lanes::And, x, MAGNITUDE),
            Unary::Log => self.log(x),
            Unary::Softplus => self.softplus(x),
            Unary::GeluErf => self.gelu_erf(x),
            Unary::Bf16 => self.bf16(x),
            Unary::F16 => self.f16(x),
        }
    }

    fn exp(&mut self, x: ExprOperand) -> ExprOperand {
        let magic = constant(ROUND_MAGIC);
        let clamped = self.lanes(Lanes::Min, x, constant(EXP_MAX));
        let t = self.fma(clamped, constant(LOG2E), magic);
        let n = self.lanes(Lanes::Sub, t, magic);
        let r = self.fma(n, constant(-LN2_HI), clamped);
        let r = self.fma(n, constant(-LN2_LO), r);
        let p = self.horner(&EXP_POLY, r);
        let value = self.step(ExprStep::AddExponent(p, t));
        self.step(ExprStep::ZeroBelow { x, limit: constant(EXP_MIN), value })
    }

    fn sigmoid(&mut self, x: ExprOperand) -> ExprOperand {
        let negated = self.lanes(Lanes::Sub, constant(0.0), x);
        let power = self.exp(negated);
        let denominator = self.lanes(Lanes::Add, constant(1.0), power);
        self.lanes(Lanes::Div, constant(1.0), denominator)
    }

    fn tanh(&mut self, x: ExprOperand) -> ExprOperand {
        let doubled = self.lanes(Lanes::Mul, constant(2.0), x);
        let sigmoid = self.sigmoid(doubled);
        let sigmoid = self.lanes(Lanes::Mul, constant(2.0), sigmoid);
        self.lanes(Lanes::Sub, sigmoid, constant(1.0))
    }

    fn gelu(&mut self, x: ExprOperand) -> ExprOperand {
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

    /// The logarithm of a normal number; `below` is what its exponent is too large by.
    fn log_scaled(&mut self, x: ExprOperand, below: Option<ExprOperand>) -> ExprOperand {
        let t = self.lanes(Lanes::AddInt, x, ExprOperand::Constant(ONE - LOG_LOW));
        // Or'ed into 2^23 the exponent is a float without a conversion.
        let exponent = self.step(ExprStep::ShiftRight(t, 23));
        let exponent = self.lanes(Lanes::Or, exponent, constant(8_388_608.0));
        let exponent = self.lanes(Lanes::Sub, exponent, constant(8_388_608.0 + 127.0));
        let exponent = below.map_or(exponent, |below| self.lanes(Lanes::Sub, exponent, below));
        let mantissa = self.lanes(Lanes::And, t, ExprOperand::Constant(0x007f_ffff));
        let mantissa = self.lanes(Lanes::AddInt, mantissa, ExprOperand::Constant(LOG_LOW));
        let f = self.lanes(Lanes::Sub, mantissa, constant(1.0));
        let p = self.horner(&LOG_POLY, f);
        let q = self.fma(p, f, constant(-0.5));
        let square = self.lanes(Lanes::Mul, f, f);
        let r = self.lanes(Lanes::Mul, square, q);
        let r = self.fma(exponent, constant(LN2_LO), r);
        let r = self.lanes(Lanes::Add, f, r);
        self.fma(exponent, constant(LN2_HI), r)
    }

    fn log(&mut self, x: ExprOperand) -> ExprOperand {
        let (zero, infinity) = (constant(0.0), constant(f32::INFINITY));
        let least = constant(f32::MIN_POSITIVE);
        let scaled = self.lanes(Lanes::Mul, x, constant(8_388_608.0));
        let normal = self.select(Condition::Less, x, least, scaled, x);
        let below = self.select(Condition::Less, x, least, constant(23.0), zero);
        let value = self.log_scaled(normal, Some(below));
        // Infinity and NaN are their own logarithms.
        let value = self.select(Condition::Less, x, infinity, value, x);
        let value = self.select(Condition::Less, x, zero, constant(f32::NAN), value);
        self.select(Condition::Equal, x, zero, constant(f32::NEG_INFINITY), value)
    }

    fn softplus(&mut self, x: ExprOperand) -> ExprOperand {
        let negated = self.lanes(Lanes::Or, x, SIGN);
        let u = self.exp(negated);
        let w = self.lanes(Lanes::Add, constant(1.0), u);
        let kept = self.lanes(Lanes::Sub, w, constant(1.0));
        let rest = self.lanes(Lanes::Sub, u, kept);
        let rest = self.lanes(Lanes::Div, rest, w);
        let log = self.log_scaled(w, None);
        let tail = self.lanes(Lanes::Add, log, rest);
        let sum = self.lanes(Lanes::Add, x, tail);
        let value = self.select(Condition::Less, constant(0.0), x, sum, tail);
        self.select(Condition::Equal, x, x, value, x)
    }

    fn gelu_erf(&mut self, x: ExprOperand) -> ExprOperand {
        let magnitude = self.lanes(Lanes::And, x, MAGNITUDE);
        let a = self.lanes(Lanes::Min, magnitude, constant(TAIL_END));
        let low = self.lanes(Lanes::Sub, a, constant(TAIL_MIDDLE));
        let high = self.lanes(Lanes::Add, a, constant(TAIL_MIDDLE));
        let y = self.lanes(Lanes::Div, low, high);
        let square = self.lanes(Lanes::Mul, a, a);
        let negated = self.lanes(Lanes::Xor, square, SIGN);
        let rest = self.fma(a, a, negated);
        let halved = self.lanes(Lanes::Mul, constant(-0.5), square);
        let power = self.exp(halved);
        let rest = self.lanes(Lanes::Mul, constant(-0.5), rest);
        let power = self.fma(rest, power, power);
        let tail = self.horner(&TAIL_POLY, y);
        let tail = self.lanes(Lanes::Mul, tail, power);
        let other = self.lanes(Lanes::Sub, constant(1.0), tail);
        let share = self.select(Condition::Less, constant(0.0), x, other, tail);
        let value = self.lanes(Lanes::Mul, x, share);
        self.select(Condition::Less, x, constant(-TAIL_END), SIGN, value)
    }

    fn bf16(&mut self, x: ExprOperand) -> ExprOperand {
        const KEPT: ExprOperand = ExprOperand::Constant(0xffff_0000);
        let odd = self.step(ExprStep::ShiftRight(x, 16));
        let odd = self.lanes(Lanes::And, odd, ExprOperand::Constant(1));
        let rounded = self.lanes(Lanes::AddInt, x, ExprOperand::Constant(0x7fff));
        let rounded = self.lanes(Lanes::AddInt, rounded, odd);
        let rounded = self.lanes(Lanes::And, rounded, KEPT);
        let (sign, magnitude) = (self.lanes(Lanes::And, x, SIGN), self.lanes(Lanes::And, x, MAGNITUDE));
        let number = self.select(Condition::Less, magnitude, constant(f32::MIN_POSITIVE), sign, rounded);
        let quiet = self.lanes(Lanes::Or, x, ExprOperand::Constant(0x0040_0000));
        let quiet = self.lanes(Lanes::And, quiet, KEPT);
        self.select(Condition::Equal, x, x, number, quiet)
    }

    fn f16(&mut self, x: ExprOperand) -> ExprOperand {
        let (sign, a) = (self.lanes(Lanes::And, x, SIGN), self.lanes(Lanes::And, x, MAGNITUDE));
        // The last bit of 2^13 times a's power of two is worth the last one that f16 keeps of a; no f16 has
        // one below 2^-24.
        let power = self.lanes(Lanes::And, a, constant(f32::INFINITY));
        let power = self.lanes(Lanes::Max, power, constant(f32::from_bits((127 - 14) << 23)));
        let power = self.lanes(Lanes::Mul, power, constant(8192.0));
        let rounded = self.lanes(Lanes::Add, a, power);
        let rounded = self.lanes(Lanes::Sub, rounded, power);
        // Half a step above f16's largest number, and everything from there on.
        let infinity = constant(f32::INFINITY);
        let rounded = self.select(Condition::LessEqual, constant(65520.0), a, infinity, rounded);
        self.lanes(Lanes::Or, rounded, sign)
    }
}
