//! How the tokens of texts follow one another: histograms that the engine's thread fills.

use prometheus_client::metrics::histogram::Histogram;
use std::time::Instant;

/// Upper ends of times, in seconds.
const SECONDS: [f64; 16] =
    [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 640.0];

/// Upper ends of lengths, in tokens.
const LENGTHS: [f64; 16] =
    [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5];

/// A histogram of times, in seconds.
pub(crate) fn times() -> Histogram {
    Histogram::new(SECONDS)
}

/// A histogram of lengths, in tokens.
pub(crate) fn lengths() -> Histogram {
    Histogram::new(LENGTHS)
}

/// Histograms of a backend's steps. Clones share them.
#[derive(Clone, Debug)]
pub struct StepHistograms {
    /// Seconds between steps that gave tokens to the same text.
    pub(crate) between: Histogram,
    /// Tokens of a step: of prompts, of texts, and of drafts.
    pub(crate) step_tokens: Histogram,
}

impl Default for StepHistograms {
    fn default() -> StepHistograms {
        StepHistograms { between: times(), step_tokens: lengths() }
    }
}

/// The last step that gave tokens to a text, and when.
#[derive(Debug, Default)]
pub(crate) struct LastTokenStep(Option<(u64, Instant)>);

impl StepHistograms {
    /// Notes that a step gave a token to a text. Several tokens of one step come together, and count once.
    pub(crate) fn gave(&self, beat: &mut LastTokenStep, step: u64, now: Instant) {
        match beat.0 {
            Some((at, _)) if at == step => return,
            Some((_, last)) => self.between.observe(now.saturating_duration_since(last).as_secs_f64()),
            None => {}
        }
        beat.0 = Some((step, now));
    }
}

#[cfg(test)]
mod tests {
    use super::{LastTokenStep, StepHistograms};
    use prometheus_client::encoding::text::encode;
    use prometheus_client::registry::Registry;
    use std::time::{Duration, Instant};

    #[test]
    fn tokens_of_one_step_come_together() {
        let (pace, mut beats) =
            (StepHistograms::default(), [LastTokenStep::default(), LastTokenStep::default()]);
        let start = Instant::now();
        // Two texts in the steps 1, 2 and 4; one of them has three tokens in step 2.
        for (text, step, milliseconds) in
            [(0, 1, 0), (1, 1, 0), (0, 2, 100), (0, 2, 101), (0, 2, 102), (1, 4, 400), (0, 4, 400)]
        {
            pace.gave(&mut beats[text], step, start + Duration::from_millis(milliseconds));
        }
        let mut registry = Registry::default();
        registry.register("between", "Seconds", pace.between.clone());
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        for line in ["between_sum 0.8", "between_count 3", "between_bucket{le=\"0.1\"} 1"] {
            assert!(text.lines().any(|found| found == line), "{line} in {text}");
        }
    }
}
