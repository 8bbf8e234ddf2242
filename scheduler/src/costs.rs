//! The times of steps: a model that follows the measurements.
//!
//! A step of `n` tokens that attend to `k` keys is predicted to take `a + b n + c k` seconds. Here `a` and
//! `b` belong to the class of sizes that `n` is in. The classes lie between powers of two, and their lines
//! meet at the ends: the model is its values at the powers of two. So a size that was never measured has a
//! prediction between those of its neighbours, and a larger step is never predicted to be faster.
//!
//! The fit is a running one in the logarithm, not least squares. Costs are off by factors, not by seconds:
//! another machine, another load, a late page. A factor is limited before it is believed, so that one late
//! step cannot move the model far, while a lasting change widens the limit and is learned in a few steps. It
//! goes partly to the speed of the machine, which all sizes share, and partly to the sizes that were run. So
//! sizes that are not run for a while keep their relation to the others, and follow the speed. Least squares
//! with forgetting has no limit, and loses what it knew of sizes that are not run.

/// Tokens of a step, and the keys that they attend to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StepLoad {
    /// Tokens.
    pub tokens: u32,
    /// Keys, summed over the tokens.
    pub keys: f64,
}

impl StepLoad {
    /// Tokens of one sequence that follow `depth` others.
    pub fn piece(tokens: u32, depth: u32) -> StepLoad {
        let count = f64::from(tokens);
        StepLoad { tokens, keys: count * (f64::from(depth) + count / 2.0) }
    }

    /// This load and another one in one step.
    #[must_use]
    pub fn and(self, other: StepLoad) -> StepLoad {
        StepLoad { tokens: self.tokens.saturating_add(other.tokens), keys: self.keys + other.keys }
    }
}

/// A value of the model.
#[derive(Clone, Copy, Debug)]
struct CostValue {
    /// Seconds on a machine of speed 1.
    seconds: f64,
    /// The values before anything was measured.
    start: f64,
    /// About how many measurements speak of it.
    evidence: f64,
}

/// Least part of an error that is corrected at once.
const GAIN: f64 = 0.1;
/// The part of an error that goes to the speed of the machine.
const SPEED_GAIN: f64 = 0.05;
/// Largest logarithm of an error that is believed at once, after the first step.
const LARGEST: f64 = 1.4;
/// Measured steps from which on nothing is refused by a guess.
const KNOWN: u64 = 4;
/// Evidence from which a size counts as measured.
const MEASURED: f64 = 0.5;

/// The cost model of steps.
#[derive(Clone, Debug)]
pub struct Costs {
    sizes: Vec<u32>,
    /// The time of a step of each size without attention.
    values: Vec<CostValue>,
    key: CostValue,
    /// The time on this machine of work that takes a machine of speed 1 a second.
    slowness: f64,
    /// The usual size of an error's logarithm.
    deviation: f64,
    steps: u64,
}

impl Costs {
    /// A model that has measured nothing: `start` has sizes and seconds, rising, `key` the seconds per key.
    pub(crate) fn new(largest: u32, start: &[(u32, f64)], key: f64) -> Costs {
        let powers = (0..32).map(|power| 1 << power).take_while(|size| *size < largest);
        let sizes: Vec<u32> = powers.chain([largest]).collect();
        let value = |seconds: f64| CostValue { seconds, start: seconds, evidence: 0.0 };
        let values = sizes.iter().map(|size| value(interpolate(start, *size))).collect();
        Costs { sizes, values, key: value(key), slowness: 1.0, deviation: 0.1, steps: 0 }
    }

    /// Seconds that a step is predicted to take.
    pub fn step(&self, load: StepLoad) -> f64 {
        self.parts(load).iter().map(|(_, seconds)| seconds).sum()
    }

    /// Seconds that a step of one token of each of some sequences is predicted to take, if its size is tried.
    ///
    /// A size that was never measured is believed to be at most as many times slower than the largest
    /// measured one below it as it was at the start. [`Costs::step`] still has the estimate from before its
    /// neighbour turned out to be fast: it would never be tried, and so never be measured.
    pub(crate) fn untried(&self, load: StepLoad) -> f64 {
        let [below, above, (_, keys)] = self.parts(load);
        let seconds = |(index, seconds): (usize, f64)| {
            let own = self.values[index];
            let measured = self.values[..index].iter().rev().find(|value| value.evidence >= MEASURED);
            match measured.filter(|_| own.evidence < MEASURED) {
                Some(near) => seconds.min(seconds / own.seconds * near.seconds * own.start / near.start),
                None => seconds,
            }
        };
        seconds(below) + seconds(above) + keys
    }

    /// Seconds that a prompt's tokens are predicted to take in the largest steps, if nothing else runs.
    pub fn prefill(&self, tokens: u32, depth: u32) -> f64 {
        let largest = self.largest();
        let whole = f64::from(tokens / largest) * self.without_keys(largest);
        whole
            + self.without_keys(tokens % largest)
            + self.step(StepLoad { tokens: 0, ..StepLoad::piece(tokens, depth) })
    }

