//! How often guesses are right, by what speaks for them.

/// Where ranges of evidence begin, behind the first.
const RANGES: [u32; 5] = [2, 4, 8, 16, 24];
/// The share of a count that remains when the next one comes: about the last fifty matter.
const KEPT: f64 = 0.98;
/// Right and wrong guesses that are taken for granted at the start, by range. The longer a match, the surer
/// it is. One of 24 tokens is a copy, which is likely to hold for a hundred more: drafts begin with about 64
/// tokens there. A quarter of a wrong guess says that, so that the first real one counts for much more.
const PRIORS: [[f64; 2]; RANGES.len() + 1] =
    [[1.0, 2.0], [1.0, 2.0], [1.0, 1.0], [3.0, 1.0], [6.0, 1.0], [32.0, 0.25]];

/// Right and wrong guesses of a text.
#[derive(Clone, Debug)]
pub(super) struct Odds([[f64; 2]; PRIORS.len()]);

impl Default for Odds {
    fn default() -> Odds {
        Odds(PRIORS)
    }
}

fn range(evidence: u32) -> usize {
    RANGES.partition_point(|from| *from <= evidence)
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
