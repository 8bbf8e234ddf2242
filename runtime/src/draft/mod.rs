//! Drafts: guesses how a text goes on, which one step checks together.
//!
//! A step that checks a draft runs the text's last token and the draft's tokens at once, and reads every
//! weight once for all of them. Behind each of these tokens the sampler chooses as it would have alone; as
//! long as it chooses the draft's next token, the text has grown by it. So a draft never changes a text,
//! whatever it says: it only changes in how many steps the text is made. That holds for drawn texts too, as
//! what is drawn depends on the seed and the position alone.
//!
//! [`Drafter`] is what guesses. [`SuffixDrafter`] finds the end of the text earlier in the text. [`Drafting`]
//! decides how much of a guess is worth checking, by the measured cost of steps ([`StepCosts`]) and by how
//! often earlier guesses were right.

mod check;
mod costs;
mod drafting;
mod index;
mod model;
mod odds;
mod suffix;
#[cfg(test)]
mod tests;

pub use check::{Chosen, DraftCheck};
pub use costs::StepCosts;
pub use drafting::{Draft, DraftStats, Drafting};
pub use index::SuffixIndex;
pub use model::ModelDrafter;
pub use suffix::{History, SuffixDrafter};

use std::fmt;

/// Most tokens of a draft: a step of 64 has one more, the text's last.
pub const MAX_DRAFT: usize = 63;

/// A drafter guesses how a text goes on. A wrong guess costs time and nothing else.
///
/// ```
/// use kernmill_runtime::draft::{Drafter, Guess};
///
/// /// Guesses that the last token comes again and again.
/// #[derive(Clone, Debug, Default)]
/// struct Stutter(Option<u32>);
///
/// impl Drafter for Stutter {
///     fn follow(&mut self, tokens: &[u32]) {
///         self.0 = tokens.last().copied().or(self.0);
///     }
///     fn guess(&mut self, most: usize, tokens: &mut Vec<u32>) -> Guess {
///         tokens.extend(self.0.iter().cycle().take(most));
///         Guess { evidence: 1 }
///     }
///     fn is_free(&self) -> bool {
///         true
///     }
///     fn fork(&self) -> Box<dyn Drafter> {
///         Box::new(self.clone())
///     }
/// }
/// let mut stutter = Stutter::default();
/// stutter.follow(&[5, 7]);
/// let mut tokens = Vec::new();
/// stutter.guess(3, &mut tokens);
/// assert_eq!(tokens, [7, 7, 7]);
/// ```
pub trait Drafter: fmt::Debug + Send + Sync {
    /// Follows tokens that the text has for certain: the prompt first, then the text as it grows.
    fn follow(&mut self, tokens: &[u32]);

    /// Adds at most `most` tokens that may come next to `tokens`, which is empty; none where it knows of
    /// none. Tokens past the vocabulary are cut off, with all that follow.
    fn guess(&mut self, most: usize, tokens: &mut Vec<u32>) -> Guess;

    /// Whether guessing takes next to no time. If so, guesses are made after every token, and compared with
    /// what comes, also while none is checked by a step.
    fn is_free(&self) -> bool;

    /// Another drafter that stands where this one does.
    fn fork(&self) -> Box<dyn Drafter>;
}

impl Clone for Box<dyn Drafter> {
    fn clone(&self) -> Box<dyn Drafter> {
        self.fork()
    }
}

/// The evidence for a guess.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Guess {
    /// How much speaks for the first token, in the drafter's own measure, such as the length of the match
    /// that the guess is taken from. Guesses with about as much evidence are expected to be right about as
    /// often; each token of a guess has one more than the token before.
    pub evidence: u32,
}
