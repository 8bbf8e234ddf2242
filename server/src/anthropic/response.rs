//! Answers of `/v1/messages`, whole or in events, and counts of tokens.

use super::events::MessageEvents;
use super::request;
use crate::asked::Asked;
use crate::caller::Caller;
use crate::chat::pieces::AnswerPiece;
use crate::chat::turn::{PreparedTurn, RunningTurn, TurnRequest};
use crate::error::ApiError;
use crate::reply::{self, ReplyStream};
use crate::state::ServerState;
use axum::response::Response;
use serde_json::{Value, json};
use std::sync::Arc;

/// Answers a request to `/v1/messages`.
///
/// # Errors
/// When the request is wrong or not taken up.
pub async fn answer(state: Arc<ServerState>, caller: Caller, body: Vec<u8>) -> Result<Response, ApiError> {
    let record = caller.record.clone();
    let worker = state.clone();
    let (request, prepared) = reply::blocking(move || {
        let (request, prepared) = prepare(&worker, &caller, &body, false)?;
        worker.charge(&caller, prepared.prompt_tokens())?;
        Ok((request, prepared))
    })
    .await?;
    let events = MessageEvents::new(request.model, prepared.prompt_tokens());
    let mut turn = prepared.start(state.backend.clone(), |request| state.submit(request, &record));
    turn.ready(request.streams).await?;
    let response = if request.streams {
        let (stream, response) = ReplyStream::new();
        tokio::spawn(run(state, turn, events, stream));
        response
    } else {
        whole(&state, turn, events).await?
    };
    Ok(reply::with_warnings(response, &request.unknown))
}

/// Counts the tokens of a prompt: `/v1/messages/count_tokens`.
///
/// # Errors
/// When the request is wrong, or the prompt does not fit the context.
pub async fn count(state: Arc<ServerState>, caller: Caller, body: Vec<u8>) -> Result<Response, ApiError> {
    let (request, tokens) = reply::blocking(move || {
        let (request, prepared) = prepare(&state, &caller, &body, true)?;
        Ok((request, prepared.prompt_tokens()))
    })
    .await?;
    Ok(reply::with_warnings(reply::json(&json!({ "input_tokens": tokens })), &request.unknown))
}

fn prepare(
    state: &ServerState,
    caller: &Caller,
    body: &[u8],
    counts_only: bool,
) -> Result<(Asked<TurnRequest>, PreparedTurn), ApiError> {
    let request = request::read(state, caller, body, counts_only)?;
    let prepared = PreparedTurn::new(state.backend.facts(), request.ask.clone())?;
    Ok((request, prepared))
}

async fn whole(
    state: &ServerState,
    mut turn: RunningTurn,
    mut events: MessageEvents,
) -> Result<Response, ApiError> {
    while let Some(piece) = turn.next().await {
        let AnswerPiece::Done(outcome) = piece else {
            events.take(piece);
            continue;
        };
        if let Some(error) = outcome.error() {
            return Err(error);
        }
        state.ended(&outcome);
        let done = outcome.clone();
        events.take(AnswerPiece::Done(outcome));
        return Ok(reply::json(&events.message(&done)));
    }
    Err(ApiError::internal("the answer has no end"))
}

/// Sends events as they come. Ends early if nobody listens any more.
async fn run(state: Arc<ServerState>, mut turn: RunningTurn, mut events: MessageEvents, stream: ReplyStream) {
    let send = |events: Vec<Value>| {
        let mut events = events.iter();
        events.try_for_each(|event| stream.send_named(event["type"].as_str().unwrap_or_default(), event))
    };
    let mut ready = events.begin();
    loop {
        if send(ready).is_none() {
            return;
        }
        // A client that is gone ends the turn, also while nothing comes.
        let piece = tokio::select! {
            piece = turn.next() => piece,
            () = stream.closed() => return,
        };
        let Some(piece) = piece else { return };
        ready = match &piece {
            AnswerPiece::Done(outcome) => match outcome.error() {
                Some(error) => vec![error.anthropic()],
                None => {
                    state.ended(outcome);
                    events.take(piece)
                }
            },
            _ => events.take(piece),
        };
    }
}

