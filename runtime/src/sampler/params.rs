//! How to sample.

/// How to sample. The default is greedy.
#[derive(Clone, Debug, PartialEq)]
pub struct SamplerParams {
    /// Divisor of the logits; 0 takes the largest logit.
    pub temperature: f32,
    /// Keeps the k likeliest tokens; `None` keeps all.
    pub top_k: Option<usize>,
    /// Keeps the likeliest tokens that together reach this probability; in (0, 1], 1 keeps all.
    pub top_p: f32,
    /// Drops tokens less likely than this times the likeliest; in [0, 1], 0 keeps all.
    pub min_p: f32,
    /// Divides positive and multiplies negative logits of tokens seen in prompt or output; above 0, 1 is no
    /// penalty.
    pub repetition_penalty: f32,
    /// Amount that is subtracted once from logits of tokens seen in the output.
    pub presence_penalty: f32,
    /// Amount that is subtracted per occurrence from logits of tokens seen in the output.
    pub frequency_penalty: f32,
    /// Tokens, each with what is added to its logit; minus infinity bans one.
    pub logit_bias: Vec<(u32, f32)>,
    /// Seed of the draws: what is drawn after a number of tokens depends on the seed and that number alone.
    /// `None` takes a fresh one.
    pub seed: Option<u64>,
}

impl Default for SamplerParams {
    fn default() -> SamplerParams {
        SamplerParams {
            temperature: 0.0,
            top_k: None,
            top_p: 1.0,
            min_p: 0.0,
            repetition_penalty: 1.0,
            presence_penalty: 0.0,
            frequency_penalty: 0.0,
            logit_bias: Vec::new(),
            seed: None,
        }
    }
}

/// Why parameters are refused or no token could be chosen.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SamplerError {
    /// A parameter is out of range.
    #[error("{name} is {found}, expected {expected}")]
    Param {
        /// Parameter.
        name: &'static str,
        /// Value of the parameter.
        found: String,
        /// The legal values.
        expected: &'static str,
    },
    /// A biased token is not in the vocabulary.
    #[error("logit_bias names token {token}, expected less than {vocab}")]
    BiasToken {
        /// Token id.
        token: u32,
        /// Vocabulary size.
        vocab: usize,
    },
    /// The model produced a NaN.
    #[error("the logit of token {token} is not a number: the model's weights or activations are damaged")]
    Nan {
        /// First such token.
        token: u32,
    },
    /// Every logit is minus infinity.
    #[error("no token can be chosen: every logit that is allowed is minus infinity")]
    NoneLeft,
}

impl SamplerParams {
    /// Whether what is chosen depends on the tokens before it: by a penalty.
    pub(super) fn counts_tokens(&self) -> bool {
        self.repetition_penalty != 1.0 || self.presence_penalty != 0.0 || self.frequency_penalty != 0.0
    }

    /// Checks every parameter against its range, for a vocabulary of `vocab` tokens.
    ///
    /// # Errors
    /// The first one out of range.
    pub fn check(&self, vocab: usize) -> Result<(), SamplerError> {
        let range = |name, value: f32, legal: bool, expected| {
            if legal { Ok(()) } else { Err(SamplerError::Param { name, found: value.to_string(), expected }) }
        };
        let t = self.temperature;
        range("temperature", t, t.is_finite() && t >= 0.0, "a finite number of at least 0")?;
        if self.top_k == Some(0) {
            return Err(SamplerError::Param { name: "top_k", found: "0".to_owned(), expected: "at least 1" });
        }
        let p = self.top_p;
        range("top_p", p, p > 0.0 && p <= 1.0, "more than 0 and at most 1")?;
        range("min_p", self.min_p, (0.0..=1.0).contains(&self.min_p), "0 to 1")?;
        let r = self.repetition_penalty;
        range("repetition_penalty", r, r.is_finite() && r > 0.0, "a finite number above 0")?;
        let (presence, frequency) = (self.presence_penalty, self.frequency_penalty);
        range("presence_penalty", presence, presence.is_finite(), "a finite number")?;
        range("frequency_penalty", frequency, frequency.is_finite(), "a finite number")?;
        for (token, bias) in &self.logit_bias {
            if *token as usize >= vocab {
                return Err(SamplerError::BiasToken { token: *token, vocab });
            }
            range("logit_bias", *bias, !bias.is_nan() && *bias != f32::INFINITY, "a number or -inf")?;
        }
        Ok(())
    }
}
