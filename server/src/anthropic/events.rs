//! The events of a message, and the message as a whole.

use crate::chat::pieces::{AnswerPiece, TurnOutcome};
use crate::ids;
use kernmill_chat::AnswerPart;
use serde_json::{Value, json};

/// A message that comes into being.
pub struct MessageEvents {
    id: String,
    model: String,
    prompt_tokens: usize,
    /// Blocks that have ended.
    content: Vec<Value>,
    /// The block that has begun.
    open: Option<OpenBlock>,
}

/// A block that has begun.
struct OpenBlock {
    part: AnswerPart,
    /// Id of a call; empty for other blocks.
    id: String,
    text: String,
}

impl OpenBlock {
    fn block(&self, input: Value) -> Value {
        match &self.part {
            AnswerPart::Reasoning => json!({ "type": "thinking", "thinking": self.text, "signature": "" }),
            AnswerPart::Preamble | AnswerPart::Answer => json!({ "type": "text", "text": self.text }),
            AnswerPart::Call { name, .. } => {
                let caller = json!({ "type": "direct" });
                json!({ "type": "tool_use", "id": self.id, "name": name, "input": input, "caller": caller })
            }
        }
    }

    /// The arguments of a call as an object. Cut ones give an empty object: their text is in `partial_json`.
    fn input(&self) -> Value {
        let text = match self.text.trim() {
            "" | "null" => "{}",
            text => text,
        };
        let read = serde_json::from_str(text).ok().filter(Value::is_object);
        read.unwrap_or_else(|| json!({ "partial_json": self.text }))
    }
}

impl MessageEvents {
    /// A message of a model, after a prompt of so many tokens.
    pub fn new(model: String, prompt_tokens: usize) -> MessageEvents {
        MessageEvents { id: ids::new("msg_"), model, prompt_tokens, content: Vec::new(), open: None }
    }

    /// The events before the first piece.
    pub fn begin(&self) -> Vec<Value> {
        // How many tokens were cached is known at the end, and said there.
        let usage = figures([self.prompt_tokens, 0, 0, 0]);
        vec![json!({ "type": "message_start", "message": self.object(Value::Null, Value::Null, usage) })]
    }

    /// The events of a piece of the answer.
    pub fn take(&mut self, piece: AnswerPiece) -> Vec<Value> {
        let mut events = Vec::new();
        match piece {
            AnswerPiece::Begin(part) => {
                self.close(&mut events);
                let id =
                    if matches!(part, AnswerPart::Call { .. }) { ids::new("toolu_") } else { String::new() };
                let open = OpenBlock { part, id, text: String::new() };
                events.push(json!({
                    "type": "content_block_start",
                    "index": self.content.len(),
                    "content_block": open.block(json!({})),
                }));
                self.open = Some(open);
            }
            AnswerPiece::Delta(text, _) => {
                if let Some(open) = &mut self.open {
                    open.text.push_str(&text);
                    let delta = match open.part {
                        AnswerPart::Reasoning => json!({ "type": "thinking_delta", "thinking": text }),
                        AnswerPart::Preamble | AnswerPart::Answer => {
                            json!({ "type": "text_delta", "text": text })
                        }
                        AnswerPart::Call { .. } => {
                            json!({ "type": "input_json_delta", "partial_json": text })
                        }
                    };
                    events.push(json!({
                        "type": "content_block_delta",
                        "index": self.content.len(),
                        "delta": delta,
                    }));
                }
            }
            AnswerPiece::End(_) => self.close(&mut events),
            // This API has no such tools.
            AnswerPiece::Custom(_) => {}
            AnswerPiece::Done(outcome) => {
                self.close(&mut events);
                let (reason, stop) = stop_reason(&outcome);
                let delta = json!({ "stop_reason": reason, "stop_sequence": stop });
                events.push(json!({ "type": "message_delta", "delta": delta, "usage": usage(&outcome) }));
                events.push(json!({ "type": "message_stop" }));
            }
        }
        events
    }

    fn close(&mut self, events: &mut Vec<Value>) {
        let Some(open) = self.open.take() else { return };
        events.push(json!({ "type": "content_block_stop", "index": self.content.len() }));
        let block = open.block(open.input());
        self.content.push(block);
    }

    /// The message as a whole, when it has ended.
    pub fn message(&self, outcome: &TurnOutcome) -> Value {
        let (reason, stop) = stop_reason(outcome);
        self.object(json!(reason), json!(stop), usage(outcome))
    }

    fn object(&self, reason: Value, stop: Value, usage: Value) -> Value {
        json!({
            "id": self.id,
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": self.content,
            "stop_reason": reason,
            "stop_sequence": stop,
            "stop_details": null,
            "container": null,
            "usage": usage,
        })
    }
}

/// Why the message ended, and the stop string that ended it.
fn stop_reason(outcome: &TurnOutcome) -> (&'static str, Option<&str>) {
    match (outcome.reason, outcome.stop.as_deref()) {
        ("length", _) => ("max_tokens", None),
        ("tool_calls", None) => ("tool_use", None),
        ("stop" | "tool_calls", Some(stop)) => ("stop_sequence", Some(stop)),
        _ => ("end_turn", None),
    }
}

/// Tokens of the prompt and the answer. Those that were cached are counted apart.
fn usage(outcome: &TurnOutcome) -> Value {
    let new = outcome.prompt_tokens.saturating_sub(outcome.cached_tokens);
    let counts = [new, outcome.cached_tokens, outcome.reasoning_tokens].map(|count| count as usize);
    figures([counts[0], counts[1], outcome.tokens.len(), counts[2]])
}