#[cfg(test)]
mod tests {
    use crate::scripted::{Scripted, events, send, state};
    use crate::state::ServerConfig;
    use kernmill_serve::Finish;
    use serde_json::{Value, json};

    const PATH: &str = "/v1/messages";

    fn ask(content: Value, with: Value) -> Value {
        let mut body = json!({ "max_tokens": 20, "messages": [{ "role": "user", "content": content }] });
        body.as_object_mut().unwrap().extend(with.as_object().unwrap().clone());
        body
    }

    #[tokio::test]
    async fn a_message_comes_whole_and_in_events() {
        let state = state(Scripted::stops(&["Hel", "lo"]), ServerConfig::default());
        let (status, headers, text) =
            send(&state, "POST", PATH, "", &ask(json!("Hi"), json!({ "odd": 1 }))).await;
        let message: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((status, headers["x-kernmill-unknown-fields"].to_str().unwrap()), (200, "odd"));
        assert_eq!(message["content"], json!([{ "type": "text", "text": "Hello" }]));
        for (name, value) in
            [("type", "message"), ("role", "assistant"), ("model", "nano"), ("stop_reason", "end_turn")]
        {
            assert_eq!(message[name], value);
        }
        assert_eq!(message["usage"]["cache_read_input_tokens"], 3);
        let body = ask(json!("Hi"), json!({ "stream": true }));
        let (_, _, text) = send(&state, "POST", PATH, "", &body).await;
        let events = events(&text);
        assert!(events.iter().all(|(name, data)| data["type"] == *name));
        assert_eq!(events.last().unwrap().0, "message_stop");
        let (_, _, text) =
            send(&state, "POST", "/v1/messages/count_tokens", "", &ask(json!("Hi"), json!({}))).await;
        let count: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(count["input_tokens"], events[0].1["message"]["usage"]["input_tokens"]);
        let total = message["usage"]["input_tokens"].as_u64().unwrap() + 3;
        assert_eq!(count["input_tokens"], total);
    }

    #[tokio::test]
    async fn the_stop_string_is_told() {
        let state = state(Scripted::stops(&["one, ", "tw", "o, three"]), ServerConfig::default());
        let body = ask(json!("Count"), json!({ "stop_sequences": ["four", "two"] }));
        let (_, _, text) = send(&state, "POST", PATH, "", &body).await;
        let message: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(message["content"], json!([{ "type": "text", "text": "one, " }]));
        assert_eq!(
            (&message["stop_reason"], &message["stop_sequence"]),
            (&json!("stop_sequence"), &json!("two"))
        );
        assert!(message["usage"]["input_tokens"].as_u64().unwrap() > 0);
    }

    #[tokio::test]
    async fn conversations_are_read_and_what_changes_each_time_is_left_out() {
        let backend = Scripted::stops(&["Yes."]);
        let state = state(backend.clone(), ServerConfig::default());
        let system = json!([
            { "type": "text", "text": "x-anthropic-billing-header: 77\nBe kind.",
                "cache_control": { "type": "ephemeral" } },
            { "type": "text", "text": "Be short." },
        ]);
        let body = json!({
            "max_tokens": 20, "system": system, "thinking": { "type": "enabled", "budget_tokens": 1024 },
            "tools": [{ "name": "look", "input_schema": { "type": "object" } },
                { "type": "bash_20250124", "name": "bash" }, { "type": "web_search_20250305", "name": "web_search" }],
            "messages": [
                { "role": "user", "content": "Where?" },
                { "role": "assistant", "content": [
                    { "type": "thinking", "thinking": "Look.", "signature": "" },
                    { "type": "redacted_thinking", "data": "x" },
                    { "type": "text", "text": "I look." },
                    { "type": "tool_use", "id": "toolu_1", "name": "look", "input": {} },
                ] },
                { "role": "user", "content": [
                    { "type": "tool_result", "tool_use_id": "toolu_1", "is_error": true, "content": "dark" },
                    { "type": "text", "text": "Go on." },
                ] },
            ],
        });
        let (status, _, text) = send(&state, "POST", PATH, "", &body).await;
        assert_eq!(status, 200, "{text}");
        let prompt = backend.prompts.lock().unwrap().last().cloned().unwrap();
        assert!(prompt.contains("Be kind.\n\nBe short.") && prompt.contains("Go on."), "{prompt}");
        assert!(!prompt.contains("billing"), "{prompt}");
    }

