//! Calls as Python has them: names, and arguments by keyword whose values are literals, as JSON.

use super::format::NAME_BYTES;
use serde_json::Value;

/// The result of reading a text where something of a call is expected.
#[derive(Debug, PartialEq)]
pub(super) enum ReadStep<T> {
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
pub(super) fn name(text: &str) -> ReadStep<String> {
    let length = text.find(|c| !is_word(c)).unwrap_or(text.len());
    let rest = text[length..].trim_start_matches(' ');
    match rest.chars().next() {
        _ if length >= NAME_BYTES => ReadStep::Other,
        None => ReadStep::Unfinished,
        Some('(') if length > 0 => ReadStep::Whole(text[..length].to_owned(), text.len() - rest.len() + 1),
        Some(_) => ReadStep::Other,
    }
}

/// Whether a list that a text begins with may have calls without a mark before it: the first is one of a
/// function that `is_declared` knows. `None` while that is open.
pub(super) fn begins_list(text: &str, is_declared: impl Fn(&str) -> bool) -> Option<bool> {
    let Some(rest) = text.strip_prefix('[') else { return Some(false) };
    let rest = rest.trim_start();
    match name(rest) {
        ReadStep::Unfinished => None,
        ReadStep::Whole(name, end) if is_declared(&name) => begins_arguments(&rest[end..]),
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

/// The value of an argument by keyword.
#[derive(Debug, PartialEq)]
pub(super) enum KeywordValue {
    /// JSON of it.
    Json(String),
    /// A string, which follows up to this quote.
    String(&'static str),
}

/// The argument that a text begins with: its key and its value. A value that is no string ends before a comma
/// or a bracket.
pub(super) fn argument(text: &str) -> ReadStep<(String, KeywordValue)> {
    let length = text.find(ENDS).unwrap_or(text.len());
    if length == text.len() {
        return if length < NAME_BYTES { ReadStep::Unfinished } else { ReadStep::Other };
    }
    let key = text[..length].trim_end();
    let (Some(value), true) = (text[length..].strip_prefix('='), is_keyword(key)) else {
        return ReadStep::Other;
    };
    let value = value.trim_start();
    let at = text.len() - value.len();
    match quote(value) {
        ReadStep::Unfinished => return ReadStep::Unfinished,
        ReadStep::Whole(quote, end) => {
            return ReadStep::Whole((key.to_owned(), KeywordValue::String(quote)), at + end);
        }
        ReadStep::Other => {}
    }
    let (json, end) = match literal(value, 0) {
        ReadStep::Unfinished => return ReadStep::Unfinished,
        ReadStep::Other => return ReadStep::Other,
        ReadStep::Whole(json, end) => (json, at + end),
    };
    match text[end..].trim_start().chars().next() {
        None => ReadStep::Unfinished,
        Some(',' | ')') => ReadStep::Whole((key.to_owned(), KeywordValue::Json(json)), end),
        Some(_) => ReadStep::Other,
    }
}

/// JSON of a text that is a list, a tuple or a dictionary.
pub(super) fn container(text: &str) -> Option<String> {
    let is_container = text.starts_with(['[', '(', '{']);
    match literal(text, 0) {
        ReadStep::Whole(json, end) if is_container && text[end..].trim().is_empty() => Some(json),
        _ => None,
    }
}

/// The literal that a text begins with, as JSON.
fn literal(text: &str, depth: usize) -> ReadStep<String> {
    match text.chars().next() {
        None => ReadStep::Unfinished,
        Some(_) if depth > DEPTH => ReadStep::Other,
        Some('"' | '\'') => match quote(text) {
            ReadStep::Whole(quote, begin) => match string(&text[begin..], quote) {
                (text, length, true) => ReadStep::Whole(Value::from(text).to_string(), begin + length),
                _ => ReadStep::Unfinished,
            },
            _ => ReadStep::Unfinished,
        },
        Some('[') => items(text, ']', depth),
        Some('(') => items(text, ')', depth),
        Some('{') => items(text, '}', depth),
        Some(_) => word(text),
    }
}

/// A number, a constant, or a string without quotes.
fn word(text: &str) -> ReadStep<String> {
    let Some(end) = text.find([',', ')', ']', '}', ':', '(', '[', '{', '"', '\'', '\n']) else {
        return ReadStep::Unfinished;
    };
    let json = match text[..end].trim() {
        "" => return ReadStep::Other,
        "True" => "true".to_owned(),
        "False" => "false".to_owned(),
        "None" => "null".to_owned(),
        // A number of any size stays as it is written.
        other if serde_json::from_str::<Value>(other).is_ok() => other.to_owned(),
        other => number(other).unwrap_or_else(|| Value::from(other).to_string()),
    };
    ReadStep::Whole(json, end)
}

/// JSON of a number that only Python writes so: with a plus sign, underscores, or a point without digits
/// before or behind it.
fn number(text: &str) -> Option<String> {
    let mut number = text.strip_prefix('+').unwrap_or(text).replace('_', "");
    if let Some(at) = number.find('.') {
        let is_digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
        let (before, behind) =
            (is_digit(number[..at].chars().next_back()), is_digit(number[at + 1..].chars().next()));
        match (before, behind) {
            (true, false) => number.insert(at + 1, '0'),
            (false, true) => number.insert(at, '0'),
            _ => {}
        }
    }
    let is_number = text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
    serde_json::from_str::<serde_json::Number>(&number).is_ok_and(|_| is_number).then_some(number)
}

/// A list, a tuple or a dictionary.
fn items(text: &str, close: char, depth: usize) -> ReadStep<String> {
    let is_object = close == '}';
    let mut json = String::from(if is_object { "{" } else { "[" });
    let mut at = 1;
    let skip = |at: usize| text.len() - text[at..].trim_start().len();
    loop {
        at = skip(at);
        if text[at..].starts_with(close) {
            json.push(if is_object { '}' } else { ']' });
            return ReadStep::Whole(json, at + 1);
        }
        if json.len() > 1 {
            json.push_str(", ");
        }
        if is_object {
            let (key, end) = match literal(&text[at..], depth + 1) {
                ReadStep::Whole(key, end) => (key, end),
                other => return other,
            };
            // Keys of JSON are strings.
            let key = if key.starts_with('"') { key } else { Value::from(key).to_string() };
            at = skip(at + end);
            json.push_str(&key);
            json.push_str(": ");
            match text[at..].chars().next() {
                None => return ReadStep::Unfinished,
                Some(':') => at = skip(at + 1),
                Some(_) => return ReadStep::Other,
            }
        }
        match literal(&text[at..], depth + 1) {
            ReadStep::Whole(item, end) => {
                json.push_str(&item);
                at = skip(at + end);
            }
            other => return other,
        }
        match text[at..].chars().next() {
            None => return ReadStep::Unfinished,
            Some(',') => at += 1,
            Some(c) if c == close => {}
            Some(_) => return ReadStep::Other,
        }
    }
}

/// The quote that a text begins with.
fn quote(text: &str) -> ReadStep<&'static str> {
    let quotes = if text.starts_with('"') { ["\"\"\"", "\""] } else { ["'''", "'"] };
    match quotes.into_iter().find(|quote| text.starts_with(quote)) {
        Some(_) if text.len() < 3 && quotes[0].starts_with(text) => ReadStep::Unfinished,
        Some(quote) => ReadStep::Whole(quote, quote.len()),
        None => ReadStep::Other,
    }
}

/// The string that a text begins with, behind its quote: as much as is certain, the bytes that this takes,
/// and whether that is all, with the quote that ends it.
///
/// A single quote is the end where nothing of the string can be behind it: models write quotes that they
/// should have escaped. An escape that means nothing is what it looks like.
pub(super) fn string(text: &str, quote: &str) -> (String, usize, bool) {
    let (mut made, mut rest) = (String::new(), text);
    while let Some(c) = rest.chars().next() {
        let taken = text.len() - rest.len();
        if let Some(behind) = rest.strip_prefix(quote) {
            match behind.trim_start().chars().next() {
                None if quote.len() == 1 => return (made, taken, false),
                Some(c) if quote.len() == 1 && !",)]}:".contains(c) => {}
                _ => return (made, taken + quote.len(), true),
            }
        } else if quote.starts_with(rest) {
            return (made, taken, false);
        }
        let (c, length) = match if c == '\\' { escape(rest, quote) } else { Some((Some(c), c.len_utf8())) } {
            Some(found) => found,
            None => return (made, taken, false),
        };
        made.extend(c);
        rest = &rest[length..];
    }
    (made, text.len(), false)
}

/// The character of the escape that a text begins with, and its bytes; `None` while that is open.
fn escape(text: &str, quote: &str) -> Option<(Option<char>, usize)> {
    let c = text[1..].chars().next()?;
    let plain = Some((Some('\\'), 1));
    match c {
        'n' => Some((Some('\n'), 2)),
        't' => Some((Some('\t'), 2)),
        'r' => Some((Some('\r'), 2)),
        'b' => Some((Some('\u{8}'), 2)),
        'f' => Some((Some('\u{C}'), 2)),
        '\\' | '\'' | '"' => Some((Some(c), 2)),
        // As JSON has it.
        '/' if quote.starts_with('"') => Some((Some(c), 2)),
        '\n' => Some((None, 2)),
        'x' => digits(text, 2).map_or(plain, |unit| Some((char::from_u32(unit?), 4))),
        'u' => match digits(text, 4) {
            None => plain,
            Some(None) => None,
            // Half of a character, which is whole if the other one follows.
            Some(Some(high @ 0xD800..0xDC00)) => {
                let half = text[6..].starts_with("\\u").then(|| digits(&text[6..], 4));
                match half {
                    None if "\\u".starts_with(&text[6..]) => None,
                    Some(Some(None)) => None,
                    Some(Some(Some(low @ 0xDC00..0xE000))) => {
                        Some((char::from_u32(0x1_0000 + ((high - 0xD800) << 10) + (low - 0xDC00)), 12))
                    }
                    _ => Some((Some(char::REPLACEMENT_CHARACTER), 6)),
                }
            }
            Some(Some(unit)) => Some((Some(char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER)), 6)),
        },
        _ => plain,
    }
}

/// The number of the digits of an escape: `None` if they are others, and none in it while there are too few.
fn digits(text: &str, count: usize) -> Option<Option<u32>> {
    let digits = &text.as_bytes()[2..text.len().min(2 + count)];
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    Some(text.get(2..2 + count).and_then(|digits| u32::from_str_radix(digits, 16).ok()))
}