    /// The most tokens that can be added to a step so that it takes at most `limit` seconds, if they follow
    /// `depth` others in their sequence.
    pub(crate) fn room(&self, load: StepLoad, depth: u32, limit: f64) -> u32 {
        let (mut low, mut high) = (0, self.largest().saturating_sub(load.tokens));
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            match self.step(load.and(StepLoad::piece(middle, depth))) <= limit {
                true => low = middle,
                false => high = middle - 1,
            }
        }
        low
    }

    /// Steps that were measured.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Whether enough steps were measured to refuse requests by what is predicted. Before, predictions are
    /// those of another machine, or of a first step that was late.
    pub fn are_known(&self) -> bool {
        self.steps >= KNOWN
    }

    /// The usual part by which a step takes longer or shorter than predicted.
    pub fn deviation(&self) -> f64 {
        self.deviation
    }

    /// Learns from a step that took `seconds`.
    pub(crate) fn observe(&mut self, load: StepLoad, seconds: f64) {
        if load.tokens == 0 || !seconds.is_finite() || seconds <= 0.0 {
            return;
        }
        let parts = self.parts(load);
        let predicted: f64 = parts.iter().map(|(_, seconds)| seconds).sum();
        let error = (seconds / predicted).ln();
        // The first step tells how fast the machine is. After it, a factor is believed as far as errors are
        // usually off.
        let limit = if self.steps == 0 { f64::MAX } else { (3.0 * self.deviation + 0.1).min(LARGEST) };
        if self.steps > 0 {
            self.deviation += GAIN * (error.abs().min(LARGEST) - self.deviation);
        }
        let error = error.clamp(-limit, limit);
        let to_speed = if self.steps == 0 { 1.0 } else { SPEED_GAIN };
        self.steps += 1;
        self.slowness = (self.slowness * (to_speed * error).exp()).clamp(1e-9, 1e9);
        let shares = parts.map(|(index, seconds)| (index, seconds / predicted));
        let square: f64 = shares.iter().map(|(_, share)| share * share).sum();
        for (index, share) in shares {
            let value = self.values.get_mut(index).unwrap_or(&mut self.key);
            let gain = (1.0 / (1.0 + value.evidence)).max(GAIN) - to_speed;
            let change = gain.max(0.0) * error * (share / square).min(1.0);
            value.seconds = (value.seconds * change.exp()).clamp(1e-12, 1e6);
            value.evidence += share;
        }
        self.keep_rising(parts[1].0);
    }

    /// Raises or lowers the neighbours of a value that has just been measured, so that values rise.
    fn keep_rising(&mut self, measured: usize) {
        for index in measured + 1..self.values.len() {
            self.values[index].seconds = self.values[index].seconds.max(self.values[index - 1].seconds);
        }
        for index in (0..self.values.len() - 1).rev() {
            self.values[index].seconds = self.values[index].seconds.min(self.values[index + 1].seconds);
        }
    }

    fn largest(&self) -> u32 {
        self.sizes[self.sizes.len() - 1]
    }

    fn without_keys(&self, tokens: u32) -> f64 {
        self.step(StepLoad { tokens, keys: 0.0 })
    }

    /// Contributions of the values to a step: the index of each, and seconds. The last is the cost per key.
    fn parts(&self, load: StepLoad) -> [(usize, f64); 3] {
        let key = (self.values.len(), self.slowness * self.key.seconds * load.keys);
        if load.tokens == 0 {
            return [(0, 0.0), (0, 0.0), (key.0, 0.0)];
        }
        let above = self.sizes.partition_point(|size| *size < load.tokens).min(self.sizes.len() - 1);
        let below = above.saturating_sub(1);
        let (from, to) = (f64::from(self.sizes[below]), f64::from(self.sizes[above]));
        let part = if above == below { 1.0 } else { (f64::from(load.tokens) - from) / (to - from) };
        let seconds = |index: usize, part: f64| (index, self.slowness * self.values[index].seconds * part);
        [seconds(below, 1.0 - part), seconds(above, part), key]
    }
}

