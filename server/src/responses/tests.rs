use crate::scripted::{events, harmony, send};
use crate::state::ServerState;
use serde_json::{Value, json};
use std::sync::Arc;

const PATH: &str = "/v1/responses";

async fn post(state: &Arc<ServerState>, body: Value) -> (u16, String, Value) {
    let (status, headers, text) = send(state, "POST", PATH, "", &body).await;
    let named = headers.get("x-kernmill-unknown-fields").map(|value| value.to_str().unwrap().to_owned());
    (status, named.unwrap_or_default(), serde_json::from_str(&text).unwrap())
}

/// Tokens of the prompt that a request has.
async fn count(state: &Arc<ServerState>, body: Value) -> u64 {
    let (_, _, text) = send(state, "POST", "/v1/responses/input_tokens", "", &body).await;
    serde_json::from_str::<Value>(&text).unwrap()["input_tokens"].as_u64().unwrap_or_else(|| panic!("{text}"))
}

fn function(name: &str) -> Value {
    json!({ "type": "function", "name": name, "parameters": { "type": "object" } })
}

#[tokio::test]
async fn items_of_stored_responses_can_be_named() {
    let call = json!({ "name": "look", "arguments": { "city": "Oslo" } });
    let state = harmony(json!([
        { "match": "^functions", "answer": "It rains." },
        { "reasoning": "I look.", "call": call },
    ]));
    let tools = json!([function("look")]);
    let user = json!({ "role": "user", "content": "Weather?" });
    let (_, _, first) = post(&state, json!({ "input": [user], "tools": tools })).await;
    let output = first["output"].as_array().unwrap().clone();
    assert_eq!(
        output.iter().map(|item| item["type"].as_str().unwrap()).collect::<Vec<_>>(),
        ["reasoning", "function_call"]
    );
    let result = json!({ "type": "function_call_output", "call_id": output[1]["call_id"], "output": "rain" });
    let reference = |item: &Value| json!({ "type": "item_reference", "id": item["id"] });
    let named =
        json!({ "input": [user, reference(&output[0]), reference(&output[1]), result], "tools": tools });
    let short =
        json!({ "input": [user, { "id": output[0]["id"] }, reference(&output[1]), result], "tools": tools });
    // The model's own ids are known of a stored item, as they are of a whole response.
    let after = json!({ "previous_response_id": first["id"], "input": [result], "tools": tools });
    let expected = count(&state, after).await;
    assert_eq!((count(&state, named.clone()).await, count(&state, short).await), (expected, expected));
    let (status, header, second) = post(&state, named).await;
    assert_eq!((status, header.as_str()), (200, ""), "{second}");
    assert_eq!(second["output"][0]["content"][0]["text"], "It rains.");
    // Items that a request brought along can be named as well, and are shown as they are.
    let path = format!("{PATH}/{}/input_items?order=asc", second["id"].as_str().unwrap());
    let (_, _, text) = send(&state, "GET", &path, "", &json!({})).await;
    let items = serde_json::from_str::<Value>(&text).unwrap()["data"].clone();
    assert_eq!(items[2], output[1]);
    let (status, _, answer) = post(&state, json!({ "input": [reference(&items[0])], "tools": tools })).await;
    assert_eq!(status, 200, "{answer}");
    // With the response, its items go.
    let (_, _, text) =
        send(&state, "DELETE", &format!("{PATH}/{}", first["id"].as_str().unwrap()), "", &json!({})).await;
    assert!(text.contains("\"deleted\":true"), "{text}");
    let (_, _, unstored) = post(&state, json!({ "input": "Hi", "tools": tools, "store": false })).await;
    for id in [output[1]["id"].clone(), unstored["output"][0]["id"].clone(), json!("msg_nobody")] {
        let (status, _, error) =
            post(&state, json!({ "input": [{ "type": "item_reference", "id": id }] })).await;
        assert_eq!((status, &error["error"]["param"]), (404, &json!("input[0]")), "{error}");
        assert!(error["error"]["message"].as_str().unwrap().contains("`store` is false"), "{error}");
    }
    let (status, _, error) = post(&state, json!({ "input": [{ "type": "item_reference" }] })).await;
    assert_eq!((status, &error["error"]["param"]), (400, &json!("input[0].id")), "{error}");
}

