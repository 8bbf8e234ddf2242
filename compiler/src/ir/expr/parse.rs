//! From text to an expression: one pass over it, by recursive descent.

use super::ExprFunction;
use kernmill_kernels_gen::expr::{Binary, Compare, Expr, Unary};
use kernmill_os::suggest::nearest;
use std::fmt;

/// Why an expression does not parse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExprError {
    /// Byte offset in the text.
    pub offset: usize,
    /// Bytes from there that are wrong; 0 where something is missing.
    pub len: usize,
    /// The expected text.
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

pub(super) fn parse(text: &str, vars: &[&str], functions: &[ExprFunction]) -> Result<Expr, ExprError> {
    let mut parser = ExprParser { text, pos: 0, vars, functions, depth: 0, operators: 0 };
    let expr = parser.sum()?;
    parser.skip_space();
    if parser.pos < text.len() {
        return Err(parser.error_behind("an operator or the end of the expression"));
    }
    Ok(expr)
}

pub(super) fn names() -> impl Iterator<Item = &'static str> {
    Callee::names(&[])
}

/// Something that can be called.
#[derive(Clone, Copy)]
enum Callee<'a> {
    Unary(Unary),
    Binary(Binary),
    Clamp,
    Select,
    /// A function that comes with the text.
    Own(&'a ExprFunction),
}

impl<'a> Callee<'a> {
    /// Functions that are no [`Unary::NAMED`], and another name of one that is.
    const OTHERS: [(&'static str, Callee<'static>); 5] = [
        ("min", Callee::Binary(Binary::Min)),
        ("max", Callee::Binary(Binary::Max)),
        ("clamp", Callee::Clamp),
        ("select", Callee::Select),
        ("gelu_tanh", Callee::Unary(Unary::Gelu)),
    ];

    fn names(functions: &'a [ExprFunction]) -> impl Iterator<Item = &'a str> {
        let unary = Unary::NAMED.iter().map(|(name, _)| *name);
        let others = Callee::OTHERS.iter().map(|(name, _)| *name);
        unary.chain(others).chain(functions.iter().map(|function| function.name.as_str()))
    }

    fn named(name: &str, functions: &'a [ExprFunction]) -> Option<Callee<'a>> {
        let unary = Unary::NAMED.iter().find(|(other, _)| *other == name);
        let other = Callee::OTHERS.iter().find(|(other, _)| *other == name);
        let own = functions.iter().find(|function| function.name == name);
        let unary = unary.map(|(_, op)| Callee::Unary(*op));
        unary.or(other.map(|(_, callee)| *callee)).or(own.map(Callee::Own))
    }

    /// Arguments of the function as they are written.
    fn signature(self) -> String {
        match self {
            Callee::Unary(_) => "(x)".to_owned(),
            Callee::Binary(_) => "(a, b)".to_owned(),
            Callee::Clamp => "(x, low, high)".to_owned(),
            Callee::Select => "(a < b, x, y)".to_owned(),
            Callee::Own(function) => format!("({})", function.params.join(", ")),
        }
    }

    /// Arguments; of a selection, those that are compared are two.
    fn arity(self) -> usize {
        match self {
            Callee::Unary(_) => 1,
            Callee::Binary(_) => 2,
            Callee::Clamp => 3,
            Callee::Select => 4,
            Callee::Own(function) => function.params.len(),
        }
    }
}

struct ExprParser<'a> {
    text: &'a str,
    pos: usize,
    vars: &'a [&'a str],
    functions: &'a [ExprFunction],
    depth: usize,
    operators: usize,
}

impl ExprParser<'_> {
    fn error(&self, expected: &str) -> ExprError {
        self.error_over(0, expected)
    }

    /// The error covers the next `len` bytes.
    fn error_over(&self, len: usize, expected: &str) -> ExprError {
        ExprError { offset: self.pos, len, message: format!("expected {expected}") }
    }

    /// Something other than an operator follows a complete expression.
    fn error_behind(&self, expected: &str) -> ExprError {
        let rest = &self.text[self.pos..];
        let sign = Compare::SIGNS.iter().find(|(sign, _)| rest.starts_with(sign));
        match sign {
            Some((sign, _)) => self.error_over(
                sign.len(),
                &format!("{expected}; a comparison stands in `select(a {sign} b, x, y)` only"),
            ),
            None => self.error(expected),
        }
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
        if self.eat(c) { Ok(()) } else { Err(self.error_behind(&format!("`{c}`"))) }
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
            _ => Err(self.error_over(len, "a finite number")),
        }
    }

    fn call(&mut self, name: &str, word: usize) -> Result<Expr, ExprError> {
        let Some(callee) = Callee::named(name, self.functions) else { return Err(self.unknown(name)) };
        self.pos += word;
        self.expect('(')?;
        let mut args = Vec::new();
        let mut compare = None;
        if matches!(callee, Callee::Select) {
            args.push(self.sum()?);
            compare = Some(self.compare()?);
        }
        args.push(self.sum()?);
        let arity = callee.arity();
        let found = |args: &[Expr]| args.len() - usize::from(compare.is_some());
        while self.eat(',') {
            if args.len() == arity {
                self.pos -= 1;
                return Err(self.error_over(1, &format!("`)`: it is {name}{}", callee.signature())));
            }
            args.push(self.sum()?);
        }
        self.skip_space();
        if args.len() < arity && self.text[self.pos..].starts_with(')') {
            let message = format!("`,`: it is {name}{}, found {} of them", callee.signature(), found(&args));
            return Err(self.error_over(1, &message));
        }
        self.expect(if args.len() < arity { ',' } else { ')' })?;
        let binary = |op, a, b| Expr::Binary(op, Box::new(a), Box::new(b));
        let mut rest = args.into_iter();
        let mut next = || rest.next().expect("as many as the function has");
        Ok(match callee {
            Callee::Unary(op) => Expr::Unary(op, Box::new(next())),
            Callee::Binary(op) => binary(op, next(), next()),
            Callee::Clamp => {
                let above = binary(Binary::Max, next(), next());
                binary(Binary::Min, above, next())
            }
            Callee::Select => {
                let parts = [next(), next(), next(), next()];
                Expr::Select(compare.unwrap_or(Compare::Less), Box::new(parts))
            }
            Callee::Own(function) => return self.expand(function, rest.as_slice()),
        })
    }

    /// The expression of a function, its arguments in place.
    fn expand(&mut self, function: &ExprFunction, args: &[Expr]) -> Result<Expr, ExprError> {
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

    fn compare(&mut self) -> Result<Compare, ExprError> {
        self.skip_space();
        let rest = &self.text[self.pos..];
        match Compare::SIGNS.iter().find(|(sign, _)| rest.starts_with(sign)) {
            Some((sign, compare)) => {
                self.pos += sign.len();
                Ok(*compare)
            }
            None => Err(self.error("a comparison (<, <=, >, >=, ==): it is select(a < b, x, y)")),
        }
    }

    fn unknown(&self, name: &str) -> ExprError {
        let functions: Vec<&str> = Callee::names(self.functions).collect();
        let known = functions.iter().copied().chain(self.vars.iter().copied());
        let near = nearest(name, known).map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        self.error_over(
            name.len(),
            &format!(
                "a variable ({}) or a function ({}), found `{name}`{near}",
                self.vars.join(", "),
                functions.join(", ")
            ),
        )
    }
}
