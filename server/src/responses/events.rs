//! The events of a response. A response that is sent whole is that of the last event.

use super::open::OpenItem;
use super::store::GeneratedIds;
use crate::chat::message::own_figures;
use crate::chat::pieces::{AnswerPiece, TurnOutcome};
use crate::ids;
use crate::state::ServerState;
use kernmill_chat::{AnswerPart, Item};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A response that comes into being.
pub struct ResponseEvents {
    id: String,
    created: u64,
    echo: Map<String, Value>,
    effort: &'static str,
    /// Number of the next event.
    sequence: u64,
    /// Items that have ended.
    output: Vec<Value>,
    /// The answer so far, as items of a conversation.
    said: Vec<Item>,
    /// The item that has begun.
    open: Option<OpenItem>,
    /// The response as the last event has it.
    last: Value,
    /// The name of events of reasoning.
    reasoning_events: &'static str,
    /// Functions in namespaces by the names that the model is told.
    spaces: BTreeMap<String, [String; 2]>,
    /// Where the ids of reasoning are sealed, and whose they are.
    sealed: Option<(Arc<ServerState>, u64)>,
    /// Ids that have come, and how many of them when the item began.
    tokens: Vec<u32>,
    begun: usize,
    /// Places of reasoning among the items, and of its first id.
    reasoning: Vec<(usize, usize)>,
    /// Places of reasoning among the items, and all ids from its first one on.
    generated: GeneratedIds,
}

impl ResponseEvents {
    /// A response that repeats the fields of `echo`. With `is_open`, its events have the names of the Open
    /// Responses specification.
    pub fn new(echo: Map<String, Value>, effort: &'static str, is_open: bool) -> ResponseEvents {
        ResponseEvents {
            id: ids::new("resp_"),
            created: ids::now(),
            echo,
            effort,
            sequence: 0,
            output: Vec::new(),
            said: Vec::new(),
            open: None,
            last: Value::Null,
            reasoning_events: if is_open { "reasoning" } else { "reasoning_text" },
            spaces: BTreeMap::new(),
            sealed: None,
            tokens: Vec::new(),
            begun: 0,
            reasoning: Vec::new(),
            generated: Vec::new(),
        }
    }

    /// These events, with calls of these functions as those of their namespaces.
    #[must_use]
    pub fn spaced(self, spaces: BTreeMap<String, [String; 2]>) -> ResponseEvents {
        ResponseEvents { spaces, ..self }
    }

    /// These events, with the ids of reasoning in its items, sealed for a tenant.
    #[must_use]
    pub fn sealed(self, state: Arc<ServerState>, tenant: u64) -> ResponseEvents {
        ResponseEvents { sealed: Some((state, tenant)), ..self }
    }

    /// Notes the ids that have come before the next piece.
    pub fn note(&mut self, tokens: &[u32]) {
        if tokens.len() > self.tokens.len() {
            self.tokens.extend(&tokens[self.tokens.len()..]);
        }
    }

    /// Name of the response.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The response as the last event has it, what the model said, and its ids.
    pub fn finish(self) -> (Value, Vec<Item>, GeneratedIds) {
        (self.last, self.said, self.generated)
    }

    /// The events before the first piece.
    pub fn begin(&mut self) -> Vec<Value> {
        self.last = self.response("in_progress", None);
        let response = self.last.clone();
        vec![
            self.event("response.created", json!({ "response": response })),
            self.event("response.in_progress", json!({ "response": response })),
        ]
    }

    /// The events of a piece of the answer.
    pub fn take(&mut self, piece: AnswerPiece) -> Vec<Value> {
        let mut events = Vec::new();
        match piece {
            AnswerPiece::Begin(part) => {
                self.close(true, &mut events);
                self.open(OpenItem::new(part), &mut events);
            }
            AnswerPiece::Custom(name) => {
                self.close(true, &mut events);
                self.open(OpenItem::custom(name), &mut events);
            }
            AnswerPiece::Delta(text, _) => self.delta(&text, &mut events),
            AnswerPiece::End(is_complete) => self.close(is_complete, &mut events),
            AnswerPiece::Done(outcome) => {
                self.close(false, &mut events);
                self.done(&outcome, &mut events);
            }
        }
        events
    }