    #[tokio::test]
    async fn wrong_fields_are_named_in_the_envelope_of_the_api() {
        let state = state(Scripted::stops(&["Yes."]), ServerConfig::default());
        let block = |block: Value| ask(json!([block]), json!({}));
        for (body, name) in [
            (json!({ "messages": [] }), "`max_tokens`"),
            (json!({ "max_tokens": 5 }), "`messages`"),
            (json!({ "max_tokens": 5, "messages": [] }), "`messages`"),
            (
                json!({ "max_tokens": 5, "messages": [{ "role": "clown", "content": "" }] }),
                "`messages[0].role`",
            ),
            (block(json!({ "type": "image" })), "`messages[0].content[0].type`"),
            (block(json!({ "type": "document" })), "`messages[0].content[0].type`"),
            (block(json!({ "type": "text" })), "`messages[0].content[0].text`"),
            (
                block(json!({ "type": "tool_result", "tool_use_id": "x" })),
                "`messages[0].content[0].tool_use_id`",
            ),
            (ask(json!("a"), json!({ "system": 5 })), "`system`"),
            (ask(json!("a"), json!({ "tools": [{ "name": "a b" }] })), "`tools[0].name`"),
            (
                ask(json!("a"), json!({ "tools": [{ "name": "f", "input_schema": 1 }] })),
                "`tools[0].input_schema`",
            ),
            (ask(json!("a"), json!({ "tool_choice": { "type": "all" } })), "`tool_choice.type`"),
            (ask(json!("a"), json!({ "tool_choice": { "type": "tool", "name": "g" } })), "`tool_choice`"),
            (ask(json!("a"), json!({ "thinking": { "type": "enabled" } })), "`thinking.budget_tokens`"),
            (ask(json!("a"), json!({ "stop_sequences": [1] })), "`stop_sequences`"),
            (ask(json!("a"), json!({ "max_tokens": 5000 })), "context"),
        ] {
            let (status, _, text) = send(&state, "POST", PATH, "", &body).await;
            let error: Value = serde_json::from_str(&text).unwrap();
            assert_eq!((status, &error["type"]), (400, &json!("error")), "{body}: {text}");
            assert_eq!(error["error"]["type"], "invalid_request_error");
            let message = error["error"]["message"].as_str().unwrap();
            assert!(message.contains(name), "{body}: {message}");
        }
    }

    #[tokio::test]
    async fn a_failure_ends_the_stream_with_an_error() {
        let backend = Scripted::new(&["Hel"], Finish::Failed("it broke".to_owned()));
        let state = state(backend, ServerConfig::default());
        let (_, _, text) = send(&state, "POST", PATH, "", &ask(json!("Hi"), json!({ "stream": true }))).await;
        let events = events(&text);
        let error = json!({ "type": "error", "error": { "type": "api_error", "message": "it broke" } });
        assert_eq!(events.last().unwrap(), &("error".to_owned(), error.clone()));
        let (status, _, text) = send(&state, "POST", PATH, "", &ask(json!("Hi"), json!({}))).await;
        let mut body: Value = serde_json::from_str(&text).unwrap();
        let id = body.as_object_mut().unwrap().remove("request_id").unwrap();
        assert!(id.as_str().unwrap().starts_with("req_"), "{id}");
        assert_eq!((status, body), (500, error));
        let backend = Scripted::new(&["Hel"], Finish::MaxTokens);
        let state = crate::scripted::state(backend, ServerConfig::default());
        let (_, _, text) = send(&state, "POST", PATH, "", &ask(json!("Hi"), json!({}))).await;
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap()["stop_reason"], "max_tokens");
    }
}
