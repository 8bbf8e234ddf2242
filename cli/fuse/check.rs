//! `kernmill fuse check`: reads fused-op specs, compiles them for every level of this CPU, runs them against the interpreter, and says what
//! they save.

use super::differ::{self, Outcome};
use super::report::{Costs, Report, SpecReport};
use crate::failure::{Failure, Result};
use crate::options::{FusedArgs, preset_parser};
use crate::output;
use crate::source::SpecSource;
use crate::version;
use kernmill_compiler::choose::Choices;
use kernmill_compiler::fuse::{FusedSet, FusedSpec, NearMiss, fuse};
use kernmill_compiler::graph::Graph;
use kernmill_compiler::quant::{Preset, quantise_chosen};
use kernmill_plan::target::Level;
use std::path::PathBuf;

/// Checks fused-op specs: reads them, compiles them for every instruction set of this CPU, runs them against the interpreter on random models, and
/// says what they save
///
/// The random models are made from the pattern itself, in widths with odd numbers of blocks and of 2880. Every logit must have the interpreter's
/// bits, for batches of one row, of a few, and of many, without and with an adapter. Costs are those of the compiler's cost model, for a random model or the one that
/// --spec gives.
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
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Check {
    /// Runs the command.
    pub fn execute(self) -> Result<()> {
        let args = FusedArgs { fused: self.files.clone(), without_fusion: Vec::new() };
        let specs = args.read()?;
        let set = FusedSet::builtin().with(specs.clone())?;
        let level = *Level::supported()
            .last()
            .ok_or_else(|| Failure::BadInput(format!("this CPU lacks {}", Level::V3.missing().join(", "))))?;
        let model = match &self.spec {
            None => None,
            Some(path) => Some(SpecSource::read(path, set.clone())?.graph()?),
        };
        let mut report = Report {
            levels: Level::supported().iter().map(|level| level.name()).collect(),
            specs: Vec::new(),
        };
        for spec in &specs {
            report.specs.push(self.one(spec, &set, model.as_ref(), level)?);
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

    fn one(
        &self,
        spec: &FusedSpec,
        set: &FusedSet,
        model: Option<&Graph>,
        level: Level,
    ) -> Result<SpecReport> {
        let name = spec.name.value.clone();
        let Outcome { samples, runs, rows, mismatches, example, reasons } =
            differ::run(spec, set, self.samples);
        let fused = model.map(|graph| self.in_model(&name, graph, set, level)).transpose()?;
        let (matches, near_misses) = fused.unwrap_or_default();
        let costs = match (&spec.rule, model, example) {
            (None, ..) => None,
            (_, Some(graph), _) if matches > 0 => Costs::of(&name, graph, self.preset, set, level),
            (_, None, Some((graph, preset))) => Costs::of(&name, &graph, preset, set, level),
            _ => None,
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
            reasons,
            matches: model.filter(|_| spec.rule.is_some()).map(|_| matches),
            near_misses,
            costs,
        })
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
