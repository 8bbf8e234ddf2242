//! The order of arithmetic of docs/dev/numerics.md, as plain loops.

use half::f16;
use kernmill_plan::numeric::{
    EXP_MAX, EXP_MIN, EXP_POLY, GELU_CUBIC, GELU_SCALE, INT4_DIVISORS, INT4_MAX, INT4_MIN, LN2_HI, LN2_LO,
    LOG2E, ROUND_MAGIC,
};

/// The Hadamard transform of blocks, in place, not divided by anything.
pub fn hadamard(x: &mut [f32], block: usize) {
    for x in x.chunks_exact_mut(block) {
        let mut distance = 1;
        while distance < block {
            for low in (0..block).filter(|i| i & distance == 0) {
                let (a, b) = (x[low], x[low + distance]);
                (x[low], x[low + distance]) = (a + b, a - b);
            }
            distance *= 2;
        }
    }
}

/// Lanes of sums in norms and softmax denominators.
const LANES: usize = 16;

/// A function whose inner loops use `f32::mul_add`, compiled a second time for CPUs that have the
/// instruction: the library's software form gives the same bits about twenty times slower.
macro_rules! with_fma {
    ($(#[$doc:meta])* $name:ident, $fast:ident, $body:ident, ($($arg:ident : $ty:ty),*) $(-> $ret:ty)?) => {
        $(#[$doc])*
        pub fn $name($($arg: $ty),*) $(-> $ret)? {
            #[cfg(target_arch = "x86_64")]
            if std::is_x86_feature_detected!("fma") && std::is_x86_feature_detected!("avx2") {
                // SAFETY: the features that it is compiled for were detected.
                return unsafe { $fast($($arg),*) };
            }
            $body($($arg),*)
        }

        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma")]
        fn $fast($($arg: $ty),*) $(-> $ret)? {
            $body($($arg),*)
        }
    };
}

with_fma!(
    /// dot4: four accumulators by index mod 4.
    dot4, dot4_fma, dot4_body, (w: &[f32], a: &[f32]) -> f32
);
with_fma!(
    /// `acc[i] = fma(factor, x[i], acc[i])`.
    accumulate, accumulate_fma, accumulate_body, (factor: f32, x: &[f32], acc: &mut [f32])
);
with_fma!(
    /// Lane sum of squares.
    sum_squares, sum_squares_fma, sum_squares_body, (x: &[f32]) -> f32
);
with_fma!(
    /// blockdot of a row's integers, scales and minima with a q8 activation row. A block of 32 has one scale,
    /// or one for each half, and as many minima or none.
    blockdot, blockdot_fma, blockdot_body,
    (ints: &[i8], scales: &[f32], minima: &[f32], q: &[i8], a_scales: &[f32]) -> f32
);
with_fma!(
    /// tiledot: blocks of 32, even and odd elements apart, denormals as zeros.
    tiledot, tiledot_fma, tiledot_body, (w: &[f32], a: &[f32]) -> f32
);
with_fma!(
    /// Each element's `exp`.
    exp_all, exp_all_fma, exp_all_body, (x: &mut [f32])
);

with_fma!(
    /// Fits one block of weights to int4; returns the scale, a value of f16.
    fit_weights, fit_weights_fma, fit_weights_body, (w: &[f32], q: &mut [i8]) -> f32
);

#[inline(always)]
fn dot4_body(w: &[f32], a: &[f32]) -> f32 {
    let mut acc = [0.0f32; 4];
    let (w4, a4) = (w.chunks_exact(4), a.chunks_exact(4));
    let (w_rest, a_rest) = (w4.remainder(), a4.remainder());
    for (w, a) in w4.zip(a4) {
        for j in 0..4 {
            acc[j] = w[j].mul_add(a[j], acc[j]);
        }
    }
    for (j, (w, a)) in w_rest.iter().zip(a_rest).enumerate() {
        acc[j] = w.mul_add(*a, acc[j]);
    }
    (acc[0] + acc[1]) + (acc[2] + acc[3])
}

#[inline(always)]
fn accumulate_body(factor: f32, x: &[f32], acc: &mut [f32]) {
    for (acc, x) in acc.iter_mut().zip(x) {
        *acc = factor.mul_add(*x, *acc);
    }
}

#[inline(always)]
fn sum_squares_body(x: &[f32]) -> f32 {
    let mut lanes = [0.0f32; LANES];
    for chunk in x.chunks(LANES) {
        for (lane, x) in lanes.iter_mut().zip(chunk) {
            *lane = x.mul_add(*x, *lane);
        }
    }
    tree(lanes)
}

#[inline(always)]
fn blockdot_body(ints: &[i8], scales: &[f32], minima: &[f32], q: &[i8], a_scales: &[f32]) -> f32 {
    let mut acc = 0.0f32;
    let parts = scales.len() / a_scales.len();
    let elements = ints.chunks_exact(32 / parts).zip(q.chunks_exact(32 / parts));
    for (part, ((w, a), w_scale)) in elements.zip(scales).enumerate() {
        let a_scale = a_scales[part / parts];
        let isum: i32 = w.iter().zip(a).map(|(w, a)| i32::from(*w) * i32::from(*a)).sum();
        acc = (isum as f32 * w_scale).mul_add(a_scale, acc);
        if let Some(minimum) = minima.get(part) {
            let asum: i32 = a.iter().map(|a| i32::from(*a)).sum();
            acc = minimum.mul_add(asum as f32 * a_scale, acc);
        }
    }
    acc
}

#[inline(always)]
fn tiledot_body(w: &[f32], a: &[f32]) -> f32 {
    let mut acc = 0.0f32;
    for (w, a) in w.chunks_exact(32).zip(a.chunks_exact(32)) {
        let mut sums = [0.0f32; 2];
        for (i, (w, a)) in w.iter().zip(a).enumerate() {
            sums[i % 2] = flush(flush(*a).mul_add(flush(*w), sums[i % 2]));
        }
        acc = flush(acc + flush(sums[0] + sums[1]));
    }
    acc
}

#[inline(always)]
fn exp_all_body(x: &mut [f32]) {
    for x in x {
        *x = exp(*x);
    }
}

/// Lane sum where element `i` goes to lane `(first + i) mod 16`.
pub fn lane_sum(x: &[f32], first: usize) -> f32 {
    let mut lanes = [0.0f32; LANES];
    for (i, x) in x.iter().enumerate() {
        lanes[(first + i) % LANES] += x;
    }
    tree(lanes)
}

#[inline(always)]
fn tree(mut lanes: [f32; LANES]) -> f32 {
    for width in [8, 4, 2, 1] {
        for j in 0..width {
            lanes[j] += lanes[j + width];
        }
    }
    lanes[0]
}

/// `a < b ? a : b`.
#[inline(always)]
pub fn min(a: f32, b: f32) -> f32 {
    if a < b { a } else { b }
}

/// `a > b ? a : b`.
#[inline(always)]
pub fn max(a: f32, b: f32) -> f32 {
    if a > b { a } else { b }
}

/// The one exp.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    let clamped = min(x, EXP_MAX);
    let t = clamped.mul_add(LOG2E, ROUND_MAGIC);
    let n = t - ROUND_MAGIC;
    let r = n.mul_add(-LN2_HI, clamped);
    let r = n.mul_add(-LN2_LO, r);
    let p = EXP_POLY[1..].iter().fold(EXP_POLY[0], |p, c| p.mul_add(r, *c));
    let shifted = p.to_bits().wrapping_add(t.to_bits() << 23);
    if x < EXP_MIN { 0.0 } else { f32::from_bits(shifted) }
}

/// `1 / (1 + exp(0 - x))`.
pub fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(0.0 - x))
}

