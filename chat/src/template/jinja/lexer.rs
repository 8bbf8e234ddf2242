//! The source of a template as tokens.

use super::text::is_space;
use std::sync::Arc;

/// A part of a template's source.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum TemplateToken {
    /// Text between tags.
    Data(Arc<str>),
    /// `{{` or `}}`, `{%` or `%}`.
    Tag(&'static str),
    Name(Arc<str>),
    Text(Arc<str>),
    Int(i64),
    Float(f64),
    /// An operator or a bracket.
    Sign(&'static str),
    /// The end of the source.
    End,
}

/// Signs of expressions, longer ones before those that they begin with.
const SIGNS: [&str; 26] = [
    "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[", "]", "(", ")", "{", "}", ">", "<",
    "=", ".", ":", "|", ",", ";",
];

/// The problem of a template's source, and its line from 1.
pub(super) type Wrong = (String, u32);

/// Tokens of a template, each with its line from 1. A newline at the end of the source is left out, and so
/// are newlines behind blocks and spaces before them.
pub(super) fn tokens(source: &str) -> Result<Vec<(TemplateToken, u32)>, Wrong> {
    let source = source.replace("\r\n", "\n").replace('\r', "\n");
    let source = source.strip_suffix('\n').unwrap_or(&source);
    let mut lexer = Lexer { source, at: 0, line: 1, counted: 0, starts_line: true, tokens: Vec::new() };
    lexer.run()?;
    let line = lexer.line_here();
    lexer.tokens.push((TemplateToken::End, line));
    Ok(lexer.tokens)
}

struct Lexer<'s> {
    source: &'s str,
    at: usize,
    /// Line at the byte `counted`.
    line: u32,
    counted: usize,
    /// Whether what comes begins a line, as far as what was left out tells.
    starts_line: bool,
    tokens: Vec<(TemplateToken, u32)>,
}

