//! The units of a measurement, and which of them count.

use super::estimate::{MedianEstimate, estimate};
use crate::stats::{Quartiles, sorted};
use fastrand::Rng;

/// The kind of work that is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitKind {
    /// R: a replay.
    Replay,
    /// W: a step of decoding.
    Step,
    /// R': a replay in the place of a step.
    Again,
    /// W+: a step that reads 5 % more bytes.
    More,
    /// S: a sequential read.
    Sequential,
}

/// A unit that has been timed.
#[derive(Clone, Copy, Debug)]
pub struct TimedUnit {
    pub unit: UnitKind,
    pub seconds: f64,
    /// Seconds meanwhile that the CPUs were others'.
    pub stolen: f64,
    /// Page faults meanwhile that waited for a disk.
    pub faults: u64,
}

/// A unit beside the replays before and behind it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SamplePair {
    pub unit: UnitKind,
    pub seconds: f64,
    /// Seconds of a replay: the geometric mean of both.
    pub replay: f64,
    /// Whether it counts, by the replays and the machine alone.
    pub valid: bool,
}

/// Seconds of replays over those of the units between them.
fn ratio(pairs: &[SamplePair]) -> Option<MedianEstimate> {
    estimate(pairs.iter().map(|pair| pair.replay / pair.seconds))
}

/// Largest ratio of the two replays of a pair that counts.
const REPLAYS_APART: f64 = 1.10;
/// Largest share of the time between them that CPUs were others'.
const STOLEN: f64 = 0.02;
/// Least share of pairs that must count.
pub const LEAST_VALID: f64 = 0.5;

/// The order of units, in blocks by a coin: replays around two units, or two units around replays. A quarter
/// of the steps stand beside one that reads more, in either order, and half as many units are replays in the
/// place of steps. The first and the last unit are replays.
pub fn order(steps: u32, rng: &mut Rng) -> Vec<UnitKind> {
    let controls = steps.div_ceil(4);
    let kinds = [
        ([UnitKind::Step, UnitKind::Step], (steps - controls).div_ceil(2)),
        ([UnitKind::Step, UnitKind::More], controls),
        ([UnitKind::Again, UnitKind::Again], controls.div_ceil(4)),
    ];
    let mut blocks: Vec<[UnitKind; 2]> =
        kinds.into_iter().flat_map(|(units, count)| (0..count).map(move |_| units)).collect();
    rng.shuffle(&mut blocks);
    let mut order = vec![UnitKind::Replay];
    for [first, second] in blocks {
        order.extend(match (rng.bool(), first == second) {
            (true, _) => [UnitKind::Replay, first, second, UnitKind::Replay],
            (false, true) => [first, UnitKind::Replay, UnitKind::Replay, second],
            (false, false) => [UnitKind::Replay, second, first, UnitKind::Replay],
        });
    }
    order.push(UnitKind::Replay);
    order
}

/// Everything that was timed, in its order.
pub struct Series {
    pub pairs: Vec<SamplePair>,
    /// Steps beside such that read more: as pairs of these with steps in the place of replays.
    twins: Vec<SamplePair>,
    sequential: Vec<f64>,
    replays: Vec<f64>,
}

