//! Spans as a collector gets them, read by the definitions of OTLP in
//! `opentelemetry/proto/trace/v1/trace.proto`.

use super::{PATH, Tracer, named};
use crate::routes;
use crate::scripted::{Scripted, state};
use crate::state::{ServerConfig, ServerState};
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use kernmill_serve::{EndReason, Finish};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Reads a number in groups of seven bits from the front.
fn varint(rest: &mut &[u8]) -> u64 {
    let (mut number, mut shift) = (0, 0);
    loop {
        let byte = rest[0];
        *rest = &rest[1..];
        number |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte < 0x80 {
            return number;
        }
    }
}

/// The fields of a message of Protocol Buffers by their numbers: the bytes of texts and messages, and numbers
/// as eight bytes.
fn fields(mut rest: &[u8]) -> BTreeMap<u64, Vec<Vec<u8>>> {
    let mut found: BTreeMap<u64, Vec<Vec<u8>>> = BTreeMap::new();
    while !rest.is_empty() {
        let tag = varint(&mut rest);
        let length = match tag & 7 {
            0 => {
                let number = varint(&mut rest);
                found.entry(tag >> 3).or_default().push(number.to_le_bytes().to_vec());
                continue;
            }
            1 => 8,
            2 => varint(&mut rest) as usize,
            5 => 4,
            other => panic!("a field of kind {other}"),
        };
        let (field, behind) = rest.split_at(length);
        found.entry(tag >> 3).or_default().push(field.to_vec());
        rest = behind;
    }
    found
}

/// The messages of a field.
fn all(message: &[u8], field: u64) -> Vec<Vec<u8>> {
    fields(message).remove(&field).unwrap_or_default()
}

fn text(message: &[u8], field: u64) -> String {
    String::from_utf8(all(message, field).pop().unwrap_or_default()).unwrap()
}

fn hex(message: &[u8], field: u64) -> String {
    all(message, field).concat().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn number(message: &[u8], field: u64) -> u64 {
    let bytes = all(message, field).pop().unwrap_or_default();
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// An `AnyValue`.
fn value(message: &[u8]) -> Value {
    let (kind, content) = fields(message).pop_first().unwrap();
    let content = &content[0];
    match kind {
        1 => String::from_utf8(content.clone()).unwrap().into(),
        3 => i64::from_le_bytes(content[..].try_into().unwrap()).into(),
        4 => f64::from_le_bytes(content[..].try_into().unwrap()).into(),
        5 => all(content, 1).iter().map(|part| value(part)).collect(),
        other => panic!("a value of kind {other}"),
    }
}

/// A list of `KeyValue`.
fn attributes(message: &[u8], field: u64) -> Value {
    let one = |pair: &Vec<u8>| (text(pair, 1), value(&all(pair, 2)[0]));
    Value::Object(all(message, field).iter().map(one).collect::<Map<_, _>>())
}

/// A span as it came.
#[derive(Debug)]
struct Came {
    trace: String,
    parent: String,
    name: String,
    kind: u64,
    start: u64,
    end: u64,
    attributes: Value,
    events: Vec<(u64, String)>,
    status: u64,
}

/// The spans of an `ExportTraceServiceRequest`, and what it says of the process.
fn spans(body: &[u8]) -> (Value, Vec<Came>) {
    let (mut process, mut found) = (Value::Null, Vec::new());
    for resource in all(body, 1) {
        process = attributes(&all(&resource, 1)[0], 1);
        for span in all(&resource, 2).iter().flat_map(|scope| all(scope, 2)) {
            found.push(Came {
                trace: hex(&span, 1),
                parent: hex(&span, 4),
                name: text(&span, 5),
                kind: number(&span, 6),
                start: number(&span, 7),
                end: number(&span, 8),
                attributes: attributes(&span, 9),
                events: all(&span, 11).iter().map(|event| (number(event, 1), text(event, 2))).collect(),
                status: all(&span, 15).first().map_or(0, |status| number(status, 3)),
            });
        }
    }
    (process, found)
}

/// A collector, which takes everything; its address, and the heads and bodies that come.
fn collector() -> (String, Receiver<(String, Vec<u8>)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, mut came) = (stream.unwrap(), Vec::new());
            let mut buffer = [0; 4096];
            let whole = loop {
                let read = stream.read(&mut buffer).unwrap();
                came.extend_from_slice(&buffer[..read]);
                let Some(end) = came.windows(4).position(|bytes| bytes == b"\r\n\r\n") else { continue };
                let head = String::from_utf8(came[..end].to_vec()).unwrap().to_lowercase();
                let length = head.split("content-length: ").nth(1).unwrap();
                let length: usize = length.lines().next().unwrap().parse().unwrap();
                if came.len() == end + 4 + length {
                    break (head, came[end + 4..].to_vec());
                }
            };
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
            if sender.send(whole).is_err() {
                return;
            }
        }
    });
    (address, receiver)
}

