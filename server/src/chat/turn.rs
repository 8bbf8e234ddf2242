//! A model's turn: from a conversation to the pieces of an answer. All APIs of conversations go through it.

use super::stops::StopFilter;
use crate::backend::{Backend, Facts, Running};
use crate::error::ApiError;
use kernmill::chat::{Anomalies, Conversation, Part, Reader};
use kernmill::constrain::{Constraint, Rule, ToolChoice, Turn as TurnRule};
use kernmill::runtime::{AdapterUse, StopReason, Tokenizer};
use kernmill::serve::{Answer, Class, EndReason, Event, Finish, Request, Token};
use kernmill::{Logprobs, SamplerParams, chat};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// What is asked of a model.
#[derive(Clone, Debug)]
pub struct Ask {
    /// The conversation so far.
    pub conversation: Conversation,
    /// Whether tools are called.
    pub choice: ToolChoice,
    /// A form that the answer has, besides that of the conversation.
    pub rule: Option<Rule>,
    /// Tokens that are generated at most; `None` goes on until the context is full.
    pub max_tokens: Option<u32>,
    /// Field that `max_tokens` or the conversation came from, for errors.
    pub param: &'static str,
    /// How tokens are chosen.
    pub sampler: SamplerParams,
    /// Strings that end the answer.
    pub stop: Vec<String>,
    /// How many of the likeliest tokens are listed at each token of the answer.
    pub logprobs: Option<u32>,
    /// Adapters of all tokens.
    pub adapters: Vec<AdapterUse>,
    /// Whose share of the machine is used.
    pub tenant: u64,
    /// The kind of work.
    pub class: Class,
    /// Time after which the answer is cut.
    pub within: Option<Duration>,
}

/// A piece of an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    /// A part begins.
    Begin(Part),
    /// More of the part, with the tokens of it where they were asked for.
    Delta(String, Vec<Scored>),
    /// The part ends; whether it is complete.
    End(bool),
    /// The answer has ended.
    Done(Box<Outcome>),
}

/// A token of the answer with its logarithms.
#[derive(Clone, Debug, PartialEq)]
pub struct Scored {
    /// Id of the token.
    pub id: u32,
    /// Logarithms of the probabilities.
    pub logprobs: Logprobs,
}

/// What a turn came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Why it ended.
    pub end: End,
    /// The stop string that ended it.
    pub stop: Option<String>,
    /// Tokens of the prompt.
    pub prompt_tokens: u32,
    /// Tokens of the prompt that were cached.
    pub cached_tokens: u32,
    /// Ids that were generated.
    pub tokens: Vec<u32>,
    /// How many of them are reasoning.
    pub reasoning_tokens: u32,
    /// Deviations of the text from its format.
    pub anomalies: Anomalies,
    /// Seed of the choices.
    pub seed: u64,
    /// Time from the arrival to the first token, and to the end.
    pub first_token: Option<Duration>,
    /// Time from the arrival to the end.
    pub took: Duration,
}

/// Why a turn ended.
#[derive(Clone, Debug, PartialEq)]
pub enum End {
    /// The model ended its answer, or a stop string did.
    Stop,
    /// The model calls tools.
    Calls,
    /// There are as many tokens as were asked for, or as the context or the time allows.
    Length,
    /// The turn was not taken up, or what was asked for leaves no way on.
    Refused(Box<ApiError>),
    /// The server ended it, for this reason.
    Failed(String),
}

impl Outcome {
    /// The reason as OpenAI's chat API names it.
    pub fn finish_reason(&self) -> &'static str {
        match self.end {
            End::Stop => "stop",
            End::Calls => "tool_calls",
            End::Length => "length",
            End::Refused(_) | End::Failed(_) => "error",
        }
    }

    /// The error that the turn ended with, if it did.
    pub fn error(&self) -> Option<ApiError> {
        match &self.end {
            End::Refused(error) => Some((**error).clone()),
            End::Failed(why) => Some(ApiError::internal(why.clone())),
            End::Stop | End::Calls | End::Length => None,
        }
    }

    /// Tokens per second after the first one.
    pub fn rate(&self) -> f64 {
        let first = self.first_token.unwrap_or(self.took);
        let seconds = self.took.saturating_sub(first).as_secs_f64();
        if seconds > 0.0 { self.tokens.len().saturating_sub(1) as f64 / seconds } else { 0.0 }
    }
}

