//! Generating text from a prompt.

use crate::adapter::AdapterUse;
use crate::engine::{Engine, EngineError, SeqId};
use crate::sampler::{Sampler, SamplerParams};
use crate::stop::StopMatcher;
use crate::tokenizer::TextStream;
use std::ops::ControlFlow;
use std::time::Instant;

/// How to generate.
#[derive(Clone, Debug, Default)]
pub struct GenerateParams {
    /// Most tokens to generate.
    pub max_tokens: usize,
    /// The adapters of the sequence.
    pub adapters: Vec<AdapterUse>,
    /// How to choose them.
    pub sampler: SamplerParams,
    /// Strings that end the text; they are not part of it. One that is exactly a special token's text also stands for that token.
    pub stop: Vec<String>,
    /// Tokens that end the text; they are not part of it. [`crate::tokenizer::Tokenizer::end_tokens`] has the usual ones.
    pub stop_tokens: Vec<u32>,
    /// Whether special tokens are part of the text, as the vocabulary spells them.
    pub shows_special: bool,
}

/// Why generation ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// As many tokens as asked for.
    MaxTokens,
    /// The context is full.
    Context,
    /// A stop token was generated.
    Token(u32),
    /// A stop string was generated, or the special token that it is the text of.
    Text(String),
    /// The caller asked for it.
    Caller,
}

/// What was done, and how long it took.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// Tokens of the prompt.
    pub prompt_tokens: usize,
    /// Tokens generated, a stop token not included.
    pub tokens: Vec<u32>,
    /// From the start to the first token's logits.
    pub prefill_seconds: f64,
    /// From there to the end.
    pub decode_seconds: f64,
    /// Tokens that were run one by one within `decode_seconds`.
    pub decoded: usize,
    /// Why it ended.
    pub stop: StopReason,
}

impl Summary {
    /// Tokens per second at decode; 0 when none were decoded.
    pub fn decode_rate(&self) -> f64 {
        if self.decoded == 0 { 0.0 } else { self.decoded as f64 / self.decode_seconds }
    }

    /// Prompt tokens per second.
    pub fn prefill_rate(&self) -> f64 {
        self.prompt_tokens as f64 / self.prefill_seconds
    }
}

impl Engine {
    /// Generates from a prompt of token ids in a sequence of its own. `on_text` gets text as it comes: whole characters,
    /// nothing that may belong to a stop string. It is called for every token, also with an empty text, so that a caller can end the
    /// generation at any. Without a tokenizer there is no text, only [`Summary::tokens`].
    ///
    /// The text continues the prompt's: a first piece that begins a word begins with its space.
    ///
    /// # Errors
    /// When the prompt is empty, too long or has ids past the vocabulary, stop strings are given without a tokenizer,
    /// sampling parameters are out of range, or no sequence is free.
    pub fn generate(
        &mut self,
        prompt: &[u32],
        params: &GenerateParams,
        on_text: &mut dyn FnMut(&str) -> ControlFlow<()>,
    ) -> Result<Summary, EngineError> {
        if prompt.is_empty() {
            return Err(EngineError::EmptyPrompt);
        }
        if prompt.len() > self.context() as usize {
            return Err(EngineError::PromptTooLong { tokens: prompt.len(), context: self.context() });
        }
        if !self.has_tokenizer() && !params.stop.is_empty() {
            return Err(EngineError::NoTokenizer);
        }
        self.check_tokens(prompt)?;
        let mut sampler = Sampler::new(params.sampler.clone(), self.model().vocab as usize)?;
        sampler.prompt(prompt);
        let id = self.create_with(&params.adapters)?;
        let held = Held { engine: self, id };
        held.engine.generate_in(id, prompt, params, &mut sampler, on_text)
    }

