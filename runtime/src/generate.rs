//! Generating text from a prompt.

use crate::adapter::AdapterUse;
use crate::engine::{Begun, Engine, EngineError, Entry, LogitRow, SeqId};
use crate::guide::{Guide, Guided};
use crate::kv::EVERYBODY;
use crate::sampler::{Sampler, SamplerParams, TokenMask};
use crate::text_maker::{Stopped, TextMaker};
use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// How to generate.
#[derive(Clone, Debug, Default)]
pub struct GenerateParams {
    /// Most tokens to generate.
    pub max_tokens: usize,
    /// The adapters of the sequence.
    pub adapters: Vec<AdapterUse>,
    /// How the tokens are chosen.
    pub sampler: SamplerParams,
    /// Tokens of the prompt that are an earlier part of the text, and how often each occurs there: what
    /// penalties count.
    pub written: Vec<(u32, u32)>,
    /// Strings that end the text; they are not part of it. One that is exactly a special token's text also
    /// stands for that token.
    pub stop: Vec<String>,
    /// Tokens that end the text; they are not part of it. [`crate::tokenizer::Tokenizer::end_tokens`] has the
    /// usual ones.
    pub stop_tokens: Vec<u32>,
    /// Whether special tokens are part of the text, as the vocabulary spells them.
    pub shows_special: bool,
    /// What the text is held to, if it is. The guide stands before the first token of the text.
    pub guide: Option<Box<dyn Guide>>,
}

/// Why generation ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// There are as many tokens as were asked for.
    MaxTokens,
    /// The context is full.
    Context,
    /// A stop token was generated.
    Token(u32),
    /// A stop string was generated, or the special token that it is the text of.
    Text(String),
    /// The text has the form that it is held to, and nothing can follow.
    Complete,
    /// The caller asked for the end.
    Caller,
}

/// What generation did, how long it took, and why it ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// Tokens of the prompt.
    pub prompt_tokens: usize,
    /// Tokens of the prompt that were in the prefix cache, and were not run.
    pub cached_tokens: usize,
    /// Tokens among those that only the store on disk had ([`Engine::keep_on_disk`]).
    pub disk_tokens: usize,
    /// Tokens generated, a stop token not included.
    pub tokens: Vec<u32>,
    /// Seconds from the start to the first token's logits, with those of reading blocks from disk.
    pub prefill_seconds: f64,
    /// Seconds from the first token's logits to the end.
    pub decode_seconds: f64,
    /// Tokens of the text that were run within `decode_seconds`.
    pub decoded: usize,
    /// Steps in which they were run: fewer than tokens where the guide left no choice.
    pub decode_steps: usize,
    /// Why generation ended.
    pub stop: StopReason,
}

impl Summary {
    /// Tokens per second at decode; 0 when none were decoded.
    pub fn decode_rate(&self) -> f64 {
        if self.decoded == 0 { 0.0 } else { self.decoded as f64 / self.decode_seconds }
    }

    /// Prompt tokens per second, of those that were run.
    pub fn prefill_rate(&self) -> f64 {
        (self.prompt_tokens - self.cached_tokens) as f64 / self.prefill_seconds
    }
}

impl Engine {
    /// Generates from a prompt of token ids in a sequence of its own. `on_text` gets text as it comes: whole
    /// characters, nothing that may belong to a stop string. It is called for every token, also with an empty
    /// text, so that a caller can end the generation at any. Without a tokenizer there is no text, only
    /// [`Summary::tokens`].
    ///
    /// The text continues the prompt's: a first piece that begins a word begins with its space.
    ///
    /// # Errors
    /// When the prompt is empty, too long or has ids past the vocabulary, stop strings are given without a
    /// tokenizer, sampling parameters are out of range, no sequence is free, or the guide fails.
    pub fn generate(
        &mut self,
        prompt: &[u32],
        params: &GenerateParams,
        on_text: &mut dyn FnMut(&str) -> ControlFlow<()>,
    ) -> Result<Summary, EngineError> {
        let mut generation = self.start_generation(prompt, params)?;
        while let Some(piece) = generation.next_piece()? {
            if on_text(&piece).is_break() {
                generation.stop();
            }
        }
        Ok(generation.into_summary())
    }

