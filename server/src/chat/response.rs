//! Answers of `/v1/chat/completions`, whole or in pieces.

use super::message::{Message, completion, finish_reason, logprobs, own_figures, usage};
use super::pieces::{AnswerPiece, TurnOutcome};
use super::request;
use super::turn::{PreparedTurn, RunningTurn};
use crate::caller::Caller;
use crate::error::ApiError;
use crate::head::AnswerHead;
use crate::ids;
use crate::reply::{self, ReplyStream};
use crate::state::ServerState;
use axum::response::Response;
use kernmill_chat::AnswerPart;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Answers a request to `/v1/chat/completions`.
///
/// # Errors
/// When the request is wrong or not taken up.
pub async fn answer(state: Arc<ServerState>, caller: Caller, body: Vec<u8>) -> Result<Response, ApiError> {
    let record = caller.record.clone();
    let worker = state.clone();
    let (request, prepared) = reply::blocking(move || {
        let request = request::read(&worker.scope(&caller), &body)?;
        let prepared = PreparedTurn::new(worker.backend.facts(), request.ask.clone())?;
        worker.charge(&caller, prepared.prompt_tokens())?;
        Ok((request, prepared))
    })
    .await?;
    let mut turns = Vec::new();
    for n in 0..request.shows.n {
        let seed = prepared.seed().wrapping_add(n);
        let submit = |request| state.submit(request, &record);
        turns.push(prepared.with_seed(seed).start(state.backend.clone(), submit));
    }
    let head = AnswerHead::new("chatcmpl-", &request.model, state.backend.facts());
    let effort = request.ask.conversation.effort.name();
    // All are taken up, before the first one has begun.
    for (at, turn) in turns.iter_mut().enumerate().rev() {
        turn.ready(request.streams && at == 0).await?;
    }
    let response = if request.streams {
        stream(state, turns, head, effort, [request.shows.has_usage, request.shows.is_older])
    } else {
        whole(&state, turns, &head, effort, request.shows.is_older).await?
    };
    Ok(reply::with_warnings(response, &request.unknown))
}

/// Waits for all answers.
async fn whole(
    state: &ServerState,
    turns: Vec<RunningTurn>,
    head: &AnswerHead,
    effort: &str,
    is_older: bool,
) -> Result<Response, ApiError> {
    let (mut choices, mut outcomes) = (Vec::new(), Vec::new());
    for (index, mut turn) in turns.into_iter().enumerate() {
        let mut message = if is_older { Message::older() } else { Message::default() };
        let mut outcome = None;
        while let Some(piece) = turn.next().await {
            outcome = message.take(piece);
        }
        let outcome = outcome.ok_or_else(|| ApiError::internal("the answer has no end"))?;
        if let Some(error) = outcome.error() {
            return Err(error);
        }
        state.ended(&outcome);
        choices.push(message.choice(state.backend.facts(), index, &outcome));
        outcomes.push(outcome);
    }
    Ok(reply::json(&completion(head, choices, &outcomes, effort)))
}

/// Answers in pieces, as they come.
fn stream(
    state: Arc<ServerState>,
    turns: Vec<RunningTurn>,
    head: AnswerHead,
    effort: &'static str,
    [has_usage, is_older]: [bool; 2],
) -> Response {
    let (stream, response) = ReplyStream::new();
    let count = turns.len();
    let outcomes = Arc::new(std::sync::Mutex::new(vec![None; count]));
    for (index, turn) in turns.into_iter().enumerate() {
        let choices = Choices {
            state: state.clone(),
            head: head.clone(),
            effort,
            stream: stream.clone(),
            index,
            has_usage,
            is_older,
        };
        let outcomes = outcomes.clone();
        tokio::spawn(async move {
            let Some(outcome) = choices.run(turn).await else { return };
            choices.state.ended(&outcome);
            let all: Option<Vec<TurnOutcome>> = {
                let mut outcomes = outcomes.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                outcomes[index] = Some(outcome);
                outcomes.iter().cloned().collect()
            };
            if let Some(all) = all {
                choices.end(&all);
            }
        });
    }
    response
}

