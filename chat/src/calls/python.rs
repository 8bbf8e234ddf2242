//! Calls as Python has them: names, and arguments by keyword whose values are literals, as JSON.

use super::format::NAME_BYTES;
use super::object::unquoted;
use serde_json::Value;

/// The result of reading a text where something of a call is expected.
#[derive(Debug, PartialEq)]
pub(super) enum PythonStep<T> {
    /// Nothing certain yet.
    Unfinished,
    /// Something else.
    Other,
    /// It, and the byte behind it.
    Whole(T, usize),
}

/// Deepest nesting of lists and dictionaries in a value.
const DEPTH: usize = 64;

/// Characters that end the name of an argument. Others stand in it, though Python has fewer.
const ENDS: [char; 9] = ['=', ',', '(', ')', '[', ']', '{', '}', '\n'];

/// Whether a text may be the name of an argument.
pub(crate) fn is_keyword(text: &str) -> bool {
    !text.is_empty() && text.len() < NAME_BYTES && text.trim() == text && !text.contains(ENDS)
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '$')
}

/// The name that a text begins with, up to the bracket behind it.
pub(super) fn name(text: &str) -> PythonStep<String> {
    let length = text.find(|c| !is_word(c)).unwrap_or(text.len());
    let rest = text[length..].trim_start_matches(' ');
    match rest.chars().next() {
        _ if length >= NAME_BYTES => PythonStep::Other,
        None => PythonStep::Unfinished,
        Some('(') if length > 0 => PythonStep::Whole(text[..length].to_owned(), text.len() - rest.len() + 1),
        Some(_) => PythonStep::Other,
    }
}

/// Whether a list that a text begins with may have calls without a mark before it: the first is one of a
/// function that `is_declared` knows. `None` while that is open.
pub(super) fn begins_list(text: &str, is_declared: impl Fn(&str) -> bool) -> Option<bool> {
    let Some(rest) = text.strip_prefix('[') else { return Some(false) };
    let rest = rest.trim_start();
    match name(rest) {
        PythonStep::Unfinished => None,
        PythonStep::Whole(name, end) if is_declared(&name) => begins_arguments(&rest[end..]),
        _ => Some(false),
    }
}

/// Whether what stands behind the bracket of a call is an argument, or the end of the call; `None` while that
/// is open.
pub(super) fn begins_arguments(text: &str) -> Option<bool> {
    let text = text.trim_start();
    let length = text.find(ENDS).unwrap_or(text.len());
    match &text.as_bytes()[length..] {
        _ if length >= NAME_BYTES => Some(false),
        [] | [b'='] => None,
        [b'=', next, ..] => Some(is_keyword(text[..length].trim_end()) && *next != b'='),
        [b')', ..] => Some(length == 0),
        _ => Some(false),
    }
}

/// The argument that a text begins with, as a key and the JSON of its value. It ends before a comma or a
/// bracket.
pub(super) fn argument(text: &str) -> PythonStep<(String, String)> {
    let length = text.find(ENDS).unwrap_or(text.len());
    if length == text.len() {
        return if length < NAME_BYTES { PythonStep::Unfinished } else { PythonStep::Other };
    }
    let key = text[..length].trim_end();
    let (Some(value), true) = (text[length..].strip_prefix('='), is_keyword(key)) else {
        return PythonStep::Other;
    };
    let space = value.len() - value.trim_start().len();
    match literal(value.trim_start(), 0) {
        PythonStep::Unfinished => PythonStep::Unfinished,
        PythonStep::Other => PythonStep::Other,
        PythonStep::Whole(json, end) => {
            let end = text.len() - value.len() + space + end;
            match text[end..].trim_start().chars().next() {
                None => PythonStep::Unfinished,
                Some(',' | ')') => PythonStep::Whole((key.to_owned(), json), end),
                Some(_) => PythonStep::Other,
            }
        }
    }
}

/// The literal that a text begins with, as JSON.
fn literal(text: &str, depth: usize) -> PythonStep<String> {
    match text.chars().next() {
        None => PythonStep::Unfinished,
        Some(_) if depth > DEPTH => PythonStep::Other,
        Some(quote @ ('"' | '\'')) => string(text, quote),
        Some('[') => items(text, ']', depth),
        Some('(') => items(text, ')', depth),
        Some('{') => items(text, '}', depth),
        Some(_) => word(text),
    }
}

