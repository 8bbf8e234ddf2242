//! Figures of measured cases: speeds, and shares of what the machine allows.

use super::case::{Case, CaseKind, CaseOutcome, Setup};
use super::machine::{Caches, MachineLimits, caches};
use super::timeline::timeline;
use crate::compiler::cpu::model_name;
use crate::run_figures::adapter_json;
use crate::stats::Quartiles;
use crate::vectors::need_logits;
use kernmill::Loaded;
use kernmill::Result;
use kernmill::adapters::LoadedAdapter;
use kernmill_os::text::size;
use kernmill_runtime::measure::{HugePages, huge_pages};
use kernmill_runtime::profile::{Profile, StepProfile, WorkDone};
use serde_json::{Value, json};
use std::fmt::Write;

/// Everything that a benchmark found out.
pub struct Report<'a> {
    loaded: &'a Loaded,
    adapters: &'a [LoadedAdapter],
    machine: MachineLimits,
    results: Vec<MeasuredCase>,
    huge: Option<HugePages>,
    peak_resident: Option<u64>,
}

/// A case's figures.
struct MeasuredCase {
    outcome: CaseOutcome,
    rates: Vec<f64>,
    spread: Quartiles,
    /// Bytes that are read per token; `ops` are operations per token.
    bytes: f64,
    ops: f64,
    /// Bytes per second, at the median.
    bandwidth: f64,
    /// Operations per second, at the median.
    ops_rate: f64,
    /// Share of the limit: of a prompt, the median over the speed that the slower limit allows; of decoding,
    /// the part of its time that a replay of its reads takes.
    of_bound: f64,
    /// Name of the slower limit, or of the replay.
    bound: &'static str,
    /// Figures above the bandwidth though they cannot come from a cache.
    void: Vec<String>,
}

