//! Texts that are held to a form: what may come next is decided elsewhere, token by token.

use crate::sampler::TokenMask;
use std::collections::VecDeque;
use std::fmt;

/// A guide decides which tokens may come next in one text, as a grammar does.
pub trait Guide: fmt::Debug + Send + Sync {
    /// The tokens that may come next; `None` when the text is complete, so that nothing can follow.
    ///
    /// # Errors
    /// When the text cannot be followed any further.
    fn allowed(&mut self) -> Result<Option<TokenMask>, GuideError>;

    /// Takes the next token of the text.
    ///
    /// # Errors
    /// When the token may not come next, or the text cannot be followed any further.
    fn accept(&mut self, token: u32) -> Result<(), GuideError>;

    /// Tokens that must come next, in order; none where there is a choice.
    fn forced(&mut self) -> Vec<u32>;

    /// Another guide that stands where this one does.
    fn fork(&self) -> Box<dyn Guide>;
}

impl Clone for Box<dyn Guide> {
    fn clone(&self) -> Box<dyn Guide> {
        self.fork()
    }
}

/// Why a text cannot be held to its form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct GuideError(pub String);

/// A guide on its way through a text. Between two tokens it knows what may come next, so that choosing a
/// token waits for nothing.
#[derive(Clone, Debug)]
pub struct Guided {
    guide: Box<dyn Guide>,
    allowed: TokenMask,
    forced: VecDeque<u32>,
}

impl Guided {
    /// A text that has not begun. Its first token is chosen, also where there is only one.
    ///
    /// # Errors
    /// When no token can come first.
    pub fn new(mut guide: Box<dyn Guide>) -> Result<Guided, GuideError> {
        match guide.allowed()? {
            Some(allowed) => Ok(Guided { guide, allowed, forced: VecDeque::new() }),
            None => Err(GuideError("the form of the text allows only the empty text".to_owned())),
        }
    }

    /// The tokens that may be chosen next, while none is forced.
    pub fn allowed(&self) -> &TokenMask {
        &self.allowed
    }

    /// Whether the next token must come, without being chosen.
    pub fn is_forced(&self) -> bool {
        !self.forced.is_empty()
    }

    /// Takes the next token that must come. The caller gives it to [`Guided::accept`], as it does with a
    /// chosen one.
    pub fn next_forced(&mut self) -> Option<u32> {
        self.forced.pop_front()
    }

    /// Follows a token, and says whether the text is complete with it.
    ///
    /// # Errors
    /// When the token may not come next, or the text cannot be followed any further.
    pub fn accept(&mut self, token: u32) -> Result<bool, GuideError> {
        self.guide.accept(token)?;
        if self.forced.is_empty() {
            self.forced = self.guide.forced().into();
        }
        if self.forced.is_empty() {
            match self.guide.allowed()? {
                Some(allowed) => self.allowed = allowed,
                None => return Ok(true),
            }
        }
        Ok(false)
    }
}