impl Series {
    pub fn new(samples: Vec<TimedUnit>) -> Series {
        let of = |unit: UnitKind| samples.iter().filter(|s| s.unit == unit).map(|s| s.seconds).collect();
        let is_replay = |at: &usize| samples[*at].unit == UnitKind::Replay;
        let pair = |at: usize| {
            let sample = samples[at];
            if matches!(sample.unit, UnitKind::Replay | UnitKind::Sequential) {
                return None;
            }
            let (before, behind) = ((0..at).rev().find(is_replay)?, (at..samples.len()).find(is_replay)?);
            let (first, last) = (samples[before].seconds, samples[behind].seconds);
            let between = &samples[before..=behind];
            let seconds: f64 = between.iter().map(|sample| sample.seconds).sum();
            let stolen: f64 = between.iter().map(|sample| sample.stolen).sum();
            let faults: u64 = between.iter().map(|sample| sample.faults).sum();
            let apart = (first / last).max(last / first);
            let valid = apart <= REPLAYS_APART && stolen <= STOLEN * seconds && faults == 0;
            Some(SamplePair {
                unit: sample.unit,
                seconds: sample.seconds,
                replay: (first * last).sqrt(),
                valid,
            })
        };
        let all: Vec<Option<SamplePair>> = (0..samples.len()).map(pair).collect();
        let twin = |two: &[Option<SamplePair>]| {
            let (first, second) = (two[0]?, two[1]?);
            let (step, more) = match (first.unit, second.unit) {
                (UnitKind::Step, UnitKind::More) => (first, second),
                (UnitKind::More, UnitKind::Step) => (second, first),
                _ => return None,
            };
            (step.valid && more.valid).then_some(SamplePair { replay: step.seconds, ..more })
        };
        let twins = all.windows(2).filter_map(twin).collect();
        let pairs = all.into_iter().flatten().collect();
        Series { pairs, twins, sequential: of(UnitKind::Sequential), replays: of(UnitKind::Replay) }
    }

    /// Pairs of a unit that count.
    pub fn valid(&self, unit: UnitKind) -> Vec<SamplePair> {
        self.pairs.iter().filter(|pair| pair.unit == unit && pair.valid).copied().collect()
    }

    /// Share of the pairs that count.
    pub fn valid_share(&self) -> f64 {
        let valid = self.pairs.iter().filter(|pair| pair.valid).count();
        valid as f64 / self.pairs.len().max(1) as f64
    }

    /// Seconds of a replay over those of a unit: 1 when the unit takes no longer than its reads.
    pub fn ratio(&self, unit: UnitKind) -> Option<MedianEstimate> {
        ratio(&self.valid(unit))
    }

    /// Seconds of a step over those of one beside it that reads more.
    pub fn more(&self) -> Option<MedianEstimate> {
        ratio(&self.twins)
    }

    /// The ratio of steps, by thirds of the replays' speed, the slowest first.
    pub fn thirds(&self) -> Vec<(Quartiles, MedianEstimate)> {
        let pairs = self.valid(UnitKind::Step);
        let times = sorted(&pairs.iter().map(|pair| pair.replay).collect::<Vec<f64>>());
        let bound = |third: usize| times.get(times.len() * third / 3).copied().unwrap_or(f64::INFINITY);
        let bounds = [f64::NEG_INFINITY, bound(1), bound(2), f64::INFINITY];
        let third = |n: usize| {
            let inside = |pair: &&SamplePair| (bounds[n]..bounds[n + 1]).contains(&pair.replay);
            let pairs: Vec<SamplePair> = pairs.iter().filter(inside).copied().collect();
            let times: Vec<f64> = pairs.iter().map(|pair| pair.replay).collect();
            Some((Quartiles::of(&times), ratio(&pairs)?))
        };
        (0..3).rev().filter_map(third).collect()
    }

