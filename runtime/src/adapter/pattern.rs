//! PEFT's ways to say which modules a setting is about: suffixes, and regular expressions with Python's `re.match` and `re.fullmatch`.

use fancy_regex::{Regex, RegexBuilder};

/// Steps of backtracking that a match may take: patterns come from outside.
const MAX_STEPS: usize = 100_000;
/// Bytes that a compiled pattern may take.
const MAX_BYTES: usize = 1 << 20;

/// A regular expression that must match a name as a whole.
#[derive(Debug)]
pub(super) struct Pattern(Regex);

impl Pattern {
    /// As `re.fullmatch(text, name)` does: `target_modules` and `exclude_modules` given as a string.
    pub(super) fn whole(text: &str) -> Result<Pattern, String> {
        Pattern::compile(text, &format!(r"\A(?:{text})\z"))
    }

    /// As `re.match(rf"(.*\.)?({text})$", name)` does: keys of `rank_pattern` and `alpha_pattern`.
    pub(super) fn suffix(text: &str) -> Result<Pattern, String> {
        Pattern::compile(text, &format!(r"\A(?:(.*\.)?({text})$)"))
    }

    /// As `re.match(rf"(?:^|.*?\.){text}\.(?P<idx>\d+)\.", name)` does: `layers_pattern`.
    pub(super) fn before_index(text: &str) -> Result<Pattern, String> {
        Pattern::compile(text, &format!(r"\A(?:(?:^|.*?\.){text}\.(?P<idx>\d+)\.)"))
    }

    /// As `re.match(r".*?\.[^.]*\.(?P<idx>\d+)\.", name)` does: without a `layers_pattern`, the first number is the layer's.
    pub(super) fn first_index() -> Result<Pattern, String> {
        Pattern::compile("", r"\A(?:.*?\.[^.]*\.(?P<idx>\d+)\.)")
    }

    fn compile(text: &str, whole: &str) -> Result<Pattern, String> {
        let mut builder = RegexBuilder::new(whole);
        builder.backtrack_limit(MAX_STEPS).delegate_size_limit(MAX_BYTES);
        builder
            .build()
            .map(Pattern)
            .map_err(|error| format!("`{text}` is not a regular expression that can be used: {error}"))
    }

    /// Whether it matches.
    pub(super) fn matches(&self, name: &str) -> Result<bool, String> {
        self.0
            .is_match(name)
            .map_err(|error| format!("a pattern cannot be matched against `{name}`: {error}"))
    }

    /// The number behind what it matches.
    pub(super) fn index(&self, name: &str) -> Result<Option<u64>, String> {
        let found = self.0.captures(name);
        let found =
            found.map_err(|error| format!("a pattern cannot be matched against `{name}`: {error}"))?;
        Ok(found.and_then(|captures| captures.name("idx")?.as_str().parse().ok()))
    }
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

    #[test]
    fn keys_of_patterns_match_as_in_peft() {
        // What Python 3.11 says of re.match(rf"(.*\.)?({key})$", Q).
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
        ] {
            assert_eq!(Pattern::suffix(key).unwrap().matches(Q), Ok(expected), "{key}");
        }
    }

    #[test]
    fn strings_match_the_whole_name() {
        for (text, expected) in
            [(".*q_proj", true), ("q_proj", false), (".*(q|v)_proj|x", true), ("model", false)]
        {
            assert_eq!(Pattern::whole(text).unwrap().matches(Q), Ok(expected), "{text}");
        }
        assert!(is_suffix(&["q_proj".into()], Q) && is_suffix(&[Q.into()], Q));
        assert!(!is_suffix(&["_proj".into(), String::new(), "model".into()], Q));
    }

    #[test]
    fn patterns_that_cannot_be_used_are_refused() {
        for text in ["(", "(?:(?:a{1000}){1000}){1000}", "[z-a]"] {
            assert!(Pattern::suffix(text).is_err(), "{text}");
        }
        let bomb = Pattern::whole(r"(?:(x+x+)+\1y)").unwrap();
        assert!(bomb.matches(&"x".repeat(200)).is_err());
    }

    #[test]
    fn layers_are_counted_behind_their_pattern() {
        let index = |text: &str, name: &str| Pattern::before_index(text).unwrap().index(name).unwrap();
        assert_eq!(index("layers", Q), Some(10));
        assert_eq!(index("h", Q), None);
        let first = Pattern::first_index().unwrap();
        assert_eq!(first.index("model.layers.1.experts.0.w1"), Ok(Some(1)));
        assert_eq!(first.index("lm_head"), Ok(None));
    }
}