    /// Runs the prompt; [`Generation::next_piece`] then makes the text, piece by piece. See
    /// [`Engine::generate`].
    ///
    /// # Errors
    /// As those of [`Engine::generate`].
    pub fn start_generation(
        &mut self,
        prompt: &[u32],
        params: &GenerateParams,
    ) -> Result<Generation<'_>, EngineError> {
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
        sampler.resume(&params.written);
        let guided = params.guide.clone().map(Guided::new).transpose()?;
        let text = TextMaker::new(self.tokenizer()?, prompt, &params.stop, params.shows_special)?;
        let start = Instant::now();
        let Begun { sequence: id, cached_tokens, disk_tokens } =
            self.begin(prompt, &params.adapters, EVERYBODY)?;
        let mut held = Held { engine: self, id };
        let rest = &prompt[cached_tokens as usize..];
        let chosen = match params.max_tokens {
            0 => held.engine.extend(&[Entry::silent(id, rest)], &()).map(|_| None)?,
            _ => Some(held.choose(rest, &mut sampler, guided.as_ref().map(Guided::allowed))?),
        };
        held.engine.checkpoint(id)?;
        Ok(Generation {
            held,
            prompt_tokens: prompt.len(),
            cached_tokens: cached_tokens as usize,
            disk_tokens: disk_tokens as usize,
            max_tokens: params.max_tokens,
            stop_tokens: params.stop_tokens.clone(),
            sampler,
            guided,
            text,
            chosen,
            tokens: Vec::new(),
            run: 0,
            decoded: 0,
            decode_steps: 0,
            prefill_seconds: start.elapsed().as_secs_f64(),
            decode_start: Instant::now(),
            state: State::Running,
        })
    }
}

/// A text that is being generated. Its sequence ends when this is dropped.
pub struct Generation<'e> {
    held: Held<'e>,
    prompt_tokens: usize,
    cached_tokens: usize,
    disk_tokens: usize,
    max_tokens: usize,
    stop_tokens: Vec<u32>,
    sampler: Sampler,
    guided: Option<Guided>,
    text: TextMaker,
    /// The next token, where it is chosen already.
    chosen: Option<u32>,
    tokens: Vec<u32>,
    /// How many of the tokens have been run.
    run: usize,
    decoded: usize,
    decode_steps: usize,
    prefill_seconds: f64,
    decode_start: Instant,
    state: State,
}

enum State {
    Running,
    /// No token comes any more; text may be held back.
    Stopping(StopReason),
    /// Generation has ended: the seconds of decoding, and why.
    Done(f64, StopReason),
}

