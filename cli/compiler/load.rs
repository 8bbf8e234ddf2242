//! `kernmill bench --serve`: load as a server gets it.

use crate::emit::Emit;
use crate::explicit::Explicit;
use crate::failure::{Failure, Result};
use crate::model::{self, ModelArgs};
use crate::{output, version};
use kernmill::observe::Unit;
use kernmill_tools::interrupt::Interrupt;
use kernmill_tools::load::{
    DEFAULT_CLIENTS, EndpointTarget, LatencyLimits, Load, LoadOptions, LoadReport, Mix, Reached,
};
use kernmill_tools::values::number;
use std::path::PathBuf;
use std::time::Duration;

/// The load, and its measurements.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Serving")]
pub struct LoadArgs {
    /// Measure many requests, as a server gets them
    #[arg(long)]
    pub serve: bool,
    /// Requests per second that come at random times, whether or not others have ended
    #[arg(long, value_name = "R", requires = "serve", value_parser = number(1e-3, 1e6, "0.001 to 1000000"))]
    rate: Option<f32>,
    /// Clients that ask again when they have their answers; 8 without --rate and --trace
    #[arg(long, value_name = "N", requires = "serve", conflicts_with = "rate",
        value_parser = clap::value_parser!(u32).range(1..=512))]
    clients: Option<u32>,
    /// Requests in all: 64, or all of --trace
    #[arg(long, value_name = "N", requires = "serve", value_parser = clap::value_parser!(u32).range(1..))]
    requests: Option<u32>,
    /// End after so many seconds, with the figures so far
    #[arg(long, value_name = "S", requires = "serve", value_parser = number(0.1, 1e6, "0.1 to 1000000"))]
    seconds: Option<f32>,
    /// Sequences that run at once; by default --clients, or 8
    #[arg(long, value_name = "N", requires = "serve", value_parser = clap::value_parser!(u32).range(1..=512))]
    parallel: Option<u32>,
    /// Properties of the requests: tokens of prompt and answer (64, 32-128, or ~64 for around it), turns of a
    /// chat, seconds to think between them, share of the prompt that is common to all (prefix), exponent of
    /// the distribution over adapters (zipf), tenants, seed
    #[arg(long, value_name = "MIX", requires = "serve", default_value_t)]
    mix: Mix,
    /// Requests from a file instead, one on every line, at their own times without --rate and --clients
    #[arg(long, value_name = "FILE", requires = "serve")]
    trace: Option<PathBuf>,
    /// Seconds to the first token that are good enough
    #[arg(long, value_name = "S", requires = "serve", default_value = "2",
        value_parser = number(0.0, 1e6, "at least 0"))]
    slo_ttft: f32,
    /// Seconds between tokens that are good enough, in the mean of an answer
    #[arg(long, value_name = "S", requires = "serve", default_value = "0.35",
        value_parser = number(0.0, 1e6, "at least 0"))]
    slo_itl: f32,
    /// Put the load on a server that has OpenAI's completions, instead of a model here
    #[arg(long, value_name = "URL", requires = "serve", conflicts_with_all = ["model", "parallel"])]
    endpoint: Option<String>,
    /// Name of the endpoint's model; by default its first one
    #[arg(long, value_name = "NAME", requires = "endpoint")]
    endpoint_model: Option<String>,
    /// Tokens of the endpoint's vocabulary, if it does not tell
    #[arg(long, value_name = "N", requires = "endpoint", value_parser = clap::value_parser!(u32).range(1..))]
    endpoint_vocab: Option<u32>,
    /// Draw the waits and the queue
    #[arg(long, value_name = "FILE", requires = "serve")]
    svg: Option<PathBuf>,
}

impl LoadArgs {
    /// Runs the load on a model.
    pub fn execute(&self, args: &ModelArgs, json: bool, explicit: &Explicit) -> Result<()> {
        explicit.refuse(&Load::OTHERS, "it is for prompts and decoding by themselves, leave out --serve")?;
        self.svg.as_deref().map_or(Ok(()), output::check)?;
        let (rate, trace) = (self.rate.map(f64::from), self.trace.as_deref());
        let LoadArgs { clients, requests, mix, .. } = self;
        let options = LoadOptions { rate, clients: *clients, requests: *requests, mix, trace };
        let limits = LatencyLimits::new(self.slo_ttft, self.slo_itl);
        let seconds = self.seconds.map(Duration::from_secs_f32);
        let mut interrupt = Interrupt::default();
        interrupt.watch();
        let bar = args.aside.bar("serving", Unit::Count, 0);
        let on_progress = &mut |ended| {
            bar.inc(ended);
            !interrupt.came()
        };
        let report = if let Some(url) = &self.endpoint {
            let key = std::env::var("KERNMILL_API_KEY").ok();
            let (model, vocab) = (self.endpoint_model.as_deref(), self.endpoint_vocab);
            let Reached { mut target, at, context, vocab } = EndpointTarget::reach(url, key, model, vocab)?;
            let load = Load::open(&options, vocab, context, &[])?;
            bar.set_length(load.requests() as u64);
            LoadReport::measure_endpoint(at, &mut target, load, limits, seconds, on_progress)?
        } else {
            let (model, given) = model::open(args, &Emit::NONE, explicit)?;
            let longest = model.longest_context();
            let names: Vec<String> = given.adapters.iter().map(|adapter| adapter.name.clone()).collect();
            let load = Load::open(&options, model.vocab() as u32, longest, &names)?;
            let parallel = self.parallel.or(self.clients).unwrap_or(DEFAULT_CLIENTS);
            let context = load.longest().min(longest);
            let (loaded, _) = model::load(model, &given, &Emit::NONE, context, parallel)?;
            bar.set_length(load.requests() as u64);
            LoadReport::measure(loaded, load, limits, parallel, seconds, on_progress)?
        };
        drop(bar);
        if let Some(path) = &self.svg {
            output::write_file(path, report.svg())?;
        }
        version::show(json, "kernmill.load/1", || report.json(), || report.text())?;
        if interrupt.came() { Err(Failure::Interrupted) } else { Ok(()) }
    }
}
