//! The names that a request's span has: those of OpenTelemetry's conventions for generative models and for
//! HTTP, and `kernmill.*` where these have none. No other module names any.

use crate::trace::{Ended, Moments};
use opentelemetry::trace::{Event, Status};
use opentelemetry::{Array, KeyValue, StringValue, Value};
use std::time::Duration;

/// A text goes on from a conversation.
const CHAT: &str = "chat";

/// A text goes on from a prompt.
const COMPLETION: &str = "text_completion";

/// Routes that make texts, and what they do.
const OPERATIONS: [(&str, &str); 9] = [
    ("/v1/chat/completions", CHAT),
    ("/v1/responses", CHAT),
    ("/v1/responses/compact", CHAT),
    ("/v1/messages", CHAT),
    ("/api/chat", CHAT),
    ("/v1/completions", COMPLETION),
    ("/api/generate", COMPLETION),
    ("/vllm.Inference/Generate", COMPLETION),
    ("/vllm.Inference/GenerateStream", COMPLETION),
];

/// The operation of a route on a model; `None` if it makes no text, and has no span.
pub fn operation(route: &str) -> Option<&'static str> {
    OPERATIONS.iter().find(|(of, _)| *of == route).map(|(_, operation)| *operation)
}

/// Name of the span.
pub fn span(operation: &str, ended: &Ended<'_>) -> String {
    match ended.model {
        Some(model) => format!("{operation} {model}"),
        None => operation.to_owned(),
    }
}

/// The span's attributes of a request.
pub fn attributes(operation: &'static str, ended: &Ended<'_>) -> Vec<KeyValue> {
    let seconds = |time: Duration| Value::F64(time.as_secs_f64());
    let text = |text: &str| Value::from(text.to_owned());
    let count = |count: u64| Value::I64(i64::try_from(count).unwrap_or(i64::MAX));
    let number = |number: f32| Value::F64(f64::from(number));
    let parts = ended.parts;
    let asked = ended.asked;
    let reasons = || ended.finish.iter().map(|reason| StringValue::from(*reason)).collect();
    let attributes = [
        ("gen_ai.operation.name", Some(Value::from(operation))),
        ("gen_ai.provider.name", Some(Value::from("kernmill"))),
        ("gen_ai.request.model", ended.model.map(text)),
        ("gen_ai.response.model", asked.map(|_| text(ended.served))),
        ("gen_ai.request.max_tokens", asked.map(|asked| count(asked.max_tokens))),
        ("gen_ai.request.temperature", asked.map(|asked| number(asked.temperature))),
        ("gen_ai.request.top_p", asked.map(|asked| number(asked.top_p))),
        ("gen_ai.request.choice.count", asked.map(|asked| count(asked.answers))),
        ("gen_ai.usage.input_tokens", asked.map(|_| count(ended.tokens_in))),
        ("gen_ai.usage.output_tokens", asked.map(|_| count(ended.tokens_out))),
        (
            "gen_ai.response.finish_reasons",
            (!ended.finish.is_empty()).then(|| Value::Array(Array::String(reasons()))),
        ),
        ("http.route", Some(Value::from(ended.route))),
        ("http.response.status_code", (ended.status > 0).then(|| count(ended.status.into()))),
        ("error.type", error(ended).map(Value::from)),
        ("kernmill.request_id", Some(text(ended.id))),
        ("kernmill.client_request_id", ended.client.map(text)),
        ("kernmill.adapter", ended.adapter.map(text)),
        ("kernmill.cached_tokens", asked.map(|_| count(ended.tokens_cached))),
        ("kernmill.queue_seconds", parts.queue.map(seconds)),
        ("kernmill.prefill_seconds", parts.prefill.map(seconds)),
        ("kernmill.decode_seconds", parts.decode.map(seconds)),
    ];
    let is_there = |(name, value): (&'static str, Option<Value>)| Some(KeyValue::new(name, value?));
    attributes.into_iter().filter_map(is_there).collect()
}

/// The events on the way.
pub fn events(ended: &Ended<'_>) -> Vec<Event> {
    let Moments { queued, first_token, done } = ended.moments;
    let moments =
        [("kernmill.queued", queued), ("kernmill.first_token", first_token), ("kernmill.done", done)];
    let event = |(name, after): (&'static str, Option<Duration>)| {
        Some(Event::new(name, ended.began + after?, Vec::new(), 0))
    };
    moments.into_iter().filter_map(event).collect()
}

/// The kind of the error that a request ended with.
fn error(ended: &Ended<'_>) -> Option<String> {
    match ended.status {
        // The client left before there was a response.
        0 => Some("cancelled".to_owned()),
        status if status >= 400 => Some(status.to_string()),
        _ => ended.finish.contains(&"error").then(|| "_OTHER".to_owned()),
    }
}

/// Whether the server is at fault. The error stands in the log: a message may quote the client.
pub fn status(ended: &Ended<'_>) -> Status {
    let is_fault = ended.status >= 500 || (ended.status < 400 && ended.finish.contains(&"error"));
    if is_fault { Status::error("") } else { Status::Unset }
}