impl<'a> Report<'a> {
    /// Measures all cases. `on_case` is called before each of them, and `tick` after its warm-up and after
    /// every run.
    ///
    /// # Errors
    /// When the engine cannot run a case, or the system refuses memory.
    pub fn measure(
        loaded: &'a mut Loaded,
        adapters: &'a [LoadedAdapter],
        cases: &[Case],
        how: &Setup<'_>,
        on_case: &dyn Fn(&Case),
        tick: &dyn Fn(),
    ) -> Result<Report<'a>> {
        need_logits(loaded.engine.model())?;
        let mut machine = MachineLimits::new(loaded, how.read)?;
        let mut measure = |case: &Case| {
            on_case(case);
            case.measure(&mut loaded.engine, &mut machine, how, tick)
        };
        let outcomes = cases.iter().map(&mut measure).collect::<Result<Vec<CaseOutcome>>>()?;
        machine.finish();
        let caches = caches();
        let results =
            outcomes.into_iter().map(|outcome| MeasuredCase::new(outcome, &machine, caches)).collect();
        let huge = huge_pages(loaded.image.weights().as_slice());
        let peak_resident = machine.peak_resident();
        Ok(Report { loaded, adapters, machine, results, huge, peak_resident })
    }

    /// The record, as JSON that Perfetto reads.
    pub fn timeline(&self) -> String {
        let outcomes = self.results.iter().map(|result| &result.outcome);
        timeline(outcomes, self.loaded.image.program())
    }

    /// The report as one JSON object.
    pub fn json(&self) -> Value {
        let (model, machine) = (self.loaded.engine.model(), &self.machine);
        let giga = |values: &[f64]| values.iter().map(|value| value / 1e9).collect::<Vec<f64>>();
        let tera = |values: &[f64]| values.iter().map(|value| value / 1e12).collect::<Vec<f64>>();
        json!({
            "cpu": model_name(),
            "model": model.name,
            "preset": model.preset,
            "level": self.loaded.image.program().level.name(),
            "threads": self.loaded.engine.threads(),
            "chunk": self.loaded.engine.chunk(),
            "adapters": self.adapters.iter().map(adapter_json).collect::<Vec<Value>>(),
            "bandwidth": {
                "gb_per_s": machine.bandwidth() / 1e9,
                "reads": giga(&machine.reads),
                "bytes": machine.bytes,
                "memory": if machine.weights { "weights" } else { "buffer" },
            },
            "integer_peak": { "tops_per_s": machine.peak() / 1e12, "runs": tera(&machine.peaks) },
            "memory": {
                "weights_bytes": self.loaded.image.program().weight_bytes,
                "peak_rss_bytes": self.peak_resident,
                "huge_pages": self.huge.map(|pages| json!({
                    "mapped_bytes": pages.mapped,
                    "resident_bytes": pages.resident,
                    "huge_bytes": pages.huge,
                    "percent": percent(pages.huge as f64, pages.resident as f64),
                })),
            },
            "seconds": {
                "choose": self.loaded.times.choose,
                "compile": self.loaded.times.compile,
                "pack": self.loaded.times.pack,
            },
            "decode_bytes": model.decode_bytes,
            "results": self.results.iter().map(|result| result.json(machine)).collect::<Vec<Value>>(),
            "experts": experts(&self.loaded.engine.chosen_experts()),
        })
    }

    /// The report as tables; with `layers`, profiles also have a row for each layer.
    pub fn text(&self, layers: bool) -> String {
        let (model, machine) = (self.loaded.engine.model(), &self.machine);
        let mut text = format!(
            "{} {} {}, {} threads\nmemory {:.1} GB/s ({} reads of {}), integer {:.2} TOPS, in the median\n",
            model.name,
            model.preset,
            self.loaded.image.program().level.name(),
            self.loaded.engine.threads(),
            machine.bandwidth() / 1e9,
            machine.reads.len(),
            size(machine.bytes),
            machine.peak() / 1e12
        );
        let huge = self.huge.map_or(0.0, |pages| percent(pages.huge as f64, pages.resident as f64));
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "weights {}, {huge:.0} % on huge pages; peak resident {}",
            size(self.loaded.image.program().weight_bytes),
            size(self.peak_resident.unwrap_or(0))
        );
        for adapter in self.adapters {
            let (bytes, ms) = (size(adapter.bytes), adapter.seconds * 1e3);
            let _ = writeln!(text, "adapter {}: {bytes}, loaded in {ms:.0} ms", adapter.name);
        }
        text.push('\n');
        let name = |result: &MeasuredCase| result.outcome.case.to_string();
        let width = self.results.iter().map(|result| name(result).len()).max().unwrap_or(0).max(4);
        let _ = writeln!(
            text,
            "{:width$} {:>9} {:>9} {:>9} {:>9} {:>7} {:>5} {:>8} {:>5} {:>8}",
            "", "tokens/s", "q1", "q3", "MB/token", "GB/s", "of it", "GOPS", "of it", "of bound"
        );
        for result in &self.results {
            let _ = writeln!(text, "{:width$} {}", name(result), result.line(machine));
        }
        for result in self.results.iter().filter(|result| !result.outcome.profile.steps.is_empty()) {
            let profile = &result.outcome.profile;
            let _ = write!(text, "\n{}\n{}", name(result), result.table("step", &profile.steps));
            if layers {
                let _ = write!(text, "\n{}", result.table("layer", &profile.layers));
            }
        }
        for result in &self.results {
            if result.outcome.major_faults.iter().any(|faults| *faults > 0) {
                let _ = writeln!(text, "{}: page faults waited for a disk", name(result));
            }
            if !result.void.is_empty() {
                let _ = writeln!(
                    text,
                    "{}: void: more than the memory's bandwidth: {}",
                    name(result),
                    result.void.join(", ")
                );
            }
        }
        text
    }
}

impl MeasuredCase {
    fn new(outcome: CaseOutcome, machine: &MachineLimits, caches: Caches) -> MeasuredCase {
        let rates = outcome.rates();
        let spread = Quartiles::of(&rates);
        let profile = &outcome.profile;
        let tokens = (profile.tokens as f64).max(1.0);
        let (bytes, ops) = (profile.total.bytes() as f64 / tokens, operations(&profile.total) / tokens);
        let (memory_time, integer_time) = (bytes / machine.bandwidth(), ops / machine.peak());
        let bandwidth = bytes * spread.median;
        let void = void(profile, bandwidth, machine.most_bandwidth(), caches);
        let (of_bound, bound) = match (outcome.case.kind, memory_time >= integer_time) {
            (CaseKind::Decode, _) => (Quartiles::of(&outcome.of_replays()).median, "replay"),
            (CaseKind::Prompt, true) => (memory_time * spread.median, "memory"),
            (CaseKind::Prompt, false) => (integer_time * spread.median, "integer"),
        };
        MeasuredCase {
            rates,
            spread,
            bytes,
            ops,
            bandwidth,
            ops_rate: ops * spread.median,
            of_bound,
            bound,
            void,
            outcome,
        }
    }

    /// Seconds of all runs.
    fn seconds(&self) -> f64 {
        self.outcome.seconds.iter().sum()
    }

