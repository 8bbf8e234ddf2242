//! The pieces of an answer, made of its tokens one after another.

use super::custom::Unwrapping;
use crate::error::ApiError;
use kernmill_chat as chat;
use kernmill_chat::{Anomalies, AnswerPart, Turn, Vocabulary};
use kernmill_runtime::DraftStats;
use kernmill_runtime::Logprobs;
use kernmill_serve::{Answer, EndReason, Finish, Token};
use std::collections::BTreeSet;
use std::time::Duration;

/// A piece of an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum AnswerPiece {
    /// A part begins.
    Begin(AnswerPart),
    /// A call of the custom tool of this name begins. The text of the part is the tool's input.
    Custom(String),
    /// More of the part, with the tokens of it where they were asked for.
    Delta(String, Vec<Scored>),
    /// The part ends; whether it is complete.
    End(bool),
    /// The answer has ended.
    Done(Box<TurnOutcome>),
}

/// A token of the answer with its logarithms.
#[derive(Clone, Debug, PartialEq)]
pub struct Scored {
    /// Id of the token.
    pub id: u32,
    /// Logarithms of the probabilities.
    pub logprobs: Logprobs,
}

/// The outcome of a turn.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnOutcome {
    /// Why it ended, as OpenAI's chat API names it: `stop`, `tool_calls`, `length` or `error`.
    pub reason: &'static str,
    /// The error that it ended with, if it did.
    pub error: Option<Box<ApiError>>,
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

impl TurnOutcome {
    /// The error that the turn ended with, if it did.
    pub fn error(&self) -> Option<ApiError> {
        self.error.as_deref().cloned()
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
    turn: Turn,
    /// Names of functions that stand for custom tools.
    customs: BTreeSet<String>,
    /// The call of a custom tool that has begun.
    custom: Option<Unwrapping>,
    /// Whether the part that has begun is the answer.
    is_answer: bool,
    /// By token, its logarithms, where they were asked for and not given out.
    scored: Vec<Option<Scored>>,
    tokens: Vec<u32>,
    /// The last piece.
    done: Option<AnswerPiece>,
    prompt_tokens: u32,
    seed: u64,
}

impl Pieces {
    /// An answer that begins.
    pub fn new(turn: Turn, customs: BTreeSet<String>, prompt_tokens: u32, seed: u64) -> Pieces {
        let (scored, tokens) = (Vec::new(), Vec::new());
        let (custom, is_answer, done) = (None, false, None);
        Pieces { turn, customs, custom, is_answer, scored, tokens, done, prompt_tokens, seed }
    }

    /// The next piece that is ready.
    pub fn pop(&mut self) -> Option<AnswerPiece> {
        let Some(chat::TurnPiece { mut event, tokens }) = self.turn.pop() else { return self.done.take() };
        if let (chat::Event::Delta(text), Some(custom)) = (&mut event, &mut self.custom) {
            *text = custom.push(text);
            if text.is_empty() {
                // Text around the input does not belong to it.
                return self.pop();
            }
        }
        Some(match event {
            chat::Event::Begin(part) => {
                self.is_answer = part == AnswerPart::Answer;
                match part {
                    AnswerPart::Call { name, .. } if self.customs.contains(&name) => {
                        self.custom = Some(Unwrapping::default());
                        AnswerPiece::Custom(name)
                    }
                    part => AnswerPiece::Begin(part),
                }
            }
            chat::Event::Delta(text) => {
                let own = self.scored.get_mut(tokens).filter(|_| self.is_answer).unwrap_or_default();
                AnswerPiece::Delta(text, own.iter_mut().filter_map(Option::take).collect())
            }
            chat::Event::End { is_complete } => {
                self.custom = None;
                AnswerPiece::End(is_complete)
            }
        })
    }

    /// Ids that have come so far.
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// Whether no more tokens are needed.
    pub fn has_ended(&self) -> bool {
        self.turn.has_ended()
    }

    /// Takes the next token. Tokens in flight when the turn ended are not part of the answer.
    pub fn take(&mut self, vocabulary: &dyn Vocabulary, token: Token) {
        if self.has_ended() {
            return;
        }
        self.tokens.push(token.id);
        self.scored.push(token.logprobs.map(|logprobs| Scored { id: token.id, logprobs }));
        self.turn.push(vocabulary, token.id, &token.text);
    }

    /// Figures of an answer that this side ends.
    pub fn so_far(&self) -> Answer {
        Answer {
            tokens: self.tokens.clone(),
            prompt_tokens: self.prompt_tokens,
            ..Answer::empty(Finish::CANCELLED)
        }
    }

    /// Ends the answer as the backend did. A stop string that was found has cancelled it.
    pub fn done(&mut self, mut answer: Answer) -> &'static str {
        if self.has_ended() {
            answer.finish = Finish::Complete;
        }
        let end = match &answer.finish {
            Finish::MaxTokens | Finish::Context => Ok("length"),
            Finish::Token(_) | Finish::Text(_) | Finish::Complete if self.turn.calls() > 0 => {
                Ok("tool_calls")
            }
            Finish::Token(_) | Finish::Text(_) | Finish::Complete => Ok("stop"),
            Finish::Ended(EndReason::Draining) if self.tokens.is_empty() => Err(ApiError::drained()),
            Finish::Ended(EndReason::Expired | EndReason::Draining) => Ok("length"),
            Finish::Ended(reason) => Err(ApiError::internal(reason.to_string())),
            Finish::Failed(why) => Err(ApiError::internal(why.clone())),
            Finish::Unavailable(why) => Err(ApiError::stage_lost(why)),
            Finish::Astray(why) => Err(ApiError::invalid(why.clone())),
        };
        let reason = *end.as_ref().unwrap_or(&"error");
        self.end(end, answer);
        reason
    }

    /// Ends the answer, for a reason as OpenAI's chat API names it or with an error.
    pub fn end(&mut self, end: Result<&'static str, ApiError>, answer: Answer) {
        let (reason, error) = match end {
            Ok(reason) => (reason, None),
            Err(error) => ("error", Some(Box::new(error))),
        };
        self.turn.finish(matches!(reason, "stop" | "tool_calls"));
        self.done = Some(AnswerPiece::Done(Box::new(TurnOutcome {
            reason,
            error,
            stop: self.turn.stop().map(str::to_owned),
            prompt_tokens: answer.prompt_tokens,
            cached_tokens: answer.cached_tokens,
            tokens: std::mem::take(&mut self.tokens),
            reasoning_tokens: self.turn.reasoning_tokens(),
            drafts: answer.drafts,
            anomalies: self.turn.anomalies(),
            seed: self.seed,
            queued: answer.queued,
            first_token: answer.first_token,
            took: answer.took,
        })));
    }
}
