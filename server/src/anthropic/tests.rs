use crate::routes;
use crate::scripted::{Scripted, harmony, send, state};
use crate::state::{ServerConfig, ServerState};
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use serde_json::{Value, json};
use std::sync::Arc;

const PATH: &str = "/v1/messages";

fn ask(with: Value) -> Value {
    let mut body = json!({ "max_tokens": 60, "messages": [{ "role": "user", "content": "Hi" }] });
    body.as_object_mut().unwrap().extend(with.as_object().unwrap().clone());
    body
}

async fn post(state: &Arc<ServerState>, with: Value) -> (u16, String, Value) {
    let (status, headers, text) = send(state, "POST", PATH, "", &ask(with)).await;
    let named = headers.get("x-kernmill-unknown-fields").map(|value| value.to_str().unwrap().to_owned());
    (status, named.unwrap_or_default(), serde_json::from_str(&text).unwrap())
}

/// Tokens of the prompt that a request has.
async fn count(state: &Arc<ServerState>, with: Value) -> u64 {
    let (_, _, text) = send(state, "POST", "/v1/messages/count_tokens", "", &ask(with)).await;
    serde_json::from_str::<Value>(&text).unwrap()["input_tokens"].as_u64().unwrap_or_else(|| panic!("{text}"))
}

#[tokio::test]
async fn what_nobody_takes_of_messages_is_named() {
    let state = harmony(json!([{ "answer": "Yes." }]));
    let messages = json!([
        { "role": "user", "content": "A" },
        { "role": "assistant", "content": [
            { "type": "thinking", "thinking": "B", "signature": "s" },
            { "type": "tool_use", "id": "t", "name": "f", "input": { "x": 1 }, "caller": null, "late": 1 },
        ] },
        { "role": "user", "content": [
            { "type": "tool_result", "tool_use_id": "t", "cache_control": { "type": "ephemeral" },
              "content": [{ "type": "text", "text": "C", "big": 1 }] },
        ], "odd": 1 },
    ]);
    let system = json!([{ "type": "text", "text": "D", "cache_control": { "type": "ephemeral" }, "far": 1 }]);
    let (status, named, message) = post(&state, json!({ "messages": messages, "system": system })).await;
    assert_eq!(status, 200, "{message}");
    let expected =
        "system[0].far, messages[1].content[1].late, messages[2].odd, messages[2].content[0].content[0].big";
    assert_eq!(named, expected);
}

#[tokio::test]
async fn structured_outputs_are_followed_in_both_places() {
    let schema = json!({
        "type": "object", "properties": { "age": { "const": 31 } }, "required": ["age"], "additionalProperties": false,
    });
    let format = json!({ "type": "json_schema", "schema": schema });
    let state = harmony(json!([{ "answer": "{\"age\":31}" }]));
    for with in [
        json!({ "output_config": { "format": format, "effort": "low" } }),
        json!({ "output_format": format }),
        json!({ "output_config": { "format": format }, "output_format": format }),
    ] {
        let (status, named, message) = post(&state, with.clone()).await;
        assert_eq!((status, named.as_str()), (200, ""), "{with}: {message}");
        assert_eq!(message["content"], json!([{ "type": "text", "text": "{\"age\":31}" }]), "{with}");
        // The model is told of the schema.
        assert!(count(&state, with).await > count(&state, json!({})).await + 10);
    }
    // A script cannot say what the form forbids.
    let other = harmony(json!([{ "answer": "no" }]));
    let (_, _, message) = post(&other, json!({ "output_config": { "format": format } })).await;
    assert_ne!(message["content"][0]["text"], "no");
    let other = json!({ "type": "json_schema", "schema": { "type": "array" } });
    let broken = json!({ "type": "json_schema", "schema": { "type": "nothing" } });
    for (with, what) in [
        (json!({ "output_config": { "format": { "type": "xml" } } }), "`output_config.format.type`"),
        (
            json!({ "output_config": { "format": { "type": "json_schema" } } }),
            "`output_config.format.schema`",
        ),
        (json!({ "output_config": { "format": format }, "output_format": other }), "`output_format`"),
        (json!({ "output_config": { "effort": "huge" } }), "`output_config.effort`"),
        (json!({ "output_format": broken }), "JSON schema"),
    ] {
        let (status, _, error) = post(&state, with.clone()).await;
        let message = error["error"]["message"].as_str().unwrap();
        assert!(status == 400 && message.contains(what), "{with}: {error}");
    }
    let (_, named, _) = post(
        &state,
        json!({ "output_config": { "task_budget": 5 }, "thinking": {
        "type": "adaptive", "display": "omitted" } }),
    )
    .await;
    assert_eq!(named, "output_config.task_budget, thinking.display");
}

