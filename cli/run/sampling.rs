//! Sampling options of `kernmill run` and `kernmill chat`.

use crate::failure::Failure;
use kernmill_tools::values::{Seed, logit_bias, number, seed, top_k};
use kernmill_tools::{Drafter, SamplerParams, TokenizerHandle};
use std::path::PathBuf;

/// How the next token is chosen.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Sampling")]
pub struct SamplingArgs {
    /// Temperature; 0 takes the likeliest token
    #[arg(long, alias = "temperature", value_name = "T", default_value_t = 0.6,
        value_parser = number(0.0, f32::MAX, "at least 0"))]
    temp: f32,
    /// Choose among the K likeliest tokens only; 0 is all
    #[arg(long, value_name = "K", default_value_t = 0, value_parser = top_k)]
    top_k: usize,
    /// Choose among the likeliest tokens that together reach probability P
    #[arg(long, value_name = "P", default_value_t = 0.9,
        value_parser = number(f32::MIN_POSITIVE, 1.0, "more than 0 and at most 1"))]
    top_p: f32,
    /// Leave out tokens less likely than P times the likeliest
    #[arg(long, value_name = "P", default_value_t = 0.0, value_parser = number(0.0, 1.0, "0 to 1"))]
    min_p: f32,
    /// Make tokens of prompt and text less likely: 1 does not
    #[arg(long, value_name = "F", default_value_t = 1.0,
        value_parser = number(f32::MIN_POSITIVE, f32::MAX, "more than 0"))]
    repeat_penalty: f32,
    /// Take F off the logit of every token of the text
    #[arg(long, value_name = "F", default_value_t = 0.0)]
    presence_penalty: f32,
    /// Take F off the logit of every token of the text, for each time it occurs
    #[arg(long, value_name = "F", default_value_t = 0.0)]
    frequency_penalty: f32,
    /// Add BIAS to the logit of token ID (-inf forbids it); may be given several times
    #[arg(long, value_name = "ID=BIAS", value_parser = logit_bias)]
    logit_bias: Vec<(u32, f32)>,
    /// Seed: the same one gives the same text. -1 takes another one every time, which the closing line says
    #[arg(long, value_name = "N", default_value = "0", value_parser = seed)]
    seed: Seed,
    /// Make every token in a step of its own. Where a text repeats something, a step otherwise checks several
    /// tokens that are likely to come; the text is the same
    #[arg(long)]
    no_drafts: bool,
    /// Let a small model of the same vocabulary guess what comes, in place of what the text repeats
    #[arg(long, value_name = "MODEL", conflicts_with = "no_drafts")]
    draft_model: Option<PathBuf>,
}

impl SamplingArgs {
    /// The drafter of the options, which guesses how a text goes on.
    pub fn drafter(&self, of: Option<&TokenizerHandle>) -> kernmill::Result<Option<Box<dyn Drafter>>> {
        kernmill_tools::drafter(!self.no_drafts, self.draft_model.as_deref(), of)
    }

    /// The runtime's parameters, with a seed, for a vocabulary of `vocab` tokens.
    pub fn params(&self, vocab: usize) -> Result<SamplerParams, Failure> {
        let params = SamplerParams {
            temperature: self.temp,
            top_k: (self.top_k > 0).then_some(self.top_k),
            top_p: self.top_p,
            min_p: self.min_p,
            repetition_penalty: self.repeat_penalty,
            presence_penalty: self.presence_penalty,
            frequency_penalty: self.frequency_penalty,
            logit_bias: self.logit_bias.clone(),
            seed: Some(self.seed.value()),
        };
        params.check(vocab).map_err(|error| Failure::BadInput(error.to_string()))?;
        Ok(params)
    }
}
