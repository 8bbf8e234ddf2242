//! Passes over a whole row, compiled for AVX-512, or AVX2 and FMA, where the CPU has them. The arithmetic is
//! the same without: every operation is rounded as IEEE 754 says, and every sum has one order.

use super::row::{BLOCK, Row};
use kernmill_plan::numeric::{EXP_MIN, EXP_POLY, LN2_HI, LN2_LO, LOG2E, ROUND_MAGIC};
use std::cmp::Ordering;

/// Lanes of a sum: lane i adds up elements i, i + 16, i + 32, i + 48 of a block.
const LANES: usize = 16;

/// Weights of tokens: `exp((logit - largest) * (1 / temperature))`, so 1 for the likeliest.
#[derive(Clone, Copy, Debug)]
pub(super) struct TokenWeights {
    largest: f32,
    /// 1 / temperature, or the largest finite number.
    scale: f32,
}

/// A token's place in the order of likelihood: by its logit, the lower token id first among equals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TokenRank {
    pub(super) token: u32,
    pub(super) logit: f32,
}

impl TokenWeights {
    pub(super) fn new(largest: f32, temperature: f32) -> TokenWeights {
        TokenWeights { largest: largest.min(f32::MAX), scale: (1.0 / temperature).min(f32::MAX) }
    }

    /// The weight of a logit that is at most the largest.
    #[inline(always)]
    pub(super) fn of(self, logit: f32) -> f32 {
        exp(self.exponent(logit))
    }

    #[inline(always)]
    fn exponent(self, logit: f32) -> f32 {
        (logit.min(f32::MAX) - self.largest) * self.scale
    }

    /// Whether nothing of a block is wanted that has this largest logit.
    #[inline(always)]
    fn is_light(self, largest: f32, wanted: WantedWeights) -> bool {
        let exponent = self.exponent(largest);
        // Below the limit the weight is 0, and above it never.
        exponent < EXP_MIN || !wanted.all && wanted.least > 0.0 && exp(exponent) < wanted.least
    }
}

/// `exp(x)` of x <= 0, as docs/dev/numerics.md defines it for kernels.
#[inline(always)]
fn exp(x: f32) -> f32 {
    let t = x.mul_add(LOG2E, ROUND_MAGIC);
    let n = t - ROUND_MAGIC;
    let r = n.mul_add(-LN2_HI, x);
    let r = n.mul_add(-LN2_LO, r);
    let mut p = EXP_POLY[0];
    for coefficient in &EXP_POLY[1..] {
        p = p.mul_add(r, *coefficient);
    }
    let value = f32::from_bits(p.to_bits().wrapping_add(t.to_bits() << 23));
    if x < EXP_MIN { 0.0 } else { value }
}

/// The weight, or 0; without a branch.
#[inline(always)]
fn if_so(so: bool, weight: f32) -> f32 {
    f32::from_bits(weight.to_bits() & u32::from(so).wrapping_neg())
}

/// A sum of a block's weights: lanes first, then halves. `weight` has the element's index.
#[inline(always)]
fn sum(weight: impl Fn(usize) -> f32) -> f32 {
    let mut lanes = [0.0f32; LANES];
    for quarter in 0..BLOCK / LANES {
        for (lane, sum) in lanes.iter_mut().enumerate() {
            *sum += weight(quarter * LANES + lane);
        }
    }
    halves(lanes, |a, b| a + b)
}

/// Combines lanes by halves.
#[inline(always)]
fn halves<T: Copy>(mut lanes: [T; LANES], both: impl Fn(T, T) -> T) -> T {
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width {
            lanes[lane] = both(lanes[lane], lanes[lane + width]);
        }
        width /= 2;
    }
    lanes[0]
}

