//! Elementwise expressions: parsed from specs, interpreted by the reference, compiled to vector code.

use std::fmt;

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
}

/// Functions of one argument; docs/numerics.md defines each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Unary {
    Neg,
    Exp,
    Sigmoid,
    Silu,
    Tanh,
    Gelu,
    Sqrt,
    Rsqrt,
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

impl Unary {
    /// Every function by its name in expressions (`Neg` is written `-x`).
    pub const NAMED: [(&'static str, Unary); 7] = [
        ("exp", Unary::Exp),
        ("sigmoid", Unary::Sigmoid),
        ("silu", Unary::Silu),
        ("tanh", Unary::Tanh),
        ("gelu", Unary::Gelu),
        ("sqrt", Unary::Sqrt),
        ("rsqrt", Unary::Rsqrt),
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

/// Why an expression does not parse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExprError {
    /// Byte offset in the text.
    pub offset: usize,
    /// What was expected.
    pub message: String,
}

impl fmt::Display for ExprError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {}: {}", self.offset, self.message)
    }
}

impl std::error::Error for ExprError {}

/// Expressions nest at most this deep.
const MAX_DEPTH: usize = 64;
/// Operators at most: chains nest without parentheses, and trees are walked by recursion.
const MAX_OPERATORS: usize = 1024;

impl Expr {
    /// Parses `text`, whose variables are `vars` in order.
    ///
    /// Grammar: `+ - * /`, unary `-`, parentheses, numbers, variables, and the calls of [`Unary::NAMED`], `min(a, b)`,
    /// `max(a, b)`, `clamp(x, lo, hi)`.
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
        let mut parser = Parser { text, pos: 0, vars, functions, depth: 0, operators: 0 };
        let expr = parser.sum()?;
        parser.skip_space();
        if parser.pos < text.len() {
            return Err(parser.error("an operator or the end of the expression"));
        }
        Ok(expr)
    }

    /// Appends words that tell this tree from every other, down to the sign of a zero.
    pub(crate) fn encode(&self, words: &mut Vec<u64>) {
        match self {
            Expr::Var(i) => words.extend([0, *i as u64]),
            Expr::Const(c) => words.extend([1, u64::from(c.to_bits())]),
            Expr::Unary(op, a) => {
                words.extend([2, *op as u64]);
                a.encode(words);
            }
            Expr::Binary(op, a, b) => {
                words.extend([3, *op as u64]);
                a.encode(words);
                b.encode(words);
            }
        }
    }

    /// How often each of `counts.len()` variables stands in the tree, added to `counts`.
    fn count_vars(&self, counts: &mut [usize]) {
        match self {
            Expr::Var(i) => counts.iter_mut().skip(*i).take(1).for_each(|count| *count += 1),
            Expr::Const(_) => {}
            Expr::Unary(_, a) => a.count_vars(counts),
            Expr::Binary(_, a, b) => {
                a.count_vars(counts);
                b.count_vars(counts);
            }
        }
    }

    /// Functions and operators in the tree, each as often as it stands there.
    pub fn operators(&self) -> usize {
        match self {
            Expr::Var(_) | Expr::Const(_) => 0,
            Expr::Unary(_, a) => 1 + a.operators(),
            Expr::Binary(_, a, b) => 1 + a.operators() + b.operators(),
        }
    }

    /// The expression with `replacements[i]` for variable i.
    pub fn substitute(&self, replacements: &[Expr]) -> Expr {
        match self {
            Expr::Var(i) => replacements[*i].clone(),
            Expr::Const(c) => Expr::Const(*c),
            Expr::Unary(op, a) => Expr::Unary(*op, Box::new(a.substitute(replacements))),
            Expr::Binary(op, a, b) => {
                Expr::Binary(*op, Box::new(a.substitute(replacements)), Box::new(b.substitute(replacements)))
            }
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
        }
    }
}

struct Parser<'a> {
    text: &'a str,
    pos: usize,
    vars: &'a [&'a str],
    functions: &'a [Function],
    depth: usize,
    operators: usize,
}

