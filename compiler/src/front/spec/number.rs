//! Numbers in specs: literals, or expressions over dims such as `"heads * head_dim"`.

use std::ops::Range;

/// A number: whole as long as every step is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// A whole number.
    Int(i64),
    /// Any other finite number.
    Float(f64),
}

impl Number {
    /// The number as a float.
    pub fn to_f64(self) -> f64 {
        match self {
            Number::Int(i) => i as f64,
            Number::Float(f) => f,
        }
    }
}

impl std::fmt::Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Number::Int(i) => write!(f, "{i}"),
            Number::Float(x) => write!(f, "{x}"),
        }
    }
}

/// Why an expression has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumberError {
    /// Bytes of the expression.
    pub span: Range<usize>,
    /// The problem.
    pub message: String,
    /// The expected form.
    pub expected: String,
    /// The unknown name, if that is the trouble.
    pub unknown: Option<String>,
}

/// Expressions nest at most this deep.
const MAX_DEPTH: usize = 32;

/// The value of `text`: `+ - * /`, parentheses, numbers, `sqrt(x)`, `min(a, b)`, `max(a, b)` and the names
/// that `lookup` knows.
///
/// A division of whole numbers is whole if it leaves no remainder, else a float.
///
/// # Errors
/// Where and why there is no value.
pub fn evaluate(text: &str, lookup: &dyn Fn(&str) -> Option<Number>) -> Result<Number, NumberError> {
    let mut parser = NumberParser { text, pos: 0, depth: 0, lookup };
    let value = parser.sum()?;
    parser.skip_space();
    if parser.pos < text.len() {
        return Err(parser.error("an operator (+ - * /) or the end of the expression"));
    }
    Ok(value)
}

struct NumberParser<'a> {
    text: &'a str,
    pos: usize,
    depth: usize,
    lookup: &'a dyn Fn(&str) -> Option<Number>,
}

