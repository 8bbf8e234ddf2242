use crate::scripted::{Scripted, harmony, prompt, send, state};
use crate::state::ServerConfig;
use kernmill_serve::Request;
use serde_json::{Value, json};

const CHAT: &str = "/v1/chat/completions";
const TEXT: &str = "/v1/completions";

/// A request with these fields.
fn ask(path: &str, with: Value) -> Value {
    let mut body = match path {
        CHAT => json!({ "messages": [{ "role": "user", "content": "Hi" }] }),
        _ => json!({ "prompt": "Hi" }),
    };
    body.as_object_mut().unwrap().extend(with.as_object().unwrap().clone());
    body
}

fn function(name: &str) -> Value {
    json!({ "type": "function", "function": { "name": name, "parameters": { "type": "object" } } })
}

/// Whether a request is held to a form that a text has.
fn may_be(backend: &Scripted, request: &Request, text: &str) -> bool {
    let mut constraint = request.constraint.clone().expect("the request is held to nothing");
    let ids = backend.encode(text);
    ids.into_iter().all(|id| constraint.accept(id).is_ok())
}

#[tokio::test]
async fn forms_are_followed_by_the_names_of_other_servers() {
    let backend = Scripted::stops(&["yes"]);
    let state = state(backend.clone(), ServerConfig { grammars: true, ..ServerConfig::default() });
    let schema = json!({ "type": "object", "properties": { "n": { "const": 7 } }, "required": ["n"],
        "additionalProperties": false });
    let (word, number) = ("yes", "{\"n\":7}");
    let lark = "start: \"yes\" | \"no\"";
    let fields = [
        (json!({ "structured_outputs": { "choice": ["yes", "no.*"] } }), word),
        (json!({ "structured_outputs": { "regex": "yes|no" } }), word),
        (json!({ "structured_outputs": { "grammar": lark } }), word),
        (json!({ "structured_outputs": { "json": schema } }), number),
        (json!({ "structured_outputs": { "json_object": true } }), number),
        (json!({ "guided_choice": ["yes", "no"] }), word),
        (json!({ "guided_regex": "yes|no" }), word),
        (json!({ "guided_grammar": lark }), word),
        (json!({ "guided_json": schema }), number),
        (json!({ "guided_json": schema.to_string() }), number),
        (json!({ "json_schema": schema }), number),
        (json!({ "grammar": lark }), word),
        (json!({ "regex": "yes|no" }), word),
        (json!({ "ebnf": lark }), word),
        (json!({ "response_format": { "type": "json_object", "schema": schema } }), number),
        (json!({ "response_format": { "type": "json_object", "value": schema } }), number),
        (json!({ "response_format": { "type": "json_schema", "schema": schema } }), number),
        (
            json!({ "response_format": { "type": "json_schema", "json_schema": { "schema": schema } } }),
            number,
        ),
        (json!({ "response_format": { "type": "json_object" } }), number),
        (json!({ "grammar": "", "regex": "", "guided_choice": ["yes"] }), word),
        // Two fields that say the same do not contradict each other.
        (json!({ "guided_json": schema, "json_schema": schema, "guided_regex": null }), number),
    ];
    for (field, text) in fields {
        for path in [CHAT, TEXT] {
            let (status, headers, answer) = send(&state, "POST", path, "", &ask(path, field.clone())).await;
            assert_eq!(
                (status, headers.get("x-kernmill-unknown-fields")),
                (200, None),
                "{path} {field}: {answer}"
            );
            let request = backend.requests.lock().unwrap().pop().unwrap();
            assert!(may_be(&backend, &request, text), "{path} {field}");
            for other in ["Maybe", "[7]", "nobody"] {
                assert!(!may_be(&backend, &request, other), "{path} {field}: {other}");
            }
        }
    }
}

