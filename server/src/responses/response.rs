//! Answers of `/v1/responses`, whole or in events.

use super::events::{ResponseEvents, usage};
use super::request::{self, Shows};
use super::store::{GeneratedIds, StoredResponse};
use crate::caller::Caller;
use crate::chat::pieces::AnswerPiece;
use crate::chat::turn::{PreparedTurn, RunningTurn};
use crate::error::ApiError;
use crate::ids;
use crate::reply::{self, ReplyStream};
use crate::state::ServerState;
use axum::response::Response;
use kernmill_chat::{AnswerPart, Item, ToolChoice};
use serde_json::{Value, json};
use std::sync::Arc;

/// Answers a request to `/v1/responses`. With `is_open`, events have the names of Open Responses.
///
/// # Errors
/// When the request is wrong or not taken up.
pub async fn answer(
    state: Arc<ServerState>,
    caller: Caller,
    body: Vec<u8>,
    is_open: bool,
) -> Result<Response, ApiError> {
    let record = caller.record.clone();
    let worker = state.clone();
    let tenant = caller.tenant;
    let (request, prepared) = reply::blocking(move || {
        let request = request::read(&worker, &caller, &body)?;
        let prepared = PreparedTurn::new(worker.backend.facts(), request.ask.clone())?;
        worker.charge(&caller, prepared.prompt_tokens())?;
        Ok((request, prepared))
    })
    .await?;
    let mut turn = prepared.start(state.backend.clone(), |request| state.submit(request, &record));
    turn.ready(request.streams).await?;
    let Shows { echo, input, said, generated, spaces, stores, seals } = request.shows;
    let mut events =
        ResponseEvents::new(echo, request.ask.conversation.effort.name(), is_open).spaced(spaces);
    if seals {
        events = events.sealed(state.clone(), tenant);
    }
    let kept = stores.then_some(PendingResponse { tenant, input, said, generated });
    let response = if request.streams {
        let (stream, response) = ReplyStream::new();
        tokio::spawn(run(state, turn, events, stream, kept));
        response
    } else {
        whole(&state, turn, events, kept).await?
    };
    Ok(reply::with_warnings(response, &request.unknown))
}

/// Counts the tokens that a request would have: `/v1/responses/input_tokens`.
///
/// # Errors
/// When the request is wrong.
pub async fn count(state: Arc<ServerState>, caller: Caller, body: Vec<u8>) -> Result<Response, ApiError> {
    let prepared = reply::blocking(move || {
        let request = request::read(&state, &caller, &body)?;
        PreparedTurn::new(state.backend.facts(), request.ask)
    })
    .await?;
    let count = prepared.prompt_tokens();
    Ok(reply::json(&json!({ "object": "response.input_tokens", "input_tokens": count })))
}

/// The request that replaces a conversation that is too long to go on with.
const COMPACT: &str = "Summarise the conversation so far, so that it can go on from the summary alone: what the user \
wants, what was decided and found out, names, numbers and code that matter, and what is still to do. Write the summary \
only.";

/// Makes a summary of a conversation, which takes the place of its items: `/v1/responses/compact`. The last
/// messages of users stand before it.
///
/// # Errors
/// When the request is wrong or not taken up.
pub async fn compact(state: Arc<ServerState>, caller: Caller, body: Vec<u8>) -> Result<Response, ApiError> {
    let record = caller.record.clone();
    let (worker, tenant) = (state.clone(), caller.tenant);
    let (input, unknown, prepared) = reply::blocking(move || {
        let mut request = request::read(&worker, &caller, &body)?;
        let ask = &mut request.ask;
        ask.conversation.items.push(Item::User { name: None, text: COMPACT.to_owned() });
        (ask.conversation.tools, ask.conversation.format) = (Vec::new(), None);
        (ask.wishes.form, ask.wishes.choice) = (None, ToolChoice::None);
        let prepared = PreparedTurn::new(worker.backend.facts(), request.ask)?;
        worker.charge(&caller, prepared.prompt_tokens())?;
        Ok((request.shows.input, request.unknown, prepared))
    })
    .await?;
    let mut turn = prepared.start(state.backend.clone(), |request| state.submit(request, &record));
    let (mut summary, mut part, mut outcome) = (String::new(), None, None);
    while let Some(piece) = turn.next().await {
        match piece {
            AnswerPiece::Begin(begun) => part = Some(begun),
            AnswerPiece::Delta(text, _) if part != Some(AnswerPart::Reasoning) => summary.push_str(&text),
            AnswerPiece::Delta(..) | AnswerPiece::Custom(_) | AnswerPiece::End(_) => {}
            AnswerPiece::Done(done) => outcome = Some(done),
        }
    }
    let outcome = outcome.ok_or_else(|| ApiError::internal("the answer has no end"))?;
    if let Some(error) = outcome.error() {
        return Err(error);
    }
    state.ended(&outcome);
    let is_said = |item: &Value| item["type"] == "message" && item["role"] != "assistant";
    let mut output: Vec<Value> = input.into_iter().filter(is_said).collect();
    // Clients read what comes last as what the conversation goes on from.
    output.drain(..output.len().saturating_sub(KEPT));
    output.push(json!({
        "type": "compaction",
        "id": ids::new("cmp_"),
        "encrypted_content": state.seal.text(tenant, &summary),
    }));
    let response = reply::json(&json!({
        "id": ids::new("resp_"),
        "object": "response.compaction",
        "created_at": ids::now(),
        "output": output,
        "usage": usage(&outcome),
    }));
    Ok(reply::with_warnings(response, &unknown))
}