impl Generation<'_> {
    /// The next piece of text, which may be empty; `None` when there is no more.
    ///
    /// # Errors
    /// When a token cannot be run, chosen or decoded.
    pub fn next_piece(&mut self) -> Result<Option<String>, EngineError> {
        match &self.state {
            State::Done(..) => Ok(None),
            State::Stopping(reason) => {
                let decode_seconds = self.decode_start.elapsed().as_secs_f64();
                let Stopped { text, stop } = self.text.finish(self.held.engine.tokenizer()?)?;
                self.state = State::Done(decode_seconds, stop.map_or(reason.clone(), StopReason::Text));
                Ok((!text.is_empty()).then_some(text))
            }
            State::Running => match self.next_token()? {
                Ok(piece) => Ok(Some(piece)),
                Err(reason) => {
                    self.state = State::Stopping(reason);
                    self.next_piece()
                }
            },
        }
    }

    /// The text of the next token, or why there is none.
    fn next_token(&mut self) -> Result<Result<String, StopReason>, EngineError> {
        if self.tokens.len() >= self.max_tokens {
            return Ok(Err(StopReason::MaxTokens));
        }
        let Some(token) = self.choose()? else { return Ok(Err(StopReason::Context)) };
        if self.stop_tokens.contains(&token) {
            return Ok(Err(StopReason::Token(token)));
        }
        if let Some(stop) = self.text.stop_of(token) {
            return Ok(Err(StopReason::Text(stop)));
        }
        self.tokens.push(token);
        let Stopped { text: piece, stop } = self.text.push(self.held.engine.tokenizer()?, token)?;
        if let Some(stop) = stop {
            self.state = State::Stopping(StopReason::Text(stop));
        } else if let Some(guided) = &mut self.guided
            && guided.accept(token)?
        {
            self.state = State::Stopping(StopReason::Complete);
        }
        Ok(Ok(piece))
    }

    /// The next token: one that was chosen with the prompt, one that must come, or one that is chosen behind
    /// all others. `None` if there is no room for one.
    fn choose(&mut self) -> Result<Option<u32>, EngineError> {
        if let Some(token) = self.chosen.take() {
            return Ok(Some(token));
        }
        if self.prompt_tokens + self.tokens.len() > self.held.engine.context() as usize {
            return Ok(None);
        }
        if let Some(token) = self.guided.as_mut().and_then(Guided::next_forced) {
            self.sampler.accept(token);
            return Ok(Some(token));
        }
        let allowed = self.guided.as_ref().map(Guided::allowed);
        let token = self.held.choose(&self.tokens[self.run..], &mut self.sampler, allowed)?;
        self.decoded += self.tokens.len() - self.run;
        self.run = self.tokens.len();
        self.decode_steps += 1;
        Ok(Some(token))
    }

    /// The tokens so far, without a stop token.
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// Ends the text here: what is held back is not shown.
    pub fn stop(&mut self) {
        let seconds = match self.state {
            State::Done(seconds, _) => seconds,
            _ => self.decode_start.elapsed().as_secs_f64(),
        };
        self.state = State::Done(seconds, StopReason::Caller);
    }

    /// What was done so far.
    pub fn into_summary(self) -> Summary {
        let (decode_seconds, stop) = match self.state {
            State::Done(seconds, reason) => (seconds, reason),
            State::Stopping(reason) => (self.decode_start.elapsed().as_secs_f64(), reason),
            State::Running => (self.decode_start.elapsed().as_secs_f64(), StopReason::Caller),
        };
        Summary {
            prompt_tokens: self.prompt_tokens,
            cached_tokens: self.cached_tokens,
            disk_tokens: self.disk_tokens,
            tokens: self.tokens,
            prefill_seconds: self.prefill_seconds,
            decode_seconds,
            decoded: self.decoded,
            decode_steps: self.decode_steps,
            stop,
        }
    }
}

/// A sequence that goes when generation ends, in whatever way: also by a panic of the caller's function.
struct Held<'a> {
    engine: &'a mut Engine,
    id: SeqId,
}

impl Held<'_> {
    /// Appends tokens, and chooses the next one on the worker that has the row.
    fn choose(
        &mut self,
        tokens: &[u32],
        sampler: &mut Sampler,
        allowed: Option<&TokenMask>,
    ) -> Result<u32, EngineError> {
        let position = u64::from(self.engine.length(self.id)?) + tokens.len() as u64;
        let choice = Mutex::new((sampler, None));
        let take = |_: usize, row: LogitRow<'_>| {
            let (sampler, chosen) = &mut *choice.lock().unwrap_or_else(PoisonError::into_inner);
            let token = sampler.choose(row.logits, position, allowed);
            token.iter().for_each(|token| sampler.accept(*token));
            *chosen = Some(token);
        };
        self.engine.extend(&[Entry::last(self.id, tokens)], &take)?;
        let (_, chosen) = choice.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(chosen.expect("a step hands out the rows that it is asked for")?)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        // A text that goes on from here begins with what is known. The sequence is there: no error.
        let _ = self.engine.checkpoint(self.id);
        self.engine.drop_sequence(self.id);
    }
}
