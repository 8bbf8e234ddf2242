//! Choosing the next token from a row of logits, without copying it.
//!
//! The order, each stage working on the last one's result: repetition, presence and frequency penalties;
//! logit bias; the mask of allowed tokens; temperature; top-k; top-p; min-p; one draw. Ties go to the lower
//! token id. A draw depends on the seed and the position alone, never on what was drawn before: a text that
//! goes on elsewhere, or is checked against a draft, has the same tokens. docs/dev/numerics.md defines every
//! bit.

mod draw;
mod logprobs;
mod params;
mod row;
mod simd;
#[cfg(test)]
mod tests;
mod top_k;

pub use logprobs::Logprobs;
pub use params::{SamplerError, SamplerParams};
pub use row::TokenMask;

use kernmill_os::float_env::FloatEnv;
use row::Row;
use std::collections::BTreeMap;

/// A sampler with the history of one sequence.
#[derive(Debug)]
pub struct Sampler {
    params: SamplerParams,
    seed: u64,
    /// Tokens of prompt and output that penalties ask for, with their occurrences in the output.
    seen: BTreeMap<u32, u32>,
    /// Tokens whose logits are not the row's, ascending.
    changed: Vec<(u32, f32)>,
    scratch: SamplerScratch,
}

/// Memory of the passes over a row, reused from token to token.
#[derive(Debug, Default)]
struct SamplerScratch {
    /// Largest logit of every block.
    maxima: Vec<f32>,
    /// Weights of all tokens, by blocks, where top-p asks for them; none otherwise.
    weights: Vec<[f32; row::BLOCK]>,
    /// Sum of the weights of every block that may be drawn.
    sums: Vec<f32>,
    /// Sum of the weights of every block after the next cut.
    narrowed: Vec<f32>,
    /// Block maxima to choose among.
    ordered: Vec<f32>,
    /// Tokens that top-k keeps.
    candidates: Vec<top_k::TokenCandidate>,
}

impl Sampler {
    /// A sampler for a vocabulary of `vocab` tokens.
    ///
    /// # Errors
    /// When a parameter is out of range.
    pub fn new(params: SamplerParams, vocab: usize) -> Result<Sampler, SamplerError> {
        params.check(vocab)?;
        let seed = params.seed.unwrap_or_else(|| fastrand::u64(..));
        let blocks = vocab.div_ceil(row::BLOCK);
        let scratch = SamplerScratch {
            maxima: Vec::with_capacity(blocks),
            weights: if params.top_p < 1.0 { vec![[0.0; row::BLOCK]; blocks] } else { Vec::new() },
            sums: Vec::with_capacity(blocks),
            narrowed: Vec::with_capacity(blocks),
            ordered: Vec::with_capacity(blocks),
            candidates: Vec::with_capacity(params.top_k.map_or(0, |k| k.min(vocab))),
        };
        Ok(Sampler { params, seed, seen: BTreeMap::new(), changed: Vec::new(), scratch })
    }

    /// Tells the sampler the prompt, which the repetition penalty counts.
    pub fn prompt(&mut self, tokens: &[u32]) {
        if self.params.repetition_penalty != 1.0 {
            tokens.iter().for_each(|token| {
                self.seen.entry(*token).or_insert(0);
            });
        }
    }

    /// Tells the sampler what it chose before, as tokens and how often each: a text that goes on.
    pub fn resume(&mut self, written: &[(u32, u32)]) {
        if self.params.counts_tokens() {
            for (token, count) in written {
                *self.seen.entry(*token).or_insert(0) += count;
            }
        }
    }

    /// Chooses the token that follows `position` tokens, and remembers it.
    ///
    /// # Errors
    /// On NaN, and when nothing can be chosen.
    pub fn sample(&mut self, logits: &[f32], position: u64) -> Result<u32, SamplerError> {
        let token = self.choose(logits, position, None)?;
        self.accept(token);
        Ok(token)
    }

    /// Chooses the token that follows `position` tokens, among the allowed ones, without remembering it.
    ///
    /// # Errors
    /// On NaN, and when nothing can be chosen.
    pub fn choose(
        &mut self,
        logits: &[f32],
        position: u64,
        allowed: Option<&TokenMask>,
    ) -> Result<u32, SamplerError> {
        let _env = FloatEnv::standard();
        self.change(logits);
        let row = Row::new(logits, &self.changed, allowed);
        let largest =
            simd::scan(&row, &mut self.scratch.maxima).map_err(|token| SamplerError::Nan { token })?;
        if largest == f32::NEG_INFINITY {
            return Err(SamplerError::NoneLeft);
        }
        if self.params.temperature == 0.0 {
            return Ok(row.first_of(largest, &self.scratch.maxima));
        }
        let weights = simd::TokenWeights::new(largest, self.params.temperature);
        match self.params.top_k.filter(|k| *k < logits.len()) {
            Some(k) => top_k::draw(&row, k, weights, &self.params, (self.seed, position), &mut self.scratch),
            None => draw::draw(&row, weights, &self.params, (self.seed, position), &mut self.scratch),
        }
    }

    /// Chooses as [`Sampler::choose`] does, as if it had accepted the tokens `before` last.
    ///
    /// # Errors
    /// On NaN, and when nothing can be chosen.
    pub fn choose_after(
        &mut self,
        before: &[u32],
        logits: &[f32],
        position: u64,
        allowed: Option<&TokenMask>,
    ) -> Result<u32, SamplerError> {
        if !self.params.counts_tokens() || before.is_empty() {
            return self.choose(logits, position, allowed);
        }
        let seen = self.seen.clone();
        before.iter().for_each(|token| self.accept(*token));
        let chosen = self.choose(logits, position, allowed);
        self.seen = seen;
        chosen
    }

    /// Remembers a token of the output, which the penalties count.
    pub fn accept(&mut self, token: u32) {
        if self.params.counts_tokens() {
            *self.seen.entry(token).or_insert(0) += 1;
        }
    }

    /// Logarithms of the probabilities that the model gives to `token` and to the `most` likeliest tokens,
    /// before any penalty, bias, mask or temperature.
    ///
    /// # Errors
    /// On NaN, and when every logit is minus infinity.
    pub fn logprobs(&mut self, logits: &[f32], token: u32, most: usize) -> Result<Logprobs, SamplerError> {
        let _env = FloatEnv::standard();
        logprobs::of(logits, token, most, &mut self.scratch)
    }

    /// Fills in the tokens whose logits penalties and bias change. A token that is forbidden and infinitely
    /// likely is forbidden.
    fn change(&mut self, logits: &[f32]) {
        let p = &self.params;
        self.changed.clear();
        for (token, count) in &self.seen {
            let Some(&logit) = logits.get(*token as usize) else { continue };
            let mut logit = match p.repetition_penalty {
                1.0 => logit,
                penalty if logit > 0.0 => logit / penalty,
                penalty => logit * penalty,
            };
            if *count > 0 {
                logit -= p.presence_penalty + p.frequency_penalty * *count as f32;
            }
            self.changed.push((*token, logit));
        }
        for (token, bias) in &p.logit_bias {
            let Some(&logit) = logits.get(*token as usize) else { continue };
            match self.changed.binary_search_by_key(token, |(token, _)| *token) {
                Ok(index) => self.changed[index].1 += bias,
                Err(index) => self.changed.insert(index, (*token, logit + bias)),
            }
        }
        for (token, logit) in &mut self.changed {
            if logit.is_nan() && !logits[*token as usize].is_nan() {
                *logit = f32::NEG_INFINITY;
            }
        }
    }
}
