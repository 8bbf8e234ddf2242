//! Answers of `/v1/chat/completions`, whole or in pieces.

use super::request::ChatRequest;
use super::turn::{Outcome, Piece, Prepared, Scored, Turn, tokenizer};
use crate::backend::Facts;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::ids;
use crate::reply::{self, Stream};
use crate::state::State;
use axum::response::Response;
use kernmill::chat::Part;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Answers a request to `/v1/chat/completions`.
///
/// # Errors
/// When the request is wrong or not taken up.
pub async fn answer(state: Arc<State>, caller: Caller, body: Vec<u8>) -> Result<Response, ApiError> {
    let worker = state.clone();
    let (request, prepared) = reply::blocking(move || {
        let request = ChatRequest::read(&worker, &caller, &body)?;
        let prepared = Prepared::new(worker.backend.facts(), request.ask.clone())?;
        worker.charge(&caller, prepared.prompt_tokens())?;
        Ok((request, prepared))
    })
    .await?;
    let mut turns = Vec::new();
    for n in 0..request.n {
        let seed = prepared.seed().wrapping_add(n);
        turns.push(prepared.with_seed(seed).start(state.backend.clone(), |request| state.submit(request))?);
    }
    let head = Head {
        id: ids::new("chatcmpl-"),
        created: ids::now(),
        model: request.model.clone(),
        fingerprint: state.backend.facts().fingerprint.clone(),
        effort: request.ask.conversation.effort.name(),
    };
    for turn in &mut turns {
        reply::soon(request.streams, turn.accepted()).await?;
    }
    let response = if request.streams {
        stream(state, turns, head, request.has_usage)
    } else {
        whole(&state, turns, &head).await?
    };
    Ok(reply::with_warnings(response, &request.unknown))
}

/// What all objects of an answer have.
#[derive(Clone)]
struct Head {
    id: String,
    created: u64,
    model: String,
    fingerprint: String,
    effort: &'static str,
}

impl Head {
    fn object(&self, kind: &str, choices: Value) -> Map<String, Value> {
        let mut object = Map::new();
        object.insert("id".to_owned(), json!(self.id));
        object.insert("object".to_owned(), json!(kind));
        object.insert("created".to_owned(), json!(self.created));
        object.insert("model".to_owned(), json!(self.model));
        object.insert("system_fingerprint".to_owned(), json!(self.fingerprint));
        object.insert("choices".to_owned(), choices);
        object
    }
}

/// Figures of an answer that only this server gives.
pub fn own_figures(outcomes: &[Outcome], effort: &str) -> Value {
    let first = outcomes.first();
    let anomalies: Map<String, Value> = first
        .map(|outcome| {
            outcome.anomalies.seen().map(|(kind, count)| (kind.name().to_owned(), json!(count))).collect()
        })
        .unwrap_or_default();
    json!({
        "seed": first.map(|outcome| outcome.seed),
        "reasoning_effort": effort,
        "first_token_seconds": first.and_then(|outcome| outcome.first_token).map(|time| time.as_secs_f64()),
        "seconds": first.map(|outcome| outcome.took.as_secs_f64()),
        "tokens_per_second": first.map(Outcome::rate),
        "anomalies": anomalies,
    })
}

/// Tokens of a prompt and of its answers.
pub fn usage(outcomes: &[Outcome]) -> Value {
    let prompt = outcomes.iter().map(|outcome| outcome.prompt_tokens).max().unwrap_or_default();
    let cached = outcomes.first().map(|outcome| outcome.cached_tokens).unwrap_or_default();
    let completion: usize = outcomes.iter().map(|outcome| outcome.tokens.len()).sum();
    let reasoning: u32 = outcomes.iter().map(|outcome| outcome.reasoning_tokens).sum();
    json!({
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt as usize + completion,
        "prompt_tokens_details": { "cached_tokens": cached },
        "completion_tokens_details": { "reasoning_tokens": reasoning },
    })
}

/// Tokens of an answer with their logarithms, as the API has them.
fn logprobs(facts: &Facts, scored: &[Scored]) -> Value {
    let entry = |id: u32, logprob: f32| {
        let bytes = tokenizer(facts).ok().and_then(|tokenizer| tokenizer.token_bytes(id)).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        json!({ "token": text, "logprob": logprob, "bytes": bytes })
    };
    let content: Vec<Value> = scored
        .iter()
        .map(|one| {
            let mut token = entry(one.id, one.logprobs.token);
            let top = one.logprobs.top.iter().map(|(id, logprob)| entry(*id, *logprob));
            token["top_logprobs"] = top.collect();
            token
        })
        .collect();
    json!({ "content": content, "refusal": null })
}

/// An answer as a message.
#[derive(Default)]
struct Message {
    content: Option<String>,
    reasoning: String,
    calls: Vec<[String; 3]>,
    scored: Vec<Scored>,
}

impl Message {
    fn json(self) -> Value {
        let mut message = Map::new();
        message.insert("role".to_owned(), json!("assistant"));
        message.insert("content".to_owned(), json!(self.content));
        message.insert("refusal".to_owned(), Value::Null);
        message.insert("annotations".to_owned(), json!([]));
        if !self.reasoning.is_empty() {
            message.insert("reasoning".to_owned(), json!(self.reasoning));
            message.insert("reasoning_content".to_owned(), json!(self.reasoning));
        }
        if !self.calls.is_empty() {
            let call = |[id, name, arguments]: [String; 3]| json!({ "id": id, "type": "function", "function": { "name": name, "arguments": arguments } });
            message.insert("tool_calls".to_owned(), self.calls.into_iter().map(call).collect());
        }
        Value::Object(message)
    }
}