#[test]
fn an_item_is_its_tenants_alone() {
    let store = super::store::ResponseStore::default();
    let response = json!({ "output": [{ "id": "msg_1", "type": "message" }] });
    let stored = super::store::StoredResponse {
        model: "nano".to_owned(),
        response,
        input: Vec::new(),
        items: Vec::new(),
        generated: Vec::new(),
    };
    store.insert(1, "resp_1", stored);
    assert!(store.item(2, "msg_1", "nano").is_none() && store.item(1, "msg_2", "nano").is_none());
}

#[tokio::test]
async fn functions_of_a_namespace_are_functions() {
    let call = json!({ "name": "mcp__maps__find", "arguments": { "city": "Oslo" } });
    let state = harmony(json!([{ "match": "^functions", "answer": "There." }, { "call": call }]));
    let space = json!({ "type": "namespace", "name": "mcp__maps__", "description": "Maps.",
        "tools": [function("find"), function("draw")] });
    let tools = json!([function("look"), space]);
    let body = json!({ "input": "Where?", "tools": tools });
    let (status, named, response) = post(&state, body.clone()).await;
    assert_eq!((status, named.as_str(), &response["tools"][1]), (200, "", &space), "{response}");
    let item = &response["output"][0];
    assert_eq!((&item["namespace"], &item["name"]), (&json!("mcp__maps__"), &json!("find")), "{item}");
    let mut streamed = body.clone();
    streamed["stream"] = json!(true);
    let (_, _, text) = send(&state, "POST", PATH, "", &streamed).await;
    let sent = events(&text);
    let of = |kind: &str| sent.iter().find(|(name, _)| name == kind).unwrap().1.clone();
    assert_eq!(of("response.output_item.added")["item"]["namespace"], "mcp__maps__");
    assert_eq!(of("response.function_call_arguments.done")["name"], "find");
    // The call comes back as it was told.
    let result = json!({ "type": "function_call_output", "call_id": item["call_id"], "output": "north" });
    let user = json!({ "role": "user", "content": "Where?" });
    let (status, _, answer) = post(&state, json!({ "input": [user, item, result], "tools": tools })).await;
    assert_eq!((status, &answer["output"][0]["content"][0]["text"]), (200, &json!("There.")), "{answer}");
    let inside = |name: &str, tools: Value| json!([{ "type": "namespace", "name": name, "tools": tools }]);
    for (tools, param) in [
        (json!([{ "type": "namespace", "tools": [] }]), "tools[0].name"),
        (inside("a", json!([{ "type": "mcp", "name": "b" }])), "tools[0].tools[0].type"),
        (inside(&"a".repeat(100), json!([function(&"b".repeat(60))])), "tools[0].tools[0].name"),
        (json!([function("a.b"), { "type": "namespace", "name": "a", "tools": [function("b")] }]), "tools"),
    ] {
        let (status, _, error) = post(&state, json!({ "input": "Hi", "tools": tools })).await;
        assert_eq!((status, &error["error"]["param"]), (400, &json!(param)), "{error}");
    }
}