/// Makes a function that runs `$body` compiled for AVX-512, or for AVX2 and FMA, if there are such.
macro_rules! pass {
    ($(#[$doc:meta])* $name:ident = $body:ident($($arg:ident: $ty:ty),*) -> $result:ty) => {
        $(#[$doc])*
        pub(super) fn $name($($arg: $ty),*) -> $result {
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
            fn by_512($($arg: $ty),*) -> $result {
                $body($($arg),*)
            }
            #[target_feature(enable = "avx2,fma")]
            fn by_256($($arg: $ty),*) -> $result {
                $body($($arg),*)
            }
            let has_512 = is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw");
            if has_512 && is_x86_feature_detected!("avx512dq") && is_x86_feature_detected!("avx512vl") {
                // SAFETY: the CPU has all four.
                return unsafe { by_512($($arg),*) };
            }
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                // SAFETY: the CPU has both.
                return unsafe { by_256($($arg),*) };
            }
            $body($($arg),*)
        }
    };
}

pass! {
    /// Fills in the largest logit of every block; the largest of all. The first token that is not a number is
    /// an error.
    scan = scan_body(row: &Row<'_>, maxima: &mut Vec<f32>) -> Result<f32, u32>
}

#[inline(always)]
fn scan_body(row: &Row<'_>, maxima: &mut Vec<f32>) -> Result<f32, u32> {
    maxima.clear();
    let mut all = f32::NEG_INFINITY;
    let mut buffer = [0.0; BLOCK];
    // Lanes that had a value that is no number.
    let mut wrong = [0u32; LANES];
    for block in 0..row.blocks() {
        let values = row.block(block, &mut buffer);
        let mut lanes = [f32::NEG_INFINITY; LANES];
        for quarter in values.as_chunks::<LANES>().0 {
            for lane in 0..LANES {
                let value = quarter[lane];
                lanes[lane] = if value > lanes[lane] { value } else { lanes[lane] };
                wrong[lane] |= u32::from(value.is_nan());
            }
        }
        let largest = halves(lanes, |a, b| if b > a { b } else { a });
        maxima.push(largest);
        all = if largest > all { largest } else { all };
    }
    match wrong.iter().any(|wrong| *wrong != 0) {
        true => Err(first_nan(row)),
        false => Ok(all),
    }
}

/// The first token of a row whose logit is not a number.
#[cold]
fn first_nan(row: &Row<'_>) -> u32 {
    let mut buffer = [0.0; BLOCK];
    let place = |block| {
        let place = row.block(block, &mut buffer).iter().position(|value| value.is_nan())?;
        Some((block * BLOCK + place) as u32)
    };
    (0..row.blocks()).find_map(place).unwrap_or(0)
}

/// The sums of a pass.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sums {
    /// Weights that may be drawn.
    pub(super) kept: f64,
    /// All weights; those that may be drawn if nothing else was asked for.
    pub(super) all: f64,
}

/// Which weights may be drawn, and whether the others are asked for too.
#[derive(Clone, Copy, Debug)]
pub(super) struct WantedWeights {
    /// Least weight that may be drawn.
    pub(super) least: f32,
    /// Whether [`Sums::all`] is needed.
    pub(super) all: bool,
}

impl Sums {
    /// Adds a block's weights; the sum of those that may be drawn.
    #[inline(always)]
    fn add(&mut self, wanted: WantedWeights, weight: impl Fn(usize) -> f32) -> f32 {
        if wanted.least <= 0.0 {
            let all = sum(weight);
            self.kept += f64::from(all);
            self.all += f64::from(all);
            return all;
        }
        let kept = sum(|i| {
            let weight = weight(i);
            if_so(weight >= wanted.least, weight)
        });
        self.kept += f64::from(kept);
        self.all += f64::from(if wanted.all { sum(weight) } else { kept });
        kept
    }
}

pass! {
    /// Fills in the sum of those weights of every block that may be drawn, and adds up all blocks. Where
    /// [`WantedWeights::all`] is asked for, the weights are kept in `list` for [`weigh_before`], but for
    /// blocks in which all of them are 0.
    weigh = weigh_body(
        row: &Row<'_>, weights: TokenWeights, wanted: WantedWeights, maxima: &[f32],
            list: &mut [[f32; BLOCK]], sums: &mut Vec<f32>
    ) -> Sums
}

#[inline(always)]
fn weigh_body(
    row: &Row<'_>,
    weights: TokenWeights,
    wanted: WantedWeights,
    maxima: &[f32],
    list: &mut [[f32; BLOCK]],
    sums: &mut Vec<f32>,
) -> Sums {
    sums.clear();
    let mut total = Sums::default();
    let (mut buffer, mut unlisted) = ([0.0; BLOCK], [0.0; BLOCK]);
    for (block, largest) in maxima.iter().enumerate() {
        if weights.is_light(*largest, wanted) {
            sums.push(0.0);
            continue;
        }
        let logits = row.block(block, &mut buffer);
        let own = list.get_mut(block).filter(|_| wanted.all).unwrap_or(&mut unlisted);
        for (weight, logit) in own.iter_mut().zip(logits) {
            *weight = weights.of(*logit);
        }
        sums.push(total.add(wanted, |i| own[i]));
    }
    total
}

pass! {
    /// Adds up weights as [`weigh`] does, those of the tokens that come before `place` in the order of
    /// likelihood. `list` has the weights.
    weigh_before = weigh_before_body(
        row: &Row<'_>, weights: TokenWeights, wanted: WantedWeights, place: TokenRank, maxima: &[f32],
            list: &[[f32; BLOCK]],
        sums: &mut Vec<f32>
    ) -> Sums
}

#[inline(always)]
fn weigh_before_body(
    row: &Row<'_>,
    weights: TokenWeights,
    wanted: WantedWeights,
    place: TokenRank,
    maxima: &[f32],
    list: &[[f32; BLOCK]],
    sums: &mut Vec<f32>,
) -> Sums {
    sums.clear();
    let mut total = Sums::default();
    let mut buffer = [0.0; BLOCK];
    let own = place.token as usize / BLOCK;
    for (block, (largest, list)) in maxima.iter().zip(list).enumerate() {
        if *largest < place.logit || weights.is_light(*largest, wanted) {
            sums.push(0.0);
            continue;
        }
        let logits = row.block(block, &mut buffer);
        // Of equal logits, those of lower ids come before.
        sums.push(match block.cmp(&own) {
            Ordering::Less => total.add(wanted, |i| if_so(logits[i] >= place.logit, list[i])),
            Ordering::Greater => total.add(wanted, |i| if_so(logits[i] > place.logit, list[i])),
            Ordering::Equal => {
                let equal = place.token as usize % BLOCK;
                let is_before = |i| logits[i] > place.logit || logits[i] == place.logit && i < equal;
                total.add(wanted, |i| if_so(is_before(i), list[i]))
            }
        });
    }
    total
}
