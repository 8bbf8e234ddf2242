//! `kernmill fuse check`: reads fused-op specs, compiles them for every level of this CPU, runs them against the interpreter, and says what
//! they save.

use super::differ::Outcome;
use super::report::{CrashReport, Report, SpecReport};
use super::trial::{self, Crash, Reply, Request};
use crate::failure::{Failure, Result};
use crate::options::preset_parser;
use crate::output;
use crate::version;
use kernmill::source::{SpecSource, read_fused};
use kernmill_compiler::choose::Choices;
use kernmill_compiler::fuse::{FusedSet, FusedSpec, NearMiss, fuse};
use kernmill_compiler::graph::Graph;
use kernmill_compiler::quant::{Preset, quantise_chosen};
use kernmill_plan::target::Level;
use std::path::PathBuf;
use std::time::Duration;

/// Bytes of address space that the process with the trials may take.
const MEMORY: u64 = 6 << 30;

/// Checks fused-op specs: reads them, compiles them for every instruction set of this CPU, runs them against the interpreter on random models, and
/// says what they save
///
/// The random models are made from the pattern itself, in widths with odd numbers of blocks and of 2880. Every logit must have the interpreter's
/// bits, for batches of one row, of a few, and of many, without and with an adapter, and also where every operand lies between pages that fault. They run
/// in a process of their own: what crashes it, or keeps it silent for too long, is named. Costs are those of the compiler's cost model, and measured
/// ones beside them, for a random model or the one that --spec gives.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kernmill fuse check model-specs/examples/fused/mish.toml
  kernmill fuse check my_fusions/ --spec model-specs/gpt-oss-20b.toml     costs and near misses of that model
  kernmill fuse check my.toml --json")]
pub struct Check {
    /// Fused-op specs (TOML): files, or directories of .toml files
    #[arg(value_name = "FILE|DIR", required = true)]
    files: Vec<PathBuf>,
    /// Model spec (TOML) that costs are of, and whose near misses are told
    #[arg(long, value_name = "SPEC")]
    spec: Option<PathBuf>,
    /// Quantisation of that model
    #[arg(long, value_name = "PRESET", default_value = "faithful", value_parser = preset_parser(), requires = "spec")]
    preset: Preset,
    /// Random models per spec
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = clap::value_parser!(u32).range(1..=1000))]
    samples: u32,
    /// Number of the first random model
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Run kernels of this instruction set only
    #[arg(long, value_name = "LEVEL", value_parser = clap::builder::PossibleValuesParser::new(Level::ALL.map(Level::name)))]
    target: Option<String>,
    /// Seconds that a comparison may take
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86400))]
    time_limit: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Check {
    /// Runs the command.
    pub fn execute(self) -> Result<()> {
        let specs = read_fused(&self.files)?;
        let set = FusedSet::builtin().with(specs.clone())?;
        let levels = self.levels()?;
        let model = match &self.spec {
            None => None,
            Some(path) => Some(SpecSource::read(path, set.clone())?.graph()?),
        };
        let mut report =
            Report { levels: levels.iter().map(|level| level.name()).collect(), specs: Vec::new() };
        let texts: Vec<(String, String)> =
            specs.iter().map(|spec| (spec.source.name().to_owned(), spec.source.text().to_owned())).collect();
        for (number, spec) in specs.iter().enumerate() {
            report.specs.push(self.one((number, spec), &texts, &set, model.as_ref(), &levels)?);
        }
        if self.json {
            output::print(version::report("kernmill.fuse-check/1", serde_json::json!(report)))?;
        } else {
            output::show(report.to_string())?;
        }
        match report.failed() {
            Some(reason) => Err(Failure::Work(reason)),
            None => Ok(()),
        }
    }

    /// Levels that kernels are run at, ascending; never none.
    fn levels(&self) -> Result<Vec<Level>> {
        let of = |name: &String| Level::from_name(name);
        let wanted = self.target.as_ref().and_then(of);
        let missing = wanted.unwrap_or(Level::V3).missing();
        if !missing.is_empty() {
            return Err(Failure::BadInput(format!("this CPU lacks {}", missing.join(", "))));
        }
        Ok(wanted.map_or_else(Level::supported, |level| vec![level]))
    }

    fn one(
        &self,
        (number, spec): (usize, &FusedSpec),
        texts: &[(String, String)],
        set: &FusedSet,
        model: Option<&Graph>,
        levels: &[Level],
    ) -> Result<SpecReport> {
        let name = spec.name.value.clone();
        let level = levels.last().copied().unwrap_or(Level::V3);
        let fused = model.map(|graph| self.in_model(&name, graph, set, level)).transpose()?;
        let (matches, near_misses) = fused.unwrap_or_default();
        let request = Request {
            specs: texts.to_vec(),
            spec: number,
            seed: self.seed,
            samples: self.samples,
            levels: levels.iter().map(|level| level.name().to_owned()).collect(),
            model: model.map(|graph| (graph.to_string(), self.preset.name().to_owned())),
            costs: model.is_none() || matches > 0,
            memory: MEMORY,
        };
        let (reply, crash) = match trial::run(&request, spec, Duration::from_secs(self.time_limit))? {
            Ok(reply) => (reply, None),
            Err(crash) => (Reply::default(), Some(self.crash(crash))),
        };
        let Outcome { samples, runs, rows, mismatches, reasons } = reply.outcome;
        let reason = |(reason, presets): (String, std::collections::BTreeSet<String>)| {
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
        let mut again = "kernmill fuse check".to_owned();
        self.files.iter().for_each(|file| again.push_str(&format!(" {}", file.display())));
        if let Some(seed) = at.model {
            again.push_str(&format!(" --samples 1 --seed {seed} --target {}", at.level));
        }
        CrashReport { at: at.what, verdict, again, graph }
    }

    /// How often the rule applies in a model, and where it nearly does.
    fn in_model(
        &self,
        name: &str,
        graph: &Graph,
        set: &FusedSet,
        level: Level,
    ) -> Result<(usize, Vec<String>)> {
        let choices = Choices::assumed(graph);
        let graph = quantise_chosen(graph, self.preset, Some(&choices));
        let graph = graph.map_err(|error| Failure::BadInput(error.to_string()))?;
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
}
