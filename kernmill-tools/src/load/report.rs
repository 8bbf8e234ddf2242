//! Figures of a load.

use super::drive::{LatencyLimits, LoadOutcome, Served, drive};
use super::plan::{Arrivals, Load};
use super::svg;
use super::target::{EngineTarget, LoadTarget};
use crate::stats::{jain, mean, quantile, sorted};
use kernmill::Loaded;
use kernmill::Result;
use kernmill_runtime::measure::peak_resident;
use kernmill_serve::EngineFigures;
use kernmill_serve::SchedulerConfig;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

/// Figures of a load on a model.
pub struct LoadReport {
    /// The load.
    pub load: Load,
    /// The outcome.
    pub outcome: LoadOutcome,
    /// When an answer is good.
    pub limits: LatencyLimits,
    /// Name, preset, instruction-set level and threads of what was measured; of an endpoint, only the name.
    pub model: [String; 4],
    /// The address of the endpoint that was measured, if it was one.
    pub endpoint: Option<String>,
    /// Sequences that ran at once, at most.
    pub parallel: u32,
    /// Memory of the engine at the end.
    pub engine: Option<EngineFigures>,
}

/// Mean, quantiles and the largest of some times.
struct TimeStats {
    mean: f64,
    /// Values that 50, 90 and 99 % are below.
    parts: [f64; 3],
    most: f64,
}

impl TimeStats {
    fn of(values: &[f64]) -> TimeStats {
        let sorted = sorted(values);
        let parts = [0.5, 0.9, 0.99].map(|part| quantile(&sorted, part));
        TimeStats { mean: mean(&sorted), parts, most: sorted.last().copied().unwrap_or(0.0) }
    }

    fn json(&self) -> Value {
        let [p50, p90, p99] = self.parts;
        json!({ "mean": self.mean, "p50": p50, "p90": p90, "p99": p99, "max": self.most })
    }

    /// The times in milliseconds.
    fn line(&self) -> String {
        let [p50, p90, p99] = self.parts.map(|seconds| seconds * 1e3);
        format!("{:9.1} {p50:9.1} {p90:9.1} {p99:9.1} {:9.1}", self.mean * 1e3, self.most * 1e3)
    }
}

impl LoadReport {
    /// Puts a load on a model, for at most `seconds`. `on_progress` is told how many requests have ended
    /// since the last time; what is under way when it answers `false` is given up.
    ///
    /// # Errors
    /// When the engine fails.
    pub fn measure(
        loaded: Loaded,
        load: Load,
        limits: LatencyLimits,
        parallel: u32,
        seconds: Option<Duration>,
        on_progress: &mut dyn FnMut(u64) -> bool,
    ) -> Result<LoadReport> {
        let (level, engine) = (loaded.image.program().level.name().to_owned(), &loaded.engine);
        let (name, preset) = (engine.model().name.clone(), engine.model().preset.clone());
        let model = [name, preset, level, engine.threads().to_string()];
        let config = SchedulerConfig::default().with_sequences(parallel);
        let mut target = EngineTarget::new(loaded.into_serving(config)?)?;
        let outcome = drive(&mut target, &load, seconds, on_progress)?;
        let engine = Some(target.figures()?);
        Ok(LoadReport { load, outcome, limits, model, endpoint: None, parallel, engine })
    }

    /// Puts a load on the model `name` of an endpoint, as [`LoadReport::measure`] does on an engine.
    ///
    /// # Errors
    /// When the target cannot go on.
    pub fn measure_endpoint(
        (url, name): (String, String),
        target: &mut dyn LoadTarget,
        load: Load,
        limits: LatencyLimits,
        seconds: Option<Duration>,
        on_progress: &mut dyn FnMut(u64) -> bool,
    ) -> Result<LoadReport> {
        let outcome = drive(target, &load, seconds, on_progress)?;
        let model = [name, String::new(), String::new(), String::new()];
        Ok(LoadReport { load, outcome, limits, model, endpoint: Some(url), parallel: 0, engine: None })
    }

    fn per_second(&self, count: f64) -> f64 {
        if self.outcome.seconds > 0.0 { count / self.outcome.seconds } else { 0.0 }
    }

    fn sum(&self, of: impl Fn(&Served) -> u32) -> u64 {
        self.outcome.served.iter().map(|served| u64::from(of(served))).sum()
    }

    fn first(&self) -> Vec<f64> {
        self.outcome.served.iter().map(|served| served.first).collect()
    }

    /// Answers that kept the limits.
    fn good(&self) -> usize {
        let LatencyLimits { first, pace } = self.limits;
        let is_good = |served: &&Served| served.first <= first && served.pace <= pace;
        self.outcome.served.iter().filter(is_good).count()
    }