/// Waits for all answers.
async fn whole(state: &State, turns: Vec<Turn>, head: &Head) -> Result<Response, ApiError> {
    let (mut choices, mut outcomes) = (Vec::new(), Vec::new());
    for (index, mut turn) in turns.into_iter().enumerate() {
        let (mut message, mut part) = (Message::default(), Part::Answer);
        while let Some(piece) = turn.next().await {
            match piece {
                Piece::Begin(begun) => {
                    match &begun {
                        Part::Call { name, .. } => {
                            message.calls.push([ids::new("call_"), name.clone(), String::new()]);
                        }
                        Part::Answer | Part::Preamble => drop(message.content.get_or_insert_default()),
                        Part::Reasoning => {}
                    }
                    part = begun;
                }
                Piece::Delta(text, scored) => match part {
                    Part::Reasoning => message.reasoning.push_str(&text),
                    Part::Call { .. } => {
                        if let Some([_, _, arguments]) = message.calls.last_mut() {
                            arguments.push_str(&text);
                        }
                    }
                    Part::Answer | Part::Preamble => {
                        message.content.get_or_insert_default().push_str(&text);
                        message.scored.extend(scored);
                    }
                },
                Piece::End(_) => {}
                Piece::Done(outcome) => outcomes.push(*outcome),
            }
        }
        let outcome: &Outcome = outcomes.last().ok_or_else(|| ApiError::internal("the answer has no end"))?;
        if let Some(error) = outcome.error() {
            return Err(error);
        }
        if message.calls.is_empty() {
            message.content.get_or_insert_default();
        }
        state.ended(outcome);
        let scored = std::mem::take(&mut message.scored);
        choices.push(json!({
            "index": index,
            "message": message.json(),
            "logprobs": (!scored.is_empty()).then(|| logprobs(state.backend.facts(), &scored)),
            "finish_reason": outcome.finish_reason(),
        }));
    }
    let mut object = head.object("chat.completion", json!(choices));
    object.insert("usage".to_owned(), usage(&outcomes));
    object.insert("kernmill".to_owned(), own_figures(&outcomes, head.effort));
    Ok(reply::json(&Value::Object(object)))
}

/// Answers in pieces, as they come.
fn stream(state: Arc<State>, turns: Vec<Turn>, head: Head, has_usage: bool) -> Response {
    let (stream, response) = Stream::new();
    let count = turns.len();
    let outcomes = Arc::new(std::sync::Mutex::new(vec![None; count]));
    for (index, turn) in turns.into_iter().enumerate() {
        let choices =
            Choices { state: state.clone(), head: head.clone(), stream: stream.clone(), index, has_usage };
        let outcomes = outcomes.clone();
        tokio::spawn(async move {
            let Some(outcome) = choices.run(turn).await else { return };
            choices.state.ended(&outcome);
            let all: Option<Vec<Outcome>> = {
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
    state: Arc<State>,
    head: Head,
    stream: Stream,
    index: usize,
    has_usage: bool,
}

impl Choices {
    /// Passes on the pieces of an answer. `None` if nobody listens any more, or the answer has failed.
    async fn run(&self, mut turn: Turn) -> Option<Outcome> {
        self.send(json!({ "role": "assistant", "content": "" }), Value::Null, None)?;
        let (mut part, mut calls) = (Part::Answer, 0);
        loop {
            // A client that is gone ends the turn, also while nothing comes.
            let piece = tokio::select! {
                piece = turn.next() => piece?,
                () = self.stream.closed() => return None,
            };
            match piece {
                Piece::Begin(begun) => {
                    if let Part::Call { name, .. } = &begun {
                        let function = json!({ "name": name, "arguments": "" });
                        let call = json!({ "index": calls, "id": ids::new("call_"), "type": "function", "function": function });
                        self.send(json!({ "tool_calls": [call] }), Value::Null, None)?;
                        calls += 1;
                    }
                    part = begun;
                }
                Piece::Delta(text, scored) => {
                    let delta = match part {
                        Part::Reasoning => json!({ "reasoning": text, "reasoning_content": text }),
                        Part::Call { .. } => {
                            json!({ "tool_calls": [{ "index": calls - 1, "function": { "arguments": text } }] })
                        }
                        Part::Answer | Part::Preamble => json!({ "content": text }),
                    };
                    let facts = self.state.backend.facts();
                    let logprobs = if scored.is_empty() { Value::Null } else { logprobs(facts, &scored) };
                    self.send(delta, logprobs, None)?;
                }
                Piece::End(_) => {}
                Piece::Done(outcome) => {
                    if let Some(error) = outcome.error() {
                        self.stream.send(&error.json())?;
                        self.stream.done();
                        return None;
                    }
                    self.send(json!({}), Value::Null, Some(outcome.finish_reason()))?;
                    return Some(*outcome);
                }
            }
        }
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
    fn end(&self, outcomes: &[Outcome]) {
        if self.has_usage {
            let mut object = self.head.object("chat.completion.chunk", json!([]));
            object.insert("usage".to_owned(), usage(outcomes));
            object.insert("kernmill".to_owned(), own_figures(outcomes, self.head.effort));
            // Who is gone needs no figures.
            let _ = self.stream.send(&Value::Object(object));
        }
        self.stream.done();
    }
}
