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
//! [`ModelDrafter`] asks a small model.

mod check;
mod costs;
mod drafting;
mod index;
mod odds;
mod suffix;
#[cfg(test)]
mod tests;

use crate::engine::{Engine, EngineError, SeqId, Steps};
use crate::sampler::{Sampler, SamplerParams};
pub use check::{Chosen, DraftCheck};
pub use costs::StepCosts;
pub use drafting::{Draft, DraftStats, Drafting};
pub use index::SuffixIndex;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
pub use suffix::{History, SuffixDrafter};

/// Most tokens of a draft: a step of 256 has one more, the text's last.
pub const MAX_DRAFT: usize = 255;

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

/// Guesses what a small model would say next: its likeliest tokens. The small model has the vocabulary of the
/// one whose texts are drafted. Forks share its engine, each with a sequence of its own.
///
/// The engine runs while the large model waits, so it is best made with one thread: two pools of workers on
/// the same cores are in each other's way.
#[derive(Debug)]
pub struct ModelDrafter {
    small: Arc<Small>,
    /// The text so far.
    text: Vec<u32>,
    /// The tokens that the sequence has: those of the text, and guesses behind them.
    held: Vec<u32>,
    sequence: Option<SeqId>,
    logits: Vec<f32>,
}

/// The small model's engine.
struct Small(Mutex<Engine>);

impl fmt::Debug for Small {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Small")
    }
}

impl Small {
    /// Does something with the engine. Guesses are all that a panic can have spoilt.
    fn with<R>(&self, work: impl FnOnce(&mut Engine) -> R) -> R {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl ModelDrafter {
    /// A drafter that asks an engine of the small model. Texts that are longer than its context are not
    /// drafted, and neither are those that find no free sequence.
    pub fn new(small: Engine) -> ModelDrafter {
        ModelDrafter::of(Arc::new(Small(Mutex::new(small))))
    }

    fn of(small: Arc<Small>) -> ModelDrafter {
        ModelDrafter { small, text: Vec::new(), held: Vec::new(), sequence: None, logits: Vec::new() }
    }

    /// Appends what the small model says next to `tokens`, as far as nothing is wrong.
    fn ask(&mut self, most: usize, tokens: &mut Vec<u32>) -> Result<(), EngineError> {
        let ModelDrafter { small, text, held, sequence, logits } = self;
        small.with(|engine| {
            let room = (engine.context() as usize).saturating_sub(text.len());
            if text.is_empty() || room == 0 {
                return Ok(());
            }
            let id = match *sequence {
                Some(id) => id,
                None => *sequence.insert(engine.create()?),
            };
            // The last token is run once more, for its logits.
            let alike = text.iter().zip(held.iter()).take_while(|(a, b)| a == b).count();
            let kept = alike.min(text.len() - 1);
            held.truncate(kept);
            if engine.truncate(id, kept as u32).is_err() {
                // A layer with a window does not go back as far.
                engine.drop_sequence(id);
                *sequence = None;
                held.clear();
                return Ok(());
            }
            let mut sampler = Sampler::new(SamplerParams::default(), engine.model().vocab as usize)?;
            let mut next = text[kept..].to_vec();
            for _ in 0..most.min(room) {
                engine.append(id, &next, logits)?;
                held.extend_from_slice(&next);
                let token = sampler.choose(logits, held.len() as u64, None)?;
                tokens.push(token);
                next = vec![token];
            }
            Ok(())
        })
    }
}

impl Drafter for ModelDrafter {
    fn follow(&mut self, tokens: &[u32]) {
        self.text.extend_from_slice(tokens);
    }

    fn guess(&mut self, most: usize, tokens: &mut Vec<u32>) -> Guess {
        // A small model that fails has said what it has said.
        let _ = self.ask(most, tokens);
        Guess { evidence: 0 }
    }

    fn is_free(&self) -> bool {
        false
    }

    fn fork(&self) -> Box<dyn Drafter> {
        let mut fork = ModelDrafter::of(Arc::clone(&self.small));
        fork.text.clone_from(&self.text);
        Box::new(fork)
    }
}

impl Drop for ModelDrafter {
    fn drop(&mut self) {
        if let Some(id) = self.sequence.take() {
            self.small.with(|engine| engine.drop_sequence(id));
        }
    }
}
