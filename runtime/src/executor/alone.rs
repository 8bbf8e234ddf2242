//! When worker 0 runs batches alone: where others come so late that all of them together are slower than one.
//!
//! A worker that shares its CPU may be away for milliseconds with a part of a step in its hands. Steps of a
//! large model last long enough for the others to make good use of that time. A small model runs a hundred
//! batches in it.

use std::time::Duration;

/// A stretch alone lasts at least so many times as long as what was lost before it. If the others are there
/// again, running alone loses about as much once more.
const LEAST: u32 = 2;
/// No stretch lasts longer: the others may be there again.
const LONGEST: Duration = Duration::from_secs(1);

/// Whether worker 0 is to run alone.
#[derive(Debug)]
pub(super) struct Alone {
    /// For how long yet.
    left: Duration,
    /// How long the last stretch was.
    stretch: Duration,
    /// How long workers have run together since then.
    together: Duration,
    factor: u32,
}

impl Alone {
    pub(super) fn new() -> Alone {
        Alone { left: Duration::ZERO, stretch: Duration::ZERO, together: Duration::ZERO, factor: LEAST }
    }

    /// Whether the next batch is worker 0's alone.
    pub(super) fn is_next(&self) -> bool {
        !self.left.is_zero()
    }

    /// Worker 0 has run a batch alone, which took so long.
    pub(super) fn ran_alone(&mut self, took: Duration) {
        self.left = self.left.saturating_sub(took);
    }

    /// A number of workers have run a batch together, which took `took`. Worker 0 waited for `waited` of it.
    ///
    /// Each other worker's part is worth about the time in which worker 0 worked itself. If worker 0 waited
    /// longer than doing all their parts would have taken, it runs the next batches alone. If the stretch
    /// before did not help, the new one is twice as long.
    pub(super) fn ran_together(&mut self, workers: usize, took: Duration, waited: Duration) {
        let others = took.saturating_sub(waited).saturating_mul(workers.saturating_sub(1) as u32);
        if workers < 2 || waited <= others {
            self.together = self.together.saturating_add(took);
            if self.together > self.stretch {
                self.factor = LEAST;
            }
            return;
        }
        let lost = waited - others;
        self.stretch = lost.saturating_mul(self.factor).min(LONGEST);
        self.left = self.stretch;
        self.together = Duration::ZERO;
        self.factor = self.factor.saturating_mul(2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(us: u64) -> Duration {
        Duration::from_micros(us)
    }

    /// Time alone until workers are together again, in batches of 100 us.
    fn stretch(alone: &mut Alone) -> Duration {
        let mut took = Duration::ZERO;
        while alone.is_next() {
            alone.ran_alone(us(100));
            took += us(100);
        }
        took
    }

    #[test]
    fn workers_that_come_in_time_stay_together() {
        let mut alone = Alone::new();
        for (workers, took, waited) in [(2, 100, 0), (2, 100, 50), (16, 100, 90), (1, 100, 100), (2, 0, 0)] {
            alone.ran_together(workers, us(took), us(waited));
            assert!(!alone.is_next(), "{workers} {took} {waited}");
        }
    }

    #[test]
    fn a_late_worker_costs_a_stretch_alone_of_twice_the_loss() {
        let mut alone = Alone::new();
        alone.ran_together(2, us(4100), us(4000));
        assert_eq!(stretch(&mut alone), us(2 * 3900));
        // With 16 workers the parts of the others are 15 times as much.
        alone.ran_together(16, us(1000), us(900));
        assert!(!alone.is_next());
    }

    #[test]
    fn lateness_that_goes_on_is_tried_less_and_less_often() {
        let mut alone = Alone::new();
        let mut last = Duration::ZERO;
        for _ in 0..8 {
            alone.ran_together(2, us(1100), us(1000));
            let now = stretch(&mut alone);
            assert!(now > last && now <= LONGEST, "{now:?}");
            last = now;
            // Some batches go well in between.
            alone.ran_together(2, us(100), us(10));
        }
        for _ in 0..40 {
            alone.ran_together(2, us(9000), us(8900));
        }
        assert_eq!(stretch(&mut alone), LONGEST);
        // After as long a time together as the last stretch alone, all is forgotten.
        for _ in 0..10_001 {
            alone.ran_together(2, us(100), us(10));
        }
        alone.ran_together(2, us(1100), us(1000));
        assert!(stretch(&mut alone) <= us(2 * 1000));
    }
}