#[tokio::test]
async fn forms_that_cannot_be_followed_are_refused_by_name() {
    let permits =
        |grammars| state(Scripted::stops(&["yes"]), ServerConfig { grammars, ..ServerConfig::default() });
    let (open, strict) = (permits(true), permits(false));
    let schema = json!({ "type": "object" });
    let wrong = json!({ "type": "nothing" });
    for (state, field, name) in [
        (&strict, json!({ "guided_regex": "a" }), "`guided_regex` is not permitted"),
        (
            &strict,
            json!({ "structured_outputs": { "grammar": "start: \"a\"" } }),
            "`structured_outputs.grammar`",
        ),
        (&strict, json!({ "grammar": "start: \"a\"" }), "--allow-grammars"),
        (&open, json!({ "grammar": "root ::= \"a\"" }), "`grammar` is a grammar with `::=`"),
        (
            &open,
            json!({ "structured_outputs": { "structural_tag": "{}" } }),
            "`structured_outputs.structural_tag`",
        ),
        (&open, json!({ "guided_choice": [] }), "`guided_choice`"),
        (&open, json!({ "guided_choice": [1] }), "`guided_choice`"),
        (&open, json!({ "guided_json": "{" }), "`guided_json`"),
        (&open, json!({ "json_schema": 3 }), "`json_schema`"),
        (&open, json!({ "guided_json": wrong }), "\"param\":\"guided_json\""),
        (
            &open,
            json!({ "response_format": { "type": "json_schema", "schema": wrong } }),
            "\"param\":\"response_format\"",
        ),
        (
            &open,
            json!({ "response_format": { "type": "json_object", "schema": 1 } }),
            "`response_format.schema`",
        ),
        (
            &open,
            json!({ "response_format": { "type": "json_schema" } }),
            "`response_format.json_schema` is missing",
        ),
        (&open, json!({ "guided_json": schema, "guided_regex": "a" }), "`guided_json` or `guided_regex`"),
        (
            &open,
            json!({ "structured_outputs": { "choice": ["a"] }, "response_format": { "type": "json_object" } }),
            "`structured_outputs.choice` or `response_format`",
        ),
        (
            &open,
            json!({ "kernmill": { "regex": "a", "lark": "start: \"a\"" } }),
            "`kernmill.regex` or `kernmill.lark`",
        ),
    ] {
        for path in [CHAT, TEXT] {
            let (status, _, text) = send(state, "POST", path, "", &ask(path, field.clone())).await;
            assert!(status == 400 && text.contains(name), "{path} {field}: {status} {text}");
        }
    }
}

#[tokio::test]
async fn fields_that_would_change_the_answer_are_refused_unless_they_ask_for_nothing() {
    let backend = Scripted::stops(&["Yes."]);
    let state = state(backend.clone(), ServerConfig::default());
    for (field, asked, nothing) in [
        ("min_tokens", json!(3), json!(0)),
        ("bad_words", json!(["no"]), json!([])),
        ("allowed_token_ids", json!([1]), json!(null)),
        ("include_stop_str_in_output", json!(true), json!(false)),
        ("use_beam_search", json!(true), json!(false)),
        ("truncate_prompt_tokens", json!(5), json!(null)),
        ("ignore_eos", json!(true), json!(false)),
        ("echo", json!(true), json!(false)),
        ("modalities", json!(["text", "audio"]), json!(["text"])),
        ("chat_template", json!("{{ 1 }}"), json!(null)),
        ("documents", json!([{ "text": "a" }]), json!([])),
        ("add_generation_prompt", json!(false), json!(true)),
        ("stop_token_ids", json!([9999]), json!([5])),
    ] {
        let (status, _, text) = send(&state, "POST", CHAT, "", &ask(CHAT, json!({ field: asked }))).await;
        assert!(status == 400 && text.contains(&format!("`{field}`")), "{field}: {status} {text}");
        let (status, headers, text) =
            send(&state, "POST", CHAT, "", &ask(CHAT, json!({ field: nothing }))).await;
        assert_eq!((status, headers.get("x-kernmill-unknown-fields")), (200, None), "{field}: {text}");
    }
    for path in [CHAT, TEXT] {
        let body = ask(path, json!({ "stop_token_ids": [5, 77] }));
        let (status, ..) = send(&state, "POST", path, "", &body).await;
        let request = backend.requests.lock().unwrap().pop().unwrap();
        assert!(status == 200 && [5, 77].iter().all(|id| request.stop_tokens.contains(id)), "{path}");
    }
}

