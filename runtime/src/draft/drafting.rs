//! Which drafts of a text are checked.

use super::costs::StepCosts;
use super::odds::Odds;
use super::{Drafter, MAX_DRAFT};
use crate::guide::Guided;
use crate::sampler::TokenMask;

/// How much faster a text must get by a draft at least: less is lost in what cannot be foretold.
const WORTH: f64 = 1.03;
/// Tokens between two drafts of a drafter that takes time, where none is likely to pay: at first, and at
/// most.
const TRIALS: [u32; 2] = [8, 128];

/// Tokens that may come next in a text, to be checked by a step.
#[derive(Clone, Debug, Default)]
pub struct Draft {
    tokens: Vec<u32>,
    /// By token: what may follow it, where the text is held to a form.
    allowed: Vec<TokenMask>,
}

impl Draft {
    /// A draft of a text that is held to no form.
    #[cfg(test)]
    pub(super) fn of(tokens: Vec<u32>) -> Draft {
        Draft { tokens, allowed: Vec::new() }
    }

    /// The tokens.
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// The tokens that may follow token `at`; `None` if all may.
    pub fn allowed(&self, at: usize) -> Option<&TokenMask> {
        self.allowed.get(at)
    }

    /// Leaves all but the first `tokens` tokens out.
    pub fn truncate(&mut self, tokens: usize) {
        self.tokens.truncate(tokens);
        self.allowed.truncate(tokens);
    }

    /// Forgets all tokens.
    pub fn clear(&mut self) {
        self.truncate(0);
    }

    /// Leaves out what the form of the text does not allow, and all from where the form goes on by itself.
    fn hold_to(&mut self, guided: &Guided) {
        let mut guided = guided.clone();
        for at in 0..self.tokens.len() {
            let token = self.tokens[at];
            let goes_on = guided.allowed().allows(token) && matches!(guided.accept(token), Ok(false));
            if !goes_on || guided.is_forced() {
                return self.truncate(at);
            }
            self.allowed.push(guided.allowed().clone());
        }
    }
}

/// Counts of the drafts of a text: guessed, and right.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DraftStats {
    /// Tokens of drafts that steps checked.
    pub tokens: u64,
    /// Tokens of these that were right.
    pub accepted: u64,
}

/// The drafts of one text.
#[derive(Clone, Debug)]
pub struct Drafting {
    drafter: Box<dyn Drafter>,
    odds: Odds,
    /// The last guess, and its evidence.
    guess: Vec<u32>,
    evidence: u32,
    /// Tokens until a draft is tried that is not likely to pay, and that number at the last trial.
    trial: [u32; 2],
    stats: DraftStats,
}

impl Drafting {
    /// The drafts that a drafter makes. The prompt is not followed yet.
    pub fn new(drafter: Box<dyn Drafter>) -> Drafting {
        Drafting {
            drafter,
            odds: Odds::default(),
            guess: Vec::new(),
            evidence: 0,
            trial: [TRIALS[0]; 2],
            stats: DraftStats::default(),
        }
    }

    /// Follows tokens that the text has for certain, and compares the last guess with them.
    pub fn follow(&mut self, tokens: &[u32]) {
        for (evidence, (guessed, token)) in (self.evidence..).zip(self.guess.iter().zip(tokens)) {
            self.odds.note(evidence, guessed == token);
            if guessed != token {
                break;
            }
        }
        self.guess.clear();
        self.trial[0] = self.trial[0].saturating_sub(tokens.len() as u32);
        self.drafter.follow(tokens);
    }

    /// Notes what a step made of a draft.
    pub fn note(&mut self, tokens: usize, accepted: usize) {
        self.stats.tokens += tokens as u64;
        self.stats.accepted += accepted as u64;
    }

    /// Counts of the drafts so far.
    pub fn stats(&self) -> DraftStats {
        self.stats
    }

    /// The draft that is worth most behind the tokens that were followed: of at most `most` tokens below
    /// `vocab`, for a step that has `others` tokens besides the text's own one. Empty where none makes the
    /// step's tokens come faster.
    pub fn draft(
        &mut self,
        guided: Option<&Guided>,
        costs: &StepCosts,
        others: u32,
        most: usize,
        vocab: u32,
    ) -> Draft {
        let most = most.min(MAX_DRAFT);
        let mut draft = Draft::default();
        let wanted = if self.drafter.is_free() { most } else { self.length(costs, others, most) };
        if wanted == 0 {
            return draft;
        }
        self.guess.clear();
        self.evidence = self.drafter.guess(wanted, &mut self.guess).evidence;
        let known = self.guess.iter().take(wanted).take_while(|token| **token < vocab).count();
        self.guess.truncate(known);
        let length = if self.drafter.is_free() { self.length(costs, others, known) } else { known };
        draft.tokens.extend_from_slice(&self.guess[..length]);
        if let Some(guided) = guided {
            draft.hold_to(guided);
        }
        draft
    }

    /// How long a draft of at most `most` tokens should be.
    fn length(&mut self, costs: &StepCosts, others: u32, most: usize) -> usize {
        let seconds = costs.curve();
        let Some(plain) = seconds(others + 1) else { return 0 };
        let mut best = (f64::from(others + 1) / plain * WORTH, 0);
        for (length, expected) in self.odds.tokens(self.evidence, most).enumerate().skip(1) {
            let Some(took) = seconds(others + 1 + length as u32) else { break };
            let rate = (f64::from(others) + expected) / took;
            if rate > best.0 {
                best = (rate, length);
            }
        }
        let pays = best.1 > 0;
        if pays {
            self.trial = [TRIALS[0]; 2];
        } else if !self.drafter.is_free() && self.trial[0] == 0 && others == 0 {
            // Only what is tried can be known.
            let wait = (2 * self.trial[1]).min(TRIALS[1]);
            self.trial = [wait; 2];
            return most.min(1);
        }
        best.1
    }
}
