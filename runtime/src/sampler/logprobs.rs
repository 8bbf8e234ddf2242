//! Logarithms of probabilities, for callers that score or show them.

use super::row::Row;
use super::simd::{TokenWeights, WantedWeights, scan, weigh};
use super::{SamplerError, SamplerScratch, top_k};

/// Logarithms of the probabilities that a model gives to tokens, to the base e.
#[derive(Clone, Debug, PartialEq)]
pub struct Logprobs {
    /// Logarithm for the token that was asked about.
    pub token: f32,
    /// How many tokens are likelier than it, or as likely with a lower id.
    pub rank: u32,
    /// The likeliest tokens with their logarithms, the likeliest first.
    pub top: Vec<(u32, f32)>,
}

pub(super) fn of(
    logits: &[f32],
    token: u32,
    most: usize,
    scratch: &mut SamplerScratch,
) -> Result<Logprobs, SamplerError> {
    let row = Row::new(logits, &[], None);
    let largest = scan(&row, &mut scratch.maxima).map_err(|token| SamplerError::Nan { token })?;
    if largest == f32::NEG_INFINITY {
        return Err(SamplerError::NoneLeft);
    }
    let weights = TokenWeights::new(largest, 1.0);
    let wanted = WantedWeights { least: 0.0, all: true };
    let total = weigh(&row, weights, wanted, &scratch.maxima, &mut [], &mut scratch.sums).all;
    let largest = largest.min(f32::MAX);
    let log = |logit: f32| (f64::from(logit.min(f32::MAX)) - f64::from(largest) - libm::log(total)) as f32;
    let most = most.min(row.len());
    if most > 0 {
        top_k::select(&row, most, scratch);
    }
    let top = scratch.candidates[..most.min(scratch.candidates.len())].iter();
    let own = logits.get(token as usize).copied().unwrap_or(f32::NEG_INFINITY);
    let before = |(id, logit): (usize, &f32)| *logit > own || *logit == own && (id as u32) < token;
    let rank = logits.iter().enumerate().filter(|entry| before(*entry)).count() as u32;
    Ok(Logprobs { token: log(own), rank, top: top.map(|c| (c.token, log(c.logit))).collect() })
}