#[tokio::test]
async fn tools_that_clients_run_are_refused_and_those_of_the_host_named() {
    let state = harmony(json!([{ "answer": "Yes." }]));
    for kind in ["local_shell", "shell", "apply_patch", "computer_use_preview", "mcp", "drone"] {
        let (status, _, error) =
            post(&state, json!({ "input": "Hi", "tools": [{ "type": kind, "name": "x" }] })).await;
        assert_eq!((status, &error["error"]["param"]), (400, &json!("tools[0].type")), "{error}");
        assert!(error["error"]["message"].as_str().unwrap().contains("as functions"), "{error}");
    }
    for kind in ["web_search", "web_search_preview_2025_03_11", "code_interpreter"] {
        let tools = json!([{ "type": kind, "container": { "type": "auto" } }, function("look")]);
        let (status, named, response) = post(&state, json!({ "input": "Hi", "tools": tools })).await;
        assert_eq!((status, named.as_str()), (200, "tools[0].type, tools[0].container"), "{response}");
    }
    let allowed = |tools: Value| json!({ "type": "allowed_tools", "mode": "auto", "tools": tools });
    let tools = json!([function("look"), function("walk")]);
    let both = count(&state, json!({ "input": "Hi", "tools": tools })).await;
    for choice in [json!([function("look")]), json!([{ "type": "web_search" }, function("walk")])] {
        let body = json!({ "input": "Hi", "tools": tools, "tool_choice": allowed(choice) });
        let (status, _, response) = post(&state, body.clone()).await;
        assert_eq!((status, &response["tool_choice"]), (200, &body["tool_choice"]), "{response}");
        assert_eq!(count(&state, body).await, both);
    }
}

#[tokio::test]
async fn lengths_and_forms_that_are_not_served_are_named() {
    let state = harmony(json!([{ "answer": "Yes." }]));
    let text = json!({ "verbosity": "low", "format": { "type": "text" } });
    let (status, named, response) =
        post(&state, json!({ "input": "Hi", "text": text, "reasoning": { "summary": "auto" } })).await;
    assert_eq!((status, named.as_str()), (200, "text.verbosity, reasoning.summary"), "{response}");
    assert_eq!(response["text"]["verbosity"], "low");
    let (status, _, error) = post(
        &state,
        json!({ "input": "Hi", "guided_regex": "a", "text": { "format": { "type": "json_object" } } }),
    )
    .await;
    assert!(
        status == 400 && error["error"]["message"].as_str().unwrap().contains("`text.format`"),
        "{error}"
    );
    let (_, named, response) =
        post(&state, json!({ "input": "Hi", "text": { "verbosity": "medium" } })).await;
    assert_eq!((named.as_str(), &response["text"]["verbosity"]), ("", &json!("medium")));
}

