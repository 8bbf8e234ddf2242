//! The trials of a fused-op spec in a separate process: `kernmill fuse check` starts it for every spec
//! and watches it.

use super::child::{End, limit_memory, watch};
use super::costs::SpecCosts;
use super::differ::{self, CurrentTrial, DiffOutcome};
use kernmill::{Error, Result};
use kernmill_compiler::fuse::{FusedSet, FusedSpec, sample, sample_function};
use kernmill_compiler::graph::Graph;
use kernmill_compiler::machine::Description;
use kernmill_compiler::quant::Preset;
use kernmill_plan::target::Level;
use serde::{Deserialize, Serialize};
use std::process::Command;
use std::time::Duration;

/// The trial that a process is to run.
#[derive(Serialize, Deserialize)]
pub struct TrialRequest {
    /// Names and texts of the specs.
    pub specs: Vec<(String, String)>,
    /// Index of the spec that is tried.
    pub spec: usize,
    /// Number of the first random model.
    pub seed: u64,
    /// How many random models there are.
    pub samples: u32,
    /// Levels to try, by name.
    pub levels: Vec<String>,
    /// Text of the graph that costs are of, and its preset; otherwise they are of a random model.
    pub model: Option<(String, String)>,
    /// Whether costs are wanted.
    pub costs: bool,
    /// Bytes that the process may take.
    pub memory: u64,
    /// The machine that costs are for.
    pub machine: Option<Description>,
}

/// The outcome of a trial.
#[derive(Default, Serialize, Deserialize)]
pub struct TrialReply {
    /// The outcome of the comparisons.
    pub outcome: DiffOutcome,
    /// The spec's savings, if they were asked for.
    pub costs: Option<SpecCosts>,
}

/// A line that the process writes.
#[derive(Serialize, Deserialize)]
enum TrialLine {
    At(CurrentTrial),
    Done(Box<TrialReply>),
}

/// How the process ended, where that was not as it should be.
pub struct Crash {
    /// The trial that ran.
    pub at: CurrentTrial,
    /// The message about the end.
    pub verdict: String,
    /// Text of the model's graph.
    pub graph: Option<String>,
}

/// Tries a spec in the process that `command` starts, which calls [`serve`] and may be silent for `limit`.
///
/// # Errors
/// When the process cannot be started.
pub fn run(
    command: Command,
    request: &TrialRequest,
    spec: &FusedSpec,
    limit: Duration,
) -> Result<std::result::Result<TrialReply, Crash>> {
    let input = serde_json::json!(request).to_string();
    let start =
        CurrentTrial { model: None, function: None, what: "the start".to_owned(), level: String::new() };
    let (mut at, mut reply) = (start, None);
    let end = watch(command, input.as_bytes(), limit, &mut |line| match serde_json::from_str(line) {
        Ok(TrialLine::At(now)) => at = now,
        Ok(TrialLine::Done(done)) => reply = Some(*done),
        Err(_) => {}
    })?;
    let verdict = match (end, reply) {
        (End::Done, Some(reply)) => return Ok(Ok(reply)),
        (End::Done, None) => "ended without an answer".to_owned(),
        (End::Broken(verdict), _) => verdict,
    };
    let graph = at.model.and_then(|seed| match &at.function {
        Some(name) => {
            let function = spec.functions.iter().find(|function| function.name == *name)?;
            sample_function(function, seed).ok()
        }
        None => sample(spec.rule.as_ref()?, seed).ok(),
    });
    Ok(Err(Crash { at, verdict, graph: graph.map(|graph| graph.to_string()) }))
}

/// The process itself: does what the text of a request asks for. `say` writes a line to who asked, and tells
/// whether that is still there; if not, the process ends.
///
/// # Errors
/// When the request cannot be read.
pub fn serve(text: &str, say: &dyn Fn(&str) -> bool) -> Result<()> {
    let bad = |error: &dyn std::fmt::Display| Error::bad_input(format!("the request: {error}"));
    let request: TrialRequest = serde_json::from_str(text).map_err(|error| bad(&error))?;
    limit_memory(request.memory);
    let parsed = request.specs.iter().map(|(name, text)| FusedSpec::parse(name, text));
    let specs = parsed.collect::<std::result::Result<Vec<_>, _>>()?;
    let spec = specs.get(request.spec).cloned();
    let spec = spec.ok_or_else(|| bad(&"there is no such spec"))?;
    let set = FusedSet::builtin().with(specs)?;
    let supported = Level::supported().into_iter();
    let levels: Vec<Level> =
        supported.filter(|level| request.levels.iter().any(|name| name == level.name())).collect();
    let seeds = request.seed..request.seed.saturating_add(u64::from(request.samples));
    let say = |line: &TrialLine| say(&format!("{}\n", serde_json::json!(line)));
    // Nobody listens any more: there is nothing left to do.
    let mut at = |at: CurrentTrial| {
        if !say(&TrialLine::At(at)) {
            std::process::exit(1);
        }
    };
    let (outcome, example) = differ::run(&spec, &set, seeds, &levels, &mut at);
    let of = match &request.model {
        Some((graph, preset)) => {
            let graph = graph.parse::<Graph>().map_err(|error| bad(&error))?;
            Preset::from_name(preset).map(|preset| (graph, preset))
        }
        None => example,
    };
    let costs = match (of, levels.last()) {
        (Some((graph, preset)), Some(level)) if request.costs && spec.rule.is_some() => {
            let what = format!("costs in model {}", graph.name);
            at(CurrentTrial { model: None, function: None, what, level: level.name().to_owned() });
            SpecCosts::of(&spec.name.value, &graph, preset, &set, (*level, request.machine.as_ref()))
        }
        _ => None,
    };
    say(&TrialLine::Done(Box::new(TrialReply { outcome, costs })));
    Ok(())
}