    fn open(&mut self, open: OpenItem, events: &mut Vec<Value>) {
        let item = open.item("in_progress", &self.spaces);
        let index = self.output.len();
        let added = json!({ "output_index": index, "item": item });
        events.push(self.event("response.output_item.added", added));
        if let Some(content) = open.content() {
            let fields =
                json!({ "item_id": open.id, "output_index": index, "content_index": 0, "part": content });
            events.push(self.event("response.content_part.added", fields));
        }
        self.open = Some(open);
    }

    fn delta(&mut self, text: &str, events: &mut Vec<Value>) {
        let Some(open) = &mut self.open else { return };
        open.text.push_str(text);
        let mut fields = json!({ "item_id": open.id, "output_index": self.output.len(), "delta": text });
        let kind = match open.part {
            AnswerPart::Reasoning => self.reasoning_events,
            AnswerPart::Preamble | AnswerPart::Answer => {
                fields["logprobs"] = json!([]);
                "output_text"
            }
            AnswerPart::Call { .. } if open.is_custom => "custom_tool_call_input",
            AnswerPart::Call { .. } => "function_call_arguments",
        };
        if open.call.is_empty() {
            fields["content_index"] = json!(0);
        }
        events.push(self.event(&format!("response.{kind}.delta"), fields));
    }

    fn close(&mut self, is_complete: bool, events: &mut Vec<Value>) {
        let Some(open) = self.open.take() else { return };
        let (id, index) = (&open.id, self.output.len());
        match &open.part {
            AnswerPart::Reasoning => {
                let done =
                    json!({ "item_id": id, "output_index": index, "content_index": 0, "text": open.text });
                let kind = format!("response.{}.done", self.reasoning_events);
                events.push(self.event(&kind, done));
            }
            AnswerPart::Preamble | AnswerPart::Answer => {
                let done = json!({
                    "item_id": id,
                    "output_index": index,
                    "content_index": 0,
                    "text": open.text,
                    "logprobs": [],
                });
                events.push(self.event("response.output_text.done", done));
            }
            AnswerPart::Call { .. } if open.is_custom => {
                let done = json!({ "item_id": id, "output_index": index, "input": open.text });
                events.push(self.event("response.custom_tool_call_input.done", done));
            }
            AnswerPart::Call { name, .. } => {
                let name = self.spaces.get(name).map_or(name, |[_, name]| name);
                let done =
                    json!({ "item_id": id, "output_index": index, "name": name, "arguments": open.text });
                events.push(self.event("response.function_call_arguments.done", done));
            }
        }
        if let Some(content) = open.content() {
            let fields = json!({ "item_id": id, "output_index": index, "content_index": 0, "part": content });
            events.push(self.event("response.content_part.done", fields));
        }
        let mut item = open.item(if is_complete { "completed" } else { "incomplete" }, &self.spaces);
        let begun = std::mem::replace(&mut self.begun, self.tokens.len());
        if open.part == AnswerPart::Reasoning {
            self.reasoning.push((index, begun));
            if let Some((state, tenant)) = &self.sealed {
                item["encrypted_content"] = json!(state.seal.ids(*tenant, &self.tokens[begun..]));
            }
        }
        let fields = json!({ "output_index": index, "item": item });
        events.push(self.event("response.output_item.done", fields));
        self.output.push(item);
        self.said.push(open.said());
    }

    fn done(&mut self, outcome: &TurnOutcome, events: &mut Vec<Value>) {
        // The item behind the reasoning is known now: its call, too, comes back as it was.
        for (index, begun) in &self.reasoning {
            let ids = outcome.tokens.get(*begun..).unwrap_or_default();
            if let Some((state, tenant)) = &self.sealed {
                self.output[*index]["encrypted_content"] = json!(state.seal.ids(*tenant, ids));
            }
            self.generated.push((*index, ids.to_vec()));
        }
        let status = match outcome.reason {
            "stop" | "tool_calls" => "completed",
            "length" => "incomplete",
            _ => "failed",
        };
        self.last = self.response(status, Some(outcome));
        let response = self.last.clone();
        events.push(self.event(&format!("response.{status}"), json!({ "response": response })));
    }

