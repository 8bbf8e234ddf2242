//! Following one text.

use crate::error::{Error, one_line};
use crate::lexicon::Lexicon;
use crate::mask::Mask;
use crate::rule::Rule;
use llguidance::Matcher;
use llguidance::api::StopReason;
use llguidance::panic_utils::catch_unwind;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

/// What may come next in one text.
#[derive(Clone)]
pub struct Constraint {
    matcher: Matcher,
    mask: Mask,
    /// Whether `mask` is that of the text so far.
    is_fresh: bool,
    /// Whether the text has ended.
    is_done: bool,
    ends: Arc<[u32]>,
}

impl fmt::Debug for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Constraint").field("is_done", &self.is_done).finish_non_exhaustive()
    }
}

impl Constraint {
    /// A constraint of a text that has not begun.
    ///
    /// # Errors
    /// When the rule has a mistake, asks for what is not supported, or is too large.
    pub fn new(lexicon: &Lexicon, rule: &Rule) -> Result<Constraint, Error> {
        let wrong = |error: &dyn fmt::Display| {
            let what = format!("{} cannot be followed", rule.name());
            Error::Rule { what, reason: one_line(&error.to_string()) }
        };
        let grammar = rule.grammar()?;
        // A mistake in a schema must not end the program, whatever the reader makes of it.
        let parser = catch_unwind(AssertUnwindSafe(|| lexicon.factory.create_parser(grammar)));
        let parser = parser.map_err(|error| wrong(&error))?;
        let mut constraint = Constraint {
            matcher: Matcher::new(Ok(parser)),
            mask: Mask::new(lexicon.width),
            is_fresh: false,
            is_done: false,
            ends: lexicon.ends.as_slice().into(),
        };
        if let Some(error) = constraint.matcher.get_error() {
            return Err(wrong(&error));
        }
        // What can never be begun is found here.
        match constraint.mask() {
            Err(Error::Stuck(reason)) => Err(wrong(&reason)),
            Err(error) => Err(error),
            Ok(_) => Ok(constraint),
        }
    }

    /// The tokens that may come next: the caller picks one. When the text is complete, these are the tokens
    /// that end it.
    ///
    /// # Errors
    /// When that is too much work, or the rule leaves no way on.
    pub fn mask(&mut self) -> Result<&Mask, Error> {
        if !self.is_fresh {
            self.compute()?;
            self.is_fresh = true;
        }
        Ok(&self.mask)
    }

    fn compute(&mut self) -> Result<(), Error> {
        let may_end = self.is_done || self.may_end()?;
        self.mask.clear();
        if !self.is_done {
            match self.matcher.compute_mask() {
                Ok(bits) => self.mask.assign(bits.as_slice()),
                // The matcher has failed with this, and only its message tells why.
                Err(error) if error.to_string().contains(&format!("{:?}", StopReason::NoExtensionBias)) => {
                    if !may_end {
                        return Err(Error::Stuck("no token of the vocabulary may come next".to_owned()));
                    }
                    self.is_done = true;
                }
                Err(error) => return Err(stuck(&error)),
            }
        }
        if may_end {
            self.ends.iter().for_each(|id| self.mask.allow(*id));
        }
        Ok(())
    }

    /// Whether the text may end here.
    fn may_end(&mut self) -> Result<bool, Error> {
        self.matcher.is_accepting().map_err(|error| stuck(&error))
    }

    /// Takes the next token of the text.
    ///
    /// # Errors
    /// When it may not come next, in which case nothing has changed; and when following it is too much work.
    pub fn accept(&mut self, id: u32) -> Result<(), Error> {
        if self.is_done {
            return Err(Error::AfterEnd { id });
        }
        if id as usize >= self.mask.width() {
            return Err(Error::NotAllowed { id });
        }
        let taken = self.matcher.try_consume_tokens(&[id]).map_err(|error| stuck(&error))?;
        if taken == 0 {
            if !self.ends.contains(&id) || !self.may_end()? {
                return Err(Error::NotAllowed { id });
            }
            self.is_done = true;
        }
        self.is_done |= self.matcher.is_stopped();
        self.is_fresh = false;
        Ok(())
    }

    /// Tokens that must come next, in order, as the tokenizer writes them; none where there is a choice. The
    /// caller gives those that it takes to [`Constraint::accept`].
    pub fn forced(&mut self) -> Vec<u32> {
        if self.is_done { Vec::new() } else { self.matcher.compute_ff_tokens() }
    }

    /// Number of the logits of the model that the constraint is for.
    pub fn width(&self) -> usize {
        self.mask.width()
    }

    /// Whether the text is complete: nothing can follow, or a token that ends it came.
    pub fn is_done(&self) -> bool {
        self.is_done
    }
}

fn stuck(error: &dyn fmt::Display) -> Error {
    Error::Stuck(one_line(&error.to_string()))
}
