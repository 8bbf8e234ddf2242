//! Elementwise expressions: trees, and the vector code that they are compiled to.

pub(crate) mod lower;
#[cfg(test)]
pub(crate) mod testing;

use std::hash::{Hash, Hasher};

/// An expression over numbered variables. Every operator rounds to f32; nothing is contracted or
/// reassociated.
///
/// Two expressions are equal when their trees and the bits of their constants are: +0 and -0 differ.
#[derive(Clone, Debug)]
pub enum Expr {
    /// Input number i.
    Var(usize),
    /// A constant.
    Const(f32),
    /// One-argument function.
    Unary(Unary, Box<Expr>),
    /// Two-argument operator.
    Binary(Binary, Box<Expr>, Box<Expr>),
    /// `[a, b, x, y]`: x where a compares with b as said, y elsewhere.
    Select(Compare, Box<[Expr; 4]>),
}

/// Functions of one argument; docs/dev/numerics.md defines each, and says how accurate it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Unary {
    Neg,
    Exp,
    Sigmoid,
    Silu,
    Tanh,
    /// GELU in its tanh form.
    Gelu,
    Sqrt,
    Rsqrt,
    Abs,
    Log,
    Softplus,
    /// GELU by the error function.
    GeluErf,
    /// To bf16 and back.
    Bf16,
    /// To f16 and back.
    F16,
}

/// Operators of two arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Binary {
    Add,
    Sub,
    Mul,
    Div,
    Min,
    Max,
}

/// Conditions of a selection; none holds of a NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Compare {
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Equal,
}

impl Unary {
    /// Every function by its name in expressions (`Neg` is written `-x`). `gelu_tanh` is another name of
    /// `gelu`.
    pub const NAMED: [(&'static str, Unary); 13] = [
        ("exp", Unary::Exp),
        ("sigmoid", Unary::Sigmoid),
        ("silu", Unary::Silu),
        ("tanh", Unary::Tanh),
        ("gelu", Unary::Gelu),
        ("sqrt", Unary::Sqrt),
        ("rsqrt", Unary::Rsqrt),
        ("abs", Unary::Abs),
        ("log", Unary::Log),
        ("softplus", Unary::Softplus),
        ("gelu_erf", Unary::GeluErf),
        ("bf16", Unary::Bf16),
        ("f16", Unary::F16),
    ];
}

impl Compare {
    /// Every condition by its sign; a sign stands before those that it starts with.
    pub const SIGNS: [(&'static str, Compare); 5] = [
        ("<=", Compare::LessEqual),
        (">=", Compare::GreaterEqual),
        ("==", Compare::Equal),
        ("<", Compare::Less),
        (">", Compare::Greater),
    ];

    /// Whether it holds.
    pub fn holds(self, a: f32, b: f32) -> bool {
        match self {
            Compare::Less => a < b,
            Compare::LessEqual => a <= b,
            Compare::Greater => a > b,
            Compare::GreaterEqual => a >= b,
            Compare::Equal => a == b,
        }
    }
}

impl Expr {
    /// Operands, in the order in which they are written.
    pub fn children(&self) -> Vec<&Expr> {
        match self {
            Expr::Var(_) | Expr::Const(_) => Vec::new(),
            Expr::Unary(_, a) => vec![a],
            Expr::Binary(_, a, b) => vec![a, b],
            Expr::Select(_, parts) => parts.iter().collect(),
        }
    }

    /// How often each of `counts.len()` variables stands in the tree, added to `counts`.
    pub fn count_vars(&self, counts: &mut [usize]) {
        if let Expr::Var(i) = self {
            counts.iter_mut().skip(*i).take(1).for_each(|count| *count += 1);
        }
        self.children().into_iter().for_each(|child| child.count_vars(counts));
    }

    /// Functions and operators in the tree, each as often as it stands there.
    pub fn operators(&self) -> usize {
        let inner: usize = self.children().into_iter().map(Expr::operators).sum();
        inner + usize::from(!matches!(self, Expr::Var(_) | Expr::Const(_)))
    }

    /// Appends words that tell this tree from every other, down to the sign of a zero.
    pub(crate) fn encode(&self, words: &mut Vec<u64>) {
        words.extend(match self {
            Expr::Var(i) => [0, *i as u64],
            Expr::Const(c) => [1, u64::from(c.to_bits())],
            Expr::Unary(op, _) => [2, *op as u64],
            Expr::Binary(op, ..) => [3, *op as u64],
            Expr::Select(compare, _) => [4, *compare as u64],
        });
        self.children().into_iter().for_each(|child| child.encode(words));
    }

    /// The expression with `replacements[i]` for variable i.
    pub fn substitute(&self, replacements: &[Expr]) -> Expr {
        let inner = |child: &Expr| child.substitute(replacements);
        match self {
            Expr::Var(i) => replacements[*i].clone(),
            Expr::Const(c) => Expr::Const(*c),
            Expr::Unary(op, a) => Expr::Unary(*op, Box::new(inner(a))),
            Expr::Binary(op, a, b) => Expr::Binary(*op, Box::new(inner(a)), Box::new(inner(b))),
            Expr::Select(compare, parts) => Expr::Select(*compare, Box::new(parts.each_ref().map(inner))),
        }
    }

    /// The expression as text, variable i as `vars[i]`: the text of an expression in a spec.
    pub fn text(&self, vars: &[&str]) -> String {
        match self {
            Expr::Var(i) => vars.get(*i).map_or_else(|| format!("x{i}"), ToString::to_string),
            Expr::Const(c) => format!("{c:?}"),
            Expr::Unary(Unary::Neg, a) => format!("(-{})", a.text(vars)),
            Expr::Unary(u, a) => {
                let name = Unary::NAMED.iter().find(|(_, x)| x == u).map_or("?", |(n, _)| n);
                format!("{name}({})", a.text(vars))
            }
            Expr::Binary(op, a, b) => {
                let (a, b) = (a.text(vars), b.text(vars));
                match op {
                    Binary::Add => format!("({a} + {b})"),
                    Binary::Sub => format!("({a} - {b})"),
                    Binary::Mul => format!("({a} * {b})"),
                    Binary::Div => format!("({a} / {b})"),
                    Binary::Min => format!("min({a}, {b})"),
                    Binary::Max => format!("max({a}, {b})"),
                }
            }
            Expr::Select(compare, parts) => {
                let sign = Compare::SIGNS.iter().find(|(_, x)| x == compare).map_or("?", |(sign, _)| sign);
                let [a, b, x, y] = parts.each_ref().map(|part| part.text(vars));
                format!("select({a} {sign} {b}, {x}, {y})")
            }
        }
    }
}

impl Expr {
    /// The words of [`Expr::encode`].
    fn words(&self) -> Vec<u64> {
        let mut words = Vec::new();
        self.encode(&mut words);
        words
    }
}

impl PartialEq for Expr {
    fn eq(&self, other: &Expr) -> bool {
        self.words() == other.words()
    }
}

impl Eq for Expr {}

impl Hash for Expr {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.words().hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::testing::{num, var};

    #[test]
    fn equality_is_that_of_the_bits() {
        assert_eq!(num(f32::NAN), num(f32::NAN));
        assert_ne!(num(0.0), num(-0.0));
        assert_ne!(num(1.0), var(1));
        assert_ne!(var(0) - var(1), var(1) - var(0));
        assert_eq!(var(0) - num(2.0), var(0) - num(2.0));
        let known = std::collections::HashSet::from([var(0) * num(0.0)]);
        assert!(known.contains(&(var(0) * num(0.0))) && !known.contains(&(var(0) * num(-0.0))));
    }
}
