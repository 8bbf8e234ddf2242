//! The text of elementwise expressions, as specs and graphs have it.

mod parse;
#[cfg(test)]
mod tests;

use kernmill_kernels_gen::expr::Expr;
pub use parse::ExprError;

/// A function that stands for an expression of its parameters: calls of it parse to that expression.
#[derive(Clone, Debug, PartialEq)]
pub struct ExprFunction {
    /// Name.
    pub name: String,
    /// Names of the parameters.
    pub params: Vec<String>,
    /// The expression; variable i is parameter i.
    pub body: Expr,
    /// The computation, in words.
    pub doc: String,
}

/// Parses `text`, whose variables are `vars` in order.
///
/// Grammar: `+ - * /`, unary `-`, parentheses, numbers, variables, and the calls of
/// [`kernmill_kernels_gen::expr::Unary::NAMED`], `min(a, b)`, `max(a, b)`, `clamp(x, low, high)`, `select(a <
/// b, x, y)` with any of [`kernmill_kernels_gen::expr::Compare::SIGNS`]. [`Expr::text`] is the way back.
///
/// # Errors
/// Where parsing stopped and what was expected there.
pub fn parse(text: &str, vars: &[&str]) -> Result<Expr, ExprError> {
    parse_with(text, vars, &[])
}

/// Parses an expression as [`parse()`] does, where calls of `functions` are allowed too; the tree has their
/// expressions.
///
/// # Errors
/// As [`parse()`].
pub fn parse_with(text: &str, vars: &[&str], functions: &[ExprFunction]) -> Result<Expr, ExprError> {
    parse::parse(text, vars, functions)
}

/// Names of all functions that can be called whatever comes with the text.
pub fn function_names() -> impl Iterator<Item = &'static str> {
    parse::names()
}
