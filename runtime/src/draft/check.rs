//! Choosing tokens behind each token of a draft.

use super::drafting::Draft;
use crate::sampler::{Logprobs, Sampler, SamplerError, TokenMask};

/// A token that was chosen, with its logarithms where they are wanted.
pub type Chosen = Result<(u32, Option<Logprobs>), SamplerError>;

/// A draft while a step computes its logits. Rows may come in any order; each is chosen from as if the
/// draft's tokens before it had come.
#[derive(Debug)]
pub struct DraftCheck<'a> {
    sampler: &'a mut Sampler,
    draft: &'a Draft,
    allowed: Option<&'a TokenMask>,
    /// Tokens before the first one that is chosen.
    position: u64,
    /// How many of the likeliest tokens are wanted with their logarithms; `None` if no logarithms are.
    top: Option<u32>,
    /// By row, as far as they have come.
    rows: Vec<Option<Chosen>>,
    /// The first row that is known to end the draft; those behind it are not looked at.
    end: usize,
}

impl<'a> DraftCheck<'a> {
    /// A check of a draft that follows `position` tokens. The first token is chosen among the `allowed` ones,
    /// those behind the draft's tokens among what the draft says. With `top` each chosen token gets its
    /// logarithm, and so many of the likeliest.
    pub fn new(
        sampler: &'a mut Sampler,
        draft: &'a Draft,
        allowed: Option<&'a TokenMask>,
        position: u64,
        top: Option<u32>,
    ) -> DraftCheck<'a> {
        let end = draft.tokens().len();
        DraftCheck { sampler, draft, allowed, position, top, rows: (0..=end).map(|_| None).collect(), end }
    }

    /// Takes the logits behind the text's last token (row 0), or behind a token of the draft (row 1 on).
    pub fn take(&mut self, row: usize, logits: &[f32]) {
        if row > self.end {
            return;
        }
        let allowed = if row == 0 { self.allowed } else { self.draft.allowed(row - 1) };
        let before = &self.draft.tokens()[..row];
        let position = self.position + row as u64;
        let token = self.sampler.choose_after(before, logits, position, allowed);
        if token.as_ref().ok() != self.draft.tokens().get(row) {
            self.end = row;
        }
        self.rows[row] = Some(token.and_then(|token| {
            let logprobs =
                self.top.map(|top| self.sampler.logprobs(logits, token, top as usize)).transpose()?;
            Ok((token, logprobs))
        }));
    }

    /// Logarithms of a row that nothing is chosen from; see [`Sampler::logprobs`].
    ///
    /// # Errors
    /// On NaN, and when every logit is minus infinity.
    pub fn logprobs(&mut self, logits: &[f32], token: u32) -> Result<Logprobs, SamplerError> {
        self.sampler.logprobs(logits, token, self.top.unwrap_or_default() as usize)
    }

    /// The tokens that were chosen: those of the draft as far as it is right, and the one behind. The sampler
    /// has not accepted them.
    ///
    /// # Panics
    /// When a row that counts has not come.
    pub fn finish(self) -> Vec<Chosen> {
        let rows = self.rows.into_iter().take(self.end + 1);
        rows.map(|row| row.expect("a step hands out the rows that it is asked for")).collect()
    }
}
