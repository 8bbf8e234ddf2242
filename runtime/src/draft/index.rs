//! Where the end of a text occurs in earlier tokens.

use std::collections::HashMap;

/// Tokens that an occurrence shares with the end of a text at least.
const GRAM: usize = 3;
/// Occurrences that are looked at, the latest first.
const CANDIDATES: usize = 8;
/// Tokens that are compared at most.
const LONGEST: usize = 64;
/// The separator of texts. No vocabulary has it.
const BORDER: u32 = u32::MAX;
/// The end of a chain of occurrences.
const NONE: u32 = u32::MAX;

/// Tokens of texts, and where each run of three occurs in them.
#[derive(Clone, Debug)]
pub struct SuffixIndex {
    tokens: Vec<u32>,
    /// By run of three tokens: the place behind its last occurrence, where a token follows.
    last: HashMap<[u32; GRAM], u32>,
    /// By place: the one behind the occurrence before.
    before: Vec<u32>,
    /// Tokens that are kept at most.
    limit: usize,
}

/// An occurrence of the end of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occurrence {
    /// Place of the token that follows it.
    pub next: usize,
    /// Tokens that it shares with the end of the text, as far as they were compared.
    pub length: u32,
}

impl SuffixIndex {
    /// An index that keeps at least the last `limit / 2` tokens, and at most `limit`.
    pub fn new(limit: usize) -> SuffixIndex {
        let limit = limit.clamp(2 * GRAM, u32::MAX as usize);
        SuffixIndex { tokens: Vec::new(), last: HashMap::new(), before: Vec::new(), limit }
    }

    /// Adds tokens behind those that are there.
    pub fn extend(&mut self, tokens: &[u32]) {
        for token in tokens {
            self.push(*token);
        }
    }

    /// Ends a text: what comes next does not follow from it.
    pub fn end_text(&mut self) {
        if self.tokens.last().is_some_and(|last| *last != BORDER) {
            self.push(BORDER);
        }
    }

    fn push(&mut self, token: u32) {
        if self.tokens.len() >= self.limit {
            let kept = self.tokens.split_off(self.tokens.len() - self.limit / 2);
            *self = SuffixIndex::new(self.limit);
            self.extend(&kept);
        }
        let at = self.tokens.len() as u32;
        let run = self.tokens.last_chunk::<GRAM>().filter(|run| !run.contains(&BORDER));
        let before = run.and_then(|run| self.last.insert(*run, at));
        self.before.push(before.unwrap_or(NONE));
        self.tokens.push(token);
    }

    /// The tokens that are kept.
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// Where the last tokens of `text` occurred with something behind them: of the latest few occurrences
    /// the one that agrees longest, and of equal ones the latest.
    pub fn find(&self, text: &[u32]) -> Option<Occurrence> {
        let run = text.last_chunk::<GRAM>()?;
        let mut next = *self.last.get(run)?;
        let mut best: Option<Occurrence> = None;
        for _ in 0..CANDIDATES {
            let here = self.tokens[..next as usize].iter().rev();
            let agree = here.zip(text.iter().rev()).take(LONGEST).take_while(|(a, b)| a == b).count() as u32;
            if best.is_none_or(|best| agree > best.length) {
                best = Some(Occurrence { next: next as usize, length: agree });
            }
            next = self.before[next as usize];
            if next == NONE {
                break;
            }
        }
        best.filter(|found| self.tokens[found.next] != BORDER)
    }

    /// Adds at most `most` tokens from a place on to `into`, up to the end of that text. Behind the last
    /// token that is known, what was added goes on: a text that repeats itself is expected to go on doing so.
    pub fn copy(&self, from: usize, most: usize, into: &mut Vec<u32>) {
        for at in from..from.saturating_add(most) {
            let token = match self.tokens.get(at) {
                Some(token) => *token,
                None => match into.get(at - self.tokens.len()) {
                    Some(token) => *token,
                    None => break,
                },
            };
            if token == BORDER {
                break;
            }
            into.push(token);
        }
    }
}