    /// By tenant, the mean over answers of their tokens per second, from when they were due to their ends.
    fn rates(&self) -> BTreeMap<u64, f64> {
        let mut rates: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
        for served in &self.outcome.served {
            let rate = f64::from(served.answer) / served.took.max(1e-9);
            rates.entry(served.tenant).or_default().push(rate);
        }
        rates.into_iter().map(|(tenant, rates)| (tenant, mean(&rates))).collect()
    }

    fn fairness(&self) -> f64 {
        jain(&self.rates().into_values().collect::<Vec<f64>>())
    }

    /// The part of all tokens of prompts that was cached.
    fn hit_rate(&self) -> f64 {
        self.sum(|served| served.cached) as f64 / self.sum(|served| served.prompt).max(1) as f64
    }

    /// The part of the time in which the engine ran.
    fn busy(&self) -> f64 {
        self.per_second(self.outcome.totals.busy.as_secs_f64())
    }

    fn arrivals(&self) -> String {
        match self.load.arrivals {
            Arrivals::Rate(rate) => format!("{rate} requests/s at random times"),
            Arrivals::Clients(clients) => format!("{clients} clients"),
            Arrivals::AsPlanned => "requests at their times".to_owned(),
        }
    }

    /// The figures as one JSON object.
    pub fn json(&self) -> Value {
        let (outcome, [model, preset, level, threads]) = (&self.outcome, &self.model);
        let (rate, clients) = match self.load.arrivals {
            Arrivals::Rate(rate) => (Some(rate), None),
            Arrivals::Clients(clients) => (None, Some(clients)),
            Arrivals::AsPlanned => (None, None),
        };
        let (prompt, cached) = (self.sum(|served| served.prompt), self.sum(|served| served.cached));
        let answer = self.sum(|served| served.answer);
        let good = self.good();
        let of_engine = |text: &String| self.endpoint.is_none().then(|| text.clone());
        json!({
            "model": model,
            "endpoint": self.endpoint,
            "preset": of_engine(preset),
            "level": of_engine(level),
            "threads": threads.parse::<u64>().ok(),
            "load": {
                "rate": rate,
                "clients": clients,
                "requests": self.load.requests(),
                "conversations": self.load.conversations.len(),
                "about": self.load.about,
                "parallel": self.endpoint.is_none().then_some(self.parallel),
            },
            "seconds": outcome.seconds,
            "requests": {
                "served": outcome.served.len(),
                "rejected": outcome.rejected.values().sum::<u64>(),
                "failed": outcome.failed.values().sum::<u64>(),
                "unfinished": outcome.unfinished,
            },
            "reasons": reasons(outcome),
            "first_token": TimeStats::of(&self.first()).json(),
            "between_tokens": TimeStats::of(&outcome.gaps).json(),
            "goodput": {
                "first_token_limit": self.limits.first,
                "between_tokens_limit": self.limits.pace,
                "requests": good,
                "requests_per_second": self.per_second(good as f64),
            },
            "tokens": { "prompt": prompt, "cached": cached, "answer": answer },
            "tokens_per_second": {
                "prompt": self.per_second((prompt - cached) as f64),
                "answer": self.per_second(answer as f64),
            },
            "requests_per_second": self.per_second(outcome.served.len() as f64),
            "fairness": self.fairness(),
            "tenants": self.rates().into_iter().map(|(tenant,
                rate)| json!({ "tenant": tenant, "tokens_per_second": rate })).collect::<Vec<Value>>(),
            "hit_rate": self.hit_rate(),
            "busy": self.endpoint.is_none().then(|| self.busy()),
            "steps": self.endpoint.is_none().then_some(outcome.totals.steps),
            "preemptions": self.endpoint.is_none().then_some(outcome.totals.preemptions),
            "kv": self.engine.map(|engine| engine.kv_json()),
            "prefix_cache": self.engine.map(|engine| engine.prefix_json()),
            "kv_disk": self.engine.map(|engine| engine.disk_json()),
            "peak_resident": self.endpoint.is_none().then(peak_resident),
        })
    }

