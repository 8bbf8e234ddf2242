//! `kernmill fuse check`: reads fused-op specs, compiles them for every level of this CPU, runs them against
//! the interpreter, and says what they save.

use crate::compiler::options::{MachineArgs, preset_parser};
use crate::failure::{Failure, Result};
use crate::options::FormArgs;
use crate::version;
use kernmill::compiler::SpecSource;
use kernmill::locate::SourceFiles;
use kernmill_tools::fuse_check::{SpecChecker, levels};
use kernmill_tools::{FusedSet, Level, Preset, read_fused};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Checks fused-op specs: reads them, compiles them for every instruction set of this CPU, runs them against
/// the interpreter on random models, and says what they save
///
/// The random models are made from the pattern itself, in widths with odd numbers of blocks and of 2880.
/// Every logit must have the interpreter's bits, for batches of one row, of a few, and of many, without and
/// with an adapter, and also where every operand lies between pages that fault. They run in a process of
/// their own: what crashes it, or keeps it silent for too long, is named. Costs are those of the compiler's
/// cost model, and measured ones beside them, for a random model or the one that --spec gives.
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("../../help/fuse-check.txt"))]
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
    #[arg(long, value_name = "LEVEL",
        value_parser = clap::builder::PossibleValuesParser::new(Level::ALL.map(Level::name)))]
    target: Option<String>,
    #[command(flatten)]
    machine: MachineArgs,
    /// Seconds that a comparison may take
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86400))]
    time_limit: u64,
    #[command(flatten)]
    form: FormArgs,
}

impl Check {
    /// Runs the command.
    pub fn execute(self) -> Result<()> {
        let machine = self.machine.read()?;
        let specs = read_fused(&self.files)?;
        let set = FusedSet::builtin().with(specs.clone())?;
        let levels = levels(self.target.as_deref().and_then(Level::from_name))?;
        let graph = |path: &Path| {
            SpecSource::of(
                &SourceFiles { spec: Some(path.to_owned()), ..SourceFiles::default() },
                set.clone(),
            )?
            .graph()
        };
        let model = self.spec.as_deref().map(graph).transpose()?;
        let mut again = "kernmill fuse check".to_owned();
        self.files.iter().for_each(|file| again.push_str(&format!(" {}", file.display())));
        let checker = SpecChecker {
            specs: &specs,
            set: &set,
            model: model.as_ref().map(|graph| (graph, self.preset)),
            levels: &levels,
            machine: machine.as_ref(),
            seed: self.seed,
            samples: self.samples,
            time_limit: Duration::from_secs(self.time_limit),
            again: &again,
        };
        let report = checker.check(&["fuse", "trial"])?;
        let json = || serde_json::json!(report);
        version::show(self.form.json, "kernmill.fuse-check/1", json, || report.to_string())?;
        report.failed().map_or(Ok(()), |reason| Err(Failure::Work(reason)))
    }
}
