//! `kernmill batch`: many requests from a file, many answers to a file.

use crate::emit::Emit;
use crate::explicit::Explicit;
use crate::failure::{Failure, Result};
use crate::model::{self, ModelArgs};
use crate::options::{ContextArgs, ConversationArgs};
use crate::{output, version};
use kernmill::observe::Unit;
use kernmill_tools::interrupt::Interrupt;
use kernmill_tools::server::batch::{Answers, BatchOptions, BatchStats, run};
use kernmill_tools::server::lines::open_requests;
use std::path::PathBuf;

/// Answers many requests, several at once
///
/// Every line of REQUESTS is a request as JSON: OpenAI's batch format with the body of /v1/completions or of
/// /v1/chat/completions, or a short form with the body's fields at the top. `adapter` or `model` names one of
/// --lora. Every answer is a line of the output, in the order in which they end. An answer is the text that
/// its request gets alone. A batch that was stopped goes on: answers that are in the output already are not
/// made again.
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("help/batch.txt"))]
pub struct Batch {
    /// File with a request on every line; - is standard input. If MODEL is left out, its place is the first
    #[arg(value_name = "REQUESTS", index = 2)]
    requests: Option<PathBuf>,
    /// File of answers; - is standard output. One that is there is gone on with
    #[arg(short = 'o', long, value_name = "ANSWERS")]
    out: PathBuf,
    /// Requests that run at once
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=512))]
    parallel: u32,
    /// Tokens generated at most, where a request does not say; by default 200, and in conversations as many
    /// as the context holds
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_tokens: Option<u32>,
    #[command(flatten)]
    length: ContextArgs,
    #[command(flatten)]
    conversations: ConversationArgs,
    /// Print JSON at the end: what was done, and how fast
    #[arg(long)]
    json: bool,
    /// Say more at the end: decode speed, steps by the sequences in them, KV cache, memory
    #[arg(long)]
    stats: bool,
    #[command(flatten)]
    model: ModelArgs,
}

impl Batch {
    /// Runs the command.
    pub fn execute(mut self, explicit: &Explicit) -> Result<()> {
        let named = self.model.given.take_named(explicit);
        let requests = self.requests.take().or(named).or_else(|| self.model.given.model.take());
        let missing = "REQUESTS is missing: a file with a request on every line";
        let requests = &requests.ok_or_else(|| Failure::BadInput(missing.to_owned()))?;
        if self.json && output::is_stdout(&self.out) {
            return Err(Failure::BadInput("--json: standard output takes the answers (--out)".to_owned()));
        }
        let mut input = open_requests(requests)?;
        let (mut model, mut options) = model::open(&self.model, &Emit::NONE, explicit)?;
        (options.kv_yields, options.identity, options.chat_template) =
            (true, true, self.conversations.template.chat_template);
        model.tokenizer();
        let end_tokens = model.end_tokens()?;
        let context = model.context(self.length.context, 0)?;
        let mut answers = Answers::open(output::go_on(&self.out)?, &self.out, requests)?;
        let aside = self.model.aside;
        if !answers.is_empty() {
            aside.line(format_args!("{}: {} answers are there already", self.out.display(), answers.len()));
        }
        let Batch { parallel, max_tokens, conversations: ConversationArgs { date, .. }, .. } = self;
        let observer = options.observer.clone();
        let batch = BatchOptions { parallel, max_tokens, end_tokens, date, observer };
        let (loaded, _) = model::load(model, &options, &Emit::NONE, context, parallel)?;
        let bar = aside.bar("answering", Unit::Count, 0);
        let mut interrupt = Interrupt::default();
        interrupt.watch();
        let on_progress = &mut |stats: &BatchStats| {
            bar.set_length(stats.requests - stats.skipped);
            bar.inc(1);
            bar.set_message(format!("{:.1} tokens/s", stats.rate()));
            !interrupt.came()
        };
        let stats = run(loaded, &mut *input, requests, &mut answers, &batch, on_progress)?;
        drop(bar);
        let json = self.json.then(|| version::report("kernmill.batch/1", stats.json()));
        aside.end(json, stats.line(), self.stats.then(|| stats.lines()))?;
        let failed = stats.failure(&self.out).map(Failure::Work);
        let failure = if interrupt.came() { Some(Failure::Interrupted) } else { failed };
        failure.map_or(Ok(()), Err)
    }
}
