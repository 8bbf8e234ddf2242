//! PEFT's ways to say which modules a setting is about: suffixes, and regular expressions with Python's
//! `re.match` and `re.fullmatch`.

use fancy_regex::{Regex, RegexBuilder};
use kernmill_os::text::shortened;
use kernmill_plan::limit;

/// Steps of backtracking that a match may take: patterns come from outside.
const MAX_STEPS: usize = 10_000;
/// Bytes that a compiled pattern may take.
const MAX_BYTES: usize = 1 << 20;
/// Bytes that all compiled patterns of a config may take together.
const MAX_BYTES_OF_ALL: usize = 4 << 20;

/// The budget that all patterns of a config share.
#[derive(Clone, Copy, Debug)]
pub(super) struct PatternShare {
    bytes: usize,
}

impl PatternShare {
    /// The share of each of `patterns` regular expressions.
    ///
    /// # Errors
    /// When there are more than [`limit::ADAPTER_PATTERNS`].
    pub(super) fn of(patterns: usize) -> Result<PatternShare, String> {
        let most = limit::ADAPTER_PATTERNS;
        match patterns > most {
            true => Err(format!(
                "{patterns} regular expressions, expected at most {most}; plain names are not counted"
            )),
            false => Ok(PatternShare { bytes: MAX_BYTES.min(MAX_BYTES_OF_ALL / patterns.max(1)) }),
        }
    }
}

/// Which names a setting is about.
#[derive(Debug)]
pub(super) enum NamePattern {
    /// Names that end in this text, after a dot or as a whole; a dot in it stands for any character.
    Plain(String),
    /// Names that match the expression.
    Expression(Box<Regex>),
}

impl NamePattern {
    /// Whether a regular expression is a plain name: letters, digits, `_`, `-`, and dots.
    pub(super) fn is_plain(text: &str) -> bool {
        text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'))
    }

    /// A pattern that matches as `re.fullmatch(text, name)` does: `target_modules` and `exclude_modules`
    /// given as a string.
    pub(super) fn whole(text: &str, share: PatternShare) -> Result<NamePattern, String> {
        NamePattern::compile(text, &format!(r"\A(?:{text})\z"), share)
    }

    /// A pattern that matches as `re.match(rf"(.*\.)?({text})$", name)` does: keys of `rank_pattern` and
    /// `alpha_pattern`.
    pub(super) fn suffix(text: &str, share: PatternShare) -> Result<NamePattern, String> {
        match NamePattern::is_plain(text) {
            true => Ok(NamePattern::Plain(text.to_owned())),
            false => NamePattern::compile(text, &format!(r"\A(?:(.*\.)?({text})$)"), share),
        }
    }

    /// A pattern that matches as `re.match(rf"(?:^|.*?\.){text}\.(?P<idx>\d+)\.", name)` does:
    /// `layers_pattern`.
    pub(super) fn before_index(text: &str, share: PatternShare) -> Result<NamePattern, String> {
        NamePattern::compile(text, &format!(r"\A(?:(?:^|.*?\.){text}\.(?P<idx>\d+)\.)"), share)
    }

    /// A pattern that matches as `re.match(r".*?\.[^.]*\.(?P<idx>\d+)\.", name)` does: without a
    /// `layers_pattern`, the first number is the layer's.
    pub(super) fn first_index(share: PatternShare) -> Result<NamePattern, String> {
        NamePattern::compile("", r"\A(?:.*?\.[^.]*\.(?P<idx>\d+)\.)", share)
    }

    fn compile(text: &str, whole: &str, share: PatternShare) -> Result<NamePattern, String> {
        let mut builder = RegexBuilder::new(whole);
        builder.backtrack_limit(MAX_STEPS).delegate_size_limit(share.bytes);
        match builder.build() {
            Ok(regex) => Ok(NamePattern::Expression(Box::new(regex))),
            Err(error) => {
                let (text, error) = (shortened(text), error.to_string());
                Err(format!("`{text}` is not a regular expression that can be used: {}", shortened(&error)))
            }
        }
    }

    /// Whether it matches.
    pub(super) fn matches(&self, name: &str) -> Result<bool, String> {
        match self {
            NamePattern::Plain(text) => Ok(ends_in(name, text)),
            NamePattern::Expression(regex) => regex.is_match(name).map_err(|error| {
                format!("a pattern cannot be matched against `{}`: {error}", shortened(name))
            }),
        }
    }

    /// The number behind what it matches.
    pub(super) fn index(&self, name: &str) -> Result<Option<u64>, String> {
        let NamePattern::Expression(regex) = self else { return Ok(None) };
        let found = regex
            .captures(name)
            .map_err(|error| format!("a pattern cannot be matched against `{}`: {error}", shortened(name)))?;
        Ok(found.and_then(|captures| captures.name("idx")?.as_str().parse().ok()))
    }
}

/// The answer of `re.match(rf"(.*\.)?({text})$", name)` when `text` is plain.
fn ends_in(name: &str, text: &str) -> bool {
    let before_end = text.chars().count().checked_sub(1);
    let start = match before_end {
        None => Some(name.len()),
        Some(n) => name.char_indices().rev().nth(n).map(|(at, _)| at),
    };
    let Some((before, end)) = start.map(|at| name.split_at(at)) else { return false };
    let same = |(c, expected): (char, char)| c == expected || expected == '.' && c != '\n';
    end.chars().zip(text.chars()).all(same)
        && (before.is_empty() || before.ends_with('.') && !before.contains('\n'))
}

