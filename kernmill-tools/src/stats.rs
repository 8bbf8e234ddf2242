//! Medians, quantiles and evenness.

/// Median and quartiles of some values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quartiles {
    /// Value that a quarter of the values are below.
    pub q1: f64,
    /// Value that half of the values are below.
    pub median: f64,
    /// Value that three quarters of the values are below.
    pub q3: f64,
}

impl Quartiles {
    /// Quartiles of `values`, interpolated between the neighbours in rank; zeros for no values.
    pub fn of(values: &[f64]) -> Quartiles {
        let sorted = sorted(values);
        let at = |part| quantile(&sorted, part);
        Quartiles { q1: at(0.25), median: at(0.5), q3: at(0.75) }
    }
}

/// The values in rising order.
pub fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// The value that `part` (0 to 1) of the values `sorted` are below, interpolated between the neighbours in
/// rank; 0 for no values.
pub fn quantile(sorted: &[f64], part: f64) -> f64 {
    let place = part * sorted.len().saturating_sub(1) as f64;
    let (low, high) = (place.floor() as usize, place.ceil() as usize);
    match (sorted.get(low), sorted.get(high)) {
        (Some(a), Some(b)) => a + (b - a) * place.fract(),
        _ => 0.0,
    }
}

/// The largest value, 0 for none.
pub fn best(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

/// The mean, 0 for no values.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Jain's index of some values that are not negative: 1 when all are alike, 1 / n when one of n has all. 1
/// for no values.
pub fn jain(values: &[f64]) -> f64 {
    let (sum, squares) = (values.iter().sum::<f64>(), values.iter().map(|value| value * value).sum::<f64>());
    if squares > 0.0 { sum * sum / (values.len() as f64 * squares) } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_interpolate() {
        let of = |values: &[f64]| {
            let Quartiles { q1, median, q3 } = Quartiles::of(values);
            [q1, median, q3]
        };
        assert_eq!(of(&[]), [0.0; 3]);
        assert_eq!(of(&[7.0]), [7.0; 3]);
        assert_eq!(of(&[4.0, 1.0, 3.0]), [2.0, 3.0, 3.5]);
        assert_eq!(of(&[1.0, 2.0, 3.0, 4.0]), [1.75, 2.5, 3.25]);
        assert_eq!((best(&[1.0, 5.0, 2.0]), best(&[])), (5.0, 0.0));
        assert_eq!((mean(&[1.0, 5.0]), mean(&[])), (3.0, 0.0));
        let hundred: Vec<f64> = (0..=100).map(f64::from).collect();
        assert_eq!([0.0, 0.9, 0.99, 1.0].map(|part| quantile(&hundred, part)), [0.0, 90.0, 99.0, 100.0]);
    }

    #[test]
    fn evenness_is_one_when_all_are_alike() {
        assert_eq!(jain(&[3.0; 7]), 1.0);
        assert_eq!(jain(&[5.0, 0.0, 0.0, 0.0]), 0.25);
        assert_eq!(jain(&[]), 1.0);
        // (1 + 3)^2 / (2 * (1 + 9)).
        assert_eq!(jain(&[1.0, 3.0]), 0.8);
    }
}
