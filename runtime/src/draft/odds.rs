//! How often guesses are right, by what speaks for them.

/// Ranges of evidence, each twice the one before: 0 and 1, 2 and 3, 4 to 7, and so on.
const RANGES: usize = 8;
/// The share of a count that remains when the next one comes: about the last fifty matter.
const KEPT: f64 = 0.98;
/// Right and wrong guesses that are taken for granted at the start. The longer a match, the surer it is: one
/// that has held for n tokens is likely to hold for about as many more.
const PRIORS: [[f64; 2]; RANGES] =
    [[1.0, 2.0], [1.0, 2.0], [1.0, 1.0], [3.0, 1.0], [6.0, 1.0], [12.0, 1.0], [24.0, 1.0], [48.0, 1.0]];

/// Right and wrong guesses of a text.
#[derive(Clone, Debug)]
pub(super) struct Odds([[f64; 2]; RANGES]);

impl Default for Odds {
    fn default() -> Odds {
        Odds(PRIORS)
    }
}

fn range(evidence: u32) -> usize {
    (evidence.max(1).ilog2() as usize).min(RANGES - 1)
}

impl Odds {
    /// Notes whether a token that was guessed with this evidence came.
    pub(super) fn note(&mut self, evidence: u32, is_right: bool) {
        let counts = &mut self.0[range(evidence)];
        counts.iter_mut().for_each(|count| *count *= KEPT);
        counts[usize::from(!is_right)] += 1.0;
    }

    /// How likely a token is right that is guessed with this evidence.
    pub(super) fn likelihood(&self, evidence: u32) -> f64 {
        let [right, wrong] = self.0[range(evidence)];
        right / (right + wrong)
    }

    /// By length of a draft from 0 on, up to `most`: the tokens that a step with it adds to the text, as is
    /// to be expected. Its first token has the evidence.
    pub(super) fn tokens(&self, evidence: u32, most: usize) -> impl Iterator<Item = f64> {
        let steps = (0..most as u32).scan((1.0, 1.0), move |(all, expected), at| {
            *all *= self.likelihood(evidence.saturating_add(at));
            *expected += *all;
            Some(*expected)
        });
        std::iter::once(1.0).chain(steps)
    }
}