/// Messages that stand before a summary at most.
const KEPT: usize = 4;

/// The parts of a response that are stored besides the answer.
struct PendingResponse {
    tenant: u64,
    input: Vec<Value>,
    said: Vec<Item>,
    generated: GeneratedIds,
}

impl PendingResponse {
    fn store(mut self, state: &ServerState, events: ResponseEvents) {
        let id = events.id().to_owned();
        let (response, answer, generated) = events.finish();
        let first = self.said.len();
        self.said.extend(answer);
        self.generated.extend(generated.into_iter().map(|(place, ids)| (first + place, ids)));
        let PendingResponse { input, said, generated, .. } = self;
        let model = state.backend.facts().model.clone();
        let stored = StoredResponse { model, response, input, items: said, generated };
        state.responses.insert(self.tenant, &id, stored);
    }
}

async fn whole(
    state: &ServerState,
    mut turn: RunningTurn,
    mut events: ResponseEvents,
    kept: Option<PendingResponse>,
) -> Result<Response, ApiError> {
    let mut response = Value::Null;
    while let Some(piece) = turn.next().await {
        if let AnswerPiece::Done(outcome) = &piece {
            if let Some(error) = outcome.error() {
                return Err(error);
            }
            state.ended(outcome);
        }
        events.note(turn.tokens());
        if let Some(mut event) = events.take(piece).pop() {
            response = event["response"].take();
        }
    }
    if response.is_null() {
        return Err(ApiError::internal("the answer has no end"));
    }
    if let Some(kept) = kept {
        kept.store(state, events);
    }
    Ok(reply::json(&response))
}

/// Sends events as they come. Ends early if nobody listens any more.
async fn run(
    state: Arc<ServerState>,
    mut turn: RunningTurn,
    mut events: ResponseEvents,
    stream: ReplyStream,
    kept: Option<PendingResponse>,
) {
    let send = |events: Vec<Value>| {
        let mut events = events.iter();
        events.try_for_each(|event| stream.send_named(event["type"].as_str().unwrap_or_default(), event))
    };
    if send(events.begin()).is_none() {
        return;
    }
    loop {
        // A client that is gone ends the turn, also while nothing comes.
        let piece = tokio::select! {
            piece = turn.next() => piece,
            () = stream.closed() => return,
        };
        let Some(piece) = piece else { return };
        events.note(turn.tokens());
        let AnswerPiece::Done(outcome) = piece else {
            if send(events.take(piece)).is_none() {
                return;
            }
            continue;
        };
        if outcome.error().is_none() {
            state.ended(&outcome);
        }
        let last = events.take(AnswerPiece::Done(outcome));
        // Stored first: who has seen the end may go on with it at once.
        if let Some(kept) = kept {
            kept.store(&state, events);
        }
        // A client that is gone needs no end.
        let _ = send(last);
        return;
    }
}

#[cfg(test)]
mod tests {
    use crate::caller::Keys;
    use crate::scripted::{Scripted, events, send, state};
    use crate::state::{ServerConfig, ServerState};
    use serde_json::{Value, json};
    use std::sync::Arc;

    const PATH: &str = "/v1/responses";

    fn server(says: &[&str]) -> (Arc<ServerState>, Arc<Scripted>) {
        let backend = Scripted::stops(says);
        (state(backend.clone(), ServerConfig::default()), backend)
    }

    async fn post(state: &Arc<ServerState>, body: Value) -> (u16, Value) {
        let (status, _, text) = send(state, "POST", PATH, "", &body).await;
        (status, serde_json::from_str(&text).unwrap())
    }

    async fn get(state: &Arc<ServerState>, path: &str) -> (u16, Value) {
        let (status, _, text) = send(state, "GET", path, "", &json!({})).await;
        (status, serde_json::from_str(&text).unwrap())
    }

