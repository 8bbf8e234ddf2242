//! Generating text from a prompt.

use crate::adapter::AdapterUse;
use crate::draft::{Check, Chosen, Draft, DraftStats, Drafter, Drafting, StepCosts};
use crate::engine::{Begun, Engine, EngineError, Entry, LogitRow, LogitRows, SeqId};
use crate::guide::{Guide, Guided};
use crate::kv::{EVERYBODY, KvError};
use crate::sampler::{Sampler, SamplerParams};
use crate::text_maker::{Stopped, TextMaker};
use std::collections::VecDeque;
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
    /// What guesses how the text goes on, so that a step may give several tokens; the text is the same. It
    /// has followed nothing yet.
    pub drafter: Option<Box<dyn Drafter>>,
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
    /// Steps in which they were run: fewer than tokens where the guide left no choice, or drafts were right.
    pub decode_steps: usize,
    /// Tokens of drafts that these steps checked, and how many were right.
    pub drafts: DraftStats,
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
        let mut held = Held { engine: self, id, known: prompt.len() };
        let rest = &prompt[cached_tokens as usize..];
        let mut ahead = VecDeque::new();
        match params.max_tokens {
            0 => held.engine.extend(&[Entry::silent(id, rest)], &()).map(drop)?,
            _ => {
                let position = prompt.len() as u64;
                let draft = Draft::default();
                let allowed = guided.as_ref().map(Guided::allowed);
                let check = Check::new(&mut sampler, &draft, allowed, position, None);
                ahead.extend(held.choose(rest, &draft, check)?);
            }
        }
        held.engine.checkpoint(id)?;
        let mut drafting = params.drafter.clone().map(Drafting::new);
        if let Some(drafting) = &mut drafting {
            drafting.follow(prompt);
        }
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
            drafting,
            costs: StepCosts::default(),
            ahead,
            tokens: Vec::new(),
            followed: 0,
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
    drafting: Option<Drafting>,
    costs: StepCosts,
    /// The next tokens, as far as they are chosen already.
    ahead: VecDeque<Chosen>,
    tokens: Vec<u32>,
    /// How many of the tokens the drafts have followed.
    followed: usize,
    /// How many tokens of the text have been run, also of those that are to come.
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
        self.held.known = self.prompt_tokens + self.tokens.len();
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

    /// The next token: one that was chosen before, one that must come, or one that is chosen behind all
    /// others. `None` if there is no room for one.
    fn choose(&mut self) -> Result<Option<u32>, EngineError> {
        if self.ahead.is_empty() {
            if self.prompt_tokens + self.tokens.len() > self.held.engine.context() as usize {
                return Ok(None);
            }
            if let Some(token) = self.guided.as_mut().and_then(Guided::next_forced) {
                self.sampler.accept(token);
                return Ok(Some(token));
            }
            self.step()?;
        }
        let next = self.ahead.pop_front().expect("a step chooses a token");
        let (token, _) = next?;
        self.sampler.accept(token);
        Ok(Some(token))
    }

    /// Runs what has not been run, with a draft behind it if one is worth it, and chooses what comes next.
    fn step(&mut self) -> Result<(), EngineError> {
        let start = Instant::now();
        let draft = self.draft();
        let chosen = match self.check(&draft) {
            Err(error) if !draft.tokens().is_empty() && is_want_of_blocks(&error) => {
                self.check(&Draft::default())?
            }
            chosen => chosen?,
        };
        let given = self.tokens.len() - self.run;
        let (drafted, accepted) = (draft.tokens().len(), chosen.len() - 1);
        self.costs.note((given + drafted) as u32, start.elapsed().as_secs_f64());
        if let Some(drafting) = &mut self.drafting {
            drafting.note(drafted, accepted);
        }
        self.run += given + accepted;
        self.decoded += given + accepted;
        self.decode_steps += 1;
        self.ahead.extend(chosen);
        Ok(())
    }

    /// The draft that is worth checking behind the text so far.
    fn draft(&mut self) -> Draft {
        let Some(drafting) = &mut self.drafting else { return Draft::default() };
        drafting.follow(&self.tokens[self.followed..]);
        self.followed = self.tokens.len();
        let engine = &self.held.engine;
        let (run, known) = (self.tokens.len() - self.run, self.prompt_tokens + self.tokens.len());
        // One step holds all, the sequence has room for all, and all but the last chosen one are wanted.
        let most = (engine.chunk() as usize).saturating_sub(run);
        let most = most.min((engine.context() as usize).saturating_sub(known));
        let most = most.min((self.max_tokens - self.tokens.len()).saturating_sub(1));
        let vocab = engine.model().vocab;
        drafting.draft(self.guided.as_ref(), &self.costs, run.saturating_sub(1) as u32, most, vocab)
    }

    /// Runs what has not been run and a draft; the tokens that are chosen.
    fn check(&mut self, draft: &Draft) -> Result<Vec<Chosen>, EngineError> {
        let position = (self.prompt_tokens + self.tokens.len()) as u64;
        let allowed = self.guided.as_ref().map(Guided::allowed);
        let check = Check::new(&mut self.sampler, draft, allowed, position, None);
        self.held.choose(&self.tokens[self.run..], draft, check)
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
        // What a draft has right behind the text's end is not part of it.
        let decoded = self.decoded - self.run.saturating_sub(self.tokens.len());
        Summary {
            prompt_tokens: self.prompt_tokens,
            cached_tokens: self.cached_tokens,
            disk_tokens: self.disk_tokens,
            tokens: self.tokens,
            prefill_seconds: self.prefill_seconds,
            decode_seconds,
            decoded,
            decode_steps: self.decode_steps,
            drafts: self.drafting.as_ref().map(Drafting::stats).unwrap_or_default(),
            stop,
        }
    }
}

