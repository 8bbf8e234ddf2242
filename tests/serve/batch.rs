//! Lines of a batch, and what the server answers to their bodies.

use super::client::post;
use super::harmony::{random, tools};
use super::{Served, nano};
use kernmill::Loaded;
use kernmill::observe::Silent;
use kernmill_os::output::GoneOnWith;
use kernmill_server::batch::{Answers, BatchOptions, run};
use kernmill_server::{ServerConfig, Today};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// The answers of a batch by the names of its lines. `failed` of the lines fail.
fn batch((loaded, end_tokens): (Loaded, Vec<u32>), lines: &[String], failed: u64) -> BTreeMap<String, Value> {
    let dir = tempfile::tempdir().unwrap();
    let (path, name) = (dir.path().join("answers.jsonl"), Path::new("requests.jsonl"));
    let options = BatchOptions {
        parallel: 4,
        max_tokens: None,
        end_tokens,
        date: Today::None,
        observer: Arc::new(Silent),
    };
    let mut answers = Answers::open(GoneOnWith::open(&path).unwrap(), &path, name).unwrap();
    let input = lines.join("\n");
    let stats = run(loaded, &mut input.as_bytes(), name, &mut answers, &options, &mut |_| true).unwrap();
    assert_eq!((stats.failed, answers.len()), (failed, lines.len()));
    let text = std::fs::read_to_string(&path).unwrap();
    let line = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        (line["custom_id"].as_str().unwrap().to_owned(), line)
    };
    text.lines().map(line).collect()
}

/// Checks that an answer of a batch is that of the server but for times and names; what is of the batch's
/// own, such as `token_ids`, is not looked at.
#[track_caller]
fn check(ours: &Value, theirs: &Value, body: &Value) {
    for name in ["object", "model", "system_fingerprint"] {
        assert_eq!(ours[name], theirs[name], "{body}");
    }
    assert!(ours["id"].is_string() && ours["created"].is_u64(), "{ours}");
    assert_eq!(own_parts(&ours["choices"]), own_parts(&theirs["choices"]), "{body}");
    for name in ["prompt_tokens", "completion_tokens", "total_tokens", "completion_tokens_details"] {
        assert_eq!(ours["usage"][name], theirs["usage"][name], "{body}");
    }
    assert_eq!(ours["kernmill"]["seed"], theirs["kernmill"]["seed"]);
}

/// Choices without the names of calls, which are other ones every time, and without ids of tokens.
fn own_parts(choices: &Value) -> Value {
    let mut choices = choices.clone();
    for choice in choices.as_array_mut().unwrap() {
        choice.as_object_mut().unwrap().remove("token_ids");
        let calls = choice["message"]["tool_calls"].as_array_mut();
        calls.into_iter().flatten().for_each(|call| call["id"] = Value::Null);
    }
    choices
}