impl<'s> Lexer<'s> {
    fn rest(&self) -> &'s str {
        &self.source[self.at..]
    }

    fn line_here(&mut self) -> u32 {
        let lines = self.source[self.counted..self.at].bytes().filter(|b| *b == b'\n').count();
        self.line += lines as u32;
        self.counted = self.at;
        self.line
    }

    fn add(&mut self, token: TemplateToken) {
        let line = self.line_here();
        self.tokens.push((token, line));
    }

    fn wrong<T>(&mut self, message: impl Into<String>) -> Result<T, Wrong> {
        Err((message.into(), self.line_here()))
    }

    fn run(&mut self) -> Result<(), Wrong> {
        loop {
            let rest = self.rest();
            let found = rest
                .match_indices('{')
                .find(|(at, _)| matches!(rest.as_bytes().get(at + 1), Some(b'{' | b'%' | b'#')));
            let Some((start, _)) = found else {
                self.data(rest);
                self.at = self.source.len();
                return Ok(());
            };
            let kind = rest.as_bytes()[start + 1];
            let sign = rest.as_bytes().get(start + 2).copied().filter(|sign| matches!(sign, b'-' | b'+'));
            let text = self.stripped(&rest[..start], sign, kind != b'{');
            self.data(text);
            self.at += start + 2 + usize::from(sign.is_some());
            match kind {
                b'#' => {
                    let Some(length) = self.rest().find("#}") else {
                        return self.wrong("a comment has no end");
                    };
                    let sign = self.rest()[..length].chars().next_back();
                    self.at += length;
                    // `{#-#}` has one sign, and it belongs to the beginning.
                    self.close(sign.filter(|sign| matches!(sign, '-' | '+')), true);
                }
                b'%' if self.is_raw() => self.raw()?,
                b'%' => self.inside("%}")?,
                _ => self.inside("}}")?,
            }
        }
    }

    fn data(&mut self, text: &str) {
        if !text.is_empty() {
            self.add(TemplateToken::Data(text.into()));
        }
    }

    /// Text before a tag without the space that the tag strips.
    fn stripped<'t>(&self, text: &'t str, sign: Option<u8>, is_block: bool) -> &'t str {
        match sign {
            Some(b'-') => text.trim_end_matches(is_space),
            None if is_block => {
                let start = text.rfind('\n').map_or(0, |at| at + 1);
                let is_line = start > 0 || self.starts_line;
                if is_line && text[start..].chars().all(is_space) { &text[..start] } else { text }
            }
            _ => text,
        }
    }

    /// Passes over the end of a tag, which is two bytes, and the space that it strips.
    fn close(&mut self, sign: Option<char>, is_block: bool) {
        self.at += 2;
        let rest = self.rest();
        if sign == Some('-') {
            self.at += rest.len() - rest.trim_start_matches(is_space).len();
        } else if is_block && sign.is_none() && rest.starts_with('\n') {
            self.at += 1;
        }
        self.starts_line = self.source[..self.at].ends_with('\n');
    }

    /// The length of a tag of one word, from behind its beginning to behind its end, and the sign of its end.
    fn word_tag(text: &str, word: &str) -> Option<(usize, Option<char>)> {
        let rest = text.trim_start_matches(is_space).strip_prefix(word)?.trim_start_matches(is_space);
        let sign = rest.chars().next().filter(|c| matches!(c, '-' | '+'));
        let rest = &rest[sign.map_or(0, char::len_utf8)..];
        rest.starts_with("%}").then(|| (text.len() - rest.len(), sign))
    }

    fn is_raw(&self) -> bool {
        Lexer::word_tag(self.rest(), "raw").is_some_and(|(_, sign)| sign != Some('+'))
    }

    fn raw(&mut self) -> Result<(), Wrong> {
        let Some((length, sign)) = Lexer::word_tag(self.rest(), "raw") else { return Ok(()) };
        self.at += length;
        self.close(sign, false);
        let rest = self.rest();
        let end = rest.match_indices("{%").find_map(|(start, _)| {
            let sign = rest[start + 2..].chars().next().filter(|c| matches!(c, '-' | '+'));
            let inner = start + 2 + sign.map_or(0, char::len_utf8);
            let (length, close) = Lexer::word_tag(&rest[inner..], "endraw")?;
            Some((start, sign.map(|c| c as u8), inner + length, close))
        });
        let Some((start, sign, length, close)) = end else {
            return self.wrong("`raw` has no `endraw`");
        };
        let text = self.stripped(&rest[..start], sign, true);
        self.data(text);
        self.at += length;
        self.close(close, true);
        Ok(())
    }

    /// Tokens of a tag up to its end.
    fn inside(&mut self, end: &'static str) -> Result<(), Wrong> {
        self.add(TemplateToken::Tag(if end == "%}" { "{%" } else { "{{" }));
        let mut open = Vec::new();
        loop {
            let rest = self.rest();
            let sign = rest.chars().next().filter(|c| *c == '-' || *c == '+' && end == "%}");
            if open.is_empty() && rest[sign.map_or(0, char::len_utf8)..].starts_with(end) {
                self.add(TemplateToken::Tag(end));
                self.at += sign.map_or(0, char::len_utf8);
                self.close(sign, end == "%}");
                return Ok(());
            }
            let Some(c) = rest.chars().next() else {
                return self.wrong(format!("a tag has no end, expected `{end}`"));
            };
            if is_space(c) {
                self.at += c.len_utf8();
            } else if c.is_ascii_digit() {
                self.number()?;
            } else if c == '_' || c.is_alphabetic() {
                let is_part = |c: char| c == '_' || c.is_alphanumeric();
                let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
                self.add(TemplateToken::Name(rest[..length].into()));
                self.at += length;
            } else if c == '"' || c == '\'' {
                self.text(c)?;
            } else if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
                match *sign {
                    "(" => open.push(")"),
                    "[" => open.push("]"),
                    "{" => open.push("}"),
                    ")" | "]" | "}" if open.pop() != Some(sign) => {
                        return self.wrong(format!("unexpected `{sign}`"));
                    }
                    _ => {}
                }
                self.add(TemplateToken::Sign(sign));
                self.at += sign.len();
            } else {
                return self.wrong(format!("unexpected character {c:?}"));
            }
        }
    }

    fn number(&mut self) -> Result<(), Wrong> {
        let rest = self.rest();
        let digits = |text: &str| text.find(|c: char| !c.is_ascii_digit() && c != '_').unwrap_or(text.len());
        for (prefix, radix) in [("0x", 16), ("0o", 8), ("0b", 2)] {
            let Some(digits) = rest.get(..2).filter(|start| start.eq_ignore_ascii_case(prefix)) else {
                continue;
            };
            let body = &rest[digits.len()..];
            let length = body.find(|c: char| !c.is_digit(radix) && c != '_').unwrap_or(body.len());
            let Ok(number) = i64::from_str_radix(&body[..length].replace('_', ""), radix) else {
                return self.wrong("a number is none, or too large");
            };
            self.add(TemplateToken::Int(number));
            self.at += 2 + length;
            return Ok(());
        }
        let whole = digits(rest);
        let mut length = whole;
        // A name or a number behind a dot is an attribute: `a.0.b`.
        let follows_dot = self.source[..self.at].ends_with('.');
        if !follows_dot {
            let fraction = rest[length..].strip_prefix('.').map_or(0, digits);
            length += if fraction > 0 { fraction + 1 } else { 0 };
            if let Some(exponent) = rest[length..].strip_prefix(['e', 'E']) {
                let sign = usize::from(exponent.starts_with(['+', '-']));
                let count = digits(&exponent[sign..]);
                length += if count > 0 { 1 + sign + count } else { 0 };
            }
        }
        let text = rest[..length].replace('_', "");
        let token = if length > whole {
            text.parse().ok().map(TemplateToken::Float)
        } else {
            text.parse().ok().map(TemplateToken::Int)
        };
        let Some(token) = token else { return self.wrong("a number is too large") };
        self.add(token);
        self.at += length;
        Ok(())
    }

    /// A quoted text with Python's escapes.
    fn text(&mut self, quote: char) -> Result<(), Wrong> {
        let mut rest = self.rest()[1..].chars();
        let mut text = String::new();
        loop {
            match rest.next() {
                None => return self.wrong(format!("a text has no end, expected {quote}")),
                Some(c) if c == quote => break,
                Some('\\') => {
                    let Some(c) = rest.next() else { continue };
                    let width = match c {
                        'x' => 2,
                        'u' => 4,
                        'U' => 8,
                        _ => 0,
                    };
                    let simple = match c {
                        '\n' => Some(""),
                        '\\' => Some("\\"),
                        '\'' => Some("'"),
                        '"' => Some("\""),
                        'a' => Some("\u{7}"),
                        'b' => Some("\u{8}"),
                        'f' => Some("\u{c}"),
                        'n' => Some("\n"),
                        'r' => Some("\r"),
                        't' => Some("\t"),
                        'v' => Some("\u{b}"),
                        _ => None,
                    };
                    if let Some(simple) = simple {
                        text.push_str(simple);
                    } else if width > 0 {
                        let digits = rest.as_str().get(..width).unwrap_or_default();
                        let Some(c) = u32::from_str_radix(digits, 16).ok().and_then(char::from_u32) else {
                            return self
                                .wrong(format!("`\\{c}` needs {width} hexadecimal digits of a character"));
                        };
                        text.push(c);
                        rest = rest.as_str()[width..].chars();
                    } else if c.is_digit(8) {
                        let mut code = c.to_digit(8).unwrap_or(0);
                        for _ in 0..2 {
                            let Some(digit) = rest.clone().next().and_then(|c| c.to_digit(8)) else { break };
                            code = code * 8 + digit;
                            rest.next();
                        }
                        text.extend(char::from_u32(code));
                    } else if c == 'N' {
                        return self.wrong("characters by name (`\\N`) are not known");
                    } else {
                        text.push('\\');
                        text.push(c);
                    }
                }
                Some(c) => text.push(c),
            }
        }
        self.add(TemplateToken::Text(text.into()));
        self.at = self.source.len() - rest.as_str().len();
        Ok(())
    }
}