/// `key in names or key.endswith(f".{name}")` for any of them.
pub(super) fn is_suffix(names: &[String], key: &str) -> bool {
    let ends = |name: &String| key.strip_suffix(name.as_str()).is_some_and(|rest| rest.ends_with('.'));
    names.iter().any(|name| key == name || ends(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const Q: &str = "model.layers.10.self_attn.q_proj";

    fn suffix(text: &str) -> Result<NamePattern, String> {
        NamePattern::suffix(text, PatternShare::of(1).unwrap())
    }

    fn whole(text: &str) -> Result<NamePattern, String> {
        NamePattern::whole(text, PatternShare::of(1).unwrap())
    }

    #[test]
    fn keys_of_patterns_match_as_in_peft() {
        // The answers of Python 3.11 for re.match(rf"(.*\.)?({key})$", Q).
        for (key, expected) in [
            ("q_proj", true),
            ("proj", false),
            ("self_attn.q_proj", true),
            ("layers.10.self_attn.[qk]_proj", true),
            ("layers.1.self_attn.q_proj", false),
            ("^model.layers.10.self_attn.q_proj", true),
            ("^layers.10.self_attn.q_proj", false),
            (".*self_attn.*", true),
            ("self_attn", false),
            (r"layers\.(1|10)\..*", true),
            ("k_proj|q_proj", true),
            (r"(?!k)\w_proj", true),
            ("", false),
            ("self_attn-q_proj", false),
            ("self.attn.q.proj", true),
            (Q, true),
            ("x.model.layers.10.self_attn.q_proj", false),
        ] {
            assert_eq!(suffix(key).unwrap().matches(Q), Ok(expected), "{key}");
            // Plain or not, a group around it changes nothing.
            assert_eq!(suffix(&format!("(?:{key})")).unwrap().matches(Q), Ok(expected), "{key}");
        }
    }

    #[test]
    fn plain_names_take_no_expression() {
        for text in ["q_proj", "model.layers.0", "größe", "a-b", ""] {
            assert!(matches!(suffix(text), Ok(NamePattern::Plain(_))), "{text}");
        }
        for text in ["q_proj$", "a|b", r"\w", "a ", "x{2}", "[q]"] {
            assert!(!NamePattern::is_plain(text), "{text}");
        }
        for (name, text) in
            [("größe.q", "q"), ("größe", "gr.ße"), ("ä.ö", ".ö"), ("a\nb.q", "q"), ("b", "a.b")]
        {
            let expected = suffix(&format!("(?:{text})")).unwrap().matches(name);
            assert_eq!(suffix(text).unwrap().matches(name), expected, "{name:?} {text:?}");
        }
    }

    #[test]
    fn many_expressions_have_a_small_share_each() {
        assert!(
            PatternShare::of(limit::ADAPTER_PATTERNS + 1).unwrap_err().contains("65 regular expressions")
        );
        let (one, many) = (PatternShare::of(1).unwrap(), PatternShare::of(limit::ADAPTER_PATTERNS).unwrap());
        assert!(many.bytes * limit::ADAPTER_PATTERNS <= MAX_BYTES_OF_ALL);
        let usual = r".*\.layers\.(0|1[0-9])\.(self_attn|mlp)\.(q|k|v|o|gate|up|down)_proj";
        assert_eq!(NamePattern::whole(usual, many).unwrap().matches(Q), Ok(true));
        assert!(NamePattern::whole(r"\w{20}", one).is_ok() && NamePattern::whole(r"\w{20}", many).is_err());
    }

    #[test]
    fn strings_match_the_whole_name() {
        for (text, expected) in
            [(".*q_proj", true), ("q_proj", false), (".*(q|v)_proj|x", true), ("model", false)]
        {
            assert_eq!(whole(text).unwrap().matches(Q), Ok(expected), "{text}");
        }
        assert!(is_suffix(&["q_proj".into()], Q) && is_suffix(&[Q.into()], Q));
        assert!(!is_suffix(&["_proj".into(), String::new(), "model".into()], Q));
    }

    #[test]
    fn patterns_that_cannot_be_used_are_refused() {
        for text in ["(", "(?:(?:a{1000}){1000}){1000}", "[z-a]"] {
            assert!(suffix(text).is_err(), "{text}");
        }
        let bomb = whole(r"(?:(x+x+)+\1y)").unwrap();
        assert!(bomb.matches(&"x".repeat(200)).is_err());
    }

    #[test]
    fn layers_are_counted_behind_their_pattern() {
        let share = PatternShare::of(1).unwrap();
        let index =
            |text: &str, name: &str| NamePattern::before_index(text, share).unwrap().index(name).unwrap();
        assert_eq!(index("layers", Q), Some(10));
        assert_eq!(index("h", Q), None);
        let first = NamePattern::first_index(share).unwrap();
        assert_eq!(first.index("model.layers.1.experts.0.w1"), Ok(Some(1)));
        assert_eq!(first.index("lm_head"), Ok(None));
    }
}