    #[tokio::test]
    async fn a_response_has_all_fields() {
        let (state, _) = server(&["Hel", "lo"]);
        let (status, response) = post(
            &state,
            json!({
                "input": "Hi", "instructions": "Be kind.", "temperature": 0.7, "seed": 5, "metadata": { "a": "b" },
                "max_output_tokens": 20, "reasoning": { "effort": "minimal" }, "user": "ann",
                "tools": [{ "type": "web_search" }, { "type": "function", "name": "f" }],
            }),
        )
        .await;
        assert_eq!(status, 200, "{response}");
        let text = json!({ "type": "output_text", "text": "Hello", "annotations": [], "logprobs": [] });
        assert_eq!(response["output"][0]["content"], json!([text]));
        for (name, value) in [
            ("object", json!("response")),
            ("status", json!("completed")),
            ("background", json!(false)),
            ("error", Value::Null),
            ("incomplete_details", Value::Null),
            ("instructions", json!("Be kind.")),
            ("max_output_tokens", json!(20)),
            ("max_tool_calls", Value::Null),
            ("metadata", json!({ "a": "b" })),
            ("model", json!("nano")),
            ("parallel_tool_calls", json!(true)),
            ("previous_response_id", Value::Null),
            ("reasoning", json!({ "effort": "low", "summary": null })),
            ("service_tier", json!("default")),
            ("store", json!(true)),
            ("temperature", json!(0.7)),
            ("top_p", json!(1.0)),
            ("text", json!({ "format": { "type": "text" }, "verbosity": "medium" })),
            ("tool_choice", json!("auto")),
            ("top_logprobs", json!(0)),
            ("truncation", json!("disabled")),
            ("user", json!("ann")),
        ] {
            assert_eq!(response.get(name), Some(&value), "{name}");
        }
        assert_eq!(response["tools"].as_array().unwrap().len(), 1);
        assert_eq!(response["usage"]["input_tokens_details"]["cached_tokens"], 3);
        assert_eq!(response["kernmill"]["seed"], 5);
    }

    #[tokio::test]
    async fn a_stream_ends_with_the_response_that_is_stored() {
        let (state, _) = server(&["Hel", "lo"]);
        let body = json!({ "input": "Hi", "stream": true, "odd": 1 });
        let (status, headers, text) = send(&state, "POST", PATH, "", &body).await;
        assert_eq!((status, headers["x-kernmill-unknown-fields"].to_str().unwrap()), (200, "odd"));
        let events = events(&text);
        assert!(events.iter().all(|(name, data)| data["type"] == *name));
        assert_eq!((events[0].0.as_str(), events.len()), ("response.created", 10));
        let (name, last) = events.last().unwrap();
        assert_eq!(name, "response.completed");
        let id = last["response"]["id"].as_str().unwrap();
        assert_eq!(get(&state, &format!("{PATH}/{id}")).await, (200, last["response"].clone()));
    }

