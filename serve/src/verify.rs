//! Which of the prompts that are found in the prefix cache are computed anew, and compared.

use crate::error::{Error, Result};

/// Which hits are compared.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Verifier {
    /// The part of a comparison that a hit is worth.
    share: f64,
    /// Comparisons that are due.
    due: f64,
}

impl Verifier {
    /// # Errors
    /// When the share is not from 0 to 100.
    pub(crate) fn new(percent: f64) -> Result<Verifier> {
        if !(0.0..=100.0).contains(&percent) {
            let what = format!("the share of cached prompts to compare is {percent}, expected 0 to 100");
            return Err(Error::BadInput(what));
        }
        let share = percent / 100.0;
        // The first hit is compared.
        Ok(Verifier { share, due: 1.0 - share })
    }

    /// Counts a hit; whether it is to be compared.
    pub(crate) fn takes(&mut self) -> bool {
        self.due += self.share;
        // Sums of shares are rounded.
        let is_due = self.share > 0.0 && self.due > 1.0 - 1e-9;
        if is_due {
            self.due -= 1.0;
        }
        is_due
    }
}