/// A turn that is ready to be run.
pub struct Prepared {
    request: Request,
    conversation: Conversation,
    stop: Vec<String>,
}

impl Prepared {
    /// Renders a conversation and checks what is asked. That takes time with the length of the conversation:
    /// callers do it on a thread that may wait.
    ///
    /// # Errors
    /// When the format refuses the conversation, it does not fit the context, or a form cannot be held to.
    pub fn new(facts: &Facts, ask: Ask) -> Result<Prepared, ApiError> {
        let tokenizer = tokenizer(facts)?;
        let prompt = facts.format.prompt(tokenizer, &ask.conversation, &BTreeMap::new());
        let prompt = prompt.map_err(|error| ApiError::field("messages", error.to_string()))?;
        let room = (facts.context as usize).saturating_sub(prompt.len()) as u32;
        if room == 0 || ask.max_tokens.is_some_and(|asked| asked > room) {
            return Err(ApiError::context(ask.param, prompt.len(), ask.max_tokens, facts.context));
        }
        let constraint = constraint(facts, &ask)?;
        let is_plain = matches!(facts.format, chat::Format::Plain);
        let mut stop = ask.stop;
        let request = Request {
            max_tokens: ask.max_tokens.unwrap_or(room),
            sampler: ask.sampler,
            logprobs: ask.logprobs,
            stop: if is_plain { facts.format.stop_strings() } else { Vec::new() },
            stop_tokens: facts.format.stop_tokens(tokenizer, &facts.end_tokens),
            shows_special: false,
            adapters: ask.adapters,
            tenant: ask.tenant,
            class: ask.class,
            within: ask.within,
            constraint,
            ..Request::greedy(prompt, 1)
        };
        stop.retain(|stop| !stop.is_empty());
        Ok(Prepared { request, conversation: ask.conversation, stop })
    }

    /// Tokens of the prompt.
    pub fn prompt_tokens(&self) -> usize {
        self.request.prompt.len()
    }

    /// Ids of the prompt.
    pub fn prompt(&self) -> &[u32] {
        &self.request.prompt
    }

    /// A copy of the turn with another seed.
    pub fn with_seed(&self, seed: u64) -> Prepared {
        let mut request = self.request.clone();
        request.sampler.seed = Some(seed);
        Prepared { request, conversation: self.conversation.clone(), stop: self.stop.clone() }
    }

    /// The seed of the choices.
    pub fn seed(&self) -> u64 {
        self.request.sampler.seed.unwrap_or_default()
    }

    /// Hands the turn to a backend by `submit`.
    ///
    /// # Errors
    /// When the format refuses the conversation.
    pub fn start(
        self,
        backend: Arc<dyn Backend>,
        submit: impl FnOnce(Request) -> Running,
    ) -> Result<Turn, ApiError> {
        let seed = self.seed();
        let facts = backend.facts();
        let mut events = Vec::new();
        let reader = facts.format.reader(tokenizer(facts)?, &self.conversation, &mut events);
        let reader = reader.map_err(|error| ApiError::internal(error.to_string()))?;
        let prompt_tokens = self.request.prompt.len() as u32;
        let running = submit(self.request);
        let mut turn = Turn {
            backend,
            running: Some(running),
            reader,
            filter: StopFilter::new(self.stop),
            part: None,
            scored: Vec::new(),
            ready: VecDeque::new(),
            calls: 0,
            tokens: Vec::new(),
            reasoning_tokens: 0,
            has_stopped: false,
            prompt_tokens,
            seed,
        };
        turn.give(events);
        Ok(turn)
    }
}