/// Tokens: of the prompt that were new, and cached; of the answer, and of its reasoning. The API has more
/// fields, which mean nothing here, and clients want all of them.
fn figures([new, cached, output, reasoning]: [usize; 4]) -> Value {
    json!({
        "input_tokens": new,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": cached,
        "cache_creation": null,
        "output_tokens": output,
        "output_tokens_details": { "thinking_tokens": reasoning },
        "server_tool_use": null,
        "service_tier": "standard",
        "inference_geo": null,
    })
}

#[cfg(test)]
mod tests {
    use super::MessageEvents;
    use crate::chat::pieces::{AnswerPiece, TurnOutcome};
    use kernmill_chat::{Anomalies, AnswerPart};
    use serde_json::{Value, json};
    use std::time::Duration;

    fn outcome(reason: &'static str) -> TurnOutcome {
        TurnOutcome {
            reason,
            error: None,
            stop: None,
            prompt_tokens: 10,
            cached_tokens: 4,
            tokens: vec![1, 2, 3],
            reasoning_tokens: 2,
            drafts: kernmill_runtime::DraftStats::default(),
            anomalies: Anomalies::default(),
            seed: 7,
            queued: None,
            first_token: None,
            took: Duration::ZERO,
        }
    }

    #[test]
    fn blocks_have_their_events_in_order() {
        let call = AnswerPart::Call { name: "look".to_owned(), is_builtin: false };
        let mut pieces = Vec::new();
        for (part, text) in
            [(AnswerPart::Reasoning, "Hm."), (AnswerPart::Preamble, "Wait."), (call, "{\"a\": 1}")]
        {
            pieces.push(AnswerPiece::Begin(part));
            pieces.push(AnswerPiece::Delta(text.to_owned(), Vec::new()));
            pieces.push(AnswerPiece::End(true));
        }
        let outcome = outcome("tool_calls");
        pieces.push(AnswerPiece::Done(Box::new(outcome.clone())));
        let mut events = MessageEvents::new("nano".to_owned(), 10);
        let mut sent = events.begin();
        sent.extend(pieces.into_iter().flat_map(|piece| events.take(piece)));
        let kinds: Vec<&str> = sent.iter().map(|event| event["type"].as_str().unwrap()).collect();
        let block = ["content_block_start", "content_block_delta", "content_block_stop"];
        let ends = ["message_delta", "message_stop"];
        let expected: Vec<&str> =
            ["message_start"].into_iter().chain(block).chain(block).chain(block).chain(ends).collect();
        assert_eq!(kinds, expected);
        let indices: Vec<&Value> = sent[1..10].iter().map(|event| &event["index"]).collect();
        assert_eq!(indices, [0, 0, 0, 1, 1, 1, 2, 2, 2]);
        let empty = json!({ "type": "thinking", "thinking": "", "signature": "" });
        assert_eq!(sent[1]["content_block"], empty);
        assert_eq!(sent[2]["delta"], json!({ "type": "thinking_delta", "thinking": "Hm." }));
        assert_eq!(sent[5]["delta"], json!({ "type": "text_delta", "text": "Wait." }));
        assert_eq!(sent[7]["content_block"]["input"], json!({}));
        assert_eq!(sent[8]["delta"], json!({ "type": "input_json_delta", "partial_json": "{\"a\": 1}" }));
        assert_eq!(sent[10]["delta"], json!({ "stop_reason": "tool_use", "stop_sequence": null }));
        let message = events.message(&outcome);
        assert_eq!(message["content"][0], json!({ "type": "thinking", "thinking": "Hm.", "signature": "" }));
        assert_eq!(message["content"][1], json!({ "type": "text", "text": "Wait." }));
        assert_eq!(message["content"][2]["input"], json!({ "a": 1 }));
        assert_eq!(message["content"][2]["id"], sent[7]["content_block"]["id"]);
        assert!(message["content"][2]["id"].as_str().unwrap().starts_with("toolu_"));
        assert_eq!(message["stop_reason"], "tool_use");
        assert_eq!(message["usage"], sent[10]["usage"]);
        for (name, count) in [("input_tokens", 6), ("cache_read_input_tokens", 4), ("output_tokens", 3)] {
            assert_eq!(message["usage"][name], count);
        }
    }

    #[test]
    fn a_call_that_is_cut_keeps_its_text() {
        let mut events = MessageEvents::new("nano".to_owned(), 10);
        events.take(AnswerPiece::Begin(AnswerPart::Call { name: "look".to_owned(), is_builtin: false }));
        events.take(AnswerPiece::Delta("{\"a\": ".to_owned(), Vec::new()));
        let outcome = outcome("length");
        events.take(AnswerPiece::Done(Box::new(outcome.clone())));
        let message = events.message(&outcome);
        assert_eq!(message["content"][0]["input"], json!({ "partial_json": "{\"a\": " }));
        assert_eq!(message["stop_reason"], "max_tokens");
    }

    #[test]
    fn a_call_without_arguments_has_an_empty_object() {
        for text in ["", " ", "null", "{}"] {
            let mut events = MessageEvents::new("nano".to_owned(), 10);
            events.take(AnswerPiece::Begin(AnswerPart::Call { name: "look".to_owned(), is_builtin: false }));
            events.take(AnswerPiece::Delta(text.to_owned(), Vec::new()));
            events.take(AnswerPiece::End(true));
            let message = events.message(&outcome("tool_calls"));
            assert_eq!(message["content"][0]["input"], json!({}), "{text:?}");
        }
    }
}
