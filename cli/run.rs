//! `kernmill run`: text from a prompt.

use crate::adapters::LoadedAdapter;
use crate::emit::Emit;
use crate::failure::{Failure, Result};
use crate::model::{self, Loaded, Model, ModelArgs};
use crate::{output, tokens};
use kernmill_runtime::measure::peak_resident;
use kernmill_runtime::{GenerateParams, SamplerParams, StopReason, Summary, TokenizerHandle};
use serde_json::json;
use std::io::Read;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Generates text
///
/// Without a model, the embedded nano model is compiled on the spot: a GPT-OSS in miniature that writes in the manner of the Rust
/// documentation. Text goes to standard output as it comes, figures to standard error at the end.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kernmill run                                                     the embedded nano model
  kernmill run --prompt 'A slice is' -n 100 --temp 0               greedily
  kernmill run --prompt 'A slice is' --seed 7 --stop '```'
  kernmill run --spec model-specs/gpt-oss-20b.toml --weights DIR --prompt-file question.txt
  kernmill run gpt-oss-20b.plan --prompt 'A slice is'              a compiled plan: starts at once
  kernmill run my.plan --lora poet=adapters/poet --prompt 'A slice is'         with a LoRA that PEFT saved
  kernmill run my.plan --lora poet=adapters/poet:0.7 --lora terse=adapters/terse:0.3 --prompt 'A slice is'
  kernmill run --spec my.toml --weights DIR --tokens ids.json      without a tokenizer: ids in, ids out
  kernmill run --quiet --json                                      text and figures as one JSON object")]
pub struct Run {
    #[command(flatten)]
    prompt: PromptArgs,
    /// Tokens to generate at most
    #[arg(short = 'n', long, value_name = "N", default_value_t = 200)]
    max_tokens: usize,
    /// Longest sequence (prompt and text) in tokens; by default what is asked for, and at least 4096 if the model can
    #[arg(long, value_name = "N")]
    context: Option<u32>,
    /// End the text at this string, which is not shown; may be given several times
    #[arg(long, value_name = "STR")]
    stop: Vec<String>,
    /// Do not end at the model's own end tokens
    #[arg(long)]
    ignore_end: bool,
    /// Print one JSON object (text, tokens, figures) at the end instead of text as it comes
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    sampling: SamplingArgs,
    #[command(flatten)]
    model: ModelArgs,
    #[command(flatten)]
    emit: Emit,
}

/// What to continue.
#[derive(Debug, clap::Args)]
#[group(multiple = false)]
struct PromptArgs {
    /// Text to continue
    #[arg(long, value_name = "TEXT")]
    prompt: Option<String>,
    /// File with the text to continue; - is standard input
    #[arg(long, value_name = "FILE")]
    prompt_file: Option<PathBuf>,
    /// File with token ids to continue: a JSON list
    #[arg(long, value_name = "IDS.json")]
    tokens: Option<PathBuf>,
}

/// How the next token is chosen.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Sampling")]
struct SamplingArgs {
    /// Temperature; 0 takes the likeliest token
    #[arg(long, value_name = "T", default_value_t = 0.6)]
    temp: f32,
    /// Choose among the K likeliest tokens only
    #[arg(long, value_name = "K")]
    top_k: Option<usize>,
    /// Choose among the likeliest tokens that together reach probability P
    #[arg(long, value_name = "P", default_value_t = 0.9)]
    top_p: f32,
    /// Leave out tokens less likely than P times the likeliest
    #[arg(long, value_name = "P", default_value_t = 0.0)]
    min_p: f32,
    /// Make tokens of prompt and text less likely: 1 does not
    #[arg(long, value_name = "F", default_value_t = 1.0)]
    repeat_penalty: f32,
    /// Take F off the logit of every token of the text
    #[arg(long, value_name = "F", default_value_t = 0.0, allow_negative_numbers = true)]
    presence_penalty: f32,
    /// Take F off the logit of every token of the text, for each time it occurs
    #[arg(long, value_name = "F", default_value_t = 0.0, allow_negative_numbers = true)]
    frequency_penalty: f32,
    /// Add BIAS to the logit of token ID (-inf forbids it); may be given several times
    #[arg(long, value_name = "ID=BIAS", value_parser = logit_bias)]
    logit_bias: Vec<(u32, f32)>,
    /// Seed: the same one gives the same text
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
}