    /// The figures as a table.
    pub fn text(&self) -> String {
        let (outcome, [model, preset, level, threads]) = (&self.outcome, &self.model);
        let what = match &self.endpoint {
            Some(url) => format!("{model} at {url}"),
            None => {
                format!("{model} {preset} {level}, {threads} threads, {} sequences at once", self.parallel)
            }
        };
        let mut text = format!("{what}\n{}: {}\n\n", self.arrivals(), self.load.about);
        let mut line = |name: &str, what: String| {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{name:15} {what}");
        };
        let count = |counts: &BTreeMap<String, u64>| counts.values().sum::<u64>();
        line(
            "requests",
            format!(
                "{} in {:.1} s, {:.2}/s; {} rejected, {} failed, {} unfinished",
                outcome.served.len(),
                outcome.seconds,
                self.per_second(outcome.served.len() as f64),
                count(&outcome.rejected),
                count(&outcome.failed),
                outcome.unfinished
            ),
        );
        let good = self.good();
        line(
            "goodput",
            format!(
                "{:.2}/s: {good} had their first token within {} s and a token every {} s",
                self.per_second(good as f64),
                self.limits.first,
                self.limits.pace
            ),
        );
        let (prompt, cached) = (self.sum(|served| served.prompt), self.sum(|served| served.cached));
        line(
            "prompt tokens",
            format!(
                "{prompt}, {cached} of them cached ({:.1} %); the others at {:.1}/s",
                self.hit_rate() * 100.0,
                self.per_second((prompt - cached) as f64)
            ),
        );
        let answer = self.sum(|served| served.answer);
        line("answer tokens", format!("{answer}, {:.1}/s", self.per_second(answer as f64)));
        line(
            "fairness",
            format!("{:.3} (Jain's index over {} tenants)", self.fairness(), self.rates().len()),
        );
        if self.endpoint.is_none() {
            let (totals, busy) = (outcome.totals, self.busy() * 100.0);
            let figures =
                format!("busy {busy:.1} %, {} steps, {} preemptions", totals.steps, totals.preemptions);
            line("engine", figures);
        }
        for (why, count) in outcome.rejected.iter().chain(&outcome.failed).take(8) {
            line("", format!("{count} times: {why}"));
        }
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "\n{:15} {:>9} {:>9} {:>9} {:>9} {:>9}",
            "ms", "mean", "p50", "p90", "p99", "most"
        );
        let _ = writeln!(text, "{:15} {}", "first token", TimeStats::of(&self.first()).line());
        let _ = writeln!(text, "{:15} {}", "between tokens", TimeStats::of(&outcome.gaps).line());
        text
    }

    /// The waits and the queue as a picture: an SVG file.
    pub fn svg(&self) -> String {
        let title = format!("{} {}: {}, {}", self.model[0], self.model[1], self.arrivals(), self.load.about);
        svg::picture(&title, &self.first(), &self.outcome.gaps, self.limits, &self.outcome.timeline)
    }
}

fn reasons(outcome: &LoadOutcome) -> Vec<Value> {
    let all = outcome.rejected.iter().chain(&outcome.failed);
    all.map(|(why, count)| json!({ "reason": why, "requests": count })).collect()
}

#[cfg(test)]
mod tests {
    use super::super::drive::LoadSample;
    use super::*;

    fn served(tenant: u64, first: f64, pace: f64, took: f64) -> Served {
        Served { tenant, prompt: 100, cached: 40, answer: 10, first, pace, took }
    }

    #[test]
    fn figures_are_those_of_the_outcome() {
        let load =
            Load { conversations: Vec::new(), arrivals: Arrivals::Rate(2.5), about: "a < b".to_owned() };
        let mut outcome = LoadOutcome {
            served: vec![served(1, 0.5, 0.1, 1.0), served(1, 0.5, 0.4, 1.0), served(2, 3.0, 0.1, 5.0)],
            gaps: vec![0.1, 0.2, 0.3],
            rejected: BTreeMap::from([("full".to_owned(), 2)]),
            unfinished: 1,
            seconds: 10.0,
            timeline: vec![
                LoadSample { at: 0.0, running: 1, waiting: 3 },
                LoadSample { at: 10.0, running: 2, waiting: 0 },
            ],
            ..LoadOutcome::default()
        };
        outcome.totals.busy = Duration::from_secs(9);
        let limits = LatencyLimits { first: 2.0, pace: 0.3 };
        let model = ["m", "p", "l", "2"].map(str::to_owned);
        let report = LoadReport { load, outcome, limits, model, endpoint: None, parallel: 4, engine: None };
        let json = report.json();
        for (pointer, expected) in [
            ("/goodput/requests", 1.0),
            ("/goodput/requests_per_second", 0.1),
            ("/requests_per_second", 0.3),
            ("/requests/rejected", 2.0),
            ("/requests/unfinished", 1.0),
            ("/hit_rate", 0.4),
            ("/busy", 0.9),
            ("/tokens_per_second/prompt", 18.0),
            ("/tokens_per_second/answer", 3.0),
            ("/between_tokens/p50", 0.2),
            ("/first_token/max", 3.0),
            // Tenants have 10 and 2 tokens/s: 12^2 / (2 * 104).
            ("/fairness", 144.0 / 208.0),
        ] {
            let found = json.pointer(pointer).and_then(Value::as_f64).unwrap_or(f64::NAN);
            assert!((found - expected).abs() < 1e-9, "{pointer}: {found}, expected {expected}");
        }
        let text = report.text();
        for says in ["3 in 10.0 s", "2 rejected", "busy 90.0 %", "2 times: full", "0.10/s: 1 had"] {
            assert!(text.contains(says), "{says} is not in\n{text}");
        }
        assert!(report.svg().contains("a &lt; b"));
    }
}
