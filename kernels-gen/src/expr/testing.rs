//! Expressions for tests, written with operators.

use super::{Binary, Expr, Unary};
use std::ops::{Add, Div, Mul, Sub};

/// Variable i.
pub fn var(i: usize) -> Expr {
    Expr::Var(i)
}

/// A constant.
pub fn num(value: f32) -> Expr {
    Expr::Const(value)
}

/// A function of `x`.
pub fn call(function: Unary, x: Expr) -> Expr {
    Expr::Unary(function, Box::new(x))
}

/// An operator of two operands.
pub fn binary(op: Binary, a: Expr, b: Expr) -> Expr {
    Expr::Binary(op, Box::new(a), Box::new(b))
}

impl Add for Expr {
    type Output = Expr;
    fn add(self, other: Expr) -> Expr {
        binary(Binary::Add, self, other)
    }
}

impl Sub for Expr {
    type Output = Expr;
    fn sub(self, other: Expr) -> Expr {
        binary(Binary::Sub, self, other)
    }
}

impl Mul for Expr {
    type Output = Expr;
    fn mul(self, other: Expr) -> Expr {
        binary(Binary::Mul, self, other)
    }
}

impl Div for Expr {
    type Output = Expr;
    fn div(self, other: Expr) -> Expr {
        binary(Binary::Div, self, other)
    }
}