fn logit_bias(text: &str) -> std::result::Result<(u32, f32), String> {
    let parsed = text.split_once('=').and_then(|(id, bias)| Some((id.parse().ok()?, bias.parse().ok()?)));
    parsed.ok_or_else(|| "expected ID=BIAS, such as 42=-1.5".to_owned())
}

impl SamplingArgs {
    fn params(&self) -> SamplerParams {
        SamplerParams {
            temperature: self.temp,
            top_k: self.top_k,
            top_p: self.top_p,
            min_p: self.min_p,
            repetition_penalty: self.repeat_penalty,
            presence_penalty: self.presence_penalty,
            frequency_penalty: self.frequency_penalty,
            logit_bias: self.logit_bias.clone(),
            seed: Some(self.seed),
        }
    }
}

impl Run {
    /// Runs the command.
    pub fn execute(self) -> Result<()> {
        self.emit.check(None)?;
        let start = Instant::now();
        let mut model = model::open(&self.model)?;
        let tokenizer = model.tokenizer();
        let prompt = self.prompt.read(&*model, tokenizer.as_ref())?;
        let context =
            model::context(model.longest(), self.context, prompt.ids.len().saturating_add(self.max_tokens))?;
        tokens::check_length(prompt.ids.len(), context)?;
        if tokenizer.is_none() && !self.stop.is_empty() {
            return Err(Failure::BadInput("--stop needs a tokenizer.json beside the weights".to_owned()));
        }
        let params = self.params(&*model)?;
        let mut loaded = model.load(&self.model, &self.emit, context, 1)?;
        let adapters = self.model.lora.load(&mut loaded.engine, self.model.compile.quiet)?;
        let ready_seconds = start.elapsed().as_secs_f64();
        let (summary, text) = self.generate(&mut loaded, &prompt, &params)?;
        let figures = Figures { loaded: &loaded, adapters: &adapters, summary: &summary, ready_seconds };
        if self.json {
            output::print(figures.json(&text))?;
        } else if !self.model.compile.quiet {
            eprintln!("{}", figures.line());
        }
        Ok(())
    }

    fn params(&self, model: &dyn Model) -> Result<GenerateParams> {
        let sampler = self.sampling.params();
        sampler.check(model.vocab()).map_err(|error| Failure::BadInput(error.to_string()))?;
        let stop_tokens = if self.ignore_end { Vec::new() } else { model.end_tokens()? };
        Ok(GenerateParams {
            max_tokens: self.max_tokens,
            adapters: self.model.lora.together(),
            sampler,
            stop: self.stop.clone(),
            stop_tokens,
        })
    }

    /// Generates; the text, and when it is not wanted at the end, shows it as it comes.
    fn generate(
        &self,
        loaded: &mut Loaded,
        prompt: &Prompt,
        params: &GenerateParams,
    ) -> Result<(Summary, String)> {
        let mut text = String::new();
        let mut failure = None;
        let mut show = |piece: &str| {
            text.push_str(piece);
            match if self.json { Ok(()) } else { output::print(piece) } {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    failure = Some(error);
                    ControlFlow::Break(())
                }
            }
        };
        if let ControlFlow::Continue(()) = show(&prompt.shown) {
            let summary = loaded.engine.generate(&prompt.ids, params, &mut show)?;
            if failure.is_none() {
                if !self.json {
                    output::print(ending(&summary, loaded.engine.has_tokenizer()))?;
                }
                return Ok((summary, text));
            }
        }
        Err(failure.unwrap_or(Failure::ReaderGone))
    }
}

/// What closes the output: a line's end, or without a tokenizer the ids.
fn ending(summary: &Summary, has_text: bool) -> String {
    if has_text {
        return "\n".to_owned();
    }
    let ids: Vec<String> = summary.tokens.iter().map(u32::to_string).collect();
    format!("{}\n", ids.join(" "))
}

/// What is continued.
struct Prompt {
    ids: Vec<u32>,
    /// The part of it that is printed before the text.
    shown: String,
}

