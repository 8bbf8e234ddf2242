//! Expressions, one element at a time.

use super::num::{exp, gelu, max, min, sigmoid, tanh};
use kernmill_kernels::expr::{Binary, Expr, Unary};

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
    }
}