    /// Seconds of replays, sequential reads and steps.
    pub fn times(&self) -> [Quartiles; 3] {
        let steps: Vec<f64> = self.valid(UnitKind::Step).iter().map(|pair| pair.seconds).collect();
        [Quartiles::of(&self.replays), Quartiles::of(&self.sequential), Quartiles::of(&steps)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(unit: UnitKind, seconds: f64) -> TimedUnit {
        TimedUnit { unit, seconds, stolen: 0.0, faults: 0 }
    }

    #[test]
    fn every_unit_has_a_replay_on_both_sides_and_its_share() {
        for steps in [1, 8, 400] {
            let order = order(steps, &mut Rng::with_seed(3));
            let count = |unit: UnitKind| order.iter().filter(|other| **other == unit).count() as u32;
            assert!(count(UnitKind::Step) >= steps && count(UnitKind::Step) <= steps + 1, "{order:?}");
            assert!(
                count(UnitKind::More) == steps.div_ceil(4) && count(UnitKind::Again) >= steps / 8,
                "{order:?}"
            );
            let is_twin = |two: &&[UnitKind]| two.contains(&UnitKind::Step) && two.contains(&UnitKind::More);
            assert_eq!(order.windows(2).filter(is_twin).count() as u32, count(UnitKind::More));
            assert_eq!((order[0], *order.last().unwrap()), (UnitKind::Replay, UnitKind::Replay));
            // Any four units in turn have a replay among them.
            assert!(order.windows(4).all(|units| units.contains(&UnitKind::Replay)), "{order:?}");
        }
        assert_ne!(order(40, &mut Rng::with_seed(1)), order(40, &mut Rng::with_seed(2)));
    }

    #[test]
    fn replays_and_the_machine_decide_what_counts_and_steps_do_not() {
        let around = |first: f64, step: TimedUnit, last: f64| {
            let samples = vec![sample(UnitKind::Replay, first), step, sample(UnitKind::Replay, last)];
            Series::new(samples).pairs[0]
        };
        let slow = around(1.0, sample(UnitKind::Step, 50.0), 1.0);
        assert!(slow.valid, "{slow:?}");
        assert!(around(1.0, sample(UnitKind::Step, 1.0), 1.09).valid);
        assert!(!around(1.0, sample(UnitKind::Step, 1.0), 1.11).valid);
        assert!(!around(1.12, sample(UnitKind::Step, 1.0), 1.0).valid);
        assert!(!around(1.0, TimedUnit { faults: 1, ..sample(UnitKind::Step, 1.0) }, 1.0).valid);
        assert!(around(1.0, TimedUnit { stolen: 0.05, ..sample(UnitKind::Step, 1.0) }, 1.0).valid);
        assert!(!around(1.0, TimedUnit { stolen: 0.07, ..sample(UnitKind::Step, 1.0) }, 1.0).valid);
        let pair = around(0.9, sample(UnitKind::Step, 2.0), 0.9);
        assert!((pair.replay - 0.9).abs() < 1e-12 && pair.seconds == 2.0);
    }

    /// A memory whose speed doubles halfway, a step that takes 1.25 times its reads, and the controls.
    #[test]
    fn ratios_are_found_though_the_memory_changes() {
        let mut rng = Rng::with_seed(5);
        let units = order(400, &mut rng);
        let half = units.len() / 2;
        let timed = units.iter().enumerate().map(|(n, unit)| {
            let memory = if n < half { 2.0 } else { 1.0 } * (1.0 + 0.04 * (rng.f64() - 0.5));
            let factor = match unit {
                UnitKind::Replay | UnitKind::Again | UnitKind::Sequential => 1.0,
                UnitKind::Step => 1.25,
                UnitKind::More => 1.25 * 1.05,
            };
            sample(*unit, memory * factor)
        });
        let series = Series::new(timed.collect());
        let at = |unit: UnitKind| series.ratio(unit).unwrap();
        assert!((at(UnitKind::Step).median - 0.8).abs() < 0.004, "{:?}", at(UnitKind::Step));
        assert!((at(UnitKind::Again).median - 1.0).abs() < 0.01);
        assert!((1.0 - series.more().unwrap().median - 0.0476).abs() < 0.004, "{:?}", series.more());
        let step = at(UnitKind::Step);
        assert!(step.low <= 0.8 && 0.8 <= step.high && step.high - step.low < 0.02, "{step:?}");
        let thirds = series.thirds();
        assert_eq!(thirds.len(), 3);
        assert!(thirds[0].0.median > 1.9 && thirds[2].0.median < 1.1, "{thirds:?}");
        assert!(thirds.iter().all(|(_, ratio)| (ratio.median - 0.8).abs() < 0.01), "{thirds:?}");
        assert!(series.valid_share() > 0.95);
    }
}