    #[tokio::test]
    async fn calls_and_their_outputs_are_gone_on_with() {
        let (state, backend) = server(&["Four."]);
        let input = json!([
            { "role": "user", "content": [{ "type": "input_text", "text": "What is two and two?" }] },
            { "type": "reasoning", "summary": [], "content": [{ "type": "reasoning_text", "text": "Sum." }] },
            { "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "I add." }] },
            { "type": "function_call", "call_id": "call_1", "name": "add", "arguments": "{\"a\":2}" },
            { "type": "function_call_output", "call_id": "call_1", "output": "sum=4" },
        ]);
        let (status, first) = post(&state, json!({ "input": input })).await;
        assert_eq!(status, 200, "{first}");
        let id = first["id"].as_str().unwrap();
        // The output of a call may come with the next request alone.
        let more = json!([
            { "type": "function_call_output", "call_id": "call_1", "output": "again=4" },
            { "role": "user", "content": "And three and three?" },
        ]);
        let body = json!({ "input": more, "previous_response_id": id, "store": false });
        let (status, second) = post(&state, body).await;
        assert_eq!((status, &second["previous_response_id"]), (200, &json!(id)), "{second}");
        let prompt = backend.prompts.lock().unwrap().last().cloned().unwrap();
        let mut rest = prompt.as_str();
        for part in ["What is two and two?", "Four.", "And three and three?"] {
            rest = rest.split_once(part).unwrap_or_else(|| panic!("{part} in {prompt}")).1;
        }
        let second = second["id"].as_str().unwrap();
        assert_eq!(get(&state, &format!("{PATH}/{second}")).await.0, 404);
        let (_, items) = get(&state, &format!("{PATH}/{id}/input_items?order=asc&limit=4")).await;
        let kinds: Vec<&Value> = items["data"].as_array().unwrap().iter().map(|item| &item["type"]).collect();
        assert_eq!(kinds, ["message", "reasoning", "message", "function_call"]);
        assert_eq!((&items["has_more"], &items["last_id"]), (&json!(true), &items["data"][3]["id"]));
        let after = items["last_id"].as_str().unwrap();
        let (_, items) = get(&state, &format!("{PATH}/{id}/input_items?order=asc&after={after}")).await;
        assert_eq!(items["data"][0]["output"], "sum=4");
        assert_eq!(items["has_more"], false);
        let (_, _, deleted) = send(&state, "DELETE", &format!("{PATH}/{id}"), "", &json!({})).await;
        assert_eq!(deleted, json!({ "id": id, "object": "response", "deleted": true }).to_string());
        assert_eq!(get(&state, &format!("{PATH}/{id}")).await.0, 404);
    }

    #[tokio::test]
    async fn another_key_finds_nothing() {
        let keys = Keys::read("ann secret-key-of-ann\nbob secret-key-of-bob").unwrap();
        let state = state(Scripted::stops(&["Yes."]), ServerConfig { keys, ..ServerConfig::default() });
        let (ann, bob) = ("secret-key-of-ann", "secret-key-of-bob");
        let (_, _, text) = send(&state, "POST", PATH, ann, &json!({ "input": "Hi" })).await;
        let response: Value = serde_json::from_str(&text).unwrap();
        let path = format!("{PATH}/{}", response["id"].as_str().unwrap());
        for (method, path) in
            [("GET", path.clone()), ("DELETE", path.clone()), ("GET", path.clone() + "/input_items")]
        {
            assert_eq!(send(&state, method, &path, bob, &json!({})).await.0, 404, "{method} {path}");
        }
        let body = json!({ "input": "Hi", "previous_response_id": response["id"] });
        let (status, _, text) = send(&state, "POST", PATH, bob, &body).await;
        assert_eq!(status, 404);
        assert!(text.contains("\"param\":\"previous_response_id\""), "{text}");
        assert_eq!(send(&state, "POST", PATH, ann, &body).await.0, 200);
        assert_eq!(send(&state, "GET", &path, "no-such-key", &json!({})).await.0, 401);
    }

    #[tokio::test]
    async fn wrong_fields_are_named() {
        let (state, _) = server(&["Yes."]);
        let message = |content: Value| json!([{ "role": "user", "content": content }]);
        for (body, param) in [
            (json!({}), "input"),
            (json!({ "input": [] }), "input"),
            (json!({ "input": 5 }), "input"),
            (json!({ "input": [5] }), "input[0]"),
            (json!({ "input": [{ "role": "robot", "content": "" }] }), "input[0].role"),
            (json!({ "input": message(json!([{ "type": "input_image" }])) }), "input[0].content[0].type"),
            (json!({ "input": message(json!([{ "type": "input_text" }])) }), "input[0].content[0].text"),
            (json!({ "input": [{ "type": "function_call", "name": "f" }] }), "input[0].call_id"),
            (
                json!({ "input": [{ "type": "function_call_output", "call_id": "c", "output": "" }] }),
                "input[0].call_id",
            ),
            (
                json!({ "input": [{ "type": "reasoning", "summary": [{ "type": "x" }] }] }),
                "input[0].summary[0].type",
            ),
            (json!({ "input": "a", "tools": [{ "name": "f" }] }), "tools[0].type"),
            (json!({ "input": "a", "tools": [{ "type": "function" }] }), "tools[0].name"),
            (json!({ "input": "a", "tool_choice": "required" }), "tool_choice"),
            (json!({ "input": "a", "text": { "format": { "type": "xml" } } }), "text.format.type"),
            (json!({ "input": "a", "text": { "format": { "type": "json_schema" } } }), "text.format.schema"),
            (json!({ "input": "a", "reasoning": { "effort": "huge" } }), "reasoning.effort"),
            (json!({ "input": "a", "max_output_tokens": 0 }), "max_output_tokens"),
            (json!({ "input": "a", "max_output_tokens": 5000 }), "input"),
            (json!({ "input": "a", "temperature": "hot" }), "temperature"),
            (json!({ "input": "a", "metadata": 1 }), "metadata"),
            (json!({ "input": "a", "background": true }), "background"),
            (json!({ "input": "a", "top_logprobs": 2 }), "top_logprobs"),
            (json!({ "input": "a", "conversation": "c" }), "conversation"),
            (json!({ "input": "a", "store": "yes" }), "store"),
        ] {
            let shown = body.to_string();
            let (status, error) = post(&state, body).await;
            assert_eq!((status, error["error"]["param"].as_str()), (400, Some(param)), "{shown}: {error}");
        }
        assert_eq!(get(&state, &format!("{PATH}/resp_1/other")).await.0, 404);
        assert_eq!(get(&state, PATH).await.0, 405);
    }
}
