//! Recorded batches as a file that Perfetto and Chrome's tracing load: JSON in the Trace Event Format.
//!
//! Every case is a separate process, with a thread for each worker and one for the batches. Perfetto shows
//! them as tracks, and answers questions about slices in SQL.

use super::case::CaseOutcome;
use kernmill_plan::program::{Program, Step};
use kernmill_runtime::profile::{kind, layer};
use kernmill_runtime::trace::{Activity, Trace, TracedBatch, TracedCall};
use serde_json::{Value, json};
use std::time::Instant;

/// The thread of the batches; workers follow it.
const BATCHES: usize = 1;

/// The cases' recorded batches as one JSON object, a process for each case; those without a recording are
/// left out.
pub fn timeline<'a>(outcomes: impl Iterator<Item = &'a CaseOutcome> + Clone, program: &Program) -> String {
    let recorded = outcomes.filter_map(|outcome| Some((outcome, outcome.trace.as_ref()?)));
    let began = recorded.clone().map(|(_, trace)| trace.began).min();
    let mut events = Vec::new();
    for (n, (outcome, trace)) in recorded.enumerate() {
        let at = began.map_or(0, |began| nanoseconds(began, trace.began));
        let case = Process { pid: n + 1, at, trace, program };
        case.add(&outcome.case.to_string(), &mut events);
    }
    json!({ "displayTimeUnit": "ns", "traceEvents": events }).to_string() + "\n"
}

fn nanoseconds(from: Instant, to: Instant) -> u64 {
    to.saturating_duration_since(from).as_nanos() as u64
}

/// A case's recording.
struct Process<'a> {
    pid: usize,
    /// Nanoseconds from the start of the file's times to that of the recording's.
    at: u64,
    trace: &'a Trace,
    program: &'a Program,
}

impl Process<'_> {
    fn add(&self, name: &str, events: &mut Vec<Value>) {
        events.push(self.name("process_name", BATCHES, name));
        events.push(self.name("thread_name", BATCHES, "batches"));
        for worker in 0..self.trace.workers.len() {
            events.push(self.name("thread_name", BATCHES + 1 + worker, &format!("worker {worker}")));
        }
        for batch in &self.trace.batches {
            let plural = if batch.tokens == 1 { "" } else { "s" };
            let name = format!("{} token{plural}", batch.tokens);
            let args = json!({ "tokens": batch.tokens, "steps": batch.steps.len() });
            events.push(self.slice(BATCHES, "batch", &name, [batch.begin, batch.end], args));
        }
        for (worker, calls) in self.trace.workers.iter().enumerate() {
            calls.iter().for_each(|call| self.add_call(BATCHES + 1 + worker, call, events));
        }
    }

    /// Adds a call of a worker, and its waiting behind it.
    fn add_call(&self, tid: usize, call: &TracedCall, events: &mut Vec<Value>) {
        let Some(batch) = self.trace.batches.get(call.batch) else { return };
        let (category, name, args) = match call.activity {
            Activity::Step(at) => self.step(batch, at),
            Activity::Gather => ("rows", "gather wanted rows", json!({})),
            Activity::Rows => ("rows", "hand out logits", json!({})),
        };
        events.push(self.slice(tid, category, name, [call.begin, call.done], args));
        // Rows are handed out at the end, behind which the pool waits by itself.
        if call.activity != Activity::Rows {
            let args = json!({ "behind": name });
            events.push(self.slice(tid, "barrier", "barrier", [call.done, call.passed], args));
        }
    }

    /// A step's kind, and what it is about. Bytes and multiply-adds are those of all workers together.
    fn step(&self, batch: &TracedBatch, at: usize) -> (&'static str, &str, Value) {
        let traced = self.trace.steps[at];
        let step = step(self.program, batch.class, traced.step);
        let label = step.map_or("step", |step| step.label.as_str());
        let kernel = step.and_then(|step| self.program.code.symbols.get(step.kernel as usize));
        let args = json!({
            "step": label,
            "layer": layer(label),
            "kernel": kernel.map(|symbol| symbol.name.as_str()),
            "weight_bytes": traced.work.weight_bytes,
            "cache_bytes": traced.work.cache_bytes,
            "macs": traced.work.macs,
        });
        ("kernel", kind(label), args)
    }

    /// The name of the process or of a thread, which a viewer keeps in this order.
    fn name(&self, what: &str, tid: usize, name: &str) -> Value {
        json!({ "ph": "M", "pid": self.pid, "tid": tid, "name": what, "args": { "name": name } })
    }

    /// A piece of time on a thread. Times of the format are microseconds.
    fn slice(&self, tid: usize, category: &str, name: &str, [begin, end]: [u64; 2], args: Value) -> Value {
        let micros = |nanoseconds: u64| nanoseconds as f64 / 1e3;
        json!({
            "ph": "X",
            "pid": self.pid,
            "tid": tid,
            "ts": micros(self.at + begin),
            "dur": micros(end.saturating_sub(begin)),
            "cat": category,
            "name": name,
            "args": args,
        })
    }
}

/// Step `number` of a class, where those of the logits follow the others.
fn step(program: &Program, class: usize, number: usize) -> Option<&Step> {
    let class = program.classes.get(class)?;
    class.steps.iter().chain(&class.logit_steps).nth(number)
}
