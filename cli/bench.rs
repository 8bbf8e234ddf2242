//! `kernmill bench`: tokens per second of prompts and of decoding, beside what the machine allows.

use crate::emit::Emit;
use crate::explicit::Explicit;
use crate::failure::Result;
use crate::load::LoadArgs;
use crate::model::{self, ModelArgs};
use crate::options::size;
use crate::version;
use crate::{output, progress};
use kernmill::adapters::together;
use kernmill::tools::bench::{Case, Cases, Fill, How, Paired, PairedReport, Report, UNITS};
use kernmill_runtime::profile::Detail;
use std::path::PathBuf;

/// Measures prompt and decode speed on random token ids, beside the memory bandwidth and the integer peak of
/// this machine
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Every prompt length of --pp is measured, and decoding --tg tokens for every --depth and every --batch. Shown are the median and the \
quartiles of --repeat runs after an unmeasured one. Bytes are weights and cached keys and values; the bandwidth that they are compared \
with is the median of reads of the weights themselves (or of other memory, if they are small), made between the runs. A result is void \
when it, or with --profile any step of it, reports more than the fastest read and no cache can explain it. `of bound` is for prompts the \
speed over what the slower limit, memory or arithmetic, allows, and for decoding the share of its time that a replay of its reads takes, \
made before and behind each run. --pp 0 or --tg 0 leaves that half out.

With --paired, every step of decoding stands between such replays, which says more where memory changes its speed: see \
docs/user/performance.md.

With --serve, requests come as a server gets them: from --clients that wait for their answers, or at --rate a second. Shown are the waits \
for the first token and between tokens, how many answers kept both --slo limits (goodput), how alike tenants were served (fairness), what \
the prefix cache saved, and how busy the engine was. A line of --trace is {\"at\": SECONDS, \"prompt\": LENGTH or IDS, \"answer\": LENGTH}, \
with \"session\", \"adapter\" and \"tenant\" if need be; a turn of a session continues all that was said in it. With \
--endpoint http://127.0.0.1:8080/v1, the load goes to a server somewhere: its times are those of the client, and it does not tell how \
busy it is.

Examples:
  kernmill bench                                         the embedded nano model
  kernmill bench --profile --pp 0                        where the time of decoding goes, by kind of step
  kernmill bench --profile --layers --timeline bench.json                   by layer as well, and a trace for Perfetto
  kernmill bench DIR --pp 128,512 --tg 128 --depth 0,4096 --batch 1,8 --repeat 5
  kernmill bench my.plan --tg 64                         a compiled plan
  kernmill bench my.plan --lora a=DIR_A --lora b=DIR_B --batch 4        every second sequence has adapter a, the others b
  kernmill bench DIR --preset fast                       4-bit attention and unembedding
  kernmill bench DIR --pp 0 --depth 4096 --fill random --kv-format int8   decoding behind a long context
  kernmill bench --paired --threads 1                    steps of decoding between replays of their reads
  kernmill bench --json
  kernmill bench --serve                                 8 clients of the nano model
  kernmill bench --serve --rate 20 --requests 40 --svg load.svg             requests at random times, and a picture of their waits
  kernmill bench DIR --serve --mix turns=4,prompt=100,answer=16 --requests 24 --lora a=DIR_A --lora b=DIR_B   chats with adapters")]
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
    /// What contexts are filled with. tokens: they are run, which takes as long as a prompt. random: random
    /// keys and values, which are there at once
    #[arg(long, value_name = "WHAT", default_value = "tokens")]
    fill: Fill,
    /// Different sequences that decode together
    #[arg(long, value_name = "N,..", default_value = "1", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=2048))]
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
    #[arg(long, value_name = "N", default_value_t = UNITS, requires = "paired", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    units: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    load: LoadArgs,
    #[command(flatten)]
    model: ModelArgs,
}

impl Bench {
    /// Runs the command.
    pub fn execute(self, explicit: &Explicit) -> Result<()> {
        if self.load.serve {
            return self.load.execute(&self.model, self.json, explicit);
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
        cases.check_adapters(&self.model.lora)?;
        if let Some(path) = &self.timeline {
            output::check(path)?;
            self.model.given.resolve(explicit)?.check_apart(path)?;
        }
        let emit = Emit::default();
        let (model, options) = model::open(&self.model, &emit, explicit)?;
        let vocab = model.vocab() as u32;
        let cases = cases.list(model.longest_context())?;
        // Everything is filled before it is measured: forks start from a filled sequence that stays.
        let context = cases.iter().map(|case| case.depth + case.tokens).max().unwrap_or(1);
        let sequences = cases.iter().map(Case::sequences).max().unwrap_or(1);
        let mut loaded = model::load(model, &options, &emit, context, sequences)?;
        let adapters = loaded.load_adapters(&options)?;
        let uses = together(&options.adapters);
        let detail = if self.profile { Detail::Steps } else { Detail::Totals };
        let (record, read) = (self.timeline.is_some(), self.read);
        let how = How { adapters: &uses, repeat: self.repeat, fill: self.fill, detail, record, vocab, read };
        let ticks = if self.paired { self.units.into() } else { u64::from(self.repeat) + 1 };
        let bar = progress::count("measuring", cases.len() as u64 * ticks, self.model.compile.quiet);
        if self.paired {
            let report = PairedReport::measure(&mut loaded, &cases, &how, self.units, &|| bar.inc(1))?;
            bar.finish_and_clear();
            return version::show(self.json, "kernmill.paired/1", || report.json(), || report.text());
        }
        let on_case = |case: &Case| bar.set_message(case.to_string());
        let report = Report::measure(&mut loaded, &adapters, &cases, &how, &on_case, &|| bar.inc(1))?;
        bar.finish_and_clear();
        if let Some(path) = &self.timeline {
            output::write_file(path, report.timeline())?;
        }
        version::show(self.json, "kernmill.bench/1", || report.json(), || report.text(self.layers))
    }
}
