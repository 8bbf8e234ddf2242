//! Sampling options of `kernmill run`.

use kernmill_runtime::SamplerParams;

/// How the next token is chosen.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Sampling")]
pub struct SamplingArgs {
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

fn logit_bias(text: &str) -> Result<(u32, f32), String> {
    let parsed = text.split_once('=').and_then(|(id, bias)| Some((id.parse().ok()?, bias.parse().ok()?)));
    parsed.ok_or_else(|| "expected ID=BIAS, such as 42=-1.5".to_owned())
}

impl SamplingArgs {
    /// The runtime's parameters.
    pub fn params(&self) -> SamplerParams {
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