    /// Seconds in no step: between the batches, and waking the workers.
    fn outside(&self) -> f64 {
        self.seconds() - self.outcome.profile.steps.iter().map(|step| step.seconds).sum::<f64>()
    }

    fn json(&self, machine: &MachineLimits) -> Value {
        let case = self.outcome.case;
        let mut result = json!({
            "kind": match case.kind { CaseKind::Prompt => "prompt", CaseKind::Decode => "decode" },
            "tokens": case.tokens,
            "depth": case.depth,
            "batch": case.batch,
            "runs": self.rates,
            "median": self.spread.median,
            "q1": self.spread.q1,
            "q3": self.spread.q3,
            "bytes_per_token": self.bytes,
            "cache_bytes_per_token":
                self.outcome.profile.total.cache_bytes as f64 / self.outcome.profile.tokens.max(1) as f64,
            "ops_per_token": self.ops,
            "gb_per_s": self.bandwidth / 1e9,
            "percent_of_bandwidth": percent(self.bandwidth, machine.bandwidth()),
            "replay_ms": self.outcome.replays.iter().map(|seconds| seconds * 1e3).collect::<Vec<f64>>(),
            "bound": self.bound,
            "percent_of_bound": self.of_bound * 100.0,
            "gops": self.ops_rate / 1e9,
            "percent_of_peak": percent(self.ops_rate, machine.peak()),
            "major_faults": self.outcome.major_faults,
            "void": self.void,
        });
        if !self.outcome.profile.steps.is_empty() {
            let total = self.seconds();
            let rows = |name, steps: &[StepProfile]| {
                steps.iter().map(|step| step_json(name, step, total)).collect::<Vec<Value>>()
            };
            let profile = &self.outcome.profile;
            let mut steps = rows("step", &profile.steps);
            steps.push(json!({ "step": "outside", "ms": self.outside() * 1e3,
                "percent": percent(self.outside(), total) }));
            result["steps"] = steps.into();
            result["layers"] = rows("layer", &profile.layers).into();
        }
        result
    }

    /// Figures of the case, as its line has them behind the name.
    fn line(&self, machine: &MachineLimits) -> String {
        format!(
            "{:9.2} {:9.2} {:9.2} {:9.1} {:7.2} {:4.0}% {:8.1} {:4.0}% {:7.1}%",
            self.spread.median,
            self.spread.q1,
            self.spread.q3,
            self.bytes / 1e6,
            self.bandwidth / 1e9,
            percent(self.bandwidth, machine.bandwidth()),
            self.ops_rate / 1e9,
            percent(self.ops_rate, machine.peak()),
            self.of_bound * 100.0
        )
    }

    /// Times per token of all rows of `steps`, whose first column is called `title`; bytes and operations
    /// over the time that their step takes.
    fn table(&self, title: &str, steps: &[StepProfile]) -> String {
        let profile = &self.outcome.profile;
        let (total, tokens) = (self.seconds(), (profile.tokens as f64).max(1.0));
        let width = steps.iter().map(|step| step.name.len()).max().unwrap_or(0).max(7);
        let mut text = format!(
            "  {:width$} {:>8} {:>9} {:>6} {:>9} {:>7} {:>8} {:>8}\n",
            title, "calls", "us/token", "time", "MB/call", "GB/s", "GOPS", "waiting"
        );
        for step in steps {
            // Writing to a String cannot fail.
            let _ = writeln!(
                text,
                "  {:width$} {:8} {:9.1} {:5.1}% {:9.3} {:7.2} {:8.1} {:7.1}%",
                step.name,
                step.calls,
                step.seconds * 1e6 / tokens,
                percent(step.seconds, total),
                step.work.bytes() as f64 / 1e6 / step.calls.max(1) as f64,
                step.work.bytes() as f64 / step.seconds / 1e9,
                operations(&step.work) / step.seconds / 1e9,
                waiting(step)
            );
        }
        let outside = self.outside();
        let _ = writeln!(
            text,
            "  {:width$} {:8} {:9.1} {:5.1}%",
            "outside",
            "",
            outside * 1e6 / tokens,
            percent(outside, total)
        );
        text
    }
}

