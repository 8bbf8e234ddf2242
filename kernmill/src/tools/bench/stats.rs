//! Medians and quartiles.

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
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at = |part: f64| {
            let place = part * sorted.len().saturating_sub(1) as f64;
            let (low, high) = (place.floor() as usize, place.ceil() as usize);
            match (sorted.get(low), sorted.get(high)) {
                (Some(a), Some(b)) => a + (b - a) * place.fract(),
                _ => 0.0,
            }
        };
        Quartiles { q1: at(0.25), median: at(0.5), q3: at(0.75) }
    }
}

/// The largest value, 0 for none.
pub fn best(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
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
        assert_eq!(best(&[1.0, 5.0, 2.0]), 5.0);
        assert_eq!(best(&[]), 0.0);
    }
}
