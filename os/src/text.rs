//! Showing texts that come from elsewhere: nothing in them moves a terminal's cursor, and messages that
//! repeat them stay short.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Characters that an error message repeats of a name or text from a file.
pub const SHOWN_CHARS: usize = 200;

/// Characters of a word of a message, as the exits show it: paths are shorter, and what is longer came from a
/// file.
pub const WORD_CHARS: usize = 1000;

/// Characters of a whole message, as the exits show it.
pub const MESSAGE_CHARS: usize = 8000;

/// A text from elsewhere as it may be shown on a terminal: control characters and those that turn the writing
/// direction become `\u{..}`; line ends and tabs stay.
///
/// ```
/// use kernmill_os::text::visible;
/// assert_eq!(visible("plain\n"), "plain\n");
/// assert_eq!(visible("a\u{1b}[2J"), "a\\u{1b}[2J");
/// ```
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_hidden(c) {
            let _ = write!(shown, "\\u{{{:x}}}", u32::from(c));
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

fn is_hidden(c: char) -> bool {
    let turns = matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    turns || c.is_control() && !matches!(c, '\n' | '\t')
}

/// A message as it may be shown: [`visible`], its long words and itself cut at [`WORD_CHARS`] and
/// [`MESSAGE_CHARS`]. Messages repeat names from files, which have any length.
///
/// ```
/// use kernmill_os::text::message;
/// assert_eq!(message("error: m.plan: no such file"), "error: m.plan: no such file");
/// assert!(message(&format!("error: {}: unknown", "x".repeat(100_000))).len() < 1100);
/// ```
pub fn message(text: &str) -> Cow<'_, str> {
    let shown = visible(text);
    if shown.len() <= WORD_CHARS {
        return shown;
    }
    let words: String = shown
        .split_inclusive(char::is_whitespace)
        .map(|word| word.split_at(word.trim_end().len()))
        .flat_map(|(word, space)| [cut(word, WORD_CHARS), Cow::Borrowed(space)])
        .collect();
    Cow::Owned(cut(&words, MESSAGE_CHARS).into_owned())
}

/// A name or text from a file, as an error message repeats it: what [`SHOWN_CHARS`] leaves of it.
///
/// ```
/// use kernmill_os::text::shortened;
/// assert_eq!(shortened("name"), "name");
/// assert!(shortened(&"x".repeat(1000)).ends_with("x... (1000 bytes)"));
/// ```
pub fn shortened(text: &str) -> Cow<'_, str> {
    cut(text, SHOWN_CHARS)
}

/// At most `most` characters of a text, and then how long it was.
fn cut(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        Some((end, _)) => Cow::Owned(format!("{}... ({} bytes)", &text[..end], text.len())),
        None => Cow::Borrowed(text),
    }
}

/// Units of bytes, each a thousand of the one before.
const UNITS: [&str; 5] = ["bytes", "kB", "MB", "GB", "TB"];

/// A number of bytes for people: three digits and a unit, such as `1.23 GB`.
pub fn size(bytes: u64) -> String {
    let mut unit = 0;
    let mut number = bytes as f64;
    while number >= 999.5 && unit + 1 < UNITS.len() {
        number /= 1000.0;
        unit += 1;
    }
    let digits = if unit == 0 || number >= 99.95 {
        0
    } else if number >= 9.995 {
        1
    } else {
        2
    };
    format!("{number:.digits$} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_cut_where_names_are_endless() {
        let name = "x".repeat(5000);
        let text = message(&format!("error: {name}: unknown")).into_owned();
        assert!(text.starts_with("error: xxx") && text.ends_with("x... (5001 bytes) unknown"), "{text}");
        let words = message(&"word \u{1b} ".repeat(10_000)).into_owned();
        assert!(words.len() < MESSAGE_CHARS + 50 && words.starts_with("word \\u{1b} word"), "{words}");
        assert!(words.ends_with(" bytes)"));
        let short = format!("{}\n{}", "y".repeat(WORD_CHARS), "z".repeat(WORD_CHARS));
        assert_eq!(message(&short), short);
    }

    #[test]
    fn sizes_have_three_digits() {
        for (bytes, text) in [
            (0, "0 bytes"),
            (999, "999 bytes"),
            (1000, "1.00 kB"),
            (13_800_000_000, "13.8 GB"),
            (999_600, "1.00 MB"),
            (99_960, "100 kB"),
        ] {
            assert_eq!(size(bytes), text);
        }
    }
}