#[tokio::test]
async fn threads_are_refused_with_the_code_that_clients_know() {
    let state = state(Scripted::stops(&["Yes."]), ServerConfig::default());
    for thread in [json!({ "type": "create" }), json!({ "type": "continue", "previous_message_id": "msg_1" })]
    {
        let (status, _, error) = post(&state, json!({ "thread": thread })).await;
        let code = &error["error"]["details"]["error_code"];
        assert_eq!((status, code), (400, &json!("thread_unsupported_request")), "{error}");
        assert_eq!(error["error"]["type"], "invalid_request_error");
        // A count has no answer that could be kept.
        assert!(count(&state, json!({ "thread": thread })).await > 0);
    }
    assert_eq!(post(&state, json!({ "thread": null })).await.0, 200);
}

#[tokio::test]
async fn neighbours_of_one_role_are_one_turn_and_instructions_may_come_late() {
    let state = harmony(json!([{ "answer": "Yes." }]));
    let text = |text: &str| json!({ "type": "text", "text": text });
    let call = json!({ "type": "tool_use", "id": "t1", "name": "look", "input": {} });
    let result = json!({ "type": "tool_result", "tool_use_id": "t1", "content": "dark" });
    let message = |role: &str, content: Value| json!({ "role": role, "content": content });
    let tools = json!([{ "name": "look", "input_schema": { "type": "object" } }]);
    let apart = json!([
        message("user", json!("Where?")),
        message("user", json!([text("Say it.")])),
        message("assistant", json!([text("I look.")])),
        message("assistant", json!([call])),
        message("user", json!([result])),
        message("user", json!("Go on.")),
    ]);
    let merged = json!([
        message("user", json!([text("Where?"), text("Say it.")])),
        message("assistant", json!([text("I look."), call])),
        message("user", json!([result, text("Go on.")])),
    ]);
    let [apart, merged] = [apart, merged].map(|messages| json!({ "messages": messages, "tools": tools }));
    assert_eq!(count(&state, apart).await, count(&state, merged).await);
    // Later words of the operator reach the model, too.
    let late = |content: Value| {
        json!({ "messages": [message("user", json!("Hi")), message("system",
        content), message("user", json!("Go on."))] })
    };
    let none = json!({ "messages": [message("user", json!("Hi")), message("user", json!("Go on."))] });
    let (plain, blocks) = (
        count(&state, late(json!("Be short."))).await,
        count(&state, late(json!([text("Be short.")]))).await,
    );
    assert_eq!(plain, blocks);
    assert!(plain > count(&state, none).await);
    let (status, _, error) = post(&state, late(json!([{ "type": "image" }]))).await;
    assert!(
        status == 400
            && error["error"]["message"].as_str().unwrap().contains("`messages[1].content[0].type`"),
        "{error}"
    );
}

