//! The pieces of an answer, made of its tokens one after another.

use super::stops::StopFilter;
use crate::error::ApiError;
use kernmill::Logprobs;
use kernmill::chat::{Anomalies, Event, Part, Reader};
use kernmill::runtime::{DraftStats, StopReason, Tokenizer};
use kernmill::serve::{Answer, EndReason, Finish, Token};
use std::collections::VecDeque;
use std::time::Duration;

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
    /// Tokens of drafts that were checked, and how many were right.
    pub drafts: DraftStats,
    /// Deviations of the text from its format.
    pub anomalies: Anomalies,
    /// Seed of the choices.
    pub seed: u64,
    /// Time from the arrival until the turn first ran.
    pub queued: Option<Duration>,
    /// Time from the arrival to the first token.
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

impl End {
    /// The end in a word, as OpenAI's chat API names it.
    fn reason(&self) -> &'static str {
        match self {
            End::Stop => "stop",
            End::Calls => "tool_calls",
            End::Length => "length",
            End::Refused(_) | End::Failed(_) => "error",
        }
    }
}

impl Outcome {
    /// The reason as OpenAI's chat API names it.
    pub fn finish_reason(&self) -> &'static str {
        self.end.reason()
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

/// An answer that is being made of its tokens.
pub struct Pieces {
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

impl Pieces {
    /// An answer that begins. `events` are those that the reader gave of the prompt.
    pub fn new(
        reader: Reader,
        events: Vec<Event>,
        stop: Vec<String>,
        prompt_tokens: u32,
        seed: u64,
    ) -> Pieces {
        let mut pieces = Pieces {
            reader,
            filter: StopFilter::new(stop),
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
        pieces.give(events);
        pieces
    }

    /// The next piece that is ready.
    pub fn pop(&mut self) -> Option<Piece> {
        self.ready.pop_front()
    }

    /// Ids that have come so far.
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// Whether a stop string was found, so that no more tokens are needed.
    pub fn has_stopped(&self) -> bool {
        self.has_stopped
    }

    /// Takes the next token. What was on its way when a stop string was found is not part of the answer.
    pub fn take(&mut self, tokenizer: &Tokenizer, token: Token) {
        if self.has_stopped {
            return;
        }
        let was_answer = self.part == Some(Part::Answer);
        let is_reasoning = self.part == Some(Part::Reasoning);
        self.tokens.push(token.id);
        self.reasoning_tokens += u32::from(is_reasoning);
        let mut events = Vec::new();
        self.reader.push(tokenizer, token.id, &mut events);
        self.reader.text(&token.text, &mut events);
        let has_ended = events.iter().any(|event| matches!(event, Event::End { .. }));
        let has_text = events.iter().any(|event| matches!(event, Event::Delta(_)));
        let is_answer =
            was_answer || (has_text && matches!(events.first(), Some(Event::Begin(Part::Answer))));
        if let Some(logprobs) = token.logprobs.filter(|_| is_answer && !has_ended) {
            self.scored.push(Scored { id: token.id, logprobs });
        }
        self.give(events);
    }

    /// Figures of an answer that this side ends.
    pub fn so_far(&self) -> Answer {
        Answer {
            text: String::new(),
            tokens: self.tokens.clone(),
            prompt_tokens: self.prompt_tokens,
            prompt_logprobs: Vec::new(),
            cached_tokens: 0,
            disk_tokens: 0,
            drafts: DraftStats::default(),
            finish: Finish::Stop(StopReason::Caller),
            queued: None,
            first_token: None,
            took: Duration::ZERO,
        }
    }

    /// Makes pieces of events.
    fn give(&mut self, events: Vec<Event>) {
        for event in events {
            if self.has_stopped {
                return;
            }
            match event {
                Event::Begin(part) => {
                    self.calls += u32::from(matches!(part, Part::Call { .. }));
                    self.part = Some(part.clone());
                    self.ready.push_back(Piece::Begin(part));
                }
                Event::Delta(text) if self.part == Some(Part::Answer) => {
                    let (text, has_stopped) = self.filter.push(&text);
                    self.has_stopped = has_stopped;
                    if !text.is_empty() {
                        let scored = std::mem::take(&mut self.scored);
                        self.ready.push_back(Piece::Delta(text, scored));
                    }
                }
                Event::Delta(text) => self.ready.push_back(Piece::Delta(text, Vec::new())),
                Event::End { is_complete } => {
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

    /// Ends the answer as the backend did. A stop string that was found has cancelled it.
    pub fn done(&mut self, mut answer: Answer) -> &'static str {
        if self.has_stopped {
            answer.finish = Finish::Stop(StopReason::Caller);
        }
        let end = match &answer.finish {
            Finish::Stop(StopReason::MaxTokens | StopReason::Context) => End::Length,
            Finish::Stop(_) if self.calls > 0 => End::Calls,
            Finish::Stop(_) => End::Stop,
            Finish::Ended(EndReason::Draining) if self.tokens.is_empty() => {
                End::Refused(Box::new(ApiError::drained()))
            }
            Finish::Ended(EndReason::Expired | EndReason::Draining) => End::Length,
            Finish::Ended(reason) => End::Failed(reason.to_string()),
            Finish::Failed(why) => End::Failed(why.clone()),
            Finish::Unavailable(why) => End::Refused(Box::new(ApiError::stage_lost(why))),
            Finish::Astray(why) => End::Refused(Box::new(ApiError::invalid(why.clone()))),
        };
        let reason = end.reason();
        self.end(end, answer);
        reason
    }

    /// Ends the answer for a reason.
    pub fn end(&mut self, end: End, answer: Answer) {
        let is_complete = matches!(end, End::Stop | End::Calls);
        if self.has_stopped {
            self.part = None;
            self.ready.push_back(Piece::End(true));
        } else {
            let mut events = Vec::new();
            self.reader.finish(is_complete, &mut events);
            self.give(events);
        }
        self.ready.push_back(Piece::Done(Box::new(Outcome {
            end,
            stop: self.filter.found().map(str::to_owned),
            prompt_tokens: answer.prompt_tokens,
            cached_tokens: answer.cached_tokens,
            tokens: std::mem::take(&mut self.tokens),
            reasoning_tokens: self.reasoning_tokens,
            drafts: answer.drafts,
            anomalies: self.reader.anomalies(),
            seed: self.seed,
            queued: answer.queued,
            first_token: answer.first_token,
            took: answer.took,
        })));
    }
}
