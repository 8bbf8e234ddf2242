//! Following one text.

use crate::error::Error;
use crate::lexicon::Lexicon;
use crate::mask::Mask;
use crate::parser::TokenMatcher;
use crate::rule::Rule;
use std::fmt;
use std::sync::Arc;

/// The tokens that may come next in one text.
#[derive(Clone)]
pub struct Constraint {
    parser: TokenMatcher,
    mask: Mask,
    /// Whether `mask` is that of the text so far.
    is_fresh: bool,
    /// Whether the text has ended.
    is_done: bool,
    ends: Arc<[u32]>,
    /// The token that came last.
    last: Option<u32>,
    /// Whether the tokenizer spells texts exactly. Without that no token must come.
    is_exact: bool,
    /// Tokens that must come next, once they were looked for.
    forced: Option<Vec<u32>>,
}

impl fmt::Debug for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Constraint").field("is_done", &self.is_done).finish_non_exhaustive()
    }
}

impl Constraint {
    /// A constraint of a text that has not begun. It is made on another thread, with a deep stack; the caller
    /// waits.
    ///
    /// # Errors
    /// When the rule has a mistake, asks for what is not supported, or is too large.
    pub fn new(lexicon: &Lexicon, rule: &Rule) -> Result<Constraint, Error> {
        let mut constraint = Constraint {
            parser: TokenMatcher::new(lexicon, rule)?,
            mask: Mask::new(lexicon.width),
            is_fresh: false,
            is_done: false,
            ends: lexicon.ends.as_slice().into(),
            last: None,
            is_exact: lexicon.is_exact,
            forced: None,
        };
        // A constraint that can never be begun is found here.
        match constraint.mask() {
            Err(Error::Stuck(reason)) => {
                Err(Error::Rule { what: format!("{} cannot be followed", rule.name()), reason })
            }
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
        let must_come = self.forced().first().copied();
        let may_end = self.is_done || self.parser.may_end()?;
        self.mask.clear();
        if let Some(id) = must_come {
            self.mask.allow(id);
        } else if !self.is_done {
            match self.parser.mask()? {
                Some(bits) => self.mask.assign(bits.as_slice()),
                None if may_end => self.is_done = true,
                None => return Err(Error::Stuck("no token of the vocabulary may come next".to_owned())),
            }
        }
        if may_end {
            self.ends.iter().for_each(|id| self.mask.allow(*id));
        }
        Ok(())
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
        if !self.parser.accept(id)? {
            if !self.ends.contains(&id) || !self.parser.may_end()? {
                return Err(Error::NotAllowed { id });
            }
            self.is_done = true;
        }
        self.is_done |= self.parser.is_stopped();
        self.is_fresh = false;
        self.last = Some(id);
        if self.is_exact {
            // Behind a token that had to come, the others still have to.
            self.forced.take_if(|ids| ids.len() < 2 || ids.remove(0) != id);
        }
        Ok(())
    }

    /// Tokens that must come next, in order, as the tokenizer writes them; none where there is a choice. Of
    /// a long text that must come, these are the first tokens. The caller gives those that it takes to
    /// [`Constraint::accept`].
    pub fn forced(&mut self) -> Vec<u32> {
        if self.is_done || !self.is_exact {
            return Vec::new();
        }
        if self.forced.is_none() {
            // A failure comes again with the mask.
            self.forced = self.parser.forced(self.last).ok();
        }
        self.forced.clone().unwrap_or_default()
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
