//! Drawing among the k likeliest tokens.

use super::draw::uniform;
use super::row::{BLOCK, Row};
use super::simd::TokenWeights;
use super::{SamplerError, SamplerParams, SamplerScratch};
use std::cmp::Ordering;

/// A token that is still in the running.
#[derive(Clone, Copy, Debug)]
pub(super) struct TokenCandidate {
    pub(super) token: u32,
    pub(super) logit: f32,
    weight: f32,
}

/// Leaves the k likeliest tokens of a row in `scratch.candidates`, the likeliest first. `scratch.maxima` has
/// been filled in.
pub(super) fn select(row: &Row<'_>, k: usize, scratch: &mut SamplerScratch) {
    let SamplerScratch { maxima, ordered, candidates, .. } = scratch;
    // As many blocks have a token of at least this logit, so k tokens have.
    let least = match k < maxima.len() {
        true => {
            ordered.clone_from(maxima);
            *ordered.select_nth_unstable_by(k - 1, |a, b| b.total_cmp(a)).1
        }
        false => f32::NEG_INFINITY,
    };
    candidates.clear();
    let mut buffer = [0.0; BLOCK];
    for (block, _) in maxima.iter().enumerate().filter(|(_, largest)| **largest >= least) {
        let values = row.block(block, &mut buffer);
        for (i, &logit) in values.iter().enumerate() {
            if logit >= least && logit > f32::NEG_INFINITY {
                candidates.push(TokenCandidate { token: (block * BLOCK + i) as u32, logit, weight: 0.0 });
            }
        }
    }
    if k < candidates.len() {
        candidates.select_nth_unstable_by(k - 1, likelier);
        candidates.truncate(k);
    }
    candidates.sort_unstable_by(likelier);
}

fn likelier(a: &TokenCandidate, b: &TokenCandidate) -> Ordering {
    b.logit.total_cmp(&a.logit).then(a.token.cmp(&b.token))
}

/// Draws a token of a row that has one.
pub(super) fn draw(
    row: &Row<'_>,
    k: usize,
    weights: TokenWeights,
    params: &SamplerParams,
    at: (u64, u64),
    scratch: &mut SamplerScratch,
) -> Result<u32, SamplerError> {
    select(row, k, scratch);
    let candidates = &mut scratch.candidates;
    let mut total = 0.0;
    for candidate in candidates.iter_mut() {
        candidate.weight = weights.of(candidate.logit);
        total += f64::from(candidate.weight);
    }
    if params.top_p < 1.0 {
        let target = f64::from(params.top_p) * total;
        let mut sum = 0.0;
        let reached = candidates.iter().position(|candidate| {
            sum += f64::from(candidate.weight);
            sum >= target
        });
        candidates.truncate(reached.map_or(candidates.len(), |last| last + 1));
    }
    candidates.retain(|candidate| candidate.weight > 0.0 && candidate.weight >= params.min_p);
    let kept: f64 = candidates.iter().map(|candidate| f64::from(candidate.weight)).sum();
    let mut left = uniform(at, 0) * kept;
    for candidate in candidates.iter() {
        left -= f64::from(candidate.weight);
        if left < 0.0 {
            return Ok(candidate.token);
        }
    }
    // Rounding may leave a remainder.
    candidates.last().map(|candidate| candidate.token).ok_or(SamplerError::NoneLeft)
}
