//! The purpose of fitting: less error than plain scaling, whatever the block.

use super::*;
use crate::format::Problem;
use proptest::prelude::*;

/// Squared error of scaling symmetrically to [-7, 7] by the largest magnitude, in f64; infinite where that
/// has no f16 scale.
fn plain_error(weights: &[f32; BLOCK]) -> f64 {
    let amax = weights.iter().fold(0.0f32, |amax, w| amax.max(w.abs()));
    let scale = f16::from_f32(amax / 7.0).to_f64();
    if scale.is_infinite() {
        return f64::INFINITY;
    }
    let error = |&w: &f32| {
        let w = f64::from(w);
        let q = if scale == 0.0 { 0.0 } else { (w / scale).round_ties_even().clamp(-7.0, 7.0) };
        (w - q * scale).powi(2)
    };
    weights.iter().map(error).sum()
}

/// Squared error of a fitted block, from its integers and scale.
fn true_error(weights: &[f32; BLOCK], fitted: &Fitted) -> f64 {
    let pairs = weights.iter().zip(&fitted.q);
    pairs.map(|(w, q)| (f64::from(*w) - f64::from(*q) * fitted.scale.to_f64()).powi(2)).sum()
}

fn int4_errors(weights: &[f32; BLOCK], scales: &[f32; TRIED]) -> [f32; TRIED] {
    errors(weights, scales, INT4_LEVELS)
}

/// The vector form gives the same bits.
fn assert_vectors_agree(weights: &[f32; BLOCK]) {
    #[cfg(target_arch = "x86_64")]
    if std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma") {
        let scales = scales(farthest(weights)).1;
        // SAFETY: the features were detected.
        let vectors = unsafe { errors_fma(weights, &scales, INT4_LEVELS) };
        for (a, b) in errors(weights, &scales, INT4_LEVELS).iter().zip(vectors) {
            assert!(a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()), "{a} {b}: {weights:?}");
        }
    }
}

#[track_caller]
fn check(weights: &[f32; BLOCK]) -> Fitted {
    let fitted = fit(weights, 0, 0, int4_errors).unwrap();
    assert_vectors_agree(weights);
    assert!(fitted.q.iter().all(|q| (-8..=7).contains(q)), "{:?}", fitted.q);
    let (error, plain) = (true_error(weights, &fitted), plain_error(weights));
    // Sums in f32 decide: they may take equal errors for smaller ones.
    assert!(error <= plain * (1.0 + 1e-5), "{error:e} > {plain:e}: {weights:?}");
    let reported = f64::from(fitted.error);
    assert!((reported - error).abs() <= 1e-5 * error + 1e-30, "{reported:e} is not {error:e}: {weights:?}");
    fitted
}

/// Blocks of every kind of spread: signs, exponents over a range, a few outliers.
fn block() -> impl Strategy<Value = [f32; BLOCK]> {
    let element = (any::<bool>(), 0u32..20, 0u32..1 << 23);
    (1u32..20, prop::collection::vec(element, BLOCK)).prop_map(|(range, elements)| {
        let mut weights = [0.0; BLOCK];
        for (w, (negative, exponent, mantissa)) in weights.iter_mut().zip(elements) {
            let magnitude = f32::from_bits(((127 - exponent % range) << 23) | mantissa);
            *w = if negative { -magnitude } else { magnitude };
        }
        weights
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn fitting_is_never_worse_than_plain_scaling(weights in block()) {
        check(&weights);
        // The same error for the mirrored block, unless both ends are equally far.
        let (fitted, mirrored) = (check(&weights), check(&weights.map(|w| -w)));
        if weights.iter().all(|w| *w != -farthest(&weights)) {
            prop_assert_eq!(fitted.scale, -mirrored.scale);
            prop_assert_eq!(fitted.q, mirrored.q);
        }
    }
}

#[test]
fn adversarial_blocks() {
    let zero = check(&[0.0; BLOCK]);
    assert_eq!((zero.q, zero.scale.to_bits(), zero.error), ([0; BLOCK], 0, 0.0));
    assert_eq!(check(&[-0.0; BLOCK]).scale.to_bits(), 0);
    // Below f16's range everything is 0.
    let tiny = check(&[1e-20; BLOCK]);
    assert_eq!((tiny.q, tiny.scale.to_bits()), ([0; BLOCK], 0));
    check(&[f32::from_bits(1); BLOCK]);
    for equal in [1.0f32, -1.0, 0.3, -1e-6, 5e4, -LIMIT, LIMIT] {
        let fitted = check(&[equal; BLOCK]);
        assert_eq!(fitted.q.iter().min(), fitted.q.iter().max());
    }
    for outlier in [1.0f32, -1.0, 3.0, -3.0, 1e3, -1e3] {
        for rest in [0.0f32, 0.1, -0.1] {
            let mut weights = [rest; BLOCK];
            weights[17] = outlier;
            check(&weights);
        }
    }
    // Integers of [-8, 7] and of [-7, 8] are themselves; both ends equally far.
    for sign in [1.0f32, -1.0] {
        let weights: [f32; BLOCK] = std::array::from_fn(|i| sign * (i as f32 % 16.0 - 8.0));
        assert_eq!(check(&weights).error, 0.0);
        let weights: [f32; BLOCK] = std::array::from_fn(|i| sign * (i as f32 % 15.0 - 7.0));
        assert_eq!(check(&weights).error, 0.0);
    }
    // f16's subnormal numbers as scales.
    for exponent in -30..-10 {
        let weights: [f32; BLOCK] = std::array::from_fn(|i| (i as f32 - 15.5) * 2f32.powi(exponent));
        check(&weights);
    }
}

#[test]
fn normal_weights_lose_a_twelfth() {
    let mut state = 1u32;
    let mut uniform = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f64::from(state >> 8) / f64::from(1 << 24) - 0.5
    };
    // Sums of twelve uniform numbers are near enough to normal ones.
    let rows: Vec<f32> = (0..32 * 4096).map(|_| (0..12).map(|_| uniform()).sum::<f64>() as f32).collect();
    let error = super::super::int4::squares(4096, &rows).unwrap().relative_error();
    assert!((0.079..0.083).contains(&error), "{error}");
}

#[test]
fn what_cannot_be_fitted_is_named() {
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, LIMIT * 1.001, -1e30] {
        let mut weights = [0.5; BLOCK];
        weights[9] = bad;
        let error = fit(&weights, 3, 64, int4_errors).err().unwrap();
        assert_eq!((error.row, error.k), (3, 73));
        assert_eq!(matches!(error.problem, Problem::NotFinite(_)), !bad.is_finite(), "{error}");
    }
}