/// The figures above the memory's bandwidth, in bytes per second. Nothing is held against a model that the
/// last level cache may hold from one batch to the next; and a step may find in its cores' own caches as much
/// as they hold, if waiting workers fetched it ahead.
fn void(profile: &Profile, rate: f64, bandwidth: f64, caches: Caches) -> Vec<String> {
    if profile.total.bytes() / profile.runs.max(1) <= caches.last {
        return Vec::new();
    }
    let all = (rate > bandwidth).then(|| format!("{:.1} GB/s in all", rate / 1e9));
    let steps = profile.steps.iter().filter(|step| {
        let ahead = step.calls * step.busy.len() as u64 * caches.core;
        step.work.bytes().saturating_sub(ahead) as f64 > bandwidth * step.seconds
    });
    let says = |step: &StepProfile| {
        format!("{} {:.1} GB/s", step.name, step.work.bytes() as f64 / step.seconds / 1e9)
    };
    all.into_iter().chain(steps.map(says)).collect()
}

/// A multiply-add is two.
fn operations(work: &WorkDone) -> f64 {
    2.0 * work.macs as f64
}

fn percent(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole * 100.0 } else { 0.0 }
}

/// Percent of the workers' time that they are not in the kernel but at the barrier. (A worker that leaves the
/// barrier before worker 0 does can be in the kernel for longer than worker 0's clock runs.)
fn waiting(step: &StepProfile) -> f64 {
    let all = step.seconds * step.busy.len() as f64;
    percent(all - step.busy.iter().sum::<f64>(), all).max(0.0)
}

/// Sums over all runs; `name` is the field of the row's name.
fn step_json(name: &str, step: &StepProfile, total: f64) -> Value {
    json!({
        name: step.name,
        "calls": step.calls,
        "ms": step.seconds * 1e3,
        "percent": percent(step.seconds, total),
        "weight_bytes": step.work.weight_bytes,
        "cache_bytes": step.work.cache_bytes,
        "gb_per_s": step.work.bytes() as f64 / step.seconds / 1e9,
        "gops": operations(&step.work) / step.seconds / 1e9,
        "busy_ms": step.busy.iter().map(|seconds| seconds * 1e3).collect::<Vec<f64>>(),
        "waiting_percent": waiting(step),
    })
}

/// By layer with experts: how many were used, and the heaviest one's load over the mean load.
fn experts(layers: &[Vec<u64>]) -> Vec<Value> {
    let layer = |counts: &Vec<u64>| {
        let mean = counts.iter().sum::<u64>() as f64 / counts.len() as f64;
        let most = counts.iter().copied().max().unwrap_or(0) as f64;
        json!({ "used": counts.iter().filter(|count| **count > 0).count(), "of": counts.len(),
            "max_load": most / mean })
    };
    layers.iter().map(layer).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A batch of one token in one second, and one step.
    fn profile(bytes: u64, step_bytes: u64, step_seconds: f64) -> Profile {
        let work = |weight_bytes| WorkDone { weight_bytes, cache_bytes: 0, macs: 0 };
        let step = StepProfile {
            name: "qkv".to_owned(),
            calls: 2,
            seconds: step_seconds,
            busy: vec![step_seconds; 2],
            work: work(step_bytes),
        };
        Profile { runs: 1, tokens: 1, total: work(bytes), steps: vec![step], layers: Vec::new() }
    }

    #[test]
    fn faster_than_memory_is_void_unless_a_cache_explains_it() {
        let caches = Caches { core: 1_000_000, last: 1_000_000_000 };
        let of = |bytes, step_bytes, seconds| {
            void(&profile(bytes, step_bytes, seconds), bytes as f64, 10e9, caches)
        };
        assert_eq!(of(9_000_000_000, 1_000_000_000, 0.2), [""; 0]);
        assert_eq!(of(11_000_000_000, 1_000_000_000, 0.2), ["11.0 GB/s in all"]);
        assert_eq!(of(9_000_000_000, 1_000_000_000, 0.05), ["qkv 20.0 GB/s"]);
        // 4 MB of the step's 5 may have been fetched ahead.
        assert_eq!(of(9_000_000_000, 5_000_000, 0.000_11), [""; 0]);
        assert_eq!(of(9_000_000_000, 5_000_000, 0.000_09), ["qkv 55.6 GB/s"]);
        // It fits the last level cache.
        assert_eq!(of(900_000_000, 500_000_000, 0.001), [""; 0]);
    }

    #[test]
    fn waiting_is_what_the_kernels_leave() {
        let mut step = profile(1, 1, 2.0).steps.remove(0);
        assert_eq!(waiting(&step), 0.0);
        step.busy = vec![2.0, 1.0];
        assert_eq!(waiting(&step), 25.0);
        step.busy = vec![2.0, 2.1];
        assert_eq!(waiting(&step), 0.0);
    }
}