/// Sends a request with more headers; the response's status and `x-request-id`.
async fn send(state: &Arc<ServerState>, path: &str, headers: &[(&str, &str)], body: &Value) -> (u16, String) {
    let mut request = Request::post(path).header("host", "localhost");
    for (name, value) in [("content-type", "application/json")].iter().chain(headers) {
        request = request.header(*name, *value);
    }
    let request = request.body(Body::from(body.to_string())).unwrap();
    let response = routes::respond(state.clone(), request).await;
    let id = response.headers()["x-request-id"].to_str().unwrap().to_owned();
    let status = response.status().as_u16();
    to_bytes(response.into_body(), 1 << 20).await.unwrap();
    (status, id)
}

/// Ends the traces of a server, as its end does.
async fn finish(state: &Arc<ServerState>, limit: Duration) {
    let tracer = state.tracer.clone().unwrap();
    tokio::task::spawn_blocking(move || tracer.finish(limit)).await.unwrap();
}

fn traced(backend: Arc<Scripted>, otlp: String) -> Arc<ServerState> {
    state(backend, ServerConfig { otlp: Some(otlp), ..ServerConfig::default() })
}

/// Time that is enough for everything.
const LONG: Duration = Duration::from_secs(60);

#[tokio::test]
async fn requests_that_make_texts_have_spans_and_no_others() {
    let (address, came) = collector();
    let state = traced(Scripted::stops(&["Cla", "ndestine", "."]), address);
    let (trace, parent) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
    let traceparent = format!("00-{trace}-{parent}-01");
    let headers = [("traceparent", &*traceparent), ("x-request-id", "gateway-7")];
    let messages = json!([{ "role": "user", "content": "Surreptitious" }]);
    let chat = json!({ "model": "nano", "messages": messages, "max_tokens": 9, "temperature": 0.5 });
    let (status, id) = send(&state, "/v1/chat/completions", &headers, &chat).await;
    assert_eq!(status, 200);
    let prompts = json!({ "model": "nano", "prompt": ["Surreptitious", "Furtive"], "n": 2 });
    let odd = [("traceparent", "nonsense"), ("x-client-request-id", "what is furtive?")];
    assert_eq!(send(&state, "/v1/completions", &odd, &prompts).await.0, 200);
    let unknown = json!({ "model": "surreptitious", "prompt": "A" });
    assert_eq!(send(&state, "/v1/completions", &[], &unknown).await.0, 404);
    let unsampled = [("traceparent", &*traceparent.replace("-01", "-00"))];
    assert_eq!(send(&state, "/v1/chat/completions", &unsampled, &chat).await.0, 200);
    assert_eq!(send(&state, "/tokenize", &[], &json!({ "prompt": "A" })).await.0, 200);
    finish(&state, LONG).await;

    let (head, body) = came.recv().unwrap();
    assert!(head.starts_with("post /v1/traces http/1.1\r\n"), "{head}");
    assert!(head.contains("content-type: application/x-protobuf"), "{head}");
    let has = |what: &str| body.windows(what.len()).any(|part| part.eq_ignore_ascii_case(what.as_bytes()));
    assert!(has("nano") && !has("surreptitious") && !has("clandestine") && !has("furtive"));
    let (process, spans) = spans(&body);
    assert_eq!(process["service.name"], "kernmill");
    let names: Vec<&str> = spans.iter().map(|span| &*span.name).collect();
    assert_eq!(names, ["chat nano", "text_completion nano", "text_completion"]);
    let [chat, completion, wrong] = &spans[..] else { panic!("{spans:?}") };

    assert_eq!((&*chat.trace, &*chat.parent, chat.kind, chat.status), (trace, parent, 2, 0));
    let prompt_tokens = chat.attributes["gen_ai.usage.input_tokens"].as_u64().unwrap();
    assert!(prompt_tokens > 3, "{chat:?}");
    let mut expected = json!({
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "kernmill",
        "gen_ai.request.model": "nano",
        "gen_ai.response.model": "nano",
        "gen_ai.request.max_tokens": 9,
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.top_p": 1.0,
        "gen_ai.request.choice.count": 1,
        "gen_ai.usage.input_tokens": prompt_tokens,
        "gen_ai.usage.output_tokens": 3,
        "gen_ai.response.finish_reasons": ["stop"],
        "http.route": "/v1/chat/completions",
        "http.response.status_code": 200,
        "kernmill.request_id": id,
        "kernmill.client_request_id": "gateway-7",
        "kernmill.cached_tokens": 3,
        "kernmill.queue_seconds": 0.0,
        "kernmill.prefill_seconds": 0.001,
        "kernmill.decode_seconds": 0.001,
    });
    assert_eq!(chat.attributes, expected);
    let (times, names): (Vec<u64>, Vec<&str>) = chat.events.iter().map(|(at, name)| (*at, &**name)).unzip();
    assert_eq!(names, ["kernmill.queued", "kernmill.first_token", "kernmill.done"]);
    assert!(chat.start <= times[0] && times.is_sorted() && times[2] <= chat.end, "{chat:?}");

    assert_eq!((&*completion.parent, completion.trace.len()), ("", 32));
    assert_ne!(completion.trace, trace);
    assert!(completion.attributes["kernmill.client_request_id"].is_null(), "that may be a text");
    let reasons = json!(["stop", "stop", "stop", "stop"]);
    assert_eq!(completion.attributes["gen_ai.response.finish_reasons"], reasons);
    assert_eq!(completion.attributes["gen_ai.request.choice.count"], 4);
    assert_eq!(completion.attributes["gen_ai.usage.output_tokens"], 12);
    let tokenizer = state.backend.facts().tokenizer().unwrap();
    let lengths = ["Surreptitious", "Furtive"].map(|text| tokenizer.encode(text, true).unwrap().len());
    assert_eq!(completion.attributes["gen_ai.usage.input_tokens"], lengths[0] + lengths[1]);

    expected = json!({
        "gen_ai.operation.name": "text_completion",
        "gen_ai.provider.name": "kernmill",
        "http.route": "/v1/completions",
        "http.response.status_code": 404,
        "error.type": "404",
        "kernmill.request_id": wrong.attributes["kernmill.request_id"],
    });
    assert_eq!((&wrong.attributes, wrong.status), (&expected, 0));
}

