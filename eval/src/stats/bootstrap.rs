//! Intervals by drawing blocks of the measured values again.

use super::percentile;
use super::quantile::{NORMAL, below, student};
use fastrand::Rng;

/// How often the blocks are drawn.
const DRAWS: usize = 2000;
/// The draws are the same for all who measure the same.
const SEED: u64 = 54;
/// Blocks that an interval takes at least: fewer say too little about how much they differ.
pub const FEWEST_BLOCKS: usize = 8;

/// Values that hang together, such as those of the tokens of one text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlockSum {
    /// Sum of the values.
    pub sum: f64,
    /// The divisor of the sum: how many values there are, or bytes.
    pub weight: f64,
}

/// An interval that holds the true value in 95 of 100 cases.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// Half its width.
    pub fn half(self) -> f64 {
        (self.high - self.low) / 2.0
    }
}

/// The interval of the blocks' sums over their weights; `None` of fewer than [`FEWEST_BLOCKS`] blocks.
///
/// Blocks are drawn as often as there are blocks, and again. The percentiles are those of Student's
/// distribution, a little wider than 2.5 and 97.5, since few blocks differ less among each other than from
/// the truth.
pub fn interval(blocks: &[BlockSum]) -> Option<Interval> {
    let n = blocks.len();
    if n < FEWEST_BLOCKS {
        return None;
    }
    let mut rng = Rng::with_seed(SEED);
    let mut ratios: Vec<f64> = (0..DRAWS).map(|_| ratio((0..n).map(|_| blocks[rng.usize(..n)]))).collect();
    ratios.sort_by(f64::total_cmp);
    let n = n as f64;
    let outside = below(-student(n - 1.0).max(NORMAL) * (n / (n - 1.0)).sqrt());
    Some(Interval { low: percentile(&ratios, outside), high: percentile(&ratios, 1.0 - outside) })
}

fn ratio(blocks: impl Iterator<Item = BlockSum>) -> f64 {
    let (sum, weight) =
        blocks.fold((0.0, 0.0), |(sum, weight), block| (sum + block.sum, weight + block.weight));
    sum / weight
}

#[cfg(test)]
mod tests {
    use super::{BlockSum, FEWEST_BLOCKS, interval};
    use fastrand::Rng;

    /// How many intervals of 100 hold `truth`, of data sets of so many blocks.
    fn hits(blocks: usize, truth: f64, mut draw: impl FnMut(&mut Rng) -> BlockSum) -> usize {
        let mut rng = Rng::with_seed(blocks as u64);
        let sets = (0..100).map(|_| (0..blocks).map(|_| draw(&mut rng)).collect::<Vec<_>>());
        let found = sets.filter_map(|set| interval(&set));
        found.filter(|interval| (interval.low..=interval.high).contains(&truth)).count()
    }

    #[test]
    fn intervals_hold_the_truth_in_95_of_100_cases() {
        let found = [
            // Items that are right in 6 of 10 cases.
            hits(200, 0.6, |rng| BlockSum { sum: f64::from(u8::from(rng.f64() < 0.6)), weight: 1.0 }),
            // Losses of tokens, exponential, in texts of 1 to 60 tokens that have a level of their own.
            hits(60, 2.0, |rng| {
                let (level, tokens) = (1.0 + 2.0 * rng.f64(), rng.usize(1..=60));
                let sum = (0..tokens).map(|_| -(1.0 - rng.f64()).ln() * level).sum();
                BlockSum { sum, weight: tokens as f64 }
            }),
            // Few blocks.
            hits(12, 0.5, |rng| BlockSum { sum: rng.f64(), weight: 1.0 }),
        ];
        assert!(found.iter().all(|hits| (93..=97).contains(hits)), "{found:?}");
    }

    #[test]
    fn few_blocks_have_no_interval() {
        let block = BlockSum { sum: 2.0, weight: 4.0 };
        assert_eq!(interval(&[block; FEWEST_BLOCKS - 1]), None);
        let sure = interval(&[block; FEWEST_BLOCKS]).unwrap();
        assert_eq!((sure.low, sure.high, sure.half()), (0.5, 0.5, 0.0));
    }
}
