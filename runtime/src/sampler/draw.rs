//! Drawing a token from a whole vocabulary, with top-p and min-p.
//!
//! The tokens that top-p keeps are never listed. A token is drawn from all, and is one of them if those that
//! are likelier do not reach top-p together. If they do, the next draw is from those: each draw leaves fewer,
//! and the likeliest token is always kept. The result has the same distribution as a draw from the list.

use super::row::{BLOCK, Row};
use super::simd::{TokenRank, TokenWeights, WantedWeights, weigh, weigh_before};
use super::{SamplerError, SamplerParams, SamplerScratch};

/// The number in [0, 1) that draw `attempt` at a position takes. The mixing is SplitMix64's (Steele, Lea,
/// Flood 2014).
pub(super) fn uniform((seed, position): (u64, u64), attempt: u64) -> f64 {
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
    let state = mix(seed.wrapping_add(STEP)).wrapping_add(position.wrapping_mul(STEP));
    let bits = mix(mix(state).wrapping_add(attempt.wrapping_mul(STEP)));
    (bits >> 11) as f64 * (-53f64).exp2()
}

fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}

/// Draws a token of a row that has one.
pub(super) fn draw(
    row: &Row<'_>,
    weights: TokenWeights,
    params: &SamplerParams,
    at: (u64, u64),
    scratch: &mut SamplerScratch,
) -> Result<u32, SamplerError> {
    let SamplerScratch { maxima, weights: list, sums, narrowed, .. } = scratch;
    let wanted = WantedWeights { least: params.min_p, all: params.top_p < 1.0 };
    let total = weigh(row, weights, wanted, maxima, list, sums);
    let (mut kept, target) = (total.kept, f64::from(params.top_p) * total.all);
    // Tokens that are likelier than this one may be drawn.
    let mut below = None;
    for attempt in 0.. {
        let drawn = find(row, weights, wanted.least, below, uniform(at, attempt) * kept, sums);
        let Some(place) = drawn else { break };
        if params.top_p >= 1.0 {
            return Ok(place.token);
        }
        let before = weigh_before(row, weights, wanted, place, maxima, list, narrowed);
        if before.all < target || before.kept == 0.0 {
            return Ok(place.token);
        }
        (kept, below) = (before.kept, Some(place));
        std::mem::swap(sums, narrowed);
    }
    Err(SamplerError::NoneLeft)
}

/// The token at which the weights of those that may be drawn, added up by token id, pass `target`.
fn find(
    row: &Row<'_>,
    weights: TokenWeights,
    least: f32,
    below: Option<TokenRank>,
    target: f64,
    sums: &[f32],
) -> Option<TokenRank> {
    let mut left = target;
    let mut last = None;
    for (block, sum) in sums.iter().enumerate().filter(|(_, sum)| **sum > 0.0) {
        last = Some(block);
        if left < f64::from(*sum) {
            break;
        }
        left -= f64::from(*sum);
    }
    // Rounding may leave a remainder behind the last block that has any.
    let block = last?;
    let mut buffer = [0.0; BLOCK];
    let values = row.block(block, &mut buffer);
    let mut found = None;
    for (i, logit) in values.iter().enumerate() {
        let place = TokenRank { token: (block * BLOCK + i) as u32, logit: *logit };
        let weight = weights.of(*logit);
        let may = weight > 0.0 && weight >= least && below.is_none_or(|below| is_before(place, below));
        if may {
            found = Some(place);
            left -= f64::from(weight);
            if left < 0.0 {
                break;
            }
        }
    }
    found
}

fn is_before(a: TokenRank, b: TokenRank) -> bool {
    a.logit > b.logit || a.logit == b.logit && a.token < b.token
}