#[tokio::test]
async fn fields_inside_of_objects_are_named_with_their_path() {
    let state = state(Scripted::stops(&["Yes."]), ServerConfig::default());
    let body = ask(
        CHAT,
        json!({
            "messages": [
                { "role": "user", "content": [{ "type": "text", "text": "A", "big": 1 }], "name": "Ann" },
                { "role": "assistant", "content": null, "annotations": [], "tool_calls": [
                    { "id": "c", "type": "function", "index": 0, "late": 1,
                      "function": { "name": "f", "arguments": "{}" } },
                ] },
                { "role": "tool", "tool_call_id": "c", "content": "B", "is_error": true },
            ],
            "response_format": { "type": "json_object", "strictly": true },
            "stream_options": { "include_usage": true, "continuous_usage_stats": true },
            "reasoning": { "effort": "low", "max_tokens": 5, "exclude": null },
            "tools": [{ "type": "function", "function": { "name": "f", "cached": 1 }, "deferred": true }],
            "tool_choice": { "type": "none", "why": 1 },
            "verbosity": "low", "audio": {}, "web_search_options": {},
        }),
    );
    let (status, headers, text) = send(&state, "POST", CHAT, "", &body).await;
    assert_eq!(status, 200, "{text}");
    let named = headers["x-kernmill-unknown-fields"].to_str().unwrap();
    for name in [
        "messages[0].content[0].big",
        "messages[1].tool_calls[0].late",
        "messages[2].is_error",
        "response_format.strictly",
        "stream_options.continuous_usage_stats",
        "reasoning.max_tokens",
        "tools[0].function.cached",
        "tools[0].deferred",
        "tool_choice.why",
        "verbosity",
        "audio",
        "web_search_options",
    ] {
        assert!(named.split(", ").any(|found| found == name), "{name}: {named}");
    }
    assert!(!named.contains("exclude"), "{named}");
}

#[tokio::test]
async fn some_of_the_functions_may_be_allowed() {
    let state = harmony(json!([{ "answer": "Yes." }]));
    let tools = json!([function("look"), function("walk"), function("stop")]);
    let named = |name: &str| json!({ "type": "function", "function": { "name": name } });
    let nested = |mode: &str, names: &[&str]| {
        let tools: Vec<Value> = names.iter().map(|name| named(name)).collect();
        json!({ "type": "allowed_tools", "allowed_tools": { "mode": mode, "tools": tools } })
    };
    let flat = json!({ "type": "allowed_tools", "mode": "auto",
        "tools": [{ "type": "function", "name": "look" }, named("walk")] });
    for choice in [nested("auto", &["look", "walk"]), nested("required", &["walk", "look"]), flat] {
        // The model is told of all, so that prompts begin alike whatever is allowed.
        let text = prompt(&state, &ask(CHAT, json!({ "tools": tools, "tool_choice": choice }))).await;
        let is_told = |name: &str| text.contains(&format!("type {name} ="));
        assert!(is_told("look") && is_told("walk") && is_told("stop"), "{choice}: {text}");
        for (name, may_be) in [("look", true), ("stop", false)] {
            let state = harmony(json!([{ "call": { "name": name, "arguments": {} } }]));
            let body = ask(CHAT, json!({ "tools": tools, "tool_choice": choice, "max_tokens": 40 }));
            let (_, _, text) = send(&state, "POST", CHAT, "", &body).await;
            assert_eq!(text.contains(&format!("\"name\":\"{name}\"")), may_be, "{choice}: {text}");
        }
    }
    for (choice, what) in [
        (nested("auto", &["jump"]), "is \\\"jump\\\""),
        (nested("sometimes", &["look"]), "`tool_choice.allowed_tools.mode`"),
        (nested("required", &[]), "allows no function"),
        (json!({ "type": "allowed_tools" }), "`tool_choice.tools` is missing"),
        (json!({ "type": "mcp", "name": "look" }), "`tool_choice.type`"),
        (json!({ "type": "custom", "custom": { "name": "jump" } }), "which `tools` does not declare"),
    ] {
        let body = ask(CHAT, json!({ "tools": tools, "tool_choice": choice }));
        let (status, _, text) = send(&state, "POST", CHAT, "", &body).await;
        assert!(status == 400 && text.contains(what), "{choice}: {status} {text}");
    }
}