    fn event(&mut self, kind: &str, fields: Value) -> Value {
        let mut event = Map::new();
        event.insert("type".to_owned(), json!(kind));
        event.insert("sequence_number".to_owned(), json!(self.sequence));
        if let Value::Object(fields) = fields {
            event.extend(fields);
        }
        self.sequence += 1;
        Value::Object(event)
    }

    /// The response as a whole. Clients fail on fields that are missing.
    fn response(&self, status: &str, outcome: Option<&TurnOutcome>) -> Value {
        let error = outcome.and_then(TurnOutcome::error);
        let error = error.map(|error| json!({ "code": error.kind(), "message": error.message() }));
        let details =
            if status == "incomplete" { json!({ "reason": "max_output_tokens" }) } else { Value::Null };
        let mut response = Map::new();
        let mut put = |name: &str, value: Value| drop(response.insert(name.to_owned(), value));
        put("id", json!(self.id));
        put("object", json!("response"));
        put("created_at", json!(self.created));
        put("completed_at", json!(outcome.filter(|_| status == "completed").map(|_| ids::now())));
        put("status", json!(status));
        put("error", error.unwrap_or_default());
        put("incomplete_details", details);
        put("output", json!(self.output));
        put("usage", outcome.map_or(Value::Null, usage));
        response.extend(self.echo.clone());
        if let Some(outcome) = outcome {
            response.insert("kernmill".to_owned(), own_figures(std::slice::from_ref(outcome), self.effort));
        }
        Value::Object(response)
    }
}

/// Tokens of an answer, as this API counts them.
pub fn usage(outcome: &TurnOutcome) -> Value {
    let output = outcome.tokens.len() as u64;
    json!({
        "input_tokens": outcome.prompt_tokens,
        "input_tokens_details": { "cached_tokens": outcome.cached_tokens },
        "output_tokens": output,
        "output_tokens_details": { "reasoning_tokens": outcome.reasoning_tokens },
        "total_tokens": u64::from(outcome.prompt_tokens) + output,
    })
}

#[cfg(test)]
mod tests {
    use super::ResponseEvents;
    use crate::chat::pieces::{AnswerPiece, TurnOutcome};
    use crate::error::ApiError;
    use kernmill_chat::{Anomalies, AnswerPart, Item};
    use serde_json::{Map, Value, json};
    use std::time::Duration;

    fn outcome(reason: &'static str) -> AnswerPiece {
        AnswerPiece::Done(Box::new(TurnOutcome {
            reason,
            error: (reason == "error").then(|| Box::new(ApiError::internal("gone"))),
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
        }))
    }

    fn run(pieces: Vec<AnswerPiece>) -> (Vec<Value>, Value, Vec<Item>) {
        let mut events = ResponseEvents::new(Map::new(), "low", false);
        let mut sent = events.begin();
        sent.extend(pieces.into_iter().flat_map(|piece| events.take(piece)));
        let (last, said, _) = events.finish();
        (sent, last, said)
    }

    fn delta(text: &str) -> AnswerPiece {
        AnswerPiece::Delta(text.to_owned(), Vec::new())
    }

