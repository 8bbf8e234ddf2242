//! Vector forms of the functions of docs/numerics.md, and the compilation of expressions.

use crate::emit::Emit;
use crate::expr::{Binary, Expr, Unary};
use cranelift_codegen::ir::condcodes::FloatCC;
use cranelift_codegen::ir::types::{F32X4, I32X4};
use cranelift_codegen::ir::{InstBuilder, Value};
use kernmill_plan::numeric::{
    EXP_MAX, EXP_MIN, EXP_POLY, GELU_CUBIC, GELU_SCALE, LN2_HI, LN2_LO, LOG2E, ROUND_MAGIC,
};

/// `exp(x)` of four lanes.
pub fn exp(e: &mut Emit, x: Value) -> Value {
    let max = e.splat_f32(EXP_MAX);
    let clamped = e.fmin(x, max);
    let (log2e, magic) = (e.splat_f32(LOG2E), e.splat_f32(ROUND_MAGIC));
    let t = e.fma(clamped, log2e, magic);
    let n = e.fsub(t, magic);
    let hi = e.splat_f32(-LN2_HI);
    let r = e.fma(n, hi, clamped);
    let lo = e.splat_f32(-LN2_LO);
    let r = e.fma(n, lo, r);
    let mut p = e.splat_f32(EXP_POLY[0]);
    for coefficient in &EXP_POLY[1..] {
        let c = e.splat_f32(*coefficient);
        p = e.fma(p, r, c);
    }
    let p_bits = e.cast(I32X4, p);
    let t_bits = e.cast(I32X4, t);
    let exponent = e.b.ins().ishl_imm_u(t_bits, 23);
    let bits = e.b.ins().iadd(p_bits, exponent);
    let value = e.cast(F32X4, bits);
    let (min, zero) = (e.splat_f32(EXP_MIN), e.splat_f32(0.0));
    e.lane_select(FloatCC::LessThan, x, min, zero, value)
}

/// An expression of four-lane values.
pub fn expr(e: &mut Emit, expr_tree: &Expr, vars: &[Value]) -> Value {
    match expr_tree {
        Expr::Var(i) => vars[*i],
        Expr::Const(c) => e.splat_f32(*c),
        Expr::Unary(op, a) => {
            let a = expr(e, a, vars);
            unary(e, *op, a)
        }
        Expr::Binary(op, a, b) => {
            let (a, b) = (expr(e, a, vars), expr(e, b, vars));
            match op {
                Binary::Add => e.fadd(a, b),
                Binary::Sub => e.fsub(a, b),
                Binary::Mul => e.fmul(a, b),
                Binary::Div => e.fdiv(a, b),
                Binary::Min => e.fmin(a, b),
                Binary::Max => e.fmax(a, b),
            }
        }
    }
}

fn unary(e: &mut Emit, op: Unary, x: Value) -> Value {
    match op {
        Unary::Neg => e.b.ins().fneg(x),
        Unary::Exp => exp(e, x),
        Unary::Sigmoid => sigmoid(e, x),
        Unary::Silu => {
            let s = sigmoid(e, x);
            e.fmul(x, s)
        }
        Unary::Tanh => tanh(e, x),
        Unary::Gelu => {
            let squared = e.fmul(x, x);
            let cubed = e.fmul(squared, x);
            let cubic = e.splat_f32(GELU_CUBIC);
            let term = e.fmul(cubic, cubed);
            let inner = e.fadd(x, term);
            let scale = e.splat_f32(GELU_SCALE);
            let inner = e.fmul(scale, inner);
            let t = tanh(e, inner);
            let one = e.splat_f32(1.0);
            let factor = e.fadd(one, t);
            let half = e.splat_f32(0.5);
            let halved = e.fmul(half, x);
            e.fmul(halved, factor)
        }
        Unary::Sqrt => e.b.ins().sqrt(x),
        Unary::Rsqrt => {
            let root = e.b.ins().sqrt(x);
            let one = e.splat_f32(1.0);
            e.fdiv(one, root)
        }
    }
}

fn sigmoid(e: &mut Emit, x: Value) -> Value {
    let (zero, one) = (e.splat_f32(0.0), e.splat_f32(1.0));
    let negated = e.fsub(zero, x);
    let power = exp(e, negated);
    let denominator = e.fadd(one, power);
    e.fdiv(one, denominator)
}

fn tanh(e: &mut Emit, x: Value) -> Value {
    let (two, one) = (e.splat_f32(2.0), e.splat_f32(1.0));
    let doubled = e.fmul(two, x);
    let s = sigmoid(e, doubled);
    let s = e.fmul(two, s);
    e.fsub(s, one)
}