/// One of the answers of a stream.
struct Choices {
    state: Arc<ServerState>,
    head: AnswerHead,
    effort: &'static str,
    stream: ReplyStream,
    index: usize,
    has_usage: bool,
    /// Whether a call has the form that it had before there were tools.
    is_older: bool,
}

impl Choices {
    /// Passes on the pieces of an answer. `None` if nobody listens any more, or the answer has failed.
    async fn run(&self, mut turn: RunningTurn) -> Option<TurnOutcome> {
        self.send(json!({ "role": "assistant", "content": "" }), Value::Null, None)?;
        let (mut part, mut calls, mut is_custom) = (AnswerPart::Answer, 0, false);
        loop {
            // A client that is gone ends the turn, also while nothing comes.
            let piece = tokio::select! {
                piece = turn.next() => piece?,
                () = self.stream.closed() => return None,
            };
            match piece {
                AnswerPiece::Begin(begun) => {
                    if let AnswerPart::Call { name, .. } = &begun {
                        self.send(self.call(calls, Some(name), "", false), Value::Null, None)?;
                        calls += 1;
                    }
                    (part, is_custom) = (begun, false);
                }
                AnswerPiece::Custom(name) => {
                    self.send(self.call(calls, Some(&name), "", true), Value::Null, None)?;
                    calls += 1;
                    (part, is_custom) = (AnswerPart::Call { name, is_builtin: false }, true);
                }
                AnswerPiece::Delta(text, scored) => {
                    let delta = match part {
                        AnswerPart::Reasoning => json!({ "reasoning": text, "reasoning_content": text }),
                        AnswerPart::Call { .. } => self.call(calls - 1, None, &text, is_custom),
                        AnswerPart::Answer | AnswerPart::Preamble => json!({ "content": text }),
                    };
                    let facts = self.state.backend.facts();
                    let logprobs = if scored.is_empty() { Value::Null } else { logprobs(facts, &scored) };
                    self.send(delta, logprobs, None)?;
                }
                AnswerPiece::End(_) => {}
                AnswerPiece::Done(outcome) => {
                    if let Some(error) = outcome.error() {
                        self.stream.send(&error.json())?;
                        self.stream.done();
                        return None;
                    }
                    self.send(json!({}), Value::Null, Some(finish_reason(&outcome, self.is_older)))?;
                    return Some(*outcome);
                }
            }
        }
    }

    /// A piece of the call `index`, which begins with an id and the tool's name.
    fn call(&self, index: usize, name: Option<&str>, text: &str, is_custom: bool) -> Value {
        let (kind, field) = if is_custom { ("custom", "input") } else { ("function", "arguments") };
        let mut inner = Map::new();
        if let Some(name) = name {
            inner.insert("name".to_owned(), json!(name));
        }
        inner.insert(field.to_owned(), json!(text));
        if self.is_older {
            return json!({ "function_call": inner });
        }
        let mut call = json!({ "index": index });
        if name.is_some() {
            (call["id"], call["type"]) = (json!(ids::new("call_")), json!(kind));
        }
        call[kind] = Value::Object(inner);
        json!({ "tool_calls": [call] })
    }

    /// Sends a piece; `None` if nobody listens any more.
    fn send(&self, delta: Value, logprobs: Value, finish: Option<&str>) -> Option<()> {
        let choice = json!({
            "index": self.index,
            "delta": delta,
            "logprobs": logprobs,
            "finish_reason": finish,
        });
        let mut object = self.head.object("chat.completion.chunk", json!([choice]));
        if self.has_usage {
            object.insert("usage".to_owned(), Value::Null);
        }
        self.stream.send(&Value::Object(object))
    }

    /// Ends the stream.
    fn end(&self, outcomes: &[TurnOutcome]) {
        if self.has_usage {
            let mut object = self.head.object("chat.completion.chunk", json!([]));
            object.insert("usage".to_owned(), usage(outcomes));
            object.insert("kernmill".to_owned(), own_figures(outcomes, self.effort));
            // A client that is gone needs no figures.
            let _ = self.stream.send(&Value::Object(object));
        }
        self.stream.done();
    }
}
