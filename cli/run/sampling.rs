//! Sampling options of `kernmill run` and `kernmill chat`.

use crate::failure::Failure;
use crate::options::number;
use kernmill_runtime::{Drafter, SamplerParams, TokenizerHandle};
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::path::PathBuf;

/// How the next token is chosen.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Sampling")]
pub struct SamplingArgs {
    /// Temperature; 0 takes the likeliest token
    #[arg(long, alias = "temperature", value_name = "T", default_value_t = 0.6, value_parser = number(0.0, f32::MAX, "at least 0"))]
    temp: f32,
    /// Choose among the K likeliest tokens only; 0 is all
    #[arg(long, value_name = "K", default_value_t = 0, value_parser = top_k)]
    top_k: usize,
    /// Choose among the likeliest tokens that together reach probability P
    #[arg(long, value_name = "P", default_value_t = 0.9, value_parser = number(f32::MIN_POSITIVE, 1.0, "more than 0 and at most 1"))]
    top_p: f32,
    /// Leave out tokens less likely than P times the likeliest
    #[arg(long, value_name = "P", default_value_t = 0.0, value_parser = number(0.0, 1.0, "0 to 1"))]
    min_p: f32,
    /// Make tokens of prompt and text less likely: 1 does not
    #[arg(long, value_name = "F", default_value_t = 1.0, value_parser = number(f32::MIN_POSITIVE, f32::MAX, "more than 0"))]
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

/// `--seed`.
#[derive(Clone, Copy, Debug)]
enum Seed {
    Fixed(u64),
    Any,
}

fn seed(text: &str) -> Result<Seed, String> {
    match text.parse() {
        Ok(seed) => Ok(Seed::Fixed(seed)),
        Err(_) if text == "-1" => Ok(Seed::Any),
        Err(_) => Err(format!("expected a whole number from 0 to {}, or -1 for any", u64::MAX)),
    }
}

fn top_k(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| "expected a whole number from 1, or 0 for all tokens".to_owned())
}

fn logit_bias(text: &str) -> Result<(u32, f32), String> {
    let parsed = text.split_once('=').and_then(|(id, bias)| Some((id.parse().ok()?, bias.parse().ok()?)));
    parsed.ok_or_else(|| "expected ID=BIAS, such as 42=-1.5".to_owned())
}

impl SamplingArgs {
    /// What guesses how a text goes on.
    pub fn drafter(&self, of: Option<&TokenizerHandle>) -> kernmill::Result<Option<Box<dyn Drafter>>> {
        kernmill::drafter::drafter(!self.no_drafts, self.draft_model.as_deref(), of)
    }

    /// The runtime's parameters, with a seed, for a vocabulary of `vocab` tokens.
    pub fn params(&self, vocab: usize) -> Result<SamplerParams, Failure> {
        let seed = match self.seed {
            Seed::Fixed(seed) => seed,
            // Short enough to be typed again.
            Seed::Any => RandomState::new().build_hasher().finish() & u64::from(u32::MAX),
        };
        let params = SamplerParams {
            temperature: self.temp,
            top_k: (self.top_k > 0).then_some(self.top_k),
            top_p: self.top_p,
            min_p: self.min_p,
            repetition_penalty: self.repeat_penalty,
            presence_penalty: self.presence_penalty,
            frequency_penalty: self.frequency_penalty,
            logit_bias: self.logit_bias.clone(),
            seed: Some(seed),
        };
        params.check(vocab).map_err(|error| Failure::BadInput(error.to_string()))?;
        Ok(params)
    }
}