#[test]
fn completions_in_a_batch_get_the_answers_of_the_server() {
    let schema = json!({ "type": "object", "properties": { "n": { "enum": [1, 2] } }, "required": ["n"],
        "additionalProperties": false });
    let format = json!({ "type": "json_schema", "json_schema": { "name": "n", "schema": schema } });
    let bodies: Vec<Value> = [
        json!({ "prompt": "A slice is", "max_tokens": 24 }),
        json!({ "prompt": [3, 44, 5], "max_tokens": 9, "temperature": 0.6, "top_p": 0.9, "top_k": 20, "min_p": 0.01 }),
        json!({ "prompt": ["A slice"], "max_tokens": 30, "stop": ["e", "t"], "presence_penalty": 0.5 }),
        json!({ "prompt": "It returns", "max_tokens": 60, "response_format": format }),
        json!({ "prompt": "It returns", "max_tokens": 60, "response_format": { "type": "json_object" } }),
        json!({ "prompt": "Is it?", "max_tokens": 40, "kernmill": { "grammar": "start: \"no\" | \"yes\"" } }),
        json!({ "prompt": "Is it?", "max_tokens": 40, "guided_choice": ["maybe", "never"] }),
        json!({ "prompt": "A slice is", "max_tokens": 6, "logprobs": 2, "echo": true }),
        json!({ "prompt": "A slice is", "max_tokens": 0, "logprobs": true, "echo": true }),
        json!({ "prompt": "A slice", "max_tokens": 20, "logit_bias": { "17": 8 }, "ignore_eos": true, "user": "me" }),
    ]
    .into_iter()
    .enumerate()
    .map(|(seed, mut body)| {
        let mut usual = json!({ "seed": seed, "model": "nano", "temperature": 1, "top_p": 1 });
        usual.as_object_mut().unwrap().append(body.as_object_mut().unwrap());
        usual
    })
    .collect();
    let line = |(at, body): (usize, &Value)| match at % 2 {
        0 => json!({ "custom_id": at.to_string(), "method": "POST", "url": "/v1/completions", "body": body }),
        _ => {
            let mut line = body.clone();
            line["id"] = json!(at.to_string());
            line
        }
    };
    let mut lines: Vec<String> = bodies.iter().enumerate().map(|one| line(one).to_string()).collect();
    lines.push(json!({ "id": "usual", "prompt": "A slice is" }).to_string());
    lines.push(json!({ "id": "full", "prompt": vec![5; 500], "temperature": 0 }).to_string());
    let wrong = [
        ("n", json!({ "n": 2 }), "`n` other than 1"),
        ("stream", json!({ "stream": true }), "`stream` is of no use in a batch"),
        ("several", json!({ "prompt": ["a", "b"] }), "`prompt` has 2 prompts: give a line for each"),
        (
            "far",
            json!({ "prompt": "word ".repeat(100_000) }),
            "the context holds 512 tokens, the prompt has more",
        ),
        (
            "room",
            json!({ "prompt": vec![5; 500], "max_tokens": 13 }),
            "the prompt has 500 and 13 are asked for",
        ),
        ("session", json!({ "session": 7 }), "`session` is 7, expected a string"),
        ("gbnf", json!({ "grammar": "root ::= \"a\"" }), "expected one in Lark's syntax"),
        ("tempo", json!({ "tempo": 1 }), "unknown field `tempo`"),
        ("adapter", json!({ "adapter": "poet" }), "`adapter` is \"poet\", expected the name of an adapter"),
        ("model", json!({ "model": "poet" }), "there is no model `poet`, expected one of: nano"),
    ];
    for (id, fields, _) in &wrong {
        let mut body = json!({ "id": id, "prompt": "x", "max_tokens": 2 });
        body.as_object_mut().unwrap().append(&mut fields.as_object().unwrap().clone());
        lines.push(body.to_string());
    }
    let found = batch(nano(512, 4), &lines, wrong.len() as u64);
    for (id, _, part) in &wrong {
        let number = lines.iter().position(|line| line.contains(&format!("\"id\":\"{id}\""))).unwrap() + 1;
        let message = found[*id]["error"]["message"].as_str().unwrap();
        assert!(message.starts_with(&format!("line {number}: ")) && message.contains(part), "{message}");
    }
    let served = Served::new(ServerConfig { grammars: true, ..ServerConfig::default() });
    for (at, body) in bodies.iter().enumerate() {
        let reply = post(served.address, "/v1/completions", body);
        assert_eq!(reply.status, 200, "{}", reply.body);
        check(&found[&at.to_string()]["response"]["body"], &reply.json(), body);
    }
    // The usual request of a batch, sent to the server.
    let body = json!({ "model": "nano", "prompt": "A slice is", "max_tokens": 200, "temperature": 0.6,
        "top_p": 0.9, "seed": 0 });
    let usual = &found["usual"]["response"]["body"];
    check(usual, &post(served.address, "/v1/completions", &body).json(), &body);
    let ids = usual["choices"][0]["token_ids"].as_array().unwrap();
    assert_eq!(usual["usage"]["completion_tokens"], ids.len());
    // Where nobody says how many tokens, the context does.
    let full = &found["full"]["response"]["body"];
    assert!(full["usage"]["completion_tokens"].as_u64().unwrap() <= 12, "{full}");
}