#[tokio::test]
async fn tools_that_clients_run_are_told_or_refused() {
    let call = json!({ "name": "bash", "arguments": { "command": "ls" } });
    let state = harmony(json!([{ "call": call }]));
    let none = count(&state, json!({})).await;
    for (kind, name) in [
        ("bash_20250124", "bash"),
        ("text_editor_20250728", "str_replace_based_edit_tool"),
        ("memory_20250818", "memory"),
    ] {
        let tools =
            json!({ "tools": [{ "type": kind, "name": name, "cache_control": { "type": "ephemeral" } }] });
        assert!(count(&state, tools.clone()).await > none + 10, "{kind}");
        let (status, named, message) = post(&state, tools).await;
        assert_eq!((status, named.as_str()), (200, ""), "{message}");
        if name == "bash" {
            let block = &message["content"][0];
            assert_eq!(
                (&block["name"], &block["input"]),
                (&json!("bash"), &json!({ "command": "ls" })),
                "{message}"
            );
        }
    }
    let (status, _, error) = post(&state, json!({ "mcp_servers": [{ "type": "url", "name": "a" }] })).await;
    assert!(
        status == 400 && error["error"]["message"].as_str().unwrap().contains("`mcp_servers`"),
        "{error}"
    );
    for kind in ["computer_20250124", "drone_1"] {
        let (status, _, error) = post(&state, json!({ "tools": [{ "type": kind, "name": "x" }] })).await;
        assert!(
            status == 400 && error["error"]["message"].as_str().unwrap().contains("`tools[0].type`"),
            "{error}"
        );
    }
    // Tools that Anthropic runs itself are named in the header, and nothing more.
    for kind in ["web_search_20250305", "code_execution_20250825"] {
        let (status, named, message) =
            post(&state, json!({ "tools": [{ "type": kind, "name": "x" }] })).await;
        assert_eq!((status, named.as_str()), (200, "tools[0].type, tools[0].name"), "{message}");
    }
}

#[tokio::test]
async fn names_have_the_length_that_the_api_permits() {
    let state = harmony(json!([{ "answer": "Yes." }]));
    for (length, expected) in [(64, 200), (65, 200), (128, 200), (129, 400)] {
        let name = "f".repeat(length);
        let messages = json!([
            { "role": "user", "content": "Hi" },
            { "role": "assistant", "content": [{ "type": "tool_use", "id": "t", "name": name, "input": {} }] },
            { "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "t", "content": "a" }] },
        ]);
        let tools = json!([{ "name": name, "input_schema": { "type": "object" } }]);
        let (status, _, message) = post(&state, json!({ "tools": tools, "messages": messages })).await;
        assert_eq!(status, expected, "{length}: {message}");
    }
}

/// The answer at a path for a client of Anthropic's API.
async fn get(state: &Arc<ServerState>, path: &str, has_version: bool) -> (u16, Value) {
    let mut request = Request::builder().uri(path).header("host", "localhost");
    if has_version {
        request = request.header(super::VERSION, "2023-06-01");
    }
    let response = routes::respond(state.clone(), request.body(Body::empty()).unwrap()).await;
    let (parts, body) = response.into_parts();
    let bytes = to_bytes(body, 1 << 20).await.unwrap();
    (parts.status.as_u16(), serde_json::from_slice(&bytes).unwrap())
}

#[tokio::test]
async fn models_and_errors_have_the_form_of_the_api_for_its_clients() {
    let state = state(Scripted::stops(&["Yes."]), ServerConfig::default());
    let (_, list) = get(&state, "/v1/models", true).await;
    assert_eq!(
        (&list["first_id"], &list["has_more"], &list["data"][0]["type"]),
        (&json!("nano"), &json!(false), &json!("model"))
    );
    let (_, one) = get(&state, "/v1/models/nano", true).await;
    assert_eq!(
        (&one["id"], &one["type"], &one["max_input_tokens"]),
        (&json!("nano"), &json!("model"), &json!(1024))
    );
    assert!(one["created_at"].as_str().unwrap().ends_with('Z'));
    assert_eq!(get(&state, "/v1/models", false).await.1["object"], "list");
    for (path, has_version) in
        [("/v1/models/none", true), ("/v1/messages/batches", false), ("/v1/files", true)]
    {
        let (status, error) = get(&state, path, has_version).await;
        assert_eq!(
            (status, &error["type"], &error["error"]["type"]),
            (404, &json!("error"), &json!("not_found_error")),
            "{path}"
        );
    }
    assert_eq!(get(&state, "/v1/models/none", false).await.1["error"]["code"], "model_not_found");
}