#[tokio::test]
async fn spans_say_how_answers_end() {
    let (address, came) = collector();
    let prompt = json!({ "model": "nano", "prompt": "A", "max_tokens": 3 });
    let messages = json!([{ "role": "user", "content": "A" }]);
    let stops = json!({ "model": "nano", "messages": messages, "stop": "b" });
    for (finish_, path, body, reasons, error, status) in [
        (Finish::MaxTokens, "/v1/completions", &prompt, json!(["length"]), Value::Null, 0),
        (
            Finish::Ended(EndReason::Cancelled),
            "/v1/chat/completions",
            &stops,
            json!(["stop"]),
            Value::Null,
            0,
        ),
        (Finish::Failed("x".to_owned()), "/v1/completions", &prompt, json!(["error"]), json!("500"), 2),
    ] {
        let state = traced(Scripted::new(&["a", "b"], finish_), address.clone());
        send(&state, path, &[], body).await;
        finish(&state, LONG).await;
        let (_, found) = spans(&came.recv().unwrap().1);
        let span = &found[0];
        assert_eq!(span.attributes["gen_ai.response.finish_reasons"], reasons, "{span:?}");
        assert_eq!((&span.attributes["error.type"], span.status), (&error, status), "{span:?}");
    }
    // An error in a stream, which has a status already.
    let state = traced(Scripted::new(&["a"], Finish::Failed("x".to_owned())), address);
    let body = json!({ "model": "nano", "prompt": "A", "stream": true });
    assert_eq!(send(&state, "/v1/completions", &[], &body).await.0, 200);
    // The task of the stream lets the record go.
    while Arc::strong_count(&state.metrics) > 1 {
        tokio::task::yield_now().await;
    }
    finish(&state, LONG).await;
    let (_, found) = spans(&came.recv().unwrap().1);
    assert_eq!((&found[0].attributes["error.type"], found[0].status), (&json!("_OTHER"), 2));
}

