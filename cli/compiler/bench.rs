//! `kernmill bench`: tokens per second of prompts and of decoding, beside what the machine allows.

use crate::compiler::load::LoadArgs;
use crate::emit::Emit;
use crate::explicit::Explicit;
use crate::failure::Result;
use crate::model::{self, ModelArgs};
use crate::options::{FormArgs, size};
use crate::{output, version};
use kernmill::adapters::together;
use kernmill::observe::Unit;
use kernmill_tools::Detail;
use kernmill_tools::bench::{Case, Cases, Fill, Paired, PairedReport, Report, Setup, UNITS};
use std::path::PathBuf;

/// Measures prompt and decode speed on random token ids, beside the memory bandwidth and the integer peak of
/// this machine
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("../help/bench.txt"))]
pub struct Bench {
    /// Prompt lengths, in tokens; 0 for none
    #[arg(long, value_name = "N,..", default_value = "512", value_delimiter = ',')]
    pp: Vec<u32>,
    /// Tokens decoded one by one, for every depth and batch; 0 for none
    #[arg(long, value_name = "N", default_value_t = 128)]
    tg: u32,
    /// Tokens already in the context when decoding starts
    #[arg(long, value_name = "N,..", default_value = "0", value_delimiter = ',')]
    depth: Vec<u32>,
    /// Tokens already in the context when a prompt starts
    #[arg(long, value_name = "N,..", default_value = "0", value_delimiter = ',')]
    pp_depth: Vec<u32>,
    /// Filling of contexts. tokens: they are run, which takes as long as a prompt. random: random keys and
    /// values, which are there at once
    #[arg(long, value_name = "WHAT", default_value = "tokens")]
    fill: Fill,
    /// Different sequences that decode together
    #[arg(long, value_name = "N,..", default_value = "1", value_delimiter = ',',
        value_parser = clap::value_parser!(u32).range(1..=2048))]
    batch: Vec<u32>,
    /// Measured runs of each; an unmeasured one goes before them
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..))]
    repeat: u16,
    /// Times every kind of step as well
    #[arg(long)]
    profile: bool,
    /// With --profile, shows the times of every layer as well
    #[arg(long, requires = "profile")]
    layers: bool,
    /// Write what every worker does, and how long it waits, in a chunk of every prompt and some steps of
    /// decoding: a trace for Perfetto (ui.perfetto.dev)
    #[arg(long, value_name = "FILE")]
    timeline: Option<PathBuf>,
    /// Bytes read each time that the memory bandwidth is measured
    #[arg(long, value_name = "SIZE", default_value = "4G", value_parser = size)]
    read: u64,
    /// Sets steps of decoding against replays of their reads
    #[arg(long)]
    paired: bool,
    /// Steps that are measured in pairs
    #[arg(long, value_name = "N", default_value_t = UNITS, requires = "paired",
        value_parser = clap::value_parser!(u32).range(1..=100_000))]
    units: u32,
    #[command(flatten)]
    form: FormArgs,
    #[command(flatten)]
    load: LoadArgs,
    #[command(flatten)]
    model: ModelArgs,
}

impl Bench {
    /// Runs the command.
    pub fn execute(mut self, explicit: &Explicit) -> Result<()> {
        // Figures must not depend on runs before.
        self.model.kept.no_plan_cache = true;
        if self.load.serve {
            return self.load.execute(&self.model, self.form.json, explicit);
        }
        if self.paired {
            let what = "--paired measures steps of decoding by themselves";
            explicit
                .refuse(&["pp", "tg", "pp-depth", "repeat", "profile", "timeline", "read", "lora"], what)?;
        }
        if self.tg == 0 {
            explicit.refuse(&["depth", "batch"], "they are for decoding, which --tg 0 leaves out")?;
        }
        let cases = Cases {
            prompts: if self.paired { &[] } else { &self.pp },
            prompt_depths: &self.pp_depth,
            decoded: if self.paired { Paired::TOKENS } else { self.tg },
            depths: &self.depth,
            batches: &self.batch,
        };
        cases.check_adapters(&self.model.adapters)?;
        if let Some(path) = &self.timeline {
            output::check(path)?;
            self.model.given.resolve(explicit)?.check_apart(path)?;
        }
        let (model, options) = model::open(&self.model, &Emit::NONE, explicit)?;
        let vocab = model.vocab() as u32;
        let cases = cases.list(model.longest_context())?;
        // Everything is filled before it is measured: forks start from a filled sequence that stays.
        let context = cases.iter().map(|case| case.depth + case.tokens).max().unwrap_or(1);
        let sequences = cases.iter().map(Case::sequences).max().unwrap_or(1);
        let (mut loaded, adapters) = model::load(model, &options, &Emit::NONE, context, sequences)?;
        let uses = together(&options.adapters);
        let detail = if self.profile { Detail::Steps } else { Detail::Totals };
        let (record, read) = (self.timeline.is_some(), self.read);
        let how =
            Setup { adapters: &uses, repeat: self.repeat, fill: self.fill, detail, record, vocab, read };
        let ticks = if self.paired { self.units.into() } else { u64::from(self.repeat) + 1 };
        let bar = self.model.aside.bar("measuring", Unit::Count, cases.len() as u64 * ticks);
        if self.paired {
            let report = PairedReport::measure(&mut loaded, &cases, &how, self.units, &|| bar.inc(1))?;
            drop(bar);
            return version::show(self.form.json, "kernmill.paired/1", || report.json(), || report.text());
        }
        let on_case = |case: &Case| bar.set_message(case.to_string());
        let report = Report::measure(&mut loaded, &adapters, &cases, &how, &on_case, &|| bar.inc(1))?;
        drop(bar);
        if let Some(path) = &self.timeline {
            output::write_file(path, report.timeline())?;
        }
        version::show(self.form.json, "kernmill.bench/1", || report.json(), || report.text(self.layers))
    }
}
