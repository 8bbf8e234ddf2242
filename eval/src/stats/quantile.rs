//! Quantiles of the normal distribution and of Student's.

use libm::{erfc, exp};
use std::f64::consts::{FRAC_1_SQRT_2, PI};

/// The value that a normal variable stays above with a chance of 2.5 %.
pub const NORMAL: f64 = 1.959_963_984_540_054;

/// The share of a normal distribution below `z`.
pub fn below(z: f64) -> f64 {
    0.5 * erfc(-z * FRAC_1_SQRT_2)
}

/// The value that a variable of Student's distribution stays above with a chance of 2.5 %: found by halving,
/// of a density that is added up by Simpson's rule.
pub fn student(degrees: f64) -> f64 {
    let log_scale = libm::lgamma((degrees + 1.0) / 2.0) - libm::lgamma(degrees / 2.0);
    let scale = exp(log_scale) / (degrees * PI).sqrt();
    let density = |x: f64| scale * libm::pow(1.0 + x * x / degrees, -(degrees + 1.0) / 2.0);
    let share = |to: f64| {
        let step = to / 400.0;
        let inner: f64 = (1..400).map(|k| density(step * f64::from(k)) * f64::from(2 + 2 * (k % 2))).sum();
        (density(0.0) + inner + density(to)) * step / 3.0
    };
    let (mut low, mut high) = (1.0, 20.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if share(middle) < 0.475 { low = middle } else { high = middle }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::{NORMAL, below, student};

    #[test]
    fn quantiles_are_those_of_scipy() {
        // scipy.stats.t.ppf(0.975, n) and scipy.stats.norm.cdf.
        for (degrees, expected) in [(7.0, 2.364624251592785), (19.0, 2.093024054408263), (99.0, 1.984216951)]
        {
            assert!((student(degrees) - expected).abs() < 1e-6, "{degrees}: {}", student(degrees));
        }
        assert!((below(NORMAL) - 0.975).abs() < 1e-12 && (below(-1.0) - 0.15865525393145707).abs() < 1e-12);
    }
}