/// Neither a collector that is gone nor one that says nothing holds up a request, and spans never pile up.
#[tokio::test]
async fn a_dead_collector_costs_its_spans_alone() {
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    for address in [gone, silent.local_addr().unwrap()] {
        let state = traced(Scripted::stops(&["Yes."]), format!("http://{address}"));
        // More than the queue holds.
        let body = json!({ "model": "nobody", "prompt": "A" });
        for _ in 0..2500 {
            assert_eq!(send(&state, "/v1/completions", &[], &body).await.0, 404);
        }
        let body = json!({ "model": "nano", "prompt": "A" });
        assert_eq!(send(&state, "/v1/completions", &[], &body).await.0, 200);
        finish(&state, Duration::from_millis(50)).await;
    }
}

#[test]
fn the_collector_is_that_of_the_option_or_of_the_environment() {
    let of = |option: Option<&str>, variables: &[(&str, &str)]| {
        let variable = |name: &str| {
            let found = variables.iter().find(|(own, _)| *own == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        named(option, variable).map_err(|error| error.to_string())
    };
    let (base, whole) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
    let is = |address: &str| Ok(Some(address.to_owned()));
    assert_eq!(of(None, &[]), Ok(None));
    assert_eq!(of(None, &[(base, "")]), Ok(None));
    assert_eq!(of(Some("http://a:4318"), &[(base, "http://b:1")]), is(&format!("http://a:4318{PATH}")));
    assert_eq!(of(Some("http://[::1]:4318/x/"), &[]), is("http://[::1]:4318/x/v1/traces"));
    assert_eq!(of(None, &[(base, "http://b:1/")]), is("http://b:1/v1/traces"));
    assert_eq!(of(None, &[(base, "http://b:1"), (whole, "http://c:2/in")]), is("http://c:2/in"));
    assert_eq!(of(None, &[(base, "http://b:1"), ("OTEL_SDK_DISABLED", "true")]), Ok(None));
    for (option, variables, says) in [
        (Some("https://a:4318"), &[][..], "--otlp https://a:4318: TLS is not supported here"),
        (Some("localhost:4318"), &[], "expected http://HOST:PORT"),
        (Some("http://a b"), &[], "expected http://HOST:PORT"),
        (Some(""), &[], "expected http://HOST:PORT"),
        (None, &[(base, "grpc://b:1")], "OTEL_EXPORTER_OTLP_ENDPOINT grpc://b:1: no address"),
    ] {
        let error = of(option, variables).unwrap_err();
        assert!(error.contains(says) && error.lines().count() == 1, "{option:?}: {error}");
    }
    assert!(Tracer::new(Some("https://a:1")).is_err());
}
