//! Summaries of paired measurements.

use super::super::case::{Case, Setup};
use super::estimate::MedianEstimate;
use super::series::{LEAST_VALID, UnitKind};
use super::{Paired, PairedOutcome};
use crate::compiler::cpu::model_name;
use crate::stats::Quartiles;
use crate::vectors::need_logits;
use kernmill::Loaded;
use kernmill::Result;
use kernmill_plan::probe::ReadWay;
use serde_json::{Value, json};
use std::fmt::Write;

/// The figures of paired measurements.
pub struct PairedReport<'a> {
    loaded: &'a Loaded,
    outcomes: Vec<PairedOutcome>,
}

impl<'a> PairedReport<'a> {
    /// Measures `units` steps of each case. `tick` is called after each.
    ///
    /// # Errors
    /// When the functions that read cannot be made or run here, or the engine cannot run a case.
    pub fn measure(
        loaded: &'a mut Loaded,
        cases: &[Case],
        how: &Setup<'_>,
        units: u32,
        tick: &dyn Fn(),
    ) -> Result<PairedReport<'a>> {
        need_logits(loaded.engine.model())?;
        let paired = Paired::new(loaded)?;
        let measure = |case: &Case| paired.measure(&mut loaded.engine, *case, how, units, tick);
        let outcomes = cases.iter().map(measure).collect::<Result<Vec<PairedOutcome>>>()?;
        Ok(PairedReport { loaded, outcomes })
    }

    /// The report as one JSON object.
    pub fn json(&self) -> Value {
        let model = self.loaded.engine.model();
        json!({
            "cpu": model_name(),
            "model": model.name,
            "preset": model.preset,
            "level": self.loaded.image.program().level.name(),
            "threads": self.loaded.engine.threads(),
            "results": self.outcomes.iter().map(PairedOutcome::json).collect::<Vec<Value>>(),
        })
    }

    /// The report as text.
    pub fn text(&self) -> String {
        let model = self.loaded.engine.model();
        let (level, threads) = (self.loaded.image.program().level.name(), self.loaded.engine.threads());
        let mut text = format!("{} {} {level}, {threads} threads\n", model.name, model.preset);
        self.outcomes.iter().for_each(|outcome| text += &outcome.text());
        text
    }
}

impl PairedOutcome {
    fn is_void(&self) -> bool {
        self.series.valid_share() < LEAST_VALID
    }

    /// Share by which steps get slower that read 5 % more.
    fn loss(&self) -> Option<MedianEstimate> {
        let MedianEstimate { median, low, high, count } = self.series.more()?;
        Some(MedianEstimate { median: 1.0 - median, low: 1.0 - high, high: 1.0 - low, count })
    }

    fn json(&self) -> Value {
        let [replay, sequential, step] = self.series.times();
        let rates = |times: Quartiles| {
            let rate = |seconds: f64| self.bytes as f64 / seconds / 1e9;
            json!({ "median": rate(times.median), "q1": rate(times.q3), "q3": rate(times.q1) })
        };
        let thirds = self.series.thirds();
        let third = |(times, ratio): &(Quartiles, MedianEstimate)| {
            let ratio = estimate(Some(*ratio));
            json!({ "replay_gb_per_s": rates(*times), "ratio": ratio })
        };
        json!({
            "depth": self.case.depth,
            "sequences": self.case.batch,
            "bytes": self.bytes,
            "tokens_per_second": f64::from(self.case.batch) / step.median,
            "replay_gb_per_s": rates(replay),
            "sequential_gb_per_s": rates(sequential),
            "replay_reads": way(&self.ways[0]),
            "sequential_reads": way(&self.ways[1]),
            "ratio": estimate(self.series.ratio(UnitKind::Step)),
            "thirds": thirds.iter().map(third).collect::<Vec<Value>>(),
            "replay_of_sequential": sequential.median / replay.median,
            "controls": { "same": estimate(self.series.ratio(UnitKind::Again)),
                "loss_by_5_percent": estimate(self.loss()) },
            "valid_percent": 100.0 * self.series.valid_share(),
            "void": self.is_void(),
        })
    }

    fn text(&self) -> String {
        let [replay, sequential, step] = self.series.times();
        let rate = |seconds: f64| self.bytes as f64 / seconds / 1e9;
        let mut text = format!("\ndecode{}\n", self.case.place());
        let mut row = |name: &str, value: String| {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "  {name:28} {value}");
        };
        row("tokens per second", format!("{:.2}", f64::from(self.case.batch) / step.median));
        let spread = |times: Quartiles| {
            format!("{:.2} GB/s ({:.2} to {:.2})", rate(times.median), rate(times.q3), rate(times.q1))
        };
        row("replay of its reads", format!("{}, {}", spread(replay), how(&self.ways[0])));
        row("as many bytes in sequence", format!("{}, {}", spread(sequential), how(&self.ways[1])));
        row("decode / replay", shown(self.series.ratio(UnitKind::Step)));
        for (times, ratio) in self.series.thirds() {
            row(&format!("  while that reads {:.1}", rate(times.median)), shown(Some(ratio)));
        }
        row("replay / sequence", format!("{:.3}", sequential.median / replay.median));
        row("control: replay / replay", shown(self.series.ratio(UnitKind::Again)));
        row("control: lost by 5 % more", shown(self.loss()));
        let void = if self.is_void() { ": void, expected half of them at least" } else { "" };
        row("pairs that count", format!("{:.0} %{void}", 100.0 * self.series.valid_share()));
        text
    }
}

fn estimate(estimate: Option<MedianEstimate>) -> Value {
    estimate.map_or(Value::Null, |MedianEstimate { median, low, high, count }| {
        json!({ "median": median, "low": low, "high": high, "pairs": count })
    })
}

fn shown(estimate: Option<MedianEstimate>) -> String {
    estimate.map_or_else(
        || "none".to_owned(),
        |MedianEstimate { median, low, high, count }| {
            format!("{median:.3} [{low:.3}, {high:.3}], {count} pairs")
        },
    )
}

fn way(way: &ReadWay) -> Value {
    json!({ "places": way.places, "bytes_ahead": way.ahead })
}

fn how(way: &ReadWay) -> String {
    let places = if way.places == 1 { "1 place".to_owned() } else { format!("{} places", way.places) };
    format!("{places}, {} bytes ahead", way.ahead)
}