/// Whether KV blocks ran out.
fn is_want_of_blocks(error: &EngineError) -> bool {
    matches!(error, EngineError::Kv(KvError::OutOfBlocks { .. }))
}

/// A sequence that goes when generation ends, in whatever way: also by a panic of the caller's function.
struct Held<'a> {
    engine: &'a mut Engine,
    id: SeqId,
    /// Tokens of prompt and text so far.
    known: usize,
}

impl Held<'_> {
    /// Appends tokens and a draft, chooses behind them on the workers that have the rows, and takes back what
    /// the draft has wrong.
    fn choose(
        &mut self,
        tokens: &[u32],
        draft: &Draft,
        check: Check<'_>,
    ) -> Result<Vec<Chosen>, EngineError> {
        let drafted = draft.tokens().len();
        let together = if drafted == 0 { Vec::new() } else { [tokens, draft.tokens()].concat() };
        let given = if drafted == 0 { tokens } else { &together };
        let entry = Entry { sequence: self.id, tokens: given, logits: LogitRows::LastN(1 + drafted as u32) };
        let check = Mutex::new(check);
        let take = |_: usize, row: LogitRow<'_>| {
            let mut check = check.lock().unwrap_or_else(PoisonError::into_inner);
            check.take(row.token + 1 - tokens.len(), row.logits);
        };
        self.engine.extend(&[entry], &take)?;
        let chosen = check.into_inner().unwrap_or_else(PoisonError::into_inner).finish();
        let wrong = drafted - (chosen.len() - 1);
        if wrong > 0 {
            let length = self.engine.length(self.id)?;
            self.engine.truncate(self.id, length - wrong as u32)?;
        }
        Ok(chosen)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        // The sequence is there: no error. What a draft has right behind the text's end goes, and a text that
        // goes on from here begins with what is known.
        if self.engine.length(self.id).is_ok_and(|length| length as usize > self.known) {
            let _ = self.engine.truncate(self.id, self.known as u32);
        }
        let _ = self.engine.checkpoint(self.id);
        self.engine.drop_sequence(self.id);
    }
}
