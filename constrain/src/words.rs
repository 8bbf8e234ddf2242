//! Words of grammars in Lark's syntax.

use std::iter::Peekable;
use std::str::Chars;

/// A word of a grammar.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum GrammarWord {
    /// A name of a rule or terminal.
    Name(String),
    /// Characters of a string, and whether their case is of no matter.
    Text(String, bool),
    /// An expression as it stands.
    Expression(String),
    /// A whole number.
    Number(u32),
    /// A character that means something.
    Mark(char),
    /// `..`
    Range,
    /// `->`
    Arrow,
    /// The end of a line.
    Line,
}

/// The words of a grammar, without comments.
///
/// # Errors
/// When a string or an expression has no end, or a character is not of the syntax.
pub(crate) fn tokens(grammar: &str) -> Result<Vec<GrammarWord>, String> {
    let mut chars = grammar.chars().peekable();
    let mut tokens = Vec::new();
    while let Some(c) = chars.next() {
        tokens.push(match c {
            ' ' | '\t' | '\r' => continue,
            '\n' => GrammarWord::Line,
            '#' => {
                comment(&mut chars);
                continue;
            }
            '/' if chars.peek() == Some(&'/') => {
                comment(&mut chars);
                continue;
            }
            '/' => expression(&mut chars)?,
            '"' => {
                let text = string(&mut chars)?;
                GrammarWord::Text(text, chars.next_if_eq(&'i').is_some())
            }
            '-' if chars.next_if_eq(&'>').is_some() => GrammarWord::Arrow,
            '.' if chars.next_if_eq(&'.').is_some() => GrammarWord::Range,
            c if c.is_ascii_digit() => {
                let mut digits = c.to_string();
                while let Some(digit) = chars.next_if(char::is_ascii_digit) {
                    digits.push(digit);
                }
                GrammarWord::Number(digits.parse().map_err(|_| format!("{digits} is too large a number"))?)
            }
            c if c.is_ascii_alphabetic() || c == '_' => {
                let mut name = c.to_string();
                while let Some(c) = chars.next_if(|c| c.is_ascii_alphanumeric() || *c == '_') {
                    name.push(c);
                }
                GrammarWord::Name(name)
            }
            '-' | '.' | '|' | '(' | ')' | '[' | ']' | '?' | '*' | '+' | '~' | ':' | '%' | '!' | ',' => {
                GrammarWord::Mark(c)
            }
            other => return Err(format!("`{other}` is not read here")),
        });
    }
    Ok(tokens)
}

fn comment(chars: &mut Peekable<Chars<'_>>) {
    while chars.next_if(|c| *c != '\n').is_some() {}
}

/// An expression behind its first slash, with its flags.
fn expression(chars: &mut Peekable<Chars<'_>>) -> Result<GrammarWord, String> {
    let (mut text, mut is_in_class) = (String::new(), false);
    loop {
        match chars.next() {
            None | Some('\n') => return Err(format!("the expression /{text} has no end")),
            Some('/') if !is_in_class => break,
            Some('\\') => match chars.next() {
                // A slash is escaped for Lark only.
                Some('/') => text.push('/'),
                escaped => {
                    text.push('\\');
                    text.extend(escaped);
                }
            },
            Some(c) => {
                is_in_class = (is_in_class || c == '[') && c != ']';
                text.push(c);
            }
        }
    }
    let mut flags = String::new();
    while let Some(flag) = chars.next_if(|c| "imslux".contains(*c)) {
        if !"lu".contains(flag) {
            flags.push(flag);
        }
    }
    Ok(GrammarWord::Expression(format!("(?{flags}:{text})")))
}

/// The characters of a string behind its first quote.
fn string(chars: &mut Peekable<Chars<'_>>) -> Result<String, String> {
    let mut text = String::new();
    let unended = |text: &str| format!("the string \"{text} has no end");
    loop {
        let c = match chars.next() {
            None | Some('\n') => return Err(unended(&text)),
            Some('"') => return Ok(text),
            Some('\\') => match chars.next().ok_or_else(|| unended(&text))? {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                'f' => '\x0c',
                'b' => '\x08',
                kind @ ('x' | 'u' | 'U') => {
                    let digits: String = chars
                        .by_ref()
                        .take(if kind == 'x' {
                            2
                        } else if kind == 'u' {
                            4
                        } else {
                            8
                        })
                        .collect();
                    let code = u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32);
                    code.ok_or_else(|| format!("`\\{kind}{digits}` is no character"))?
                }
                other => other,
            },
            Some(c) => c,
        };
        text.push(c);
    }
}

/// A word as messages show it.
pub(crate) fn shown(token: Option<&GrammarWord>) -> String {
    match token {
        None | Some(GrammarWord::Line) => "the end of a line".to_owned(),
        Some(GrammarWord::Name(text)) => format!("`{text}`"),
        Some(GrammarWord::Text(text, _)) => format!("the string {text:?}"),
        Some(GrammarWord::Expression(_)) => "an expression".to_owned(),
        Some(GrammarWord::Number(number)) => number.to_string(),
        Some(GrammarWord::Mark(mark)) => format!("`{mark}`"),
        Some(GrammarWord::Range) => "`..`".to_owned(),
        Some(GrammarWord::Arrow) => "`->`".to_owned(),
    }
}