impl Parser<'_> {
    fn error(&self, expected: &str) -> ExprError {
        ExprError { offset: self.pos, message: format!("expected {expected}") }
    }

    fn skip_space(&mut self) {
        let rest = &self.text[self.pos..];
        self.pos += rest.len() - rest.trim_start().len();
    }

    fn eat(&mut self, c: char) -> bool {
        self.skip_space();
        let found = self.text[self.pos..].starts_with(c);
        if found {
            self.pos += c.len_utf8();
        }
        found
    }

    fn expect(&mut self, c: char) -> Result<(), ExprError> {
        if self.eat(c) { Ok(()) } else { Err(self.error(&format!("`{c}`"))) }
    }

    fn count_operator(&mut self) -> Result<(), ExprError> {
        self.operators += 1;
        if self.operators > MAX_OPERATORS {
            return Err(self.error(&format!("at most {MAX_OPERATORS} operators")));
        }
        Ok(())
    }

    fn sum(&mut self) -> Result<Expr, ExprError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.error(&format!("at most {MAX_DEPTH} levels of nesting")));
        }
        let mut left = self.product()?;
        loop {
            let op = if self.eat('+') {
                Binary::Add
            } else if self.eat('-') {
                Binary::Sub
            } else {
                self.depth -= 1;
                return Ok(left);
            };
            self.count_operator()?;
            left = Expr::Binary(op, Box::new(left), Box::new(self.product()?));
        }
    }

    fn product(&mut self) -> Result<Expr, ExprError> {
        let mut left = self.factor()?;
        loop {
            let op = if self.eat('*') {
                Binary::Mul
            } else if self.eat('/') {
                Binary::Div
            } else {
                return Ok(left);
            };
            self.count_operator()?;
            left = Expr::Binary(op, Box::new(left), Box::new(self.factor()?));
        }
    }

    fn factor(&mut self) -> Result<Expr, ExprError> {
        let mut negations = 0;
        while self.eat('-') {
            self.count_operator()?;
            negations += 1;
        }
        let mut expr = self.atom()?;
        for _ in 0..negations {
            expr = match expr {
                Expr::Const(c) => Expr::Const(-c),
                other => Expr::Unary(Unary::Neg, Box::new(other)),
            };
        }
        Ok(expr)
    }

    fn atom(&mut self) -> Result<Expr, ExprError> {
        if self.eat('(') {
            let inner = self.sum()?;
            self.expect(')')?;
            return Ok(inner);
        }
        self.skip_space();
        let rest = &self.text[self.pos..];
        let word =
            rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_').len();
        match rest.chars().next() {
            Some(c) if c.is_ascii_digit() || c == '.' => self.number(),
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                let name = &rest[..word];
                if let Some(i) = self.vars.iter().position(|v| *v == name) {
                    self.pos += word;
                    return Ok(Expr::Var(i));
                }
                self.call(name, word)
            }
            _ => Err(self.error("a number, a variable, a function or `(`")),
        }
    }

    fn number(&mut self) -> Result<Expr, ExprError> {
        let rest = &self.text.as_bytes()[self.pos..];
        let mut len = 0;
        while len < rest.len()
            && (rest[len].is_ascii_digit()
                || matches!(rest[len], b'.' | b'e' | b'E')
                || (matches!(rest[len], b'-' | b'+') && len > 0 && matches!(rest[len - 1], b'e' | b'E')))
        {
            len += 1;
        }
        let parsed = self.text[self.pos..self.pos + len].parse::<f32>();
        match parsed {
            Ok(value) if value.is_finite() => {
                self.pos += len;
                Ok(Expr::Const(value))
            }
            _ => Err(self.error("a finite number")),
        }
    }

    /// The expression of a function, its arguments in place.
    fn expand(&mut self, function: &Function, args: &[Expr]) -> Result<Expr, ExprError> {
        let mut counts = vec![0; args.len()];
        function.body.count_vars(&mut counts);
        let more = |(count, arg): (&usize, &Expr)| count.saturating_sub(1).saturating_mul(arg.operators());
        let more: usize =
            counts.iter().zip(args).map(more).fold(function.body.operators(), usize::saturating_add);
        self.operators = self.operators.saturating_add(more);
        if self.operators > MAX_OPERATORS {
            let message = format!("at most {MAX_OPERATORS} operators, those of `{}` included", function.name);
            return Err(self.error(&message));
        }
        Ok(function.body.substitute(args))
    }

    fn call(&mut self, name: &str, word: usize) -> Result<Expr, ExprError> {
        let functions = self.functions;
        let function = functions.iter().find(|function| function.name == name);
        let arity = match name {
            "min" | "max" => 2,
            "clamp" => 3,
            _ if Unary::NAMED.iter().any(|(n, _)| *n == name) => 1,
            _ if function.is_some() => function.map_or(0, |function| function.params.len()),
            _ => {
                let own = functions.iter().map(|function| function.name.as_str());
                let known: Vec<&str> =
                    Unary::NAMED.iter().map(|(n, _)| *n).chain(["min", "max", "clamp"]).chain(own).collect();
                return Err(self.error(&format!(
                    "a variable ({}) or a function ({}), found `{name}`",
                    self.vars.join(", "),
                    known.join(", ")
                )));
            }
        };
        self.pos += word;
        self.expect('(')?;
        let mut args = vec![self.sum()?];
        while args.len() < arity {
            self.expect(',')?;
            args.push(self.sum()?);
        }
        self.expect(')')?;
        if let Some(function) = function {
            return self.expand(function, &args);
        }
        let mut args = args.into_iter();
        let mut next = || Box::new(args.next().expect("as many as the arity"));
        let (a, unary) = (next(), Unary::NAMED.iter().find(|(n, _)| *n == name));
        Ok(match (name, unary) {
            (_, Some((_, unary))) => Expr::Unary(*unary, a),
            ("min", _) => Expr::Binary(Binary::Min, a, next()),
            ("max", _) => Expr::Binary(Binary::Max, a, next()),
            _ => {
                let (lo, hi) = (next(), next());
                Expr::Binary(Binary::Min, Box::new(Expr::Binary(Binary::Max, a, lo)), hi)
            }
        })
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
        ] {
            let expr = Expr::parse(text, &vars).unwrap();
            assert_eq!(Expr::parse(&expr.text(&vars), &vars).unwrap(), expr, "{text}");
        }
    }

    #[test]
    fn functions_stand_for_their_expressions() {
        let function = |name: &str, params: &[&str], body: &str, known: &[Function]| Function {
            name: name.to_owned(),
            params: params.iter().map(ToString::to_string).collect(),
            body: Expr::parse_with(body, params, known).unwrap(),
            doc: String::new(),
        };
        let square = function("square", &["x"], "x * x", &[]);
        let norm =
            function("norm", &["x", "y"], "sqrt(square(x) + square(y))", std::slice::from_ref(&square));
        let known = [square, norm];
        let parse = |text: &str| Expr::parse_with(text, &["a", "b"], &known);
        let plain = Expr::parse("sqrt((a + 1) * (a + 1) + b * b)", &["a", "b"]).unwrap();
        assert_eq!(parse("norm(a + 1, b)").unwrap(), plain);
        assert_eq!(parse("norm(a)").unwrap_err().message, "expected `,`");
        let error = parse("cube(a)").unwrap_err();
        assert!(error.message.ends_with("clamp, square, norm), found `cube`"), "{}", error.message);
        let deep = format!("{}a{}", "square(".repeat(40), ")".repeat(40));
        let error = parse(&deep).unwrap_err();
        assert_eq!(error.message, "expected at most 1024 operators, those of `square` included");
    }

    #[test]
    fn errors_say_where_and_what() {
        for (text, offset) in [("gate +", 6), ("foo(gate)", 0), ("min(gate)", 8), ("gate up", 5), ("1e99", 0)]
        {
            assert_eq!(Expr::parse(text, &["gate", "up"]).unwrap_err().offset, offset, "{text}");
        }
        for unit in ["(", "-", "x+", "x/"] {
            assert!(Expr::parse(&(unit.repeat(100_000) + "x"), &["x"]).is_err(), "{unit}");
        }
    }
}
