//! Answers in texts, and whether they are right: lm-eval's filters and its exact match.

use crate::tasks::strip;
use fancy_regex::Regex;
use kernmill::{Error, Result};

/// The result of a filter that finds nothing.
const NOTHING: &str = "[invalid]";

/// Finds the answer in a text.
pub struct TextFilter {
    /// Name of the filter in results.
    pub name: &'static str,
    pattern: Regex,
    /// Whether the last place counts, or the first.
    takes_last: bool,
}

/// Compares answers.
pub struct AnswerMatch {
    /// Patterns whose finds are left out of both, one pattern after the other.
    ignored: Vec<Regex>,
}

fn regex(pattern: &str) -> Result<Regex> {
    Regex::new(pattern).map_err(|error| Error::failed(format!("{pattern}: {error}")))
}

impl TextFilter {
    /// A filter that takes what a pattern finds in the first or the last place.
    ///
    /// # Errors
    /// When the pattern has a mistake.
    pub fn new(name: &'static str, pattern: &str, takes_last: bool) -> Result<TextFilter> {
        Ok(TextFilter { name, pattern: regex(pattern)?, takes_last })
    }

    /// The answer of a text, as Python's `re.findall` finds it: the first group that is not empty, or where
    /// the pattern has none, all of it.
    ///
    /// # Errors
    /// When the pattern takes too long on this text.
    pub fn answer(&self, text: &str) -> Result<String> {
        let mut found: Option<String> = None;
        for captures in self.pattern.captures_iter(text) {
            let captures = captures.map_err(|error| Error::failed(error.to_string()))?;
            let groups = captures.iter().skip(1).flatten().map(|group| group.as_str());
            let own = captures.get(0).map_or("", |all| all.as_str());
            let answer = match captures.len() {
                1 => own,
                2 => groups.into_iter().next().unwrap_or_default(),
                _ => groups.into_iter().find(|group| !group.is_empty()).unwrap_or(NOTHING),
            };
            found = Some(strip(answer).to_owned());
            if !self.takes_last {
                break;
            }
        }
        Ok(found.unwrap_or_else(|| NOTHING.to_owned()))
    }
}

impl AnswerMatch {
    /// A comparison that leaves out what the patterns find, and makes letters small.
    ///
    /// # Errors
    /// When a pattern has a mistake.
    pub fn new(ignored: &[&str]) -> Result<AnswerMatch> {
        Ok(AnswerMatch { ignored: ignored.iter().map(|pattern| regex(pattern)).collect::<Result<_>>()? })
    }

    /// Whether an answer is the right one.
    ///
    /// # Errors
    /// When a pattern takes too long on these texts.
    pub fn is_right(&self, answer: &str, target: &str) -> Result<bool> {
        Ok(self.plain(answer)? == self.plain(target)?)
    }

    fn plain(&self, text: &str) -> Result<String> {
        let mut text = text.to_owned();
        for pattern in &self.ignored {
            let replaced = pattern.try_replacen(&text, 0, "");
            text = replaced.map_err(|error| Error::failed(error.to_string()))?.into_owned();
        }
        Ok(text.to_lowercase())
    }
}

/// The answer that most samples have; of several the one that came first.
pub fn majority(answers: &[String]) -> &str {
    let mut best = ("", 0);
    for answer in answers {
        let count = answers.iter().filter(|other| *other == answer).count();
        if count > best.1 {
            best = (answer, count);
        }
    }
    best.0
}

#[cfg(test)]
mod tests {
    use super::majority;

    #[test]
    fn the_majority_is_the_first_of_the_most_frequent() {
        let of = |answers: &[&str]| {
            let answers: Vec<String> = answers.iter().map(|&answer| answer.to_owned()).collect();
            majority(&answers).to_owned()
        };
        assert_eq!(of(&["3", "4", "4", "3", "5"]), "3");
        assert_eq!(of(&["3", "4", "4"]), "4");
        assert_eq!(of(&[]), "");
    }
}