impl NumberParser<'_> {
    fn sum(&mut self) -> Result<Number, NumberError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.error(&format!("at most {MAX_DEPTH} levels of nesting")));
        }
        let start = self.pos;
        let mut left = self.product()?;
        while let Some(op) = self.eat_any(&['+', '-']) {
            let right = self.product()?;
            left = self.apply(start, op, left, right)?;
        }
        self.depth -= 1;
        Ok(left)
    }

    fn product(&mut self) -> Result<Number, NumberError> {
        let start = self.pos;
        let mut left = self.factor()?;
        while let Some(op) = self.eat_any(&['*', '/']) {
            let right = self.factor()?;
            left = self.apply(start, op, left, right)?;
        }
        Ok(left)
    }

    fn factor(&mut self) -> Result<Number, NumberError> {
        let start = self.pos;
        if self.eat_any(&['-']).is_some() {
            self.depth += 1;
            if self.depth > MAX_DEPTH {
                return Err(self.error(&format!("at most {MAX_DEPTH} levels of nesting")));
            }
            let value = self.factor()?;
            self.depth -= 1;
            return self.apply(start, '-', Number::Int(0), value);
        }
        if self.eat_any(&['(']).is_some() {
            let value = self.sum()?;
            self.expect(')')?;
            return Ok(value);
        }
        self.skip_space();
        let rest = &self.text[self.pos..];
        match rest.chars().next() {
            Some(c) if c.is_ascii_digit() || c == '.' => self.literal(),
            Some(c) if c.is_ascii_alphabetic() || c == '_' => self.name(),
            _ => Err(self.error("a number, a dim or `(`")),
        }
    }

    fn literal(&mut self) -> Result<Number, NumberError> {
        let rest = &self.text.as_bytes()[self.pos..];
        let exponent = |b: u8| matches!(b, b'e' | b'E');
        let mut len = 0;
        while len < rest.len()
            && (rest[len].is_ascii_digit()
                || matches!(rest[len], b'.' | b'_')
                || exponent(rest[len])
                || (matches!(rest[len], b'-' | b'+') && len > 0 && exponent(rest[len - 1])))
        {
            len += 1;
        }
        let text = self.text[self.pos..self.pos + len].replace('_', "");
        let value = match (text.parse::<i64>(), text.parse::<f64>()) {
            (Ok(i), _) => Number::Int(i),
            (_, Ok(f)) if f.is_finite() => Number::Float(f),
            _ => return Err(self.error("a finite number")),
        };
        self.pos += len;
        Ok(value)
    }

    fn name(&mut self) -> Result<Number, NumberError> {
        let start = self.pos;
        let rest = &self.text[start..];
        let len = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        let name = &rest[..len];
        self.pos += len;
        if let Some(value) = (self.lookup)(name) {
            return Ok(value);
        }
        let arity = match name {
            "sqrt" => 1,
            "min" | "max" => 2,
            _ => {
                return Err(NumberError {
                    span: start..self.pos,
                    message: format!("`{name}` is not a dim"),
                    expected: "expected a dim".into(),
                    unknown: Some(name.to_owned()),
                });
            }
        };
        self.expect('(')?;
        let a = self.sum()?;
        if arity == 1 {
            self.expect(')')?;
            return self.finite(start, a.to_f64().sqrt());
        }
        self.expect(',')?;
        let b = self.sum()?;
        self.expect(')')?;
        let a_first = if name == "min" { a.to_f64() <= b.to_f64() } else { a.to_f64() >= b.to_f64() };
        Ok(if a_first { a } else { b })
    }

    fn apply(&self, start: usize, op: char, a: Number, b: Number) -> Result<Number, NumberError> {
        if let (Number::Int(a), Number::Int(b)) = (a, b) {
            let whole = match op {
                '+' => a.checked_add(b),
                '-' => a.checked_sub(b),
                '*' => a.checked_mul(b),
                _ if b != 0 && a.checked_rem(b) == Some(0) => a.checked_div(b),
                _ => None,
            };
            match whole {
                Some(value) => return Ok(Number::Int(value)),
                None if op != '/' => return Err(self.range(start, "the value leaves 64 bits")),
                None => {}
            }
        }
        let (a, b) = (a.to_f64(), b.to_f64());
        let value = match op {
            '+' => a + b,
            '-' => a - b,
            '*' => a * b,
            _ => a / b,
        };
        self.finite(start, value)
    }

    fn finite(&self, start: usize, value: f64) -> Result<Number, NumberError> {
        if value.is_finite() {
            Ok(Number::Float(value))
        } else {
            Err(self.range(start, "not a finite number"))
        }
    }

    fn range(&self, start: usize, message: &str) -> NumberError {
        NumberError {
            span: start..self.pos,
            message: message.to_owned(),
            expected: "expected a finite number of at most 64 bits".into(),
            unknown: None,
        }
    }

    fn error(&self, expected: &str) -> NumberError {
        let end = self.text[self.pos..].chars().next().map_or(self.pos, |c| self.pos + c.len_utf8());
        let found = &self.text[self.pos..end];
        let found = if found.is_empty() { "the end".to_owned() } else { format!("`{found}`") };
        NumberError {
            span: self.pos..end,
            message: format!("the expression does not parse: found {found}"),
            expected: format!("expected {expected}"),
            unknown: None,
        }
    }

    fn skip_space(&mut self) {
        let rest = &self.text[self.pos..];
        self.pos += rest.len() - rest.trim_start().len();
    }

    fn eat_any(&mut self, any: &[char]) -> Option<char> {
        self.skip_space();
        let c = self.text[self.pos..].chars().next().filter(|c| any.contains(c))?;
        self.pos += c.len_utf8();
        Some(c)
    }

    fn expect(&mut self, c: char) -> Result<(), NumberError> {
        match self.eat_any(&[c]) {
            Some(_) => Ok(()),
            None => Err(self.error(&format!("`{c}`"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Result<Number, NumberError> {
        evaluate(text, &|name| (name == "heads").then_some(Number::Int(7)))
    }

    #[test]
    fn whole_numbers_stay_whole() {
        assert_eq!(value("heads * 2 + 10 / 5"), Ok(Number::Int(16)));
        assert_eq!(value("-(heads - 9) * max(2, 3)"), Ok(Number::Int(6)));
        assert_eq!(value("heads / 2"), Ok(Number::Float(3.5)));
        assert_eq!(value("1 / sqrt(4)"), Ok(Number::Float(0.5)));
        assert_eq!(value("1e-5"), Ok(Number::Float(1e-5)));
    }

    #[test]
    fn errors_say_where() {
        for (text, span) in [
            ("heads *", 7..7),
            ("head", 0..4),
            ("1 / 0", 0..5),
            ("9223372036854775807 + 1", 0..23),
            ("2 2", 2..3),
        ] {
            assert_eq!(value(text).unwrap_err().span, span, "{text}");
        }
        assert!(value(&"(".repeat(100_000)).is_err());
        assert!(value(&"-".repeat(100_000)).is_err());
    }
}
