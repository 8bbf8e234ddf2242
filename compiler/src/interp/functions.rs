//! The functions of expressions that nothing else uses.

use super::num::{exp, min};
use kernmill_plan::numeric::{LN2_HI, LN2_LO, LOG_LOW, LOG_POLY, TAIL_END, TAIL_MIDDLE, TAIL_POLY};

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
