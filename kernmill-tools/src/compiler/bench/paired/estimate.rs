//! Medians of ratios, and how sure they are.

use crate::stats::{Quartiles, quantile, sorted};
use fastrand::Rng;

/// Consecutive pairs that are drawn together: what disturbs one often disturbs the next, which single draws
/// would take for independent.
const BLOCK: usize = 16;
/// Times that the pairs are drawn anew.
const DRAWS: usize = 2000;

/// A median with the interval that 95 % of the draws lie in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MedianEstimate {
    pub median: f64,
    pub low: f64,
    pub high: f64,
    /// Pairs.
    pub count: usize,
}

/// The median of ratios, with an interval by the moving block bootstrap (Kuensch 1989); `None` for none.
pub fn estimate(ratios: impl Iterator<Item = f64>) -> Option<MedianEstimate> {
    let logs: Vec<f64> = ratios.map(f64::ln).collect();
    if logs.is_empty() {
        return None;
    }
    let median = |values: &[f64]| Quartiles::of(values).median.exp();
    let mut rng = Rng::with_seed(1);
    let block = BLOCK.min(logs.len());
    let draw = |_| {
        let starts = (0..logs.len().div_ceil(block)).map(|_| rng.usize(..=logs.len() - block));
        let drawn: Vec<f64> = starts.flat_map(|start| logs[start..start + block].iter().copied()).collect();
        median(&drawn[..logs.len()])
    };
    let draws = sorted(&(0..DRAWS).map(draw).collect::<Vec<f64>>());
    let at = |part| quantile(&draws, part);
    Some(MedianEstimate { median: median(&logs), low: at(0.025), high: at(0.975), count: logs.len() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_ratios_are_certain_and_none_are_nothing() {
        let same = estimate([0.9; 40].into_iter()).unwrap();
        assert!([same.median, same.low, same.high].iter().all(|value| (value - 0.9).abs() < 1e-12));
        assert_eq!(same.count, 40);
        assert_eq!(estimate([].into_iter()), None);
        assert_eq!(estimate([0.5].into_iter()).unwrap().median, 0.5);
    }

    /// With independent noise, nearly all intervals hold the truth.
    #[test]
    fn intervals_hold_the_truth() {
        let mut rng = Rng::with_seed(9);
        let noise = |rng: &mut Rng| (0..12).map(|_| rng.f64()).sum::<f64>() - 6.0;
        let mut held = 0;
        for _ in 0..60 {
            let values: Vec<f64> = (0..320).map(|_| (0.04 * noise(&mut rng)).exp() * 0.93).collect();
            let estimate = estimate(values.into_iter()).unwrap();
            held += usize::from((estimate.low..=estimate.high).contains(&0.93));
            assert!(estimate.high - estimate.low < 0.02, "{estimate:?}");
        }
        assert!(held >= 50, "{held}");
    }
}
