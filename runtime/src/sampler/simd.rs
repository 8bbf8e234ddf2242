//! Passes over a whole row, compiled for AVX2 and FMA where the CPU has them. The arithmetic is the same without: every operation is
//! rounded as IEEE 754 says, and every sum has one order.

use super::row::{BLOCK, Row};
use kernmill_plan::numeric::{EXP_MIN, EXP_POLY, LN2_HI, LN2_LO, LOG2E, ROUND_MAGIC};
use std::cmp::Ordering;

/// Lanes of a sum: lane i adds up elements i, i + 16, i + 32, i + 48 of a block.
const LANES: usize = 16;

/// Weights of tokens: `exp((logit - largest) * (1 / temperature))`, so 1 for the likeliest.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weights {
    largest: f32,
    /// 1 / temperature, or the largest finite number.
    scale: f32,
}

/// A token's place in the order of likelihood: by its logit, the lower token id first among equals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Place {
    pub(super) token: u32,
    pub(super) logit: f32,
}

impl Weights {
    pub(super) fn new(largest: f32, temperature: f32) -> Weights {
        Weights { largest: largest.min(f32::MAX), scale: (1.0 / temperature).min(f32::MAX) }
    }

    /// The weight of a logit that is at most the largest.
    #[inline(always)]
    pub(super) fn of(self, logit: f32) -> f32 {
        exp((logit.min(f32::MAX) - self.largest) * self.scale)
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

/// A sum of a block's weights: lanes first, then halves. `weight` has the element's index and logit.
#[inline(always)]
fn sum(logits: &[f32; BLOCK], weight: impl Fn(usize, f32) -> f32) -> f32 {
    let mut lanes = [0.0f32; LANES];
    for (quarter, logits) in logits.as_chunks::<LANES>().0.iter().enumerate() {
        for lane in 0..LANES {
            lanes[lane] += weight(quarter * LANES + lane, logits[lane]);
        }
    }
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width {
            lanes[lane] += lanes[lane + width];
        }
        width /= 2;
    }
    lanes[0]
}

/// Makes a function that runs `$body` compiled for AVX2 and FMA if there are such.
macro_rules! pass {
    ($(#[$doc:meta])* $name:ident = $body:ident($($arg:ident: $ty:ty),*) -> $result:ty) => {
        $(#[$doc])*
        pub(super) fn $name($($arg: $ty),*) -> $result {
            #[target_feature(enable = "avx2,fma")]
            fn wide($($arg: $ty),*) -> $result {
                $body($($arg),*)
            }
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                // SAFETY: the CPU has both.
                return unsafe { wide($($arg),*) };
            }
            $body($($arg),*)
        }
    };
}

pass! {
    /// Fills in the largest logit of every block; the largest of all. The first token that is not a number is an error.
    scan = scan_body(row: &Row<'_>, maxima: &mut Vec<f32>) -> Result<f32, u32>
}

#[inline(always)]
fn scan_body(row: &Row<'_>, maxima: &mut Vec<f32>) -> Result<f32, u32> {
    maxima.clear();
    let mut all = f32::NEG_INFINITY;
    let mut values = [0.0; BLOCK];
    for block in 0..row.blocks() {
        row.block(block, &mut values);
        let mut lanes = [f32::NEG_INFINITY; LANES];
        let mut wrong = [0u32; LANES];
        for quarter in values.as_chunks::<LANES>().0 {
            for lane in 0..LANES {
                let value = quarter[lane];
                lanes[lane] = if value > lanes[lane] { value } else { lanes[lane] };
                wrong[lane] |= u32::from(value.is_nan());
            }
        }
        if wrong.iter().any(|wrong| *wrong != 0) {
            let place = values.iter().position(|value| value.is_nan()).unwrap_or(0);
            return Err((block * BLOCK + place) as u32);
        }
        let largest = lanes.into_iter().fold(f32::NEG_INFINITY, f32::max);
        maxima.push(largest);
        all = all.max(largest);
    }
    Ok(all)
}

/// What a pass adds up.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sums {
    /// Weights that may be drawn.
    pub(super) kept: f64,
    /// All weights; those that may be drawn if nothing else was asked for.
    pub(super) all: f64,
}

/// Which weights may be drawn, and whether the others are asked for too.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    /// Least weight that may be drawn.
    pub(super) least: f32,
    /// Whether [`Sums::all`] is needed.
    pub(super) all: bool,
}

impl Sums {
    /// Adds a block's weights; the sum of those that may be drawn.
    #[inline(always)]
    fn add(&mut self, logits: &[f32; BLOCK], wanted: Wanted, weight: impl Fn(usize, f32) -> f32) -> f32 {
        if wanted.least <= 0.0 {
            let all = sum(logits, weight);
            self.kept += f64::from(all);
            self.all += f64::from(all);
            return all;
        }
        let kept = sum(logits, |i, logit| {
            let weight = weight(i, logit);
            if weight < wanted.least { 0.0 } else { weight }
        });
        self.kept += f64::from(kept);
        self.all += f64::from(if wanted.all { sum(logits, weight) } else { kept });
        kept
    }
}

/// Whether nothing of a block is wanted whose largest weight this is.
#[inline(always)]
fn is_light(largest: f32, wanted: Wanted) -> bool {
    largest == 0.0 || !wanted.all && largest < wanted.least
}

pass! {
    /// Fills in the sum of those weights of every block that may be drawn, and adds up all blocks.
    weigh = weigh_body(
        row: &Row<'_>, weights: Weights, wanted: Wanted, maxima: &[f32], sums: &mut Vec<f32>
    ) -> Sums
}

#[inline(always)]
fn weigh_body(row: &Row<'_>, weights: Weights, wanted: Wanted, maxima: &[f32], sums: &mut Vec<f32>) -> Sums {
    sums.clear();
    let mut total = Sums::default();
    let mut values = [0.0; BLOCK];
    for (block, largest) in maxima.iter().enumerate() {
        if is_light(weights.of(*largest), wanted) {
            sums.push(0.0);
            continue;
        }
        row.block(block, &mut values);
        sums.push(total.add(&values, wanted, |_, logit| weights.of(logit)));
    }
    total
}

pass! {
    /// As [`weigh`], of the tokens that come before `place` in the order of likelihood.
    weigh_before = weigh_before_body(
        row: &Row<'_>, weights: Weights, wanted: Wanted, place: Place, maxima: &[f32], sums: &mut Vec<f32>
    ) -> Sums
}

#[inline(always)]
fn weigh_before_body(
    row: &Row<'_>,
    weights: Weights,
    wanted: Wanted,
    place: Place,
    maxima: &[f32],
    sums: &mut Vec<f32>,
) -> Sums {
    sums.clear();
    let mut total = Sums::default();
    let mut values = [0.0; BLOCK];
    let own = place.token as usize / BLOCK;
    for (block, largest) in maxima.iter().enumerate() {
        if *largest < place.logit || is_light(weights.of(*largest), wanted) {
            sums.push(0.0);
            continue;
        }
        row.block(block, &mut values);
        let weight = |is_before: bool, logit| if is_before { weights.of(logit) } else { 0.0 };
        // Of equal logits, those of lower ids come before.
        sums.push(match block.cmp(&own) {
            Ordering::Less => total.add(&values, wanted, |_, logit| weight(logit >= place.logit, logit)),
            Ordering::Greater => total.add(&values, wanted, |_, logit| weight(logit > place.logit, logit)),
            Ordering::Equal => {
                let equal = place.token as usize % BLOCK;
                let is_before = |i, logit| logit > place.logit || logit == place.logit && i < equal;
                total.add(&values, wanted, |i, logit| weight(is_before(i, logit), logit))
            }
        });
    }
    total
}