/// `2 * sigmoid(2 * x) - 1`.
pub fn tanh(x: f32) -> f32 {
    2.0 * sigmoid(2.0 * x) - 1.0
}

/// The tanh form of gelu.
pub fn gelu(x: f32) -> f32 {
    let inner = GELU_SCALE * (x + GELU_CUBIC * ((x * x) * x));
    (0.5 * x) * (1.0 + tanh(inner))
}

/// A denormal as the zero of its sign.
#[inline(always)]
fn flush(x: f32) -> f32 {
    if x.is_subnormal() { 0.0f32.copysign(x) } else { x }
}

/// `bf16(x)`, back in f32.
pub fn round_bf16(x: f32) -> f32 {
    let bits = flush(x).to_bits();
    let rounded = if x.is_nan() { bits | 0x0040_0000 } else { bits + 0x7fff + (bits >> 16 & 1) };
    f32::from_bits(rounded & 0xffff_0000)
}

/// `f16(x)`, back in f32.
pub fn round_f16(x: f32) -> f32 {
    f16::from_f32(x).to_f32()
}

/// Quantises one block of 32 activations; returns the scale and the sum.
pub fn quantize_block(x: &[f32], q: &mut [i8]) -> (f32, i32) {
    let amax = x.iter().map(|x| x.to_bits() & 0x7fff_ffff).max().unwrap_or(0);
    let amax = f32::from_bits(amax);
    let inv = if amax == 0.0 { 0.0 } else { 127.0 / amax };
    for (q, x) in q.iter_mut().zip(x) {
        let bits = (x * inv + ROUND_MAGIC).to_bits().wrapping_sub(ROUND_MAGIC.to_bits());
        *q = (bits as i32).clamp(-128, 127) as i8;
    }
    (amax / 127.0, q.iter().map(|q| i32::from(*q)).sum())
}

/// Quantises one block of weights symmetrically to `[-limit, limit]`; returns the scale, a value of f16.
pub fn quantize_weights(w: &[f32], limit: f32, q: &mut [i8]) -> f32 {
    let amax = w.iter().fold(0.0f32, |amax, w| amax.max(w.abs()));
    let exact = amax / limit;
    if exact == 0.0 {
        q.fill(0);
        return 0.0;
    }
    let nearest = f16::from_f32(exact);
    let above = f16::from_bits(nearest.to_bits() + u16::from(nearest.to_f32() < exact));
    let scale = above.to_f32();
    for (q, w) in q.iter_mut().zip(w) {
        *q = (w / scale).round_ties_even().clamp(-limit, limit) as i8;
    }
    scale
}

#[inline(always)]
fn fit_weights_body(w: &[f32], q: &mut [i8]) -> f32 {
    let high = w.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let low = w.iter().copied().fold(f32::INFINITY, f32::min);
    let farthest = if high >= -low { high } else { low };
    let mut best = (f32::INFINITY, 0.0);
    for divisor in INT4_DIVISORS {
        let scale = round_f16(-farthest / divisor);
        let mut error = 0.0f32;
        for &w in w {
            let difference = (-round_int4(w, scale)).mul_add(scale, w);
            error = difference.mul_add(difference, error);
        }
        if error < best.0 {
            best = (error, scale);
        }
    }
    let scale = best.1;
    for (q, &w) in q.iter_mut().zip(w) {
        *q = round_int4(w, scale) as i8;
    }
    if scale == 0.0 { 0.0 } else { scale }
}

/// The int4 integer nearest to `w / scale`, by the scale's reciprocal.
#[inline(always)]
fn round_int4(w: f32, scale: f32) -> f32 {
    let inverse = if scale == 0.0 { 0.0 } else { 1.0 / scale };
    (w * inverse).clamp(INT4_MIN, INT4_MAX).round_ties_even()
}