#[tokio::test]
async fn functions_in_the_older_fields_are_told_and_called_in_the_older_form() {
    let call = json!({ "name": "look", "arguments": { "a": 1 } });
    let state = harmony(json!([{ "match": "^functions", "answer": "Dark." }, { "call": call }]));
    let functions = json!([function("look")["function"], function("walk")["function"]]);
    let body = ask(CHAT, json!({ "functions": functions, "function_call": { "name": "look" } }));
    assert!(prompt(&state, &body).await.contains("type look ="));
    let (status, headers, text) = send(&state, "POST", CHAT, "", &body).await;
    assert_eq!((status, headers.get("x-kernmill-unknown-fields")), (200, None), "{text}");
    let choice = serde_json::from_str::<Value>(&text).unwrap()["choices"][0].take();
    let expected = json!({ "name": "look", "arguments": "{\"a\":1}" });
    assert_eq!(
        (&choice["finish_reason"], &choice["message"]["function_call"]),
        (&json!("function_call"), &expected)
    );
    assert_eq!(choice["message"].get("tool_calls"), None);
    let mut streamed = body.clone();
    streamed["stream"] = json!(true);
    let (_, _, text) = send(&state, "POST", CHAT, "", &streamed).await;
    let chunks = text.split("data: ").filter_map(|chunk| serde_json::from_str::<Value>(chunk.trim()).ok());
    let deltas: Vec<Value> = chunks.map(|mut chunk| chunk["choices"][0].take()).collect();
    let of = |name: &str| -> String {
        deltas.iter().filter_map(|choice| choice["delta"]["function_call"][name].as_str()).collect()
    };
    assert_eq!((of("name"), of("arguments")), ("look".to_owned(), "{\"a\":1}".to_owned()));
    assert_eq!(deltas.last().unwrap()["finish_reason"], "function_call");
    // The call and its result come back.
    let messages = json!([
        { "role": "user", "content": "Hi" },
        { "role": "assistant", "content": null, "function_call": { "name": "look", "arguments": "" } },
        { "role": "function", "name": "look", "content": "It is dark." },
    ]);
    let text = prompt(&state, &json!({ "messages": messages, "functions": functions })).await;
    assert!(
        text.contains("to=functions.look") && text.contains("{}") && text.contains("It is dark."),
        "{text}"
    );
    for (with, what) in [
        (json!({ "functions": functions, "tools": [function("look")] }), "`functions`"),
        (json!({ "functions": functions, "function_call": { "name": "jump" } }), "`function_call`"),
        (json!({ "functions": [{}] }), "`functions[0].name`"),
        (
            json!({ "messages": [{ "role": "function", "name": "look", "content": "" }] }),
            "`messages[0].name`",
        ),
    ] {
        let (status, _, text) = send(&state, "POST", CHAT, "", &ask(CHAT, with)).await;
        assert!(status == 400 && text.contains(what), "{status} {text}");
    }
}

#[tokio::test]
async fn results_stand_in_the_order_of_their_calls() {
    let state = harmony(json!([{ "answer": "Yes." }]));
    let call = |id: &str| {
        json!({ "id": id, "type": "function",
        "function": { "name": "look", "arguments": format!("{{\"at\":\"{id}\"}}") } })
    };
    let result =
        |id: &str| json!({ "role": "tool", "tool_call_id": id, "content": format!("It rains in {id}.") });
    let mut prompts = Vec::new();
    for order in [["Oslo", "Rome", "Bern"], ["Bern", "Oslo", "Rome"], ["Rome", "Bern", "Oslo"]] {
        let mut messages = vec![
            json!({ "role": "user", "content": "Where?" }),
            json!({ "role": "assistant", "content": null, "tool_calls": [call("Oslo"), call("Rome"), call("Bern")] }),
        ];
        messages.extend(order.map(result));
        // Ids may come again in a later turn.
        messages.push(
            json!({ "role": "assistant", "content": null, "tool_calls": [call("Rome"), call("Oslo")] }),
        );
        messages.extend(["Oslo", "Rome"].map(result));
        prompts.push(prompt(&state, &json!({ "messages": messages, "tools": [function("look")] })).await);
    }
    assert!(prompts.iter().all(|prompt| *prompt == prompts[0]), "{prompts:?}");
    let places = ["Oslo", "Rome", "Bern"].map(|city| prompts[0].find(&format!("rains in {city}")).unwrap());
    assert!(places.is_sorted(), "{}", prompts[0]);
    let last = prompts[0].rfind("rains in Rome").unwrap() < prompts[0].rfind("rains in Oslo").unwrap();
    assert!(last, "{}", prompts[0]);
}