/// The tokenizer of a backend, which was read at the start.
///
/// # Errors
/// When the model has none.
pub fn tokenizer(facts: &Facts) -> Result<&Tokenizer, ApiError> {
    facts.tokenizer.get().map_err(|error| ApiError::internal(error.to_string()))
}

/// What holds the text to the form that is asked for.
fn constraint(facts: &Facts, ask: &Ask) -> Result<Option<Constraint>, ApiError> {
    let is_harmony = matches!(facts.format, chat::Format::Harmony);
    let rule = match (&ask.rule, &ask.conversation.format) {
        (Some(rule), _) => Some(rule.clone()),
        (None, _) if is_harmony => Some(Rule::Harmony(TurnRule::of(&ask.conversation, ask.choice.clone()))),
        (None, Some(format)) => Some(Rule::JsonSchema(format.schema.clone())),
        (None, None) => None,
    };
    if !is_harmony && !matches!(ask.choice, ToolChoice::Auto | ToolChoice::None) {
        let message =
            "`tool_choice` is not \"auto\" or \"none\": this model's format cannot be held to a call";
        return Err(ApiError::field("tool_choice", message));
    }
    let Some(rule) = rule else { return Ok(None) };
    let made = Constraint::new(&facts.lexicon, &rule);
    made.map(Some).map_err(|error| ApiError::field("response_format", error.to_string()))
}

/// An answer that is being made. Dropping it cancels it.
pub struct Turn {
    backend: Arc<dyn Backend>,
    /// Until it has ended.
    running: Option<Running>,
    reader: Reader,
    filter: StopFilter,
    /// The part that has begun.
    part: Option<Part>,
    /// Tokens whose text has not been given out.
    scored: Vec<Scored>,
    ready: VecDeque<Piece>,
    calls: u32,
    tokens: Vec<u32>,
    reasoning_tokens: u32,
    /// Whether a stop string was found.
    has_stopped: bool,
    prompt_tokens: u32,
    seed: u64,
}

impl Turn {
    /// Waits until the turn is taken up.
    ///
    /// # Errors
    /// When it is not.
    pub async fn accepted(&mut self) -> Result<(), ApiError> {
        match &mut self.running {
            Some(running) => Ok(running.accepted().await?),
            None => Ok(()),
        }
    }

    /// The next piece; `None` after the last one, which is [`Piece::Done`].
    pub async fn next(&mut self) -> Option<Piece> {
        loop {
            if let Some(piece) = self.ready.pop_front() {
                return Some(piece);
            }
            if let Err(error) = self.accepted().await {
                self.end(End::Refused(Box::new(error)), self.so_far());
                continue;
            }
            let running = self.running.as_mut()?;
            match running.next().await {
                // What was on its way when a stop string was found is not part of the answer.
                Some(Event::Token(_)) if self.has_stopped => {}
                Some(Event::Token(token)) => self.take(token),
                Some(Event::Done(answer)) if self.has_stopped => {
                    self.done(Answer { finish: Finish::Stop(StopReason::Caller), ..*answer });
                }
                Some(Event::Done(answer)) => self.done(*answer),
                None if self.has_stopped => self.done(self.so_far()),
                None => self.failed("the engine has failed: the log says why"),
            }
        }
    }

    fn take(&mut self, token: Token) {
        let was_answer = self.part == Some(Part::Answer);
        let is_reasoning = self.part == Some(Part::Reasoning);
        self.tokens.push(token.id);
        self.reasoning_tokens += u32::from(is_reasoning);
        let mut events = Vec::new();
        // The backend's tokenizer was read before the turn began.
        if let Ok(tokenizer) = self.backend.facts().tokenizer.get() {
            self.reader.push(tokenizer, token.id, &mut events);
        }
        self.reader.text(&token.text, &mut events);
        let has_ended = events.iter().any(|event| matches!(event, chat::Event::End { .. }));
        let has_text = events.iter().any(|event| matches!(event, chat::Event::Delta(_)));
        let is_answer =
            was_answer || (has_text && matches!(events.first(), Some(chat::Event::Begin(Part::Answer))));
        if let Some(logprobs) = token.logprobs.filter(|_| is_answer && !has_ended) {
            self.scored.push(Scored { id: token.id, logprobs });
        }
        self.give(events);
        if let Some(running) = self.running.as_mut().filter(|_| self.has_stopped) {
            // The figures come with the end.
            running.cancel();
        }
    }

