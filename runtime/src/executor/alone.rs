//! When worker 0 runs batches alone: where others come so late that all of them together are slower than one.
//!
//! A worker that shares its CPU may be away for milliseconds with a part of a step in its hands. Steps of a
//! large model last long enough for the others to make good use of that time. A small model runs a hundred
//! batches in it. The measure is the time of batches, together and alone: waiting is only a part of what a
//! late worker costs, since it also has to be woken.

use std::time::Duration;

/// The first stretch alone lasts so many times as long as what was lost before it. If the others are there
/// again, running alone loses about as much once more.
const LEAST: u32 = 2;
/// No stretch lasts longer: the others may be there again.
const LONGEST: Duration = Duration::from_secs(1);
/// Workers run together for at least this part of the last stretch before they are found too slow.
const TRIAL: u32 = 16;
/// Batches together count half as much after so long: what was before tells little of now.
const HALF_LIFE: Duration = Duration::from_millis(50);

/// Batches of one size, and how long they took.
#[derive(Clone, Copy, Debug, Default)]
struct BatchPace {
    batches: f64,
    seconds: f64,
}

impl BatchPace {
    fn add(&mut self, took: Duration) {
        self.batches += 1.0;
        self.seconds += took.as_secs_f64();
    }

    fn halve(&mut self) {
        *self = BatchPace { batches: self.batches / 2.0, seconds: self.seconds / 2.0 };
    }

    fn is_known(self) -> bool {
        self.batches > 0.0
    }

    fn is_slower_than(self, other: BatchPace) -> bool {
        self.seconds * other.batches > other.seconds * self.batches
    }
}

/// Whether worker 0 is to run alone.
#[derive(Debug)]
pub(super) struct Alone {
    /// For how long yet.
    left: Duration,
    /// How long the last stretch alone was.
    stretch: Duration,
    /// How long workers have run together since then.
    since: Duration,
    /// Tokens of the batches below: others take other times.
    tokens: usize,
    together: BatchPace,
    /// In the last stretch alone.
    alone: BatchPace,
}

impl Alone {
    pub(super) fn new() -> Alone {
        Alone {
            left: Duration::ZERO,
            stretch: Duration::ZERO,
            since: Duration::ZERO,
            tokens: 0,
            together: BatchPace::default(),
            alone: BatchPace::default(),
        }
    }

    /// Whether the next batch is worker 0's alone.
    pub(super) fn is_next(&self) -> bool {
        !self.left.is_zero()
    }

    /// Worker 0 has run a batch of so many tokens alone, which took so long.
    pub(super) fn ran_alone(&mut self, tokens: usize, took: Duration) {
        self.only_of(tokens);
        self.alone.add(took);
        self.left = self.left.saturating_sub(took);
    }

    /// A number of workers have run a batch of so many tokens together, which took `took`. Worker 0 waited
    /// for `waited` of it.
    ///
    /// As long as nothing is known of batches alone, waiting tells: each other worker's part is worth about
    /// the time in which worker 0 worked itself, and if worker 0 waited longer than doing all their parts
    /// would have taken, it runs the next batches alone. When these are known, the times of batches tell. If
    /// batches together are slower, a stretch alone follows that is twice as long as the one before.
    pub(super) fn ran_together(&mut self, workers: usize, tokens: usize, took: Duration, waited: Duration) {
        if workers < 2 {
            return;
        }
        self.only_of(tokens);
        self.together.add(took);
        self.since = self.since.saturating_add(took);
        if self.alone.is_known() {
            if self.since > LONGEST {
                // The machine may be another by now.
                self.alone = BatchPace::default();
            } else if self.since >= self.stretch / TRIAL && self.together.is_slower_than(self.alone) {
                self.begin(self.stretch * 2);
            }
        } else {
            let others = took.saturating_sub(waited).saturating_mul(workers as u32 - 1);
            let lost = waited.saturating_sub(others);
            if !lost.is_zero() {
                self.begin(lost.saturating_mul(LEAST));
            }
        }
        if self.together.seconds > HALF_LIFE.as_secs_f64() {
            self.together.halve();
        }
    }

    fn begin(&mut self, stretch: Duration) {
        self.stretch = stretch.min(LONGEST);
        self.left = self.stretch;
        self.since = Duration::ZERO;
        (self.together, self.alone) = (BatchPace::default(), BatchPace::default());
    }

