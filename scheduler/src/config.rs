//! The configuration of a scheduler. `docs/dev/scheduler.md` has the reason of every default.

use crate::facts::TenantId;
use std::collections::BTreeMap;
use std::time::Duration;

/// Why a scheduler cannot be made.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("scheduler option `{option}` is {found}: it must be {expected}")]
pub struct ConfigError {
    /// Name of the option in [`SchedulerConfig`].
    pub option: &'static str,
    /// Value of the option.
    pub found: String,
    /// The legal values.
    pub expected: &'static str,
}

/// Limits, promises and shares.
#[derive(Clone, Debug, PartialEq)]
pub struct SchedulerConfig {
    /// Tokens of the engine's largest step.
    pub max_batch_tokens: u32,
    /// Sequences that run at once, at most `max_batch_tokens`.
    pub max_sequences: u32,
    /// Steps that are on their way at once, where an engine begins one before another has ended: 1 to 64.
    /// Answers are then split among them.
    pub steps_in_flight: u32,
    /// Whether a prompt runs in one step whole, or as many pieces as suit.
    pub whole_prompts: bool,
    /// Requests that wait at once. A tenant that uses less than its part may go beyond, up to twice as many.
    pub max_queue: u32,
    /// By class ([`Class::index`](crate::Class::index)): the longest estimated wait at which a request is
    /// still accepted.
    pub max_wait: [Option<Duration>; 3],
    /// The longest step while an interactive answer is being generated, as far as pieces of prompts make it
    /// longer.
    pub max_stall: Duration,
    /// Tokens per second that an interactive answer gets at least.
    pub floor_rate: f64,
    /// The part of the speed that an answer has alone, and that an interactive one gets at least; 0 to 1.
    pub floor_fraction: f64,
    /// Over how long the floor is averaged.
    pub floor_window: Duration,
    /// The part of the time that is left to prompts when as many interactive answers run as may; 0.05 to
    /// 0.95.
    pub prefill_share: f64,
    /// Tokens of an answer for which there must be room before it starts, and by which this grows.
    pub growth: u32,
    /// The part of the time that interactive requests get if batch requests want all they can have; 0 to 1,
    /// neither included.
    pub interactive_share: f64,
    /// Shares of tenants against each other; 1 for those that are not here.
    pub tenant_weights: BTreeMap<TenantId, f64>,
    /// How many seconds a tenant may be ahead of its share or behind it before this is forgotten.
    pub share_memory: Duration,
    /// How far apart tenants' shares must be so that a sequence that runs is preempted for one that waits.
    pub share_lag: Duration,
    /// Tokens that are known already and run beside a sampled one in a step, at most, as part of decoding.
    pub max_forced: u32,
    /// The times of steps before any was measured: sizes in tokens, rising, and seconds. Sizes between are
    /// interpolated.
    pub start_costs: Vec<(u32, f64)>,
    /// Seconds per key that a token attends to, before any step was measured.
    pub start_key_cost: f64,
}

impl Default for SchedulerConfig {
    fn default() -> SchedulerConfig {
        SchedulerConfig {
            max_batch_tokens: 512,
            max_sequences: SEQUENCES,
            steps_in_flight: 1,
            whole_prompts: false,
            max_queue: 256,
            max_wait: [None, None, Some(Duration::from_secs(60))],
            max_stall: Duration::from_millis(500),
            floor_rate: 3.0,
            floor_fraction: 0.35,
            floor_window: Duration::from_secs(4),
            prefill_share: 0.25,
            growth: 256,
            interactive_share: 0.8,
            tenant_weights: BTreeMap::new(),
            share_memory: Duration::from_secs(20),
            share_lag: Duration::from_secs(10),
            max_forced: 16,
            start_costs: vec![(1, 0.085), (16, 0.35), (64, 0.5), (128, 1.0), (512, 3.9)],
            start_key_cost: 1e-6,
        }
    }
}

/// Sequences of the default configuration.
const SEQUENCES: u32 = 4;

impl SchedulerConfig {
    /// The configuration with `sequences` at once. Of more than the default's, each has a floor that is so
    /// much lower: who asks for many answers at once takes slower ones.
    #[must_use]
    pub fn with_sequences(self, sequences: u32) -> SchedulerConfig {
        let part = f64::from(SEQUENCES) / f64::from(sequences.max(SEQUENCES));
        SchedulerConfig { max_sequences: sequences, floor_fraction: self.floor_fraction * part, ..self }
    }

    /// The configuration with a longest wait, for classes that have one.
    #[must_use]
    pub fn with_wait(self, wait: Duration) -> SchedulerConfig {
        let max_wait = self.max_wait.map(|class| class.map(|_| wait));
        SchedulerConfig { max_wait, ..self }
    }