    /// Figures of an answer that this side ends.
    fn so_far(&self) -> Answer {
        Answer {
            text: String::new(),
            tokens: self.tokens.clone(),
            prompt_tokens: self.prompt_tokens,
            prompt_logprobs: Vec::new(),
            cached_tokens: 0,
            disk_tokens: 0,
            finish: Finish::Stop(StopReason::Caller),
            first_token: None,
            took: Duration::ZERO,
        }
    }

    /// Makes pieces of events.
    fn give(&mut self, events: Vec<chat::Event>) {
        for event in events {
            if self.has_stopped {
                return;
            }
            match event {
                chat::Event::Begin(part) => {
                    self.calls += u32::from(matches!(part, Part::Call { .. }));
                    self.part = Some(part.clone());
                    self.ready.push_back(Piece::Begin(part));
                }
                chat::Event::Delta(text) if self.part == Some(Part::Answer) => {
                    let (text, has_stopped) = self.filter.push(&text);
                    self.has_stopped = has_stopped;
                    if !text.is_empty() {
                        let scored = std::mem::take(&mut self.scored);
                        self.ready.push_back(Piece::Delta(text, scored));
                    }
                }
                chat::Event::Delta(text) => self.ready.push_back(Piece::Delta(text, Vec::new())),
                chat::Event::End { is_complete } => {
                    self.flush();
                    self.part = None;
                    self.ready.push_back(Piece::End(is_complete));
                }
            }
        }
    }

    /// Gives out what was held back of the answer.
    fn flush(&mut self) {
        if self.part == Some(Part::Answer) {
            let (text, scored) = (self.filter.finish(), std::mem::take(&mut self.scored));
            if !text.is_empty() || !scored.is_empty() {
                self.ready.push_back(Piece::Delta(text, scored));
            }
        }
    }

    fn done(&mut self, answer: Answer) {
        let end = match &answer.finish {
            Finish::Stop(StopReason::MaxTokens | StopReason::Context) => End::Length,
            Finish::Stop(_) if self.calls > 0 => End::Calls,
            Finish::Stop(_) => End::Stop,
            Finish::Ended(EndReason::Expired | EndReason::Draining) => End::Length,
            Finish::Ended(reason) => End::Failed(reason.to_string()),
            Finish::Failed(why) => End::Failed(why.clone()),
            Finish::Astray(why) => End::Refused(Box::new(ApiError::invalid(why.clone()))),
        };
        self.end(end, answer);
    }

    fn end(&mut self, end: End, answer: Answer) {
        let is_complete = matches!(end, End::Stop | End::Calls);
        if self.has_stopped {
            self.part = None;
            self.ready.push_back(Piece::End(true));
        } else {
            let mut events = Vec::new();
            self.reader.finish(is_complete, &mut events);
            self.give(events);
        }
        self.running = None;
        self.ready.push_back(Piece::Done(Box::new(Outcome {
            end,
            stop: self.filter.found().map(str::to_owned),
            prompt_tokens: answer.prompt_tokens,
            cached_tokens: answer.cached_tokens,
            tokens: std::mem::take(&mut self.tokens),
            reasoning_tokens: self.reasoning_tokens,
            anomalies: self.reader.anomalies(),
            seed: self.seed,
            first_token: answer.first_token,
            took: answer.took,
        })));
    }

    fn failed(&mut self, why: &str) {
        let answer = Answer { finish: Finish::Failed(why.to_owned()), ..self.so_far() };
        self.done(answer);
    }
}
