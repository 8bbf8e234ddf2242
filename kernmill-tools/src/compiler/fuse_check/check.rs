//! Checking fused-op specs: trials against the interpreter, near misses, costs.

use super::differ::DiffOutcome;
use super::report::{CheckReport, CrashReport, SpecReport};
use super::trial::{self, Crash, TrialReply, TrialRequest};
use kernmill::{Error, Result};
use kernmill_compiler::ir::Graph;
use kernmill_compiler::machine::Description;
use kernmill_compiler::passes::fuse::{FusedSet, FusedSpec, NearMiss, fuse};
use kernmill_compiler::passes::quant::choose::FormatChoices;
use kernmill_compiler::passes::quant::{Preset, quantise_chosen};
use kernmill_os::proc::program_file;
use kernmill_plan::target::Level;
use std::collections::BTreeSet;
use std::process::Command;
use std::time::Duration;

/// Bytes of address space that the process with the trials may take.
const MEMORY: u64 = 6 << 30;

/// Fused-op specs that are checked, and how.
pub struct SpecChecker<'a> {
    /// The specs that are checked.
    pub specs: &'a [FusedSpec],
    /// The checked specs and the built-in ones.
    pub set: &'a FusedSet,
    /// The model that costs are of and whose near misses are told, and its preset; otherwise costs are of a
    /// random model.
    pub model: Option<(&'a Graph, Preset)>,
    /// Levels that kernels are run at, at least one.
    pub levels: &'a [Level],
    /// The machine that costs are for, and whose best target they are of; otherwise the compiler's own idea
    /// of one, and the best of `levels`.
    pub machine: Option<&'a Description>,
    /// Number of the first random model.
    pub seed: u64,
    /// Random models per spec.
    pub samples: u32,
    /// How long a comparison may take.
    pub time_limit: Duration,
    /// The command that makes this check, for messages.
    pub again: &'a str,
}

impl SpecChecker<'_> {
    /// Checks every spec. This program with the arguments `args` is a process for each, which calls
    /// [`trial::serve`]: what crashes it is named.
    ///
    /// # Errors
    /// When a process cannot be started, or a model cannot be quantised.
    pub fn check(&self, args: &[&str]) -> Result<CheckReport> {
        let mut report =
            CheckReport { levels: self.levels.iter().map(|level| level.name()).collect(), specs: Vec::new() };
        let program =
            program_file().map_err(|error| Error::failed(format!("the program's own file: {error}")))?;
        for number in 0..self.specs.len() {
            let mut command = Command::new(&program);
            command.args(args);
            report.specs.push(self.one(number, command)?);
        }
        Ok(report)
    }

    /// The report on spec `number`, whose trials run in the process that `command` starts.
    fn one(&self, number: usize, command: Command) -> Result<SpecReport> {
        let (spec, set, levels) = (&self.specs[number], self.set, self.levels);
        let model = self.model.map(|(graph, _)| graph);
        let name = spec.name.value.clone();
        let level = levels.last().copied().unwrap_or(Level::V3);
        let fused =
            self.model.map(|(graph, preset)| in_model(&name, graph, preset, set, level)).transpose()?;
        let (matches, near_misses) = fused.unwrap_or_default();
        let texts = self.specs.iter().map(|one| (one.source.name().to_owned(), one.source.text().to_owned()));
        let request = TrialRequest {
            specs: texts.collect(),
            spec: number,
            seed: self.seed,
            samples: self.samples,
            levels: levels.iter().map(|level| level.name().to_owned()).collect(),
            model: self.model.map(|(graph, preset)| (graph.to_string(), preset.name().to_owned())),
            costs: model.is_none() || matches > 0,
            memory: MEMORY,
            machine: self.machine.cloned(),
        };
        let (reply, crash) = match trial::run(command, &request, spec, self.time_limit)? {
            Ok(reply) => (reply, None),
            Err(crash) => (TrialReply::default(), Some(self.crash(crash))),
        };
        let DiffOutcome { samples, runs, rows, mismatches, reasons } = reply.outcome;
        let reason = |(reason, presets): (String, BTreeSet<String>)| {
            let presets: Vec<String> = presets.into_iter().collect();
            if presets.is_empty() { reason } else { format!("{}: {reason}", presets.join(", ")) }
        };
        Ok(SpecReport {
            name,
            doc: spec.doc.clone(),
            file: spec.source.name().to_owned(),
            fuses: spec.rule.is_some(),
            functions: spec.functions.iter().map(|function| function.name.clone()).collect(),
            ops: spec.ops.iter().map(|op| op.name.value.clone()).collect(),
            samples,
            runs,
            rows,
            mismatches,
            reasons: reasons.into_iter().map(reason).collect(),
            crash,
            matches: model.filter(|_| spec.rule.is_some()).map(|_| matches),
            near_misses,
            costs: reply.costs,
        })
    }

    fn crash(&self, Crash { at, verdict, graph }: Crash) -> CrashReport {
        let mut again = self.again.to_owned();
        if let Some(seed) = at.model {
            again.push_str(&format!(" --samples 1 --seed {seed} --target {}", at.level));
        }
        CrashReport { at: at.what, verdict, again, graph }
    }
}

/// How often the rule applies in a model, and where it nearly does.
fn in_model(
    name: &str,
    graph: &Graph,
    preset: Preset,
    set: &FusedSet,
    level: Level,
) -> Result<(usize, Vec<String>)> {
    let choices = FormatChoices::assumed(graph);
    let graph = quantise_chosen(graph, preset, Some(&choices));
    let graph = graph.map_err(|error| Error::bad_input(error.to_string()))?;
    let (fused, report) = fuse(&graph, set.rules(), level);
    let of = |miss: &&NearMiss| miss.rule == name;
    let mut reasons: Vec<String> = Vec::new();
    for miss in report.near_misses.iter().filter(of) {
        let at = &graph.value(graph.node(miss.anchor).output).name;
        let without = match miss.without.as_slice() {
            [] => String::new(),
            names => format!("without {}: ", names.join(", ")),
        };
        reasons.push(format!("%{at}: {without}{}", miss.reason));
    }
    let matches = fused.groups.iter().filter(|group| group.rule.as_deref() == Some(name)).count();
    Ok((matches, reasons))
}

/// Levels that kernels are run at, ascending: the one that is wanted, or all of this CPU; never none.
///
/// # Errors
/// When this CPU cannot run the level that is wanted, or none.
pub fn levels(wanted: Option<Level>) -> Result<Vec<Level>> {
    let missing = wanted.unwrap_or(Level::V3).missing();
    if !missing.is_empty() {
        return Err(Error::bad_input(format!("this CPU lacks {}", missing.join(", "))));
    }
    Ok(wanted.map_or_else(Level::supported, |level| vec![level]))
}
