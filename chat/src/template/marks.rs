//! Added tokens of a vocabulary, where they are written out in a text.

use kernmill_text::{AddedToken, Vocabulary};
use std::collections::HashMap;

/// Added tokens that must not come from a conversation: all but those that are only space.
#[derive(Debug)]
pub(super) struct Marks {
    /// Texts and ids by the first character, the longest text first.
    by_first: HashMap<char, Vec<(Vec<char>, u32)>>,
}

/// An added token in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TokenMark {
    /// Number of the first character.
    pub start: usize,
    /// Number of the character behind the last.
    pub end: usize,
    /// Id of the token.
    pub id: u32,
}

impl Marks {
    pub fn of(vocabulary: &dyn Vocabulary) -> Marks {
        let mut by_first: HashMap<char, Vec<(Vec<char>, u32)>> = HashMap::new();
        for AddedToken { text, id, .. } in vocabulary.added_tokens() {
            let Some(first) = text.chars().find(|_| !text.trim().is_empty()) else { continue };
            by_first.entry(first).or_default().push((text.chars().collect(), id));
        }
        for tokens in by_first.values_mut() {
            tokens.sort_by_key(|(text, id)| (std::cmp::Reverse(text.len()), *id));
        }
        Marks { by_first }
    }

    /// Tokens in a text from the left, the longest at each place; `accepts` says which characters count.
    pub fn find(&self, text: &[(char, bool)], accepts: impl Fn(&(char, bool)) -> bool) -> Vec<TokenMark> {
        let (mut found, mut at) = (Vec::new(), 0);
        while at < text.len() {
            match self.at(&text[at..], &accepts) {
                Some((length, id)) => {
                    found.push(TokenMark { start: at, end: at + length, id });
                    at += length;
                }
                None => at += 1,
            }
        }
        found
    }

    /// Length and id of the token that a text begins with.
    fn at(&self, text: &[(char, bool)], accepts: impl Fn(&(char, bool)) -> bool) -> Option<(usize, u32)> {
        let tokens = self.by_first.get(&text.first()?.0)?;
        let matches = |token: &[char]| {
            let pairs = token.iter().zip(text);
            token.len() <= text.len() && pairs.into_iter().all(|(c, found)| *c == found.0 && accepts(found))
        };
        tokens.iter().find(|(token, _)| matches(token)).map(|(token, id)| (token.len(), *id))
    }

    /// Whether an id is one of these tokens.
    pub fn has(&self, id: u32) -> bool {
        self.by_first.values().flatten().any(|(_, known)| *known == id)
    }
}
