//! `kernmill run`: text from a prompt.

mod figures;
mod prompt;
mod sampling;

use crate::emit::Emit;
use crate::explicit::Explicit;
use crate::failure::{Failure, Result};
use crate::model::{self, Loaded, Model, ModelArgs};
use crate::{output, tokens};
use figures::Figures;
use kernmill_runtime::{GenerateParams, Summary};
use prompt::{Prompt, PromptArgs};
use sampling::SamplingArgs;
use std::ops::ControlFlow;
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
  kernmill run DIR --prompt 'A slice is'                           a checkpoint: config.json, model.safetensors, tokenizer.json
  kernmill run model.gguf --prompt 'A slice is'                    a GGUF file
  kernmill run my.toml --weights DIR --prompt-file question.txt    with a spec of one's own
  kernmill run gpt-oss-20b.plan --prompt 'A slice is'              a compiled plan: starts at once
  kernmill run my.plan --lora poet=adapters/poet --prompt 'A slice is'         with a LoRA that PEFT saved
  kernmill run my.plan --lora poet=adapters/poet:0.7 --lora terse=adapters/terse:0.3 --prompt 'A slice is'
  kernmill run DIR --tokens ids.json                               without a tokenizer: ids in, ids out
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

impl Run {
    /// Runs the command.
    pub fn execute(self, explicit: &Explicit) -> Result<()> {
        self.emit.check(None)?;
        let start = Instant::now();
        let mut model = model::open(&self.model, explicit)?;
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
            output::note(figures.line());
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
            shows_special: false,
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
