//! The lines of an answer, and the answer as a whole.

use super::request::OllamaRoute;
use crate::backend::BackendInfo;
use crate::chat::message::logprobs;
use crate::chat::pieces::{AnswerPiece, TurnOutcome};
use crate::ids;
use kernmill_chat::AnswerPart;
use serde_json::{Map, Value, json};
use std::time::Duration;

/// An answer that comes into being.
pub struct AnswerEvents {
    route: OllamaRoute,
    model: String,
    /// The part that has begun.
    part: Option<AnswerPart>,
    /// Arguments of the call that has begun.
    arguments: String,
    text: String,
    thinking: String,
    calls: Vec<Value>,
    logprobs: Vec<Value>,
}

impl AnswerEvents {
    /// An answer of a model.
    pub fn new(route: OllamaRoute, model: String) -> AnswerEvents {
        AnswerEvents {
            route,
            model,
            part: None,
            arguments: String::new(),
            text: String::new(),
            thinking: String::new(),
            calls: Vec::new(),
            logprobs: Vec::new(),
        }
    }

    /// Takes a piece of the answer: the line that it comes to, if it comes to one. The last piece comes to
    /// none: [`AnswerEvents::end`] has that line.
    pub fn take(&mut self, facts: &BackendInfo, piece: AnswerPiece) -> Option<Value> {
        match piece {
            AnswerPiece::Begin(part) => {
                self.part = Some(part);
                None
            }
            AnswerPiece::Delta(text, scored) => match self.part {
                Some(AnswerPart::Reasoning) => {
                    self.thinking.push_str(&text);
                    Some(Value::Object(self.object("", [("thinking", json!(text))])))
                }
                Some(AnswerPart::Call { .. }) => {
                    self.arguments.push_str(&text);
                    None
                }
                Some(AnswerPart::Answer | AnswerPart::Preamble) | None => {
                    self.text.push_str(&text);
                    let mut line = self.object(&text, []);
                    if !scored.is_empty()
                        && let Value::Array(listed) = logprobs(facts, &scored)["content"].take()
                    {
                        line.insert("logprobs".to_owned(), json!(listed));
                        self.logprobs.extend(listed);
                    }
                    Some(Value::Object(line))
                }
            },
            AnswerPiece::End(_) => match self.part.take() {
                Some(AnswerPart::Call { name, .. }) => {
                    let text = std::mem::take(&mut self.arguments);
                    // Arguments that were cut become an empty object: their text is in `partial_json`.
                    let whole = if matches!(text.trim(), "" | "null") { "{}" } else { &text };
                    let read = serde_json::from_str(whole).ok().filter(Value::is_object);
                    let arguments = read.unwrap_or_else(|| json!({ "partial_json": text }));
                    let function = json!({ "index": self.calls.len(), "name": name, "arguments": arguments });
                    let call = json!({ "id": ids::new("call_"), "function": function });
                    self.calls.push(call.clone());
                    Some(Value::Object(self.object("", [("tool_calls", json!([call]))])))
                }
                _ => None,
            },
            // This API has no such tools.
            AnswerPiece::Custom(_) | AnswerPiece::Done(_) => None,
        }
    }

    /// The last line of an answer that has ended.
    pub fn end(&self, outcome: &TurnOutcome) -> Value {
        let mut object = self.object("", []);
        add_figures(&mut object, outcome);
        Value::Object(object)
    }

    /// The answer as a whole, when it has ended.
    pub fn whole(&self, outcome: &TurnOutcome) -> Value {
        let thinking = (!self.thinking.is_empty()).then(|| ("thinking", json!(self.thinking)));
        let calls = (!self.calls.is_empty()).then(|| ("tool_calls", json!(self.calls)));
        let mut object = self.object(&self.text, thinking.into_iter().chain(calls));
        if !self.logprobs.is_empty() {
            object.insert("logprobs".to_owned(), json!(self.logprobs));
        }
        add_figures(&mut object, outcome);
        Value::Object(object)
    }

    /// The answer to a request that asks nothing: the model is there.
    pub fn loaded(&self) -> Value {
        let mut object = self.object("", []);
        object.insert("done".to_owned(), json!(true));
        object.insert("done_reason".to_owned(), json!("load"));
        Value::Object(object)
    }

    /// An object with a text, and more of what was said.
    fn object(
        &self,
        text: &str,
        more: impl IntoIterator<Item = (&'static str, Value)>,
    ) -> Map<String, Value> {
        let more = more.into_iter().map(|(name, value)| (name.to_owned(), value));
        let mut object = Map::new();
        object.insert("model".to_owned(), json!(self.model));
        object.insert("created_at".to_owned(), json!(ids::timestamp(ids::since_1970())));
        match self.route {
            OllamaRoute::Chat => {
                let mut message = Map::new();
                message.insert("role".to_owned(), json!("assistant"));
                message.insert("content".to_owned(), json!(text));
                message.extend(more);
                object.insert("message".to_owned(), Value::Object(message));
            }
            OllamaRoute::Generate => {
                object.insert("response".to_owned(), json!(text));
                object.extend(more);
            }
        }
        object.insert("done".to_owned(), json!(false));
        object
    }
}

/// Adds how an answer ended, and what it took.
fn add_figures(object: &mut Map<String, Value>, outcome: &TurnOutcome) {
    let reason = if outcome.reason == "length" { "length" } else { "stop" };
    let first = outcome.first_token.unwrap_or(outcome.took);
    let queued = outcome.queued.unwrap_or_default();
    object.insert("done".to_owned(), json!(true));
    object.insert("done_reason".to_owned(), json!(reason));
    for (name, figure) in [
        ("total_duration", nanoseconds(outcome.took)),
        // The model was loaded before.
        ("load_duration", 0),
        ("prompt_eval_count", u64::from(outcome.prompt_tokens)),
        ("prompt_eval_duration", nanoseconds(first.saturating_sub(queued))),
        ("eval_count", outcome.tokens.len() as u64),
        ("eval_duration", nanoseconds(outcome.took.saturating_sub(first))),
    ] {
        object.insert(name.to_owned(), json!(figure));
    }
}

/// A time in nanoseconds: at least one, since clients divide by it.
fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).max(1)
}
