//! Inverse frequencies of RoPE, as docs/dev/numerics.md defines them: all in f64, rounded to f32 at the end.

use super::{RopeParameters, RopeScaling};
use std::f64::consts::PI;

/// The `rotary_dim / 2` inverse frequencies and the factor on cos and sin.
pub fn inv_freq(rope: &RopeParameters) -> (Vec<f32>, f64) {
    let (mut frequencies, factor) = scaled(rope);
    frequencies.iter_mut().zip(&rope.factors).for_each(|(frequency, factor)| *frequency /= factor);
    let frequencies = frequencies.into_iter().map(|frequency| frequency as f32).collect();
    (frequencies, rope.attention_factor.unwrap_or(factor))
}

/// The frequencies and the factor by the scaling.
fn scaled(rope: &RopeParameters) -> (Vec<f64>, f64) {
    let half = rope.head.rotary_dim / 2;
    let d = rope.head.rotary_dim as f64;
    let base = |j: usize| libm::pow(rope.theta, 2.0 * j as f64 / d);
    let plain = |j: usize| 1.0 / base(j);
    let all = |f: &dyn Fn(usize) -> f64| (0..half).map(f).collect();
    match rope.scaling {
        RopeScaling::Plain => (all(&plain), 1.0),
        RopeScaling::Linear { factor } => (all(&|j| plain(j) / factor), 1.0),
        RopeScaling::Yarn { factor, beta_fast, beta_slow, original_context, truncate } => {
            let dim = |rotations: f64| {
                d * libm::log(original_context / (2.0 * PI * rotations)) / (2.0 * libm::log(rope.theta))
            };
            let (mut low, mut high) = (dim(beta_fast), dim(beta_slow));
            if truncate {
                (low, high) = (low.floor(), high.ceil());
            }
            // One-sided, as published: a ramp may end before the first frequency, or begin behind the last.
            (low, high) = (low.max(0.0), high.min(d - 1.0));
            if low == high {
                high += 0.001;
            }
            let freq = |j: usize| {
                let ramp = ((j as f64 - low) / (high - low)).clamp(0.0, 1.0);
                (1.0 / (factor * base(j))) * ramp + (1.0 / base(j)) * (1.0 - ramp)
            };
            (all(&freq), 0.1 * libm::log(factor) + 1.0)
        }
        RopeScaling::Llama3 { factor, low_freq_factor, high_freq_factor, original_context } => {
            let freq = |j: usize| {
                let freq = plain(j);
                let wavelength = 2.0 * PI / freq;
                if wavelength < original_context / high_freq_factor {
                    freq
                } else if wavelength > original_context / low_freq_factor {
                    freq / factor
                } else {
                    let smooth = (original_context / wavelength - low_freq_factor)
                        / (high_freq_factor - low_freq_factor);
                    (1.0 - smooth) * freq / factor + smooth * freq
                }
            };
            (all(&freq), 1.0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_frequencies_fall_from_one() {
        let (freq, factor) = inv_freq(&RopeParameters::new(64, 10000.0, RopeScaling::Plain));
        assert_eq!((freq.len(), freq[0], factor), (32, 1.0, 1.0));
        assert_eq!(freq[16], 0.01);
    }

    #[test]
    fn linear_divides_every_frequency() {
        let rope = |scaling| inv_freq(&RopeParameters::new(64, 10000.0, scaling));
        let (freq, factor) = rope(RopeScaling::Linear { factor: 4.0 });
        let (plain, _) = rope(RopeScaling::Plain);
        assert_eq!((freq.len(), factor), (32, 1.0));
        assert!(freq.iter().zip(&plain).all(|(scaled, plain)| *scaled == plain / 4.0));
    }

    #[test]
    fn yarn_keeps_the_fast_and_stretches_the_slow() {
        let scaling = RopeScaling::Yarn {
            factor: 32.0,
            beta_fast: 32.0,
            beta_slow: 1.0,
            original_context: 4096.0,
            truncate: false,
        };
        let (freq, factor) = inv_freq(&RopeParameters::new(64, 150_000.0, scaling));
        let (plain, _) = inv_freq(&RopeParameters::new(64, 150_000.0, RopeScaling::Plain));
        assert_eq!(freq[0], 1.0);
        assert_eq!(freq[31], plain[31] / 32.0);
        assert!((factor - 1.346_573_59).abs() < 1e-8);
        assert!(freq.windows(2).all(|pair| pair[1] < pair[0]));
    }

    /// The expected values come from the published formula in Python's floats. In the first three cases the
    /// ramp lies outside of the frequencies.
    #[test]
    fn yarn_is_bounded_as_published() {
        let plain = [1.0, 0.316227766, 0.1, 0.0316227766, 0.01, 0.00316227766, 0.001, 0.000316227766];
        let cases = [
            (
                2.0,
                4096.0,
                true,
                [
                    0.125,
                    0.114625505,
                    0.105112052,
                    0.0963881766,
                    0.0883883476,
                    0.0810524722,
                    0.0743254447,
                    0.0681567333,
                ],
            ),
            (10000.0, 1.0, true, plain),
            (10000.0, 6.0, false, plain),
            (
                10000.0,
                4096.0,
                true,
                [1.0, 0.316227766, 0.1, 0.0247052942, 0.005625, 0.00108703295, 0.000125, 3.95284708e-05],
            ),
            (
                150_000.0,
                4096.0,
                false,
                [
                    1.0,
                    0.225418,
                    0.0508132748,
                    0.00724585633,
                    0.000662177949,
                    7.27533467e-05,
                    1.63999139e-05,
                    3.6968358e-06,
                ],
            ),
        ];
        for (theta, original_context, truncate, expected) in cases {
            let (factor, beta_fast, beta_slow) = (8.0, 32.0, 1.0);
            let scaling = RopeScaling::Yarn { factor, beta_fast, beta_slow, original_context, truncate };
            let (freq, _) = inv_freq(&RopeParameters::new(16, theta, scaling));
            let close = |(found, expected): (&f32, &f64)| (f64::from(*found) / expected - 1.0).abs() < 1e-7;
            assert!(freq.iter().zip(&expected).all(close), "{theta} {original_context}: {freq:?}");
        }
    }

    #[test]
    fn llama3_keeps_the_fast_and_stretches_the_slow() {
        let scaling = RopeScaling::Llama3 {
            factor: 8.0,
            low_freq_factor: 1.0,
            high_freq_factor: 4.0,
            original_context: 8192.0,
        };
        let (freq, _) = inv_freq(&RopeParameters::new(128, 500_000.0, scaling));
        let (plain, _) = inv_freq(&RopeParameters::new(128, 500_000.0, RopeScaling::Plain));
        assert_eq!((freq[0], freq[63]), (plain[0], plain[63] / 8.0));
    }

    /// Phi-3's longrope as transformers computes it, `1 / (factors * theta^(2j / d))`, for 12 of 16 elements.
    #[test]
    fn factors_divide_frequencies_of_the_elements_that_rotate() {
        let factors = vec![1.0, 1.25, 2.0, 4.0, 32.0, 64.5];
        let mut rope = RopeParameters::new(16, 10000.0, RopeScaling::Plain);
        rope.head.rotary_dim = 12;
        rope.factors = factors.clone();
        rope.attention_factor = Some(1.25);
        let (freq, factor) = inv_freq(&rope);
        assert_eq!((freq.len(), factor), (6, 1.25));
        for (j, (freq, factor)) in freq.iter().zip(factors).enumerate() {
            let expected = 1.0 / (factor * 10000f64.powf(2.0 * j as f64 / 12.0));
            assert!((f64::from(*freq) / expected - 1.0).abs() < 1e-7, "{j}: {freq} {expected}");
        }
    }
}
