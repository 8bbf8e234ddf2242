//! An answer as a message of OpenAI's chat API, with its figures.

use super::pieces::{AnswerPiece, Scored, TurnOutcome};
use super::turn::tokenizer;
use crate::backend::BackendInfo;
use crate::head::AnswerHead;
use crate::ids;
use kernmill_chat::AnswerPart;
use serde_json::{Map, Value, json};

/// Figures of an answer that only this server gives.
pub fn own_figures(outcomes: &[TurnOutcome], effort: &str) -> Value {
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
        "tokens_per_second": first.map(TurnOutcome::rate),
        "drafts": first.map(|outcome| {
            json!({ "tokens": outcome.drafts.tokens, "accepted": outcome.drafts.accepted })
        }),
        "anomalies": anomalies,
    })
}

/// Tokens of a prompt and of its answers.
pub fn usage(outcomes: &[TurnOutcome]) -> Value {
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
pub fn logprobs(facts: &BackendInfo, scored: &[Scored]) -> Value {
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

/// A call of a message.
struct Called {
    id: String,
    name: String,
    /// Arguments, or the input of a custom tool.
    text: String,
    is_custom: bool,
}

impl Called {
    fn new(name: String, is_custom: bool) -> Called {
        Called { id: ids::new("call_"), name, text: String::new(), is_custom }
    }

    fn json(self) -> Value {
        let Called { id, name, text, is_custom } = self;
        if is_custom {
            return json!({ "id": id, "type": "custom", "custom": { "name": name, "input": text } });
        }
        json!({ "id": id, "type": "function", "function": { "name": name, "arguments": text } })
    }
}

/// An answer as a message.
#[derive(Default)]
pub struct Message {
    /// The part that has begun.
    part: Option<AnswerPart>,
    content: Option<String>,
    reasoning: String,
    calls: Vec<Called>,
    scored: Vec<Scored>,
    /// Whether a call has the form that it had before there were tools.
    is_older: bool,
}

impl Message {
    /// A message whose call has the form that it had before there were tools.
    pub fn older() -> Message {
        Message { is_older: true, ..Message::default() }
    }

    /// Takes the next piece; how the answer ended, if it is the last one.
    pub fn take(&mut self, piece: AnswerPiece) -> Option<TurnOutcome> {
        match piece {
            AnswerPiece::Begin(part) => {
                match &part {
                    AnswerPart::Call { name, .. } => self.calls.push(Called::new(name.clone(), false)),
                    AnswerPart::Answer | AnswerPart::Preamble => drop(self.content.get_or_insert_default()),
                    AnswerPart::Reasoning => {}
                }
                self.part = Some(part);
            }
            AnswerPiece::Custom(name) => {
                self.calls.push(Called::new(name.clone(), true));
                self.part = Some(AnswerPart::Call { name, is_builtin: false });
            }
            AnswerPiece::Delta(text, scored) => match self.part {
                Some(AnswerPart::Reasoning) => self.reasoning.push_str(&text),
                Some(AnswerPart::Call { .. }) => {
                    if let Some(call) = self.calls.last_mut() {
                        call.text.push_str(&text);
                    }
                }
                Some(AnswerPart::Answer | AnswerPart::Preamble) | None => {
                    self.content.get_or_insert_default().push_str(&text);
                    self.scored.extend(scored);
                }
            },
            AnswerPiece::End(_) => {}
            AnswerPiece::Done(outcome) => return Some(*outcome),
        }
        None
    }

    /// The message as a choice, with how it ended.
    pub fn choice(mut self, facts: &BackendInfo, index: usize, outcome: &TurnOutcome) -> Value {
        if self.calls.is_empty() {
            self.content.get_or_insert_default();
        }
        let scored = std::mem::take(&mut self.scored);
        let reason = finish_reason(outcome, self.is_older);
        json!({
            "index": index,
            "message": self.json(),
            "logprobs": (!scored.is_empty()).then(|| logprobs(facts, &scored)),
            "finish_reason": reason,
        })
    }

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
        if self.is_older {
            // There is one at most.
            if let Some(call) = self.calls.into_iter().next() {
                message
                    .insert("function_call".to_owned(), json!({ "name": call.name, "arguments": call.text }));
            }
        } else if !self.calls.is_empty() {
            message.insert("tool_calls".to_owned(), self.calls.into_iter().map(Called::json).collect());
        }
        Value::Object(message)
    }
}

/// Why an answer ended, in the words of the form that calls have.
pub fn finish_reason(outcome: &TurnOutcome, is_older: bool) -> &'static str {
    match outcome.reason {
        "tool_calls" if is_older => "function_call",
        reason => reason,
    }
}

/// A completion of a conversation, with its choices and figures.
pub fn completion(head: &AnswerHead, choices: Vec<Value>, outcomes: &[TurnOutcome], effort: &str) -> Value {
    let mut object = head.object("chat.completion", Value::Array(choices));
    object.insert("usage".to_owned(), usage(outcomes));
    object.insert("kernmill".to_owned(), own_figures(outcomes, effort));
    Value::Object(object)
}
