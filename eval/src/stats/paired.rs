//! Two runs over the same items.

use libm::{exp, lgamma, log};

/// Flips that may show a difference: all 6 the same way have a chance of 1 in 32.
const FEWEST_FLIPS: usize = 6;

/// Items that only one of two runs has right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flips {
    /// Right in the first run alone.
    pub lost: usize,
    /// Right in the second run alone.
    pub won: usize,
}

impl Flips {
    /// Counts the flips of two runs' items, each right or wrong.
    pub fn of(first: &[bool], second: &[bool]) -> Flips {
        let count = |had: bool| first.iter().zip(second).filter(|pair| *pair == (&had, &!had)).count();
        Flips { lost: count(true), won: count(false) }
    }

    /// The chance of flips as one-sided as these, or more so, if neither run is better: McNemar's exact
    /// test, two-sided.
    pub fn p_value(self) -> f64 {
        let n = (self.lost + self.won) as f64;
        let choose = |k: f64| lgamma(n + 1.0) - lgamma(k + 1.0) - lgamma(n - k + 1.0);
        let tail: f64 = (0..=self.lost.min(self.won)).map(|k| exp(choose(k as f64) - n * log(2.0))).sum();
        (2.0 * tail).min(1.0)
    }
}

/// The smallest difference between two runs over the same `n` items at which [`Flips::p_value`] is less than
/// 0.05, where `flips` items are right in one of the runs alone. Fewer than 6 flips show none: 6 are taken
/// then.
pub fn smallest_difference(n: usize, flips: usize) -> f64 {
    let flips = flips.max(FEWEST_FLIPS);
    // The p-value grows with the smaller count. A count of 0 is seen, and half of the flips is not: the limit
    // is found between them.
    let (mut seen, mut unseen) = (0, flips / 2 + 1);
    while unseen - seen > 1 {
        let lost = (seen + unseen) / 2;
        if (Flips { lost, won: flips - lost }).p_value() < 0.05 { seen = lost } else { unseen = lost }
    }
    ((flips - 2 * seen) as f64 / n as f64).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::{Flips, smallest_difference};

    #[test]
    fn the_exact_test_is_that_of_scipy() {
        // scipy.stats.binomtest(lost, lost + won).pvalue; 1 / 16 and 22 / 64 by hand.
        let cases = [
            (0, 5, 0.0625),
            (1, 5, 0.21875),
            (3, 3, 1.0),
            (10, 25, 0.01667384780012071),
            (120, 180, 0.0006342200069283569),
        ];
        for (lost, won, expected) in cases {
            let found = Flips { lost, won }.p_value();
            assert!((found / expected - 1.0).abs() < 1e-9, "{lost}, {won}: {found}");
            assert_eq!(found, Flips { lost: won, won: lost }.p_value());
        }
        assert_eq!(Flips { lost: 0, won: 0 }.p_value(), 1.0);
    }

    #[test]
    fn flips_are_counted_both_ways() {
        let (first, second) = ([true, true, false, false, true], [true, false, true, false, false]);
        assert_eq!(Flips::of(&first, &second), Flips { lost: 2, won: 1 });
    }

    #[test]
    fn the_smallest_difference_is_where_the_test_begins_to_see_one() {
        for (n, flips) in [(1000, 6), (1000, 20), (8537, 171), (10_042, 3000)] {
            let net = (smallest_difference(n, flips) * n as f64).round() as usize;
            let at = |net: usize| Flips { lost: (flips - net) / 2, won: (flips + net) / 2 }.p_value();
            assert!(at(net) < 0.05 && (net < 2 || at(net - 2) >= 0.05), "{n}, {flips}: {net}");
        }
        // 0.3 points at a rate of flips of 2 % take about 8,500 items.
        assert!((smallest_difference(8537, 171) - 0.003).abs() < 3e-4);
        assert_eq!(smallest_difference(100, 0), 0.06);
        assert_eq!(smallest_difference(1, 1), 1.0);
    }
}