    /// Checks every option.
    ///
    /// # Errors
    /// When one is out of its range; the first such is named.
    pub fn check(&self) -> Result<(), ConfigError> {
        let whole = [
            ("max_batch_tokens", self.max_batch_tokens, self.max_batch_tokens >= 1),
            ("max_queue", self.max_queue, self.max_queue >= 1),
            ("growth", self.growth, self.growth >= 1),
        ];
        for (option, found, is_right) in whole {
            check(option, found, is_right, "at least 1")?;
        }
        let is_right = (1..=self.max_batch_tokens).contains(&self.max_sequences);
        check("max_sequences", self.max_sequences, is_right, "1 to `max_batch_tokens`")?;
        let is_right = (1..=64).contains(&self.steps_in_flight);
        check("steps_in_flight", self.steps_in_flight, is_right, "1 to 64")?;
        let times = [
            ("max_stall", self.max_stall),
            ("floor_window", self.floor_window),
            ("share_memory", self.share_memory),
            ("share_lag", self.share_lag),
        ];
        for (option, found) in times {
            check(option, format!("{found:?}"), !found.is_zero(), "longer than nothing")?;
        }
        let is_right = self.floor_rate.is_finite() && self.floor_rate >= 0.0;
        check("floor_rate", self.floor_rate, is_right, "a number that is not negative")?;
        let is_right = (0.0..=1.0).contains(&self.floor_fraction);
        check("floor_fraction", self.floor_fraction, is_right, "0 to 1")?;
        let is_right = (0.05..=0.95).contains(&self.prefill_share);
        check("prefill_share", self.prefill_share, is_right, "0.05 to 0.95")?;
        let is_right = self.interactive_share > 0.0 && self.interactive_share < 1.0;
        check("interactive_share", self.interactive_share, is_right, "between 0 and 1")?;
        for weight in self.tenant_weights.values() {
            let is_right = (1e-3..=1e3).contains(weight);
            check("tenant_weights", weight, is_right, "0.001 to 1000 for every tenant")?;
        }
        let is_cost = |seconds: f64| seconds.is_finite() && seconds > 0.0;
        check("start_key_cost", self.start_key_cost, is_cost(self.start_key_cost), "more than 0")?;
        let costs = &self.start_costs;
        let is_rising = costs.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1);
        let is_right = !costs.is_empty() && costs[0].0 >= 1 && costs.iter().all(|cost| is_cost(cost.1));
        check("start_costs", format!("{costs:?}"), is_right && is_rising, "sizes from 1 and seconds, rising")
    }

    /// A tenant's weight.
    pub(crate) fn weight(&self, tenant: TenantId) -> f64 {
        self.tenant_weights.get(&tenant).copied().unwrap_or(1.0)
    }
}

fn check(
    option: &'static str,
    found: impl ToString,
    is_right: bool,
    expected: &'static str,
) -> Result<(), ConfigError> {
    if is_right { Ok(()) } else { Err(ConfigError { option, found: found.to_string(), expected }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_for_more_sequences_asks_for_a_lower_floor() {
        let of = |sequences| SchedulerConfig::default().with_sequences(sequences);
        assert_eq!(of(4), SchedulerConfig::default());
        assert_eq!((of(2).max_sequences, of(2).floor_fraction), (2, 0.35));
        assert_eq!((of(8).max_sequences, of(8).floor_fraction), (8, 0.175));
        assert_eq!(of(8).check(), Ok(()));
    }

    #[test]
    fn the_default_is_legal_and_every_option_is_checked() {
        assert_eq!(SchedulerConfig::default().check(), Ok(()));
        type Change = fn(&mut SchedulerConfig);
        let wrong: [(&str, Change); 15] = [
            ("steps_in_flight", |c| c.steps_in_flight = 0),
            ("max_batch_tokens", |c| c.max_batch_tokens = 0),
            ("max_sequences", |c| c.max_sequences = 513),
            ("max_queue", |c| c.max_queue = 0),
            ("growth", |c| c.growth = 0),
            ("max_stall", |c| c.max_stall = Duration::ZERO),
            ("floor_window", |c| c.floor_window = Duration::ZERO),
            ("floor_rate", |c| c.floor_rate = f64::NAN),
            ("floor_fraction", |c| c.floor_fraction = 1.5),
            ("prefill_share", |c| c.prefill_share = 0.0),
            ("interactive_share", |c| c.interactive_share = 1.0),
            ("tenant_weights", |c| c.tenant_weights = BTreeMap::from([(TenantId(1), 0.0)])),
            ("start_key_cost", |c| c.start_key_cost = 0.0),
            ("start_costs", |c| c.start_costs = vec![(4, 1.0), (2, 2.0)]),
            ("start_costs", |c| c.start_costs.clear()),
        ];
        for (option, change) in wrong {
            let mut config = SchedulerConfig::default();
            change(&mut config);
            assert_eq!(config.check().unwrap_err().option, option);
        }
        let config = SchedulerConfig { max_queue: 0, ..SchedulerConfig::default() };
        let message = "scheduler option `max_queue` is 0: it must be at least 1";
        assert_eq!(config.check().unwrap_err().to_string(), message);
    }
}