/// A number, a constant, or a string without quotes.
fn word(text: &str) -> PythonStep<String> {
    let Some(end) = text.find([',', ')', ']', '}', ':', '(', '[', '{', '"', '\'', '\n']) else {
        return PythonStep::Unfinished;
    };
    let json = match text[..end].trim() {
        "" => return PythonStep::Other,
        "True" => "true".to_owned(),
        "False" => "false".to_owned(),
        "None" => "null".to_owned(),
        // A number of any size stays as it is written.
        other if serde_json::from_str::<Value>(other).is_ok() => other.to_owned(),
        other => Value::from(other).to_string(),
    };
    PythonStep::Whole(json, end)
}

/// A list, a tuple or a dictionary.
fn items(text: &str, close: char, depth: usize) -> PythonStep<String> {
    let is_object = close == '}';
    let mut json = String::from(if is_object { "{" } else { "[" });
    let mut at = 1;
    let skip = |at: usize| text.len() - text[at..].trim_start().len();
    loop {
        at = skip(at);
        if text[at..].starts_with(close) {
            json.push(if is_object { '}' } else { ']' });
            return PythonStep::Whole(json, at + 1);
        }
        if json.len() > 1 {
            json.push_str(", ");
        }
        if is_object {
            let quote = text[at..].chars().next();
            let key = match quote {
                None => PythonStep::Unfinished,
                Some(quote @ ('"' | '\'')) => string(&text[at..], quote),
                Some(_) => PythonStep::Other,
            };
            let PythonStep::Whole(key, end) = key else { return key };
            at = skip(at + end);
            json.push_str(&key);
            json.push_str(": ");
            match text[at..].chars().next() {
                None => return PythonStep::Unfinished,
                Some(':') => at = skip(at + 1),
                Some(_) => return PythonStep::Other,
            }
        }
        match literal(&text[at..], depth + 1) {
            PythonStep::Whole(item, end) => {
                json.push_str(&item);
                at = skip(at + end);
            }
            other => return other,
        }
        match text[at..].chars().next() {
            None => return PythonStep::Unfinished,
            Some(',') => at += 1,
            Some(c) if c == close => {}
            Some(_) => return PythonStep::Other,
        }
    }
}

/// A string. Its end is a quote with nothing of the string behind it: models write quotes that they should
/// have escaped.
fn string(text: &str, quote: char) -> PythonStep<String> {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        if c == quote && !is_escaped {
            match text[at + 1..].trim_start().chars().next() {
                None => return PythonStep::Unfinished,
                Some(',' | ')' | ']' | '}' | ':') => {
                    let json = match unquoted(&text[..=at]) {
                        Some(text) if quote == '"' => text,
                        _ => unescaped(&text[1..at]),
                    };
                    return PythonStep::Whole(Value::from(json).to_string(), at + 1);
                }
                Some(_) => {}
            }
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    PythonStep::Unfinished
}

/// The text of a string of Python. An escape that means nothing is what it looks like.
fn unescaped(text: &str) -> String {
    let mut units = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let (made, length) = if c == '\\' { escape(rest) } else { (Some(u32::from(c)), c.len_utf8()) };
        match made.map(char::from_u32) {
            Some(Some(c)) => units.extend(c.encode_utf16(&mut [0; 2]).iter()),
            // Half of a character, which is whole if the other one follows.
            Some(None) => units.extend(made.and_then(|unit| u16::try_from(unit).ok())),
            None => {}
        }
        rest = &rest[length..];
    }
    String::from_utf16_lossy(&units)
}

/// The character of the escape that a text begins with, and its bytes.
fn escape(text: &str) -> (Option<u32>, usize) {
    let Some(c) = text[1..].chars().next() else { return (Some(u32::from('\\')), 1) };
    let digits = |count: usize| {
        let digits = text.get(2..2 + count).filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))?;
        u32::from_str_radix(digits, 16).ok().map(|unit| (Some(unit), 2 + count))
    };
    let plain = (Some(u32::from('\\')), 1);
    match c {
        'n' => (Some(0x0A), 2),
        't' => (Some(0x09), 2),
        'r' => (Some(0x0D), 2),
        'b' => (Some(0x08), 2),
        'f' => (Some(0x0C), 2),
        '\\' | '\'' | '"' => (Some(u32::from(c)), 2),
        '\n' => (None, 2),
        'x' => digits(2).unwrap_or(plain),
        'u' => digits(4).unwrap_or(plain),
        _ => plain,
    }
}