#[tokio::test]
async fn a_call_of_a_custom_tool_has_its_items_and_events() {
    let input = "*** Begin\n+\"x\"\n*** End";
    let call = json!({ "name": "edit", "arguments": { "input": input } });
    let state = harmony(json!([
        { "match": "^functions", "answer": "Done." },
        { "reasoning": "I edit.", "call": call },
    ]));
    let definition = "start: \"*** Begin\" LF line+ \"*** End\"\nline: \"+\" /[^\\n]*/ LF\n%import common.LF";
    let format = json!({ "type": "grammar", "syntax": "lark", "definition": definition });
    let tool = json!({ "type": "custom", "name": "edit", "description": "Edits.", "format": format });
    let tools = json!([tool, { "type": "custom", "name": "note" }]);
    let body = json!({ "input": "Change it.", "tools": tools });
    let (status, named, response) = post(&state, body.clone()).await;
    assert_eq!((status, named.as_str()), (200, ""), "{response}");
    let text = json!({ "type": "custom", "name": "note", "description": null, "format": { "type": "text" } });
    assert_eq!(response["tools"], json!([tool, text]));
    let item = &response["output"][1];
    let expected = json!({
        "type": "custom_tool_call", "id": item["id"], "call_id": item["call_id"], "name": "edit", "input": input,
        "status": "completed",
    });
    assert_eq!(item, &expected);
    assert!(item["id"].as_str().unwrap().starts_with("ctc_"), "{item}");
    let mut streamed = body.clone();
    streamed["stream"] = json!(true);
    let (_, _, text) = send(&state, "POST", PATH, "", &streamed).await;
    let sent = events(&text);
    let of = |kind: &str| {
        sent.iter().filter(|(name, _)| name == kind).map(|(_, data)| data.clone()).collect::<Vec<_>>()
    };
    let deltas = of("response.custom_tool_call_input.delta");
    let text: String = deltas.iter().map(|event| event["delta"].as_str().unwrap()).collect();
    let done = &of("response.custom_tool_call_input.done")[0];
    assert_eq!((text.as_str(), &done["input"], deltas.len() > 1), (input, &json!(input), true));
    let added = &of("response.output_item.added")[1]["item"];
    assert_eq!((&added["type"], &added["input"]), (&json!("custom_tool_call"), &json!("")));
    for event in deltas.iter().chain([done]) {
        assert_eq!((&event["item_id"], &event["output_index"]), (&added["id"], &json!(1)), "{event}");
    }
    // The call goes on by all items, by the response's name, and by the item's.
    let result = json!({ "type": "custom_tool_call_output", "call_id": item["call_id"], "output": "ok" });
    let user = json!({ "role": "user", "content": "Change it." });
    let whole = json!({ "input": [user, response["output"][0], item, result], "tools": tools });
    let after = json!({ "input": [result], "previous_response_id": response["id"], "tools": tools });
    let reference = |at: usize| json!({ "type": "item_reference", "id": response["output"][at]["id"] });
    let named = json!({ "input": [user, reference(0), reference(1), result], "tools": tools });
    // The model's own ids are known of a stored item.
    assert_eq!(count(&state, after.clone()).await, count(&state, named.clone()).await);
    for body in [whole, after, named] {
        let (status, _, answer) = post(&state, body).await;
        assert_eq!((status, &answer["output"][0]["content"][0]["text"]), (200, &json!("Done.")), "{answer}");
    }
    let (_, _, kept) = post(&state, json!({ "input": [user, item, result], "tools": tools })).await;
    let path = format!("{PATH}/{}/input_items", kept["id"].as_str().unwrap());
    let (_, _, text) = send(&state, "GET", &path, "", &json!({})).await;
    let shown = serde_json::from_str::<Value>(&text).unwrap()["data"][0].clone();
    assert_eq!(shown["type"], "custom_tool_call_output");
    // Tools of a namespace may be custom, too.
    let space = json!([{ "type": "namespace", "name": "files", "tools": [tool] }]);
    let call = json!({ "name": "files.edit", "arguments": { "input": input } });
    let state = harmony(json!([{ "call": call }]));
    let (_, _, response) = post(&state, json!({ "input": "Hi", "tools": space })).await;
    let item = &response["output"][0];
    assert_eq!(
        (&item["type"], &item["namespace"], &item["name"], &item["input"]),
        (&json!("custom_tool_call"), &json!("files"), &json!("edit"), &json!(input)),
        "{response}"
    );
    let choice = json!({ "type": "custom", "name": "edit" });
    let (status, _, forced) = post(
        &harmony(json!([{ "call": { "name": "edit", "arguments": { "input": input } } }])),
        json!({ "input": "Hi", "tools": tools, "tool_choice": choice }),
    )
    .await;
    assert_eq!((status, &forced["output"][0]["type"]), (200, &json!("custom_tool_call")), "{forced}");
    for (item, param) in [
        (json!({ "type": "custom_tool_call", "call_id": "a", "name": "edit" }), "input[0].input"),
        (json!({ "type": "custom_tool_call", "name": "edit", "input": "" }), "input[0].call_id"),
        (json!({ "type": "custom_tool_call_output", "call_id": "a", "output": "" }), "input[0].call_id"),
    ] {
        let (status, _, error) = post(&state, json!({ "input": [item] })).await;
        assert_eq!((status, &error["error"]["param"]), (400, &json!(param)), "{error}");
    }
}
