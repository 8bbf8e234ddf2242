//! Means, intervals and tests of the measured values. Every interval is one of 95 %.

mod bootstrap;
mod paired;
mod quantile;

pub use bootstrap::{BlockSum, FEWEST_BLOCKS, Interval, interval};
pub use paired::{Flips, smallest_difference};

/// A mean, with the error that lm-eval calls its `stderr`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mean {
    /// The mean; NaN of no values.
    pub mean: f64,
    /// The standard deviation of the sample (divided by n - 1) over the root of n; NaN of fewer than two
    /// values.
    pub stderr: f64,
    /// How many values there are.
    pub n: usize,
}

impl Mean {
    /// The mean of some values, added up in their order.
    pub fn of(values: &[f64]) -> Mean {
        let n = values.len();
        let mean = values.iter().sum::<f64>() / n as f64;
        let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
        let deviation = (squares / (n as f64 - 1.0)).sqrt();
        Mean { mean, stderr: if n < 2 { f64::NAN } else { deviation / (n as f64).sqrt() }, n }
    }
}

/// The value below which this share of ascending values lies, between two of them in proportion.
pub fn percentile(ascending: &[f64], share: f64) -> f64 {
    let Some(last) = ascending.len().checked_sub(1) else { return f64::NAN };
    let at = share * last as f64;
    let (low, part) = (at.floor() as usize, at - at.floor());
    ascending[low] + (ascending[(low + 1).min(last)] - ascending[low]) * part
}

#[cfg(test)]
mod tests {
    use super::{Mean, percentile};

    #[test]
    fn means_are_those_of_lm_eval() {
        // lm_eval.api.metrics: mean_stderr([1, 0, 0, 1, 1, 0, 1, 1]) is 0.18298126367784995.
        let found = Mean::of(&[1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0]);
        assert_eq!((found.mean, found.stderr, found.n), (0.625, 0.18298126367784995, 8));
        assert!(Mean::of(&[1.0]).stderr.is_nan() && Mean::of(&[]).mean.is_nan());
    }

    #[test]
    fn percentiles_lie_between_values() {
        // numpy.percentile([0, 1, 2, 10], [0, 50, 99, 100]).
        let values = [0.0, 1.0, 2.0, 10.0];
        let found = [0.0, 0.5, 0.99, 1.0].map(|share| percentile(&values, share));
        assert_eq!(found.map(|value| (value * 1e9).round() / 1e9), [0.0, 1.5, 9.76, 10.0]);
        assert!(percentile(&[], 0.5).is_nan());
    }
}