#[tokio::test]
async fn a_function_whose_schema_cannot_be_followed_is_named() {
    let state = harmony(json!([{ "answer": "Yes." }]));
    let mut wrong = function("walk");
    wrong["function"]["parameters"] =
        json!({ "type": "object", "properties": { "a": { "$ref": "#/nowhere" } } });
    for strict in [true, false] {
        wrong["function"]["strict"] = json!(strict);
        let body = ask(CHAT, json!({ "tools": [function("look"), wrong] }));
        let (status, _, text) = send(&state, "POST", CHAT, "", &body).await;
        assert!(
            status == 400 && text.contains("the function `walk`") && !text.contains("the turn"),
            "{text}"
        );
    }
    let format = json!({ "type": "json_schema", "schema": { "type": "nothing" } });
    let body = ask(CHAT, json!({ "tools": [function("look")], "response_format": format }));
    let (status, _, text) = send(&state, "POST", CHAT, "", &body).await;
    assert!(status == 400 && text.contains("\"response_format\"") && !text.contains("the turn"), "{text}");
}

#[tokio::test]
async fn an_answer_that_is_not_finished_is_gone_on_in() {
    let state = harmony(json!([{ "answer": " rain." }]));
    let messages = json!([{ "role": "user", "content": "Hi" }, { "role": "assistant", "content": "It is" }]);
    let goes_on =
        json!({ "messages": messages, "continue_final_message": true, "add_generation_prompt": false });
    let text = prompt(&state, &goes_on).await;
    assert!(text.ends_with("<|start|>assistant<|channel|>final<|message|>It is"), "{text}");
    for (path, body) in [
        (CHAT, ask(CHAT, goes_on.clone())),
        ("/v1/messages", json!({ "messages": messages, "max_tokens": 20 })),
        ("/api/chat", json!({ "messages": messages, "stream": false })),
    ] {
        let (status, _, text) = send(&state, "POST", path, "", &body).await;
        assert_eq!(status, 200, "{path}: {text}");
        assert!(text.contains("rain.") && !text.contains("It is"), "{path}: {text}");
        // Nothing but text can follow it.
        let mut held = body.clone();
        held["format"] = json!("json");
        held["response_format"] = json!({ "type": "json_object" });
        held["output_config"] =
            json!({ "format": { "type": "json_schema", "schema": { "type": "object" } } });
        let (status, _, text) = send(&state, "POST", path, "", &held).await;
        assert!(status == 400 && text.contains("cannot be held to a form"), "{path}: {text}");
    }
}

fn custom(name: &str, format: Value) -> Value {
    json!({ "type": "custom", "custom": { "name": name, "description": "Runs it.", "format": format } })
}

