//! Expressions, one element at a time.

use super::functions::{gelu_erf, log, softplus};
use super::num::{exp, gelu, max, min, round_bf16, round_f16, sigmoid, tanh};
use kernmill_kernels_gen::expr::{Binary, Expr, Unary};

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