#[test]
fn conversations_in_a_batch_get_the_answers_of_the_server() {
    let messages = json!([{ "role": "user", "content": "How is the weather in Oslo?" }]);
    let schema = json!({ "type": "object", "properties": { "n": { "enum": [1, 2] } }, "required": ["n"],
        "additionalProperties": false });
    let format = json!({ "type": "json_schema", "json_schema": { "name": "n", "schema": schema } });
    let mut tools = tools();
    tools[0]["function"]["parameters"]["properties"]["city"] = json!({ "enum": ["Oslo", "Rome"] });
    let bodies: Vec<Value> = [
        json!({ "max_completion_tokens": 24 }),
        json!({ "max_tokens": 30, "temperature": 0.3, "top_p": 0.9, "reasoning_effort": "high" }),
        json!({ "max_tokens": 200, "tools": tools, "tool_choice": "required", "logit_bias": { "3068": 9 } }),
        json!({ "max_tokens": 200, "response_format": format, "reasoning_effort": "none" }),
        json!({ "max_tokens": 40, "stop": ["e"], "reasoning_effort": "none" }),
        json!({ "max_tokens": 8, "logprobs": true, "top_logprobs": 2, "reasoning_effort": "none" }),
    ]
    .into_iter()
    .enumerate()
    .map(|(seed, mut body)| {
        (body["messages"], body["seed"], body["model"]) = (messages.clone(), json!(seed), json!("gpt-oss"));
        body
    })
    .collect();
    let mut lines: Vec<String> = bodies
        .iter()
        .enumerate()
        .map(|(at, body)| {
            json!({ "custom_id": at.to_string(), "method": "POST", "url": "/v1/chat/completions", "body": body })
                .to_string()
        })
        .collect();
    // Without a URL and a model's name, and without a seed, which is 0 then.
    lines.push(json!({ "id": "short", "messages": messages, "max_tokens": 24 }).to_string());
    for (id, wrong) in [
        ("n", json!({ "n": 2 })),
        ("role", json!({ "messages": [{ "role": "clown" }] })),
        ("tempo", json!({ "tempo": 1 })),
    ] {
        let mut body = json!({ "id": id, "messages": messages, "max_tokens": 2 });
        wrong.as_object().unwrap().iter().for_each(|(name, value)| body[name] = value.clone());
        lines.push(body.to_string());
    }
    let found = batch(random(512, 4), &lines, 3);
    for (id, part) in [
        ("n", "`n` other than 1"),
        ("role", "`messages[0].role` is \"clown\""),
        ("tempo", "unknown field `tempo`"),
    ] {
        assert!(found[id]["error"]["message"].as_str().unwrap().contains(part), "{}", found[id]);
    }
    let served =
        Served::of(random(512, 4), "gpt-oss", ServerConfig { date: Today::None, ..ServerConfig::default() });
    for (at, body) in bodies.iter().enumerate() {
        let reply = post(served.address, "/v1/chat/completions", body);
        assert_eq!(reply.status, 200, "{}", reply.body);
        check(&found[&at.to_string()]["response"]["body"], &reply.json(), body);
    }
    let called = &found["2"]["response"]["body"]["choices"][0];
    assert_eq!(
        (&called["finish_reason"], &called["message"]["tool_calls"][0]["function"]["name"]),
        (&json!("tool_calls"), &json!("weather"))
    );
    let formed = found["3"]["response"]["body"]["choices"][0]["message"]["content"].as_str().unwrap();
    assert!(serde_json::from_str::<Value>(formed).unwrap()["n"].is_u64(), "{formed}");
    let short = &found["short"]["response"]["body"]["choices"];
    assert_eq!(short, &found["0"]["response"]["body"]["choices"]);
}
