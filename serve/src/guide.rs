//! Constraints as the sampler takes them.

use kernmill_constrain::{Constraint, Error, Mask};
use kernmill_runtime::{Guide, GuideError, TokenMask};

/// A mask as the sampler takes it: what it forbids has the logit minus infinity, before temperature.
pub fn token_mask(mask: &Mask) -> TokenMask {
    TokenMask::from_words(mask.words().to_vec())
}

/// A constraint on its way through a text.
#[derive(Clone, Debug)]
pub(crate) struct ConstraintFollower(pub Constraint);

impl Guide for ConstraintFollower {
    fn allowed(&mut self) -> Result<Option<TokenMask>, GuideError> {
        let mask = token_mask(self.0.mask().map_err(stuck)?);
        Ok((!self.0.is_done()).then_some(mask))
    }

    fn accept(&mut self, token: u32) -> Result<(), GuideError> {
        self.0.accept(token).map_err(stuck)
    }

    fn forced(&mut self) -> Vec<u32> {
        self.0.forced()
    }

    fn fork(&self) -> Box<dyn Guide> {
        Box::new(self.clone())
    }
}

fn stuck(error: Error) -> GuideError {
    GuideError(error.to_string())
}