    #[test]
    fn reasoning_text_and_calls_have_their_events_in_order() {
        let call = AnswerPart::Call { name: "look".to_owned(), is_builtin: false };
        let (sent, last, said) = run(vec![
            AnswerPiece::Begin(AnswerPart::Reasoning),
            delta("I "),
            delta("see"),
            AnswerPiece::End(true),
            AnswerPiece::Begin(AnswerPart::Preamble),
            delta("Wait."),
            AnswerPiece::End(true),
            AnswerPiece::Begin(call),
            delta("{}"),
            AnswerPiece::End(true),
            outcome("tool_calls"),
        ]);
        let kinds: Vec<String> =
            sent.iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect();
        let expected = "created in_progress \
            output_item.added content_part.added reasoning_text.delta reasoning_text.delta \
            reasoning_text.done content_part.done output_item.done \
            output_item.added content_part.added output_text.delta output_text.done content_part.done \
            output_item.done \
            output_item.added function_call_arguments.delta function_call_arguments.done output_item.done \
            completed";
        let expected: Vec<String> = expected.split(' ').map(|kind| format!("response.{kind}")).collect();
        assert_eq!(kinds, expected);
        for (at, event) in sent.iter().enumerate() {
            assert_eq!(event["sequence_number"], at);
            let kind = event["type"].as_str().unwrap();
            let is_of_item = !kind.contains("output_item") && event.get("response").is_none();
            assert_eq!(event.get("output_index").is_some(), event.get("response").is_none(), "{kind}");
            assert_eq!(event["item_id"].is_string(), is_of_item, "{kind}");
            let has_content = is_of_item && !kind.contains("function_call");
            assert_eq!(event.get("content_index").is_some(), has_content, "{kind}");
        }
        let output = last["output"].as_array().unwrap();
        assert_eq!(output[0]["content"], json!([{ "type": "reasoning_text", "text": "I see" }]));
        assert_eq!(output[0]["summary"], json!([]));
        let text = json!({ "type": "output_text", "text": "Wait.", "annotations": [], "logprobs": [] });
        assert_eq!(output[1]["content"], json!([text]));
        assert_eq!((&output[2]["name"], &output[2]["arguments"]), (&json!("look"), &json!("{}")));
        let prefixes = [("id", "rs_"), ("id", "msg_"), ("id", "fc_"), ("call_id", "call_")];
        for (item, (field, prefix)) in output.iter().chain(output.last()).zip(prefixes) {
            assert!(item[field].as_str().unwrap().starts_with(prefix), "{item}");
            assert_eq!(item["status"], "completed");
        }
        // Every event names the item as the response does.
        for event in sent.iter().filter(|event| event.get("item_id").is_some()) {
            let index = event["output_index"].as_u64().unwrap() as usize;
            assert_eq!(event["item_id"], output[index]["id"]);
        }
        assert_eq!(sent.last().unwrap()["response"], last);
        let id = output[2]["call_id"].as_str().unwrap();
        assert_eq!(said[..2], [Item::Reasoning("I see".to_owned()), Item::Preamble("Wait.".to_owned())]);
        assert!(matches!(&said[2], Item::Call(call) if call.id == id && call.arguments == "{}"));
        assert_eq!(
            last["usage"],
            json!({
                "input_tokens": 10,
                "input_tokens_details": { "cached_tokens": 4 },
                "output_tokens": 3,
                "output_tokens_details": { "reasoning_tokens": 2 },
                "total_tokens": 13,
            })
        );
    }

    #[test]
    fn answers_that_are_cut_or_fail_say_so() {
        let begun = || vec![AnswerPiece::Begin(AnswerPart::Answer), delta("a"), AnswerPiece::End(false)];
        let (sent, last, _) = run(begun().into_iter().chain([outcome("length")]).collect());
        assert_eq!(sent.last().unwrap()["type"], "response.incomplete");
        assert_eq!(last["incomplete_details"], json!({ "reason": "max_output_tokens" }));
        assert_eq!(
            (&last["status"], &last["output"][0]["status"]),
            (&json!("incomplete"), &json!("incomplete"))
        );
        // The item is closed also where the end of its part is missing.
        let pieces = vec![AnswerPiece::Begin(AnswerPart::Answer), delta("a"), outcome("error")];
        let (sent, last, _) = run(pieces);
        assert_eq!(sent.last().unwrap()["type"], "response.failed");
        assert_eq!(last["error"], json!({ "code": "server_error", "message": "gone" }));
        assert_eq!((&last["status"], last["output"].as_array().unwrap().len()), (&json!("failed"), 1));
    }
}