    fn generate_in(
        &mut self,
        id: SeqId,
        prompt: &[u32],
        params: &GenerateParams,
        sampler: &mut Sampler,
        on_text: &mut dyn FnMut(&str) -> ControlFlow<()>,
    ) -> Result<Summary, EngineError> {
        let start = Instant::now();
        let mut logits = Vec::new();
        self.append(id, prompt, &mut logits)?;
        let prefill_seconds = start.elapsed().as_secs_f64();

        let decode_start = Instant::now();
        let mut text = Text::new(self, prompt, params)?;
        let mut tokens = Vec::new();
        let mut decoded = 0;
        let stop = loop {
            if tokens.len() >= params.max_tokens {
                break StopReason::MaxTokens;
            }
            let token = sampler.sample(&logits)?;
            if params.stop_tokens.contains(&token) {
                break StopReason::Token(token);
            }
            if let Some(stop) = text.stop_of(token) {
                break StopReason::Text(stop);
            }
            tokens.push(token);
            if let Some(reason) = text.push(self, token, on_text)? {
                break reason;
            }
            if tokens.len() >= params.max_tokens {
                break StopReason::MaxTokens;
            }
            if self.length(id)? >= self.context() {
                break StopReason::Context;
            }
            self.append(id, &[token], &mut logits)?;
            decoded += 1;
        };
        let decode_seconds = decode_start.elapsed().as_secs_f64();
        let stop = text.finish(self, stop, on_text)?;
        Ok(Summary { prompt_tokens: prompt.len(), tokens, prefill_seconds, decode_seconds, decoded, stop })
    }
}

/// A sequence that goes when generation ends, in whatever way: also by a panic of the caller's function.
struct Held<'a> {
    engine: &'a mut Engine,
    id: SeqId,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.engine.drop_sequence(self.id);
    }
}

/// Tokens to text to the caller.
struct Text {
    stream: TextStream,
    stops: StopMatcher,
    /// Special tokens that stop strings are the text of.
    stop_tokens: Vec<(u32, String)>,
}

impl Text {
    fn new(engine: &Engine, prompt: &[u32], params: &GenerateParams) -> Result<Text, EngineError> {
        let mut stream = TextStream::new();
        if params.shows_special {
            stream = stream.with_special();
        }
        let mut stop_tokens = Vec::new();
        if let Some(tokenizer) = engine.tokenizer()? {
            stream.skip(tokenizer, prompt)?;
            let special = |stop: &String| Some((tokenizer.special_token_id(stop)?, stop.clone()));
            stop_tokens = params.stop.iter().filter_map(special).collect();
        }
        Ok(Text { stream, stops: StopMatcher::new(&params.stop), stop_tokens })
    }

    /// The stop string that is the text of a special token.
    fn stop_of(&self, token: u32) -> Option<String> {
        self.stop_tokens.iter().find(|(id, _)| *id == token).map(|(_, stop)| stop.clone())
    }

    fn push(
        &mut self,
        engine: &Engine,
        token: u32,
        on_text: &mut dyn FnMut(&str) -> ControlFlow<()>,
    ) -> Result<Option<StopReason>, EngineError> {
        let piece = match engine.tokenizer()? {
            Some(tokenizer) => self.stream.push(tokenizer, token)?,
            None => String::new(),
        };
        Ok(self.release(&piece, on_text))
    }

    fn release(
        &mut self,
        piece: &str,
        on_text: &mut dyn FnMut(&str) -> ControlFlow<()>,
    ) -> Option<StopReason> {
        let released = self.stops.push(piece);
        if on_text(&released.text).is_break() {
            return Some(StopReason::Caller);
        }
        released.stop.map(StopReason::Text)
    }

    /// Shows what was held back, unless a stop string in the text or the caller has ended it.
    fn finish(
        &mut self,
        engine: &Engine,
        stop: StopReason,
        on_text: &mut dyn FnMut(&str) -> ControlFlow<()>,
    ) -> Result<StopReason, EngineError> {
        let Some(tokenizer) = engine.tokenizer()? else { return Ok(stop) };
        if stop == StopReason::Caller || self.stops.is_spent() {
            return Ok(stop);
        }
        let rest = self.stream.finish(tokenizer)?;
        let released = self.stops.push(&rest);
        let (text, stop) = match released.stop {
            Some(found) => (released.text, StopReason::Text(found)),
            None => (released.text + &self.stops.finish(), stop),
        };
        if !text.is_empty() && on_text(&text).is_break() {
            return Ok(StopReason::Caller);
        }
        Ok(stop)
    }
}