/// The value at `size` of a line through points; it goes on at both ends as its pieces there do, and upwards.
fn interpolate(points: &[(u32, f64)], size: u32) -> f64 {
    let above = points.partition_point(|point| point.0 < size).clamp(1, points.len().max(2) - 1);
    let (Some(a), Some(b)) = (points.get(above - 1), points.get(above)) else {
        return points[0].1;
    };
    let slope = (b.1 - a.1) / f64::from(b.0 - a.0);
    (a.1 + slope * (f64::from(size) - f64::from(a.0))).max(points[0].1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn costs() -> Costs {
        Costs::new(512, &[(1, 0.085), (16, 0.35), (64, 0.5), (128, 1.0), (512, 3.9)], 1e-6)
    }

    /// The true times of steps on some machine.
    fn truth(load: StepLoad, factor: f64) -> f64 {
        factor * (0.02 + 0.003 * f64::from(load.tokens) + 2e-7 * load.keys)
    }

    #[test]
    fn starts_with_what_it_was_given() {
        let costs = costs();
        for (tokens, seconds) in [(1, 0.085), (16, 0.35), (64, 0.5), (128, 1.0), (512, 3.9)] {
            assert!((costs.without_keys(tokens) - seconds).abs() < 1e-12, "{tokens}");
        }
        assert_eq!(costs.step(StepLoad::default()), 0.0);
        let one = Costs::new(64, &[(1, 0.5)], 1e-6);
        assert_eq!((one.without_keys(1), one.without_keys(64)), (0.5, 0.5));
    }

    #[test]
    fn the_first_step_sets_the_speed_and_a_late_one_moves_little() {
        let mut costs = costs();
        costs.observe(StepLoad { tokens: 1, keys: 0.0 }, 0.00085);
        assert!((costs.without_keys(512) - 0.039).abs() < 1e-3, "{}", costs.without_keys(512));
        for _ in 0..20 {
            costs.observe(StepLoad { tokens: 1, keys: 0.0 }, 0.00085);
        }
        costs.observe(StepLoad { tokens: 1, keys: 0.0 }, 5.0);
        assert!(costs.without_keys(1) < 0.00085 * 1.1, "{}", costs.without_keys(1));
        let before = costs.without_keys(1);
        for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            costs.observe(StepLoad { tokens: 1, keys: 0.0 }, wrong);
        }
        assert_eq!(costs.without_keys(1), before);
    }

    #[test]
    fn sizes_that_were_never_run_are_tried_where_smaller_ones_are_fast() {
        let mut costs = costs();
        // A prompt first, and then single tokens that are much faster than expected beside it.
        costs.observe(StepLoad { tokens: 128, keys: 0.0 }, 0.01);
        for _ in 0..300 {
            costs.observe(StepLoad { tokens: 1, keys: 0.0 }, 0.0001);
        }
        let load = |tokens| StepLoad { tokens, keys: 0.0 };
        let (one, four) = (costs.untried(load(1)), costs.untried(load(4)));
        assert_eq!(one, costs.step(load(1)));
        assert!((four / one - (0.085 + 0.2 * 0.265) / 0.085).abs() < 1e-9, "{}", four / one);
        assert!(costs.step(load(4)) > 2.0 * four);
        // The measurements are believed.
        for _ in 0..300 {
            costs.observe(load(4), 0.0003);
        }
        assert_eq!(costs.untried(load(4)), costs.step(load(4)));
        assert!((costs.untried(load(4)) / 0.0003).ln().abs() < 0.1);
    }

    #[test]
    fn follows_a_machine_that_becomes_slower() {
        let mut costs = costs();
        let loads = [(1, 100.0), (4, 900.0), (80, 2e4), (400, 2e5)];
        let mut rng = fastrand::Rng::with_seed(7);
        for factor in [1.0, 3.0, 0.5] {
            for step in 0..600 {
                let (tokens, keys) = loads[step % 4];
                let load = StepLoad { tokens, keys };
                costs.observe(load, truth(load, factor) * (0.9 + 0.2 * rng.f64()));
            }
            for (tokens, keys) in loads {
                let ratio = costs.step(StepLoad { tokens, keys }) / truth(StepLoad { tokens, keys }, factor);
                assert!((0.85..1.18).contains(&ratio), "{tokens} at {factor}: {ratio}");
            }
        }
    }

    #[test]
    fn room_is_the_most_that_fits() {
        let costs = costs();
        let busy = StepLoad { tokens: 4, keys: 4000.0 };
        let room = costs.room(busy, 1000, 0.5);
        assert!(room > 16);
        assert!(costs.step(busy.and(StepLoad::piece(room, 1000))) <= 0.5);
        assert!(costs.step(busy.and(StepLoad::piece(room + 1, 1000))) > 0.5);
        assert_eq!(costs.room(busy, 0, 0.01), 0);
        assert_eq!(costs.room(busy, 0, 1e9), 508);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn larger_steps_are_never_faster(
            steps in prop::collection::vec((1u32..=512, 0.0f64..1e6, 1e-6f64..100.0), 0..80),
            size in 1u32..512,
        ) {
            let mut costs = costs();
            for (tokens, keys, seconds) in steps {
                costs.observe(StepLoad { tokens, keys }, seconds);
            }
            prop_assert!(costs.without_keys(size) <= costs.without_keys(size + 1) * (1.0 + 1e-12));
            prop_assert!(costs.without_keys(size) > 0.0 && costs.without_keys(size).is_finite());
        }
    }
}
