//! The drafter that finds the end of the text earlier in the text.

use super::index::SuffixIndex;
use super::{Drafter, Guess};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Tokens of a text that are kept: more than any context has, so that nothing of one is forgotten.
const TEXT: usize = 1 << 22;
/// Tokens of earlier texts that are kept.
const EARLIER: usize = 1 << 16;

/// Texts of the past, in which the ends of new ones are looked up too. Clones share it.
///
/// ```
/// use kernmill_runtime::draft::{Drafter, History, SuffixDrafter};
///
/// let history = History::default();
/// history.add(&[1, 2, 3, 4, 5]);
/// let mut drafter = SuffixDrafter::with_history(history);
/// drafter.follow(&[9, 1, 2, 3]);
/// let mut tokens = Vec::new();
/// drafter.guess(8, &mut tokens);
/// assert_eq!(tokens, [4, 5]);
/// ```
#[derive(Clone, Debug)]
pub struct History(Arc<Mutex<SuffixIndex>>);

impl Default for History {
    fn default() -> History {
        History(Arc::new(Mutex::new(SuffixIndex::new(EARLIER))))
    }
}

impl History {
    /// Adds a text. The oldest ones make way.
    pub fn add(&self, tokens: &[u32]) {
        let mut index = self.index();
        index.extend(&tokens[tokens.len().saturating_sub(EARLIER / 2)..]);
        index.end_text();
    }

    fn index(&self) -> MutexGuard<'_, SuffixIndex> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Guesses that what followed the end of the text where it occurred before follows again: in prompts that
/// are quoted, code that is edited, text that repeats itself. The evidence is the length of the match.
#[derive(Clone, Debug)]
pub struct SuffixDrafter {
    text: SuffixIndex,
    history: Option<History>,
}

impl Default for SuffixDrafter {
    fn default() -> SuffixDrafter {
        SuffixDrafter { text: SuffixIndex::new(TEXT), history: None }
    }
}

impl SuffixDrafter {
    /// A drafter that looks into the text alone.
    pub fn boxed() -> Box<dyn Drafter> {
        Box::new(SuffixDrafter::default())
    }

    /// Looks into a text that may be repeated, too.
    #[must_use]
    pub fn with_prediction(mut self, tokens: &[u32]) -> SuffixDrafter {
        self.text.extend(tokens);
        self.text.end_text();
        self
    }

    /// A drafter that looks into earlier texts where they match longer than the text itself.
    pub fn with_history(history: History) -> SuffixDrafter {
        SuffixDrafter { history: Some(history), ..SuffixDrafter::default() }
    }
}

impl Drafter for SuffixDrafter {
    fn follow(&mut self, tokens: &[u32]) {
        self.text.extend(tokens);
    }

    fn guess(&mut self, most: usize, tokens: &mut Vec<u32>) -> Guess {
        let own = self.text.find(self.text.tokens());
        let length = own.map_or(0, |own| own.length);
        if let Some(history) = &self.history {
            let index = history.index();
            if let Some(found) = index.find(self.text.tokens()).filter(|found| found.length > length) {
                index.copy(found.next, most, tokens);
                return Guess { evidence: found.length };
            }
        }
        if let Some(own) = own {
            self.text.copy(own.next, most, tokens);
        }
        Guess { evidence: length }
    }

    fn is_free(&self) -> bool {
        true
    }

    fn fork(&self) -> Box<dyn Drafter> {
        Box::new(self.clone())
    }
}
