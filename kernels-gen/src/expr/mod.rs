//! Elementwise expressions: parsed from specs, interpreted by the reference, compiled to vector code.

pub(crate) mod lower;
mod parse;

pub use parse::ExprError;

/// An expression over numbered variables. Every operator rounds to f32; nothing is contracted or reassociated.
#[derive(Clone, Debug, PartialEq)]
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
    /// Of the tanh form.
    Gelu,
    Sqrt,
    Rsqrt,
    Abs,
    Log,
    Softplus,
    /// Of the error function.
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
    /// Every function by its name in expressions (`Neg` is written `-x`). `gelu_tanh` is another name of `gelu`.
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

/// A function that stands for an expression of its parameters: calls of it parse to that expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// Name.
    pub name: String,
    /// Names of the parameters.
    pub params: Vec<String>,
    /// The expression; variable i is parameter i.
    pub body: Expr,
    /// What it computes, in words.
    pub doc: String,
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
    /// Parses `text`, whose variables are `vars` in order.
    ///
    /// Grammar: `+ - * /`, unary `-`, parentheses, numbers, variables, and the calls of [`Unary::NAMED`], `min(a, b)`,
    /// `max(a, b)`, `clamp(x, low, high)`, `select(a < b, x, y)` with any of [`Compare::SIGNS`].
    ///
    /// # Errors
    /// Where parsing stopped and what was expected there.
    pub fn parse(text: &str, vars: &[&str]) -> Result<Expr, ExprError> {
        Expr::parse_with(text, vars, &[])
    }

    /// As [`Expr::parse`], where calls of `functions` are allowed too; the tree has their expressions.
    ///
    /// # Errors
    /// As [`Expr::parse`].
    pub fn parse_with(text: &str, vars: &[&str], functions: &[Function]) -> Result<Expr, ExprError> {
        parse::parse(text, vars, functions)
    }

    /// Names of all functions that can be called whatever comes with the text.
    pub fn function_names() -> impl Iterator<Item = &'static str> {
        parse::names()
    }

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
    fn count_vars(&self, counts: &mut [usize]) {
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

    /// The expression as text that [`Expr::parse`] reads back to the same tree.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_parses_back_to_the_same_tree() {
        let vars = ["gate", "up"];
        for text in [
            "(clamp(up, -7, 7) + 1) * (min(gate, 7) * sigmoid(1.702 * min(gate, 7)))",
            "silu(gate) * up",
            "-gate - -up / 2e-3",
            "select(gate + 1 <= up, bf16(gate), select(gate>up, gelu_erf(abs(up)), -softplus(log(f16(up)))))",
            "select(gate == 0, 1, 2) + select(gate < 0, 1, 2) * select(gate>=up,1,2)",
        ] {
            let expr = Expr::parse(text, &vars).unwrap();
            assert_eq!(Expr::parse(&expr.text(&vars), &vars).unwrap(), expr, "{text}");
        }
        let one = |text| Expr::parse(text, &vars).unwrap();
        assert_eq!(one("gelu_tanh(up)"), one("gelu(up)"));
        assert_ne!(one("gelu_erf(up)"), one("gelu(up)"));
        assert_eq!(one("select(up < 1, gate, -up) + 1").operators(), 3);
    }

    #[test]
    fn substitution_reaches_every_part() {
        let expr = Expr::parse("select(a < b, exp(a), a + b)", &["a", "b"]).unwrap();
        let swapped = expr.substitute(&[Expr::Var(1), Expr::Const(2.0)]);
        assert_eq!(swapped, Expr::parse("select(b < 2, exp(b), b + 2)", &["a", "b"]).unwrap());
    }
}