    /// Forgets the times of batches of other sizes.
    fn only_of(&mut self, tokens: usize) {
        if self.tokens != tokens {
            (self.tokens, self.together, self.alone) = (tokens, BatchPace::default(), BatchPace::default());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(us: u64) -> Duration {
        Duration::from_micros(us)
    }

    const ALONE: u64 = 100;
    const TOGETHER: u64 = 60;

    /// A machine of two CPUs in virtual time. The other worker is away for `away` of every `period`
    /// microseconds, until `ends`: a batch in which it leaves takes until it is back. While it is away,
    /// worker 0 does its parts, too, and wakes it again and again.
    struct Machine {
        now: u64,
        period: u64,
        away: u64,
        ends: u64,
    }

    impl Machine {
        /// How long a batch takes together, and how long worker 0 waits.
        fn together(&self) -> (u64, u64) {
            let at = self.now % self.period;
            if self.now >= self.ends {
                (TOGETHER, 5)
            } else if at < self.away {
                (2 * ALONE, 5)
            } else if at + TOGETHER > self.period {
                let waits = self.period - at + self.away;
                (TOGETHER + waits, waits)
            } else {
                (TOGETHER, 5)
            }
        }

        /// Batches within so many microseconds by the rule, and those that are always run together.
        fn batches(mut self, until: u64) -> (u64, u64) {
            let (start, mut counts) = (self.now, [0; 2]);
            let mut rule = Alone::new();
            while self.now < until {
                if rule.is_next() {
                    rule.ran_alone(1, us(ALONE));
                    self.now += ALONE;
                } else {
                    let (took, waited) = self.together();
                    rule.ran_together(2, 1, us(took), us(waited));
                    self.now += took;
                }
                counts[0] += 1;
            }
            self.now = start;
            while self.now < until {
                self.now += self.together().0;
                counts[1] += 1;
            }
            (counts[0], counts[1])
        }
    }

    const SECONDS: u64 = 1_000_000;

    #[test]
    fn workers_that_come_in_time_stay_together() {
        let mut alone = Alone::new();
        for (workers, took, waited) in [(2, 100, 0), (2, 100, 50), (16, 100, 90), (1, 100, 100), (2, 0, 0)] {
            alone.ran_together(workers, 1, us(took), us(waited));
            assert!(!alone.is_next(), "{workers} {took} {waited}");
        }
    }

    #[test]
    fn half_a_cpu_less_is_as_good_as_one_thread() {
        for (period, away) in [(6_000, 3_000), (8_000, 6_000), (30_010, 24_000), (700, 500)] {
            let machine = Machine { now: 0, period, away, ends: u64::MAX };
            let (found, always) = machine.batches(20 * SECONDS);
            let one = 20 * SECONDS / ALONE;
            assert!(found * 100 > one * 93, "{period} {away}: {found} of {one}, together {always}");
            assert!(found * 100 > always * 97, "{period} {away}: {found}, together {always}");
        }
    }

    #[test]
    fn who_is_seldom_away_is_not_left_behind() {
        for (period, away) in [(60_000, 3_000), (500_000, 4_000), (30_010, 3_000)] {
            let machine = Machine { now: 0, period, away, ends: u64::MAX };
            let (found, always) = machine.batches(20 * SECONDS);
            assert!(found * 100 > always * 93, "{period} {away}: {found} of {always}");
        }
    }

    #[test]
    fn who_is_back_for_good_is_soon_made_use_of() {
        let machine = Machine { now: 0, period: 6_000, away: 4_000, ends: 10 * SECONDS };
        let (found, _) = machine.batches(20 * SECONDS);
        let best = 10 * SECONDS / ALONE + 10 * SECONDS / TOGETHER;
        assert!(found * 100 > best * 92, "{found} of {best}");
    }

    #[test]
    fn batches_of_other_sizes_are_not_compared() {
        let mut alone = Alone::new();
        alone.ran_together(2, 1, us(4_100), us(4_000));
        while alone.is_next() {
            alone.ran_alone(1, us(100));
        }
        // A prompt takes longer, together as alone.
        for _ in 0..100 {
            alone.ran_together(2, 512, us(9_000), us(100));
            assert!(!alone.is_next());
        }
    }
}
