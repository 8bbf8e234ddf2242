//! Expressions, one element at a time, and the functions that only they use.

use super::num::{exp, gelu, max, min, round_bf16, round_f16, sigmoid, tanh};
use kernmill_kernels_gen::expr::{Binary, Expr, Unary};
use kernmill_plan::numeric::{LN2_HI, LN2_LO, LOG_LOW, LOG_POLY, TAIL_END, TAIL_MIDDLE, TAIL_POLY};

/// The value of `expr` for these variables; an unknown variable is 0, the verifier refuses it.
pub fn eval(expr: &Expr, vars: &[f32]) -> f32 {
    match expr {
        Expr::Var(i) => vars.get(*i).copied().unwrap_or(0.0),
        Expr::Const(c) => *c,
        Expr::Unary(op, a) => {
            let a = eval(a, vars);
            match op {
                Unary::Neg => -a,
                Unary::Exp => exp(a),
                Unary::Sigmoid => sigmoid(a),
                Unary::Silu => a * sigmoid(a),
                Unary::Tanh => tanh(a),
                Unary::Gelu => gelu(a),
                Unary::Sqrt => a.sqrt(),
                Unary::Rsqrt => 1.0 / a.sqrt(),
                Unary::Abs => a.abs(),
                Unary::Log => log(a),
                Unary::Softplus => softplus(a),
                Unary::GeluErf => gelu_erf(a),
                Unary::Bf16 => round_bf16(a),
                Unary::F16 => round_f16(a),
            }
        }
        Expr::Binary(op, a, b) => {
            let (a, b) = (eval(a, vars), eval(b, vars));
            match op {
                Binary::Add => a + b,
                Binary::Sub => a - b,
                Binary::Mul => a * b,
                Binary::Div => a / b,
                Binary::Min => min(a, b),
                Binary::Max => max(a, b),
            }
        }
        Expr::Select(compare, parts) => {
            let [a, b, x, y] = parts.each_ref().map(|part| eval(part, vars));
            if compare.holds(a, b) { x } else { y }
        }
    }
}

const ONE: u32 = 1.0f32.to_bits();
/// 2^23, the first power from which on every number is whole.
const WHOLE: f32 = 8_388_608.0;

fn horner(coefficients: &[f32], x: f32) -> f32 {
    coefficients[1..].iter().fold(coefficients[0], |p, c| p.mul_add(x, *c))
}

/// The natural logarithm of a normal number.
fn log_normal(x: f32) -> f32 {
    let t = x.to_bits().wrapping_add(ONE - LOG_LOW);
    let exponent = (t >> 23) as f32 - 127.0;
    log_parts(t, exponent)
}

/// The logarithm of `2^exponent` times what the low bits of `t` say.
fn log_parts(t: u32, exponent: f32) -> f32 {
    let f = f32::from_bits((t & 0x007f_ffff).wrapping_add(LOG_LOW)) - 1.0;
    let q = horner(&LOG_POLY, f).mul_add(f, -0.5);
    let r = exponent.mul_add(LN2_LO, (f * f) * q);
    exponent.mul_add(LN2_HI, f + r)
}

/// The natural logarithm.
pub fn log(x: f32) -> f32 {
    if x.is_nan() || x < 0.0 {
        return f32::NAN;
    }
    if x == 0.0 {
        return f32::NEG_INFINITY;
    }
    if x == f32::INFINITY {
        return x;
    }
    if x >= f32::MIN_POSITIVE {
        return log_normal(x);
    }
    let t = (x * WHOLE).to_bits().wrapping_add(ONE - LOG_LOW);
    log_parts(t, (t >> 23) as f32 - 127.0 - 23.0)
}

/// `log(1 + exp(x))`.
pub fn softplus(x: f32) -> f32 {
    if x.is_nan() {
        return x;
    }
    let u = exp(-x.abs());
    let w = 1.0 + u;
    // The error of the addition.
    let rest = (u - (w - 1.0)) / w;
    let tail = log_normal(w) + rest;
    if x > 0.0 { x + tail } else { tail }
}

/// `x` times the normal distribution's share below `x`.
pub fn gelu_erf(x: f32) -> f32 {
    if x < -TAIL_END {
        return -0.0;
    }
    let a = min(x.abs(), TAIL_END);
    let y = (a - TAIL_MIDDLE) / (a + TAIL_MIDDLE);
    let square = a * a;
    let rest = a.mul_add(a, -square);
    let power = exp(-0.5 * square);
    let power = (-0.5 * rest).mul_add(power, power);
    let tail = horner(&TAIL_POLY, y) * power;
    x * if x > 0.0 { 1.0 - tail } else { tail }
}
