//! Functions of Python on texts, by which lm-eval makes its prompts.

/// Whether Python takes a character for white space.
pub fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\x1c'..='\x1f').contains(&c)
}

/// `str.strip`.
pub fn strip(text: &str) -> &str {
    text.trim_matches(is_space)
}

/// `str.capitalize`: the first character as a title has it, all others small.
pub fn capitalize(text: &str) -> String {
    let Some(first) = text.chars().next() else { return String::new() };
    // Small letters depend on what is before them: the whole text is made small, and its beginning left out.
    let small = text.to_lowercase();
    let rest = &small[first.to_lowercase().map(char::len_utf8).sum()..];
    title(first) + rest
}

/// A character as the first one of a title.
fn title(c: char) -> String {
    let digraph = match c {
        '\u{1c4}'..='\u{1c6}' => Some('\u{1c5}'),
        '\u{1c7}'..='\u{1c9}' => Some('\u{1c8}'),
        '\u{1ca}'..='\u{1cc}' => Some('\u{1cb}'),
        '\u{1f1}'..='\u{1f3}' => Some('\u{1f2}'),
        _ => None,
    };
    if let Some(digraph) = digraph {
        return digraph.to_string();
    }
    let mut large = c.to_uppercase();
    let first: String = large.next().into_iter().collect();
    first + &large.flat_map(char::to_lowercase).collect::<String>()
}

/// `re.sub(r"\[.*?\]", "", text)`.
pub fn without_brackets(text: &str) -> String {
    let (mut kept, mut rest) = (String::new(), text);
    while let Some(open) = rest.find('[') {
        // A dot stands for no line end.
        let line = rest[open..].find('\n').map_or(rest.len(), |at| open + at);
        match rest[open..line].find(']') {
            Some(close) => {
                kept += &rest[..open];
                rest = &rest[open + close + 1..];
            }
            None => {
                kept += &rest[..=open];
                rest = &rest[open + 1..];
            }
        }
    }
    kept + rest
}

#[cfg(test)]
mod tests {
    use super::{capitalize, strip, without_brackets};

    #[test]
    fn texts_are_changed_as_python_changes_them() {
        // Each from CPython 3.11.
        for (text, expected) in [
            ("hELLO World", "Hello world"),
            ("", ""),
            ("\u{df}a", "Ssa"),
            ("\u{1c6}A", "\u{1c5}a"),
            ("\u{fb01}X", "Fix"),
            ("\u{391}\u{3a3}", "\u{391}\u{3c2}"),
            ("\u{130}A", "\u{130}a"),
            (" a B", " a b"),
        ] {
            assert_eq!(capitalize(text), expected, "{text}");
        }
        assert_eq!(strip("\x1f \u{a0}a b\u{2003}\n"), "a b");
        for (text, expected) in [
            ("a [step] b [] c", "a  b  c"),
            ("a [b\nc] d", "a [b\nc] d"),
            ("[[x]] y", "] y"),
            ("[a [b\n[c]d", "[a [b\nd"),
        ] {
            assert_eq!(without_brackets(text), expected, "{text}");
        }
    }
}
