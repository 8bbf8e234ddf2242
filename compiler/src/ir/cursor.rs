//! Words, numbers and names of a line of graph text: what the parser and the ops read their parts with.

use super::{Rows, Type};
use crate::ir::expr;
use kernmill_kernels_gen::expr::Expr;
use kernmill_plan::format::WeightFormat;
use kernmill_plan::kv::KvRow;
use std::str::FromStr;

type Result<T> = std::result::Result<T, String>;

/// The message about a name that is not one of the known `what`.
pub fn unknown(what: &str, found: &str) -> String {
    format!("unknown {what} `{found}`")
}

/// A place in a line of graph text.
pub struct LineCursor<'t> {
    rest: &'t str,
}

impl<'t> LineCursor<'t> {
    /// The start of a line.
    pub fn new(line: &'t str) -> LineCursor<'t> {
        LineCursor { rest: line }
    }

    fn take_while(&mut self, keep: impl Fn(char) -> bool) -> &'t str {
        self.rest = self.rest.trim_start();
        let end = self.rest.find(|c| !keep(c)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }

    /// A run of letters, digits and `_.-+`.
    pub fn word(&mut self) -> Result<&'t str> {
        let word = self.take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '+'));
        if word.is_empty() { Err(format!("expected a word at `{}`", self.rest)) } else { Ok(word) }
    }

    /// A number.
    pub fn number<T: FromStr>(&mut self) -> Result<T> {
        let word = self.word()?;
        word.parse().map_err(|_| format!("expected a {}, found `{word}`", std::any::type_name::<T>()))
    }

    /// Whether `c` comes next.
    pub fn peek(&mut self, c: char) -> bool {
        self.rest = self.rest.trim_start();
        self.rest.starts_with(c)
    }

    /// Takes `token` if it comes next.
    pub fn eat(&mut self, token: &str) -> bool {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// Takes `token`, which must come next.
    pub fn expect(&mut self, token: &str) -> Result<()> {
        if self.eat(token) { Ok(()) } else { Err(format!("expected `{token}` at `{}`", self.rest)) }
    }

    /// `name value`
    pub fn field<T: FromStr>(&mut self, name: &str) -> Result<T> {
        self.expect(name)?;
        self.number()
    }

    /// `name=value`
    pub fn attribute<T: FromStr>(&mut self, name: &str) -> Result<T> {
        self.expect(name)?;
        self.expect("=")?;
        self.number()
    }

    /// A name behind its sigil.
    pub fn name(&mut self, sigil: char) -> Result<&'t str> {
        self.expect(sigil.encode_utf8(&mut [0; 4]))?;
        self.word()
    }

    /// A quoted text.
    pub fn string(&mut self) -> Result<String> {
        self.expect("\"")?;
        let mut text = String::new();
        let mut chars = self.rest.char_indices();
        while let Some((i, c)) = chars.next() {
            match c {
                '"' => {
                    self.rest = &self.rest[i + 1..];
                    return Ok(text);
                }
                '\\' => match chars.next() {
                    Some((_, 'n')) => text.push('\n'),
                    Some((_, c)) => text.push(c),
                    None => break,
                },
                _ => text.push(c),
            }
        }
        Err("expected `\"` at the end of the string".into())
    }

    /// A weight format by its name.
    pub fn format(&mut self) -> Result<WeightFormat> {
        let word = self.word()?;
        WeightFormat::from_name(word).ok_or_else(|| unknown("format", word))
    }

    /// The type of a value.
    pub fn ty(&mut self) -> Result<Type> {
        let kind = self.word()?;
        self.expect("[")?;
        let rows = match self.word()? {
            "T" if self.eat("*") => Rows::Slots(self.number()?),
            "T" => Rows::Tokens,
            "R" => Rows::LogitRows,
            other => return Err(format!("expected rows T, T*k or R, found `{other}`")),
        };
        let cols = if self.eat(",") { Some(self.number()?) } else { None };
        self.expect("]")?;
        match (kind, rows, cols) {
            ("ids", Rows::Tokens, None) => Ok(Type::TokenIds),
            ("f32", _, Some(cols)) => Ok(Type::F32(rows, cols)),
            ("q8", _, Some(cols)) => Ok(Type::Q8(rows, cols)),
            ("q8x2", _, Some(cols)) => Ok(Type::Q8x2(rows, cols)),
            ("f16", _, Some(cols)) => Ok(Type::F16(rows, cols)),
            ("bf16", _, Some(cols)) => Ok(Type::Bf16(rows, cols)),
            ("routing", Rows::Tokens, Some(k)) => {
                u32::try_from(k).map(Type::Routing).map_err(|_| "routing too wide".to_string())
            }
            (_, Rows::Tokens, Some(cols)) => match KvRow::from_name(kind) {
                Some(row) => Ok(Type::Kv(row, cols)),
                None => Err(unknown("type", kind)),
            },
            _ => Err(unknown("type", kind)),
        }
    }

    /// A quoted expression of `vars`.
    pub fn expr(&mut self, vars: &[&str]) -> Result<Expr> {
        expr::parse(&self.string()?, vars).map_err(|error| format!("expression: {error}"))
    }

    /// Checks that nothing is left of the line.
    pub fn end(&mut self) -> Result<()> {
        let rest = self.rest.trim();
        if rest.is_empty() { Ok(()) } else { Err(format!("expected the end of the line at `{rest}`")) }
    }
}

/// A text in quotes, as [`LineCursor::string`] reads it.
pub fn quote(text: &str) -> String {
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            _ => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