impl PromptArgs {
    fn read(&self, model: &dyn Model, tokenizer: Option<&TokenizerHandle>) -> Result<Prompt> {
        if let Some(path) = &self.tokens {
            return Ok(Prompt { ids: tokens::read(path, model.vocab())?, shown: String::new() });
        }
        let (text, shown) = match (&self.prompt, &self.prompt_file) {
            (Some(text), _) => (text.clone(), false),
            (_, Some(path)) => (read_text(path)?, false),
            (None, None) => match model.example() {
                Some(example) => (example.prompt.to_owned(), true),
                None => {
                    let what = "what to continue is missing: give --prompt, --prompt-file or --tokens";
                    return Err(Failure::BadInput(what.to_owned()));
                }
            },
        };
        let Some(tokenizer) = tokenizer else {
            let what =
                "there is no tokenizer.json beside the weights: give token ids with --tokens instead of text";
            return Err(Failure::BadInput(what.to_owned()));
        };
        let tokenizer = tokenizer.get()?;
        let mut ids = tokenizer.encode(&text, true)?;
        if let Some(example) = model.example() {
            ids.splice(..0, tokenizer.token_id(example.start));
        }
        Ok(Prompt { ids, shown: if shown { text } else { String::new() } })
    }
}

fn read_text(path: &Path) -> Result<String> {
    if path != Path::new("-") {
        return std::fs::read_to_string(path).map_err(Failure::read(path));
    }
    let mut text = String::new();
    match std::io::stdin().read_to_string(&mut text) {
        Ok(_) => Ok(text),
        Err(error) => Err(Failure::BadInput(format!("standard input: {error}"))),
    }
}

/// What a run took.
struct Figures<'a> {
    loaded: &'a Loaded,
    adapters: &'a [LoadedAdapter],
    summary: &'a Summary,
    /// From the start of the program to an engine that is ready.
    ready_seconds: f64,
}

impl Figures<'_> {
    fn line(&self) -> String {
        let summary = self.summary;
        format!(
            "{} prompt tokens at {:.1} tokens/s, {} tokens at {:.1} tokens/s; first token after {:.2} s; peak memory {:.0} MB",
            summary.prompt_tokens,
            summary.prefill_rate(),
            summary.tokens.len(),
            summary.decode_rate(),
            self.ready_seconds + summary.prefill_seconds,
            peak_resident().unwrap_or(0) as f64 / 1e6
        )
    }

    fn json(&self, text: &str) -> String {
        let (loaded, summary) = (self.loaded, self.summary);
        let model = loaded.engine.model();
        let memory = loaded.engine.memory();
        let text = loaded.engine.has_tokenizer().then_some(text);
        let report = json!({
            "model": model.name,
            "preset": model.preset,
            "target": loaded.level.name(),
            "threads": loaded.engine.threads(),
            "adapters": self.adapters.iter().map(LoadedAdapter::json).collect::<Vec<_>>(),
            "text": text,
            "tokens": summary.tokens,
            "stop": stop_name(&summary.stop),
            "prompt_tokens": summary.prompt_tokens,
            "prefill_tokens_per_second": summary.prefill_rate(),
            "decode_tokens_per_second": summary.decode_rate(),
            "seconds": {
                "choose": loaded.times.choose,
                "compile": loaded.times.compile,
                "pack": loaded.times.pack,
                "open": loaded.times.open,
                "ready": self.ready_seconds,
                "prefill": summary.prefill_seconds,
                "decode": summary.decode_seconds,
                "first_token": self.ready_seconds + summary.prefill_seconds,
            },
            "memory": {
                "weights": loaded.weight_bytes,
                "kv": memory.kv,
                "arena": memory.arena,
                "scratch": memory.scratch,
                "ropes": memory.ropes,
                "peak_resident": peak_resident(),
            },
        });
        format!("{report:#}\n")
    }
}

fn stop_name(stop: &StopReason) -> &'static str {
    match stop {
        StopReason::MaxTokens => "max_tokens",
        StopReason::Context => "context",
        StopReason::Token(_) => "end_token",
        StopReason::Text(_) => "stop_string",
        StopReason::Caller => "caller",
    }
}