#[tokio::test]
async fn a_call_of_a_custom_tool_has_an_input() {
    let input = "echo \"a\"\n\tb";
    let call = json!({ "name": "shell", "arguments": { "input": input } });
    let state = harmony(json!([
        { "match": "^functions", "answer": "Done." },
        { "reasoning": "I run it.", "call": call },
    ]));
    let grammar = json!({ "type": "grammar", "grammar": { "syntax": "regex", "definition": "echo [^~]*" } });
    let tools = json!([function("look"), custom("shell", grammar)]);
    let body = ask(CHAT, json!({ "tools": tools }));
    let text = prompt(&state, &body).await;
    assert!(text.contains("// Runs it.\n// \n// The input has this form:\n// echo [^~]*\n"), "{text}");
    assert!(text.contains("type shell = (_: {\ninput: string,\n}) => any;"), "{text}");
    let (status, headers, text) = send(&state, "POST", CHAT, "", &body).await;
    assert_eq!((status, headers.get("x-kernmill-unknown-fields")), (200, None), "{text}");
    let choice = serde_json::from_str::<Value>(&text).unwrap()["choices"][0].take();
    assert_eq!(choice["finish_reason"], "tool_calls");
    let made = &choice["message"]["tool_calls"][0];
    let expected =
        json!({ "id": made["id"], "type": "custom", "custom": { "name": "shell", "input": input } });
    assert_eq!(made, &expected);
    let mut streamed = body.clone();
    streamed["stream"] = json!(true);
    let (_, _, text) = send(&state, "POST", CHAT, "", &streamed).await;
    let chunks = text.split("data: ").filter_map(|chunk| serde_json::from_str::<Value>(chunk.trim()).ok());
    let calls: Vec<Value> = chunks
        .map(|chunk| chunk["choices"][0]["delta"]["tool_calls"][0].clone())
        .filter(|call| !call.is_null())
        .collect();
    let begun = json!({ "name": "shell", "input": "" });
    assert_eq!((&calls[0]["type"], &calls[0]["custom"]), (&json!("custom"), &begun));
    assert!(calls[0]["id"].is_string() && calls[1].get("id").is_none(), "{calls:?}");
    let text: String = calls.iter().map(|call| call["custom"]["input"].as_str().unwrap()).collect();
    assert_eq!(text, input);
    // The call comes back as the API gave it.
    let result = json!({ "role": "tool", "tool_call_id": made["id"], "content": "a b" });
    let messages = json!([{ "role": "user", "content": "Hi" }, choice["message"], result]);
    let next = json!({ "messages": messages, "tools": tools });
    let told = prompt(&state, &next).await;
    assert!(told.contains(&json!({ "input": input }).to_string()), "{told}");
    let (_, _, text) = send(&state, "POST", CHAT, "", &next).await;
    assert!(text.contains("\"content\":\"Done.\""), "{text}");
    for choice in [
        json!({ "type": "custom", "custom": { "name": "shell" } }),
        json!({ "type": "allowed_tools", "allowed_tools": { "mode": "required", "tools": [{ "type": "custom",
            "custom": { "name": "shell" } }] } }),
    ] {
        let body = ask(CHAT, json!({ "tools": tools, "tool_choice": choice }));
        let (status, _, text) = send(&state, "POST", CHAT, "", &body).await;
        assert!(status == 200 && text.contains("\"type\":\"custom\""), "{choice}: {text}");
    }
}

#[tokio::test]
async fn the_input_of_a_custom_tool_is_held_to_its_format() {
    let format = |syntax: &str, definition: &str| {
        json!({ "type": "grammar", "grammar": { "syntax": syntax,
        "definition": definition } })
    };
    // Text that may not come is left out of a scripted answer.
    for (format, said, held) in [
        (json!({ "type": "text" }), "any \"text\"", "any \"text\""),
        (Value::Null, "any", "any"),
        (format("regex", "[a-c]+"), "abdxc", "abc"),
        (format("lark", "start: (\"a\" | \"b\") LF \"c\"\n%import common.LF"), "xb\nac", "b\nc"),
    ] {
        let call = json!({ "name": "run", "arguments": { "input": said } });
        let state = harmony(json!([{ "call": call }]));
        let body = ask(CHAT, json!({ "tools": [custom("run", format)], "max_tokens": 60 }));
        let (status, _, text) = send(&state, "POST", CHAT, "", &body).await;
        let answer: Value = serde_json::from_str(&text).unwrap();
        let found = &answer["choices"][0]["message"]["tool_calls"][0]["custom"]["input"];
        assert_eq!((status, found), (200, &json!(held)), "{text}");
    }
    let state = harmony(json!([{ "answer": "Yes." }]));
    for (tool, what) in [
        (json!({ "type": "custom" }), "`tools[0].custom` is missing"),
        (json!({ "type": "custom", "custom": {} }), "`tools[0].custom.name` is missing"),
        (custom("a b", Value::Null), "`tools[0].custom.name` must have"),
        (custom("a", json!({})), "`tools[0].custom.format.type` is missing"),
        (custom("a", json!({ "type": "json" })), "`tools[0].custom.format.type` is \\\"json\\\""),
        (custom("a", format("gbnf", "x")), "`tools[0].custom.format.grammar.syntax` is \\\"gbnf\\\""),
        (custom("a", format("regex", "(")), "the function `a`"),
        (
            custom("a", format("lark", "start: \"(\" start? \")\"")),
            "`tools[0].custom.format.grammar.definition`: the grammar: the rule `start` has itself inside",
        ),
        (json!({ "type": "mcp" }), "expected \\\"function\\\" or \\\"custom\\\""),
    ] {
        let (status, _, text) = send(&state, "POST", CHAT, "", &ask(CHAT, json!({ "tools": [tool] }))).await;
        assert!(status == 400 && text.contains(what), "{tool}: {status} {text}");
    }
}
