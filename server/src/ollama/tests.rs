use super::events::AnswerEvents;
use super::request::OllamaRoute;
use crate::chat::pieces::AnswerPiece;
use crate::scripted::{Scripted, send, state};
use crate::state::{ServerConfig, ServerState};
use axum::http::HeaderMap;
use kernmill_chat::AnswerPart;
use kernmill_serve::Finish;
use serde_json::{Value, json};
use std::sync::Arc;

const CHAT: &str = "/api/chat";
const GENERATE: &str = "/api/generate";

/// A request with these fields.
fn ask(path: &str, with: Value) -> Value {
    let mut body = match path {
        CHAT => json!({ "messages": [{ "role": "user", "content": "Hi" }] }),
        _ => json!({ "prompt": "Hi" }),
    };
    body.as_object_mut().unwrap().extend(with.as_object().unwrap().clone());
    body
}

async fn post(state: &Arc<ServerState>, path: &str, body: &Value) -> (u16, HeaderMap, Vec<Value>) {
    let (status, headers, text) = send(state, "POST", path, "", body).await;
    (status, headers, text.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

/// The text of a line of either route.
fn text(line: &Value) -> &str {
    line["message"]["content"].as_str().or(line["response"].as_str()).unwrap()
}

#[tokio::test]
async fn an_answer_comes_in_lines_unless_it_is_asked_for_whole() {
    let state = state(Scripted::stops(&["Hel", "lo"]), ServerConfig::default());
    for path in [CHAT, GENERATE] {
        let (status, headers, lines) = post(&state, path, &ask(path, json!({ "odd": 1 }))).await;
        assert_eq!((status, headers["x-kernmill-unknown-fields"].to_str().unwrap()), (200, "odd"));
        assert_eq!(headers["content-type"], "application/x-ndjson");
        assert_eq!(lines.iter().map(text).collect::<Vec<_>>(), ["Hel", "lo", ""]);
        let (last, others) = lines.split_last().unwrap();
        assert!(others.iter().all(|line| line["done"] == false && line.get("done_reason").is_none()));
        let (_, headers, whole) = post(&state, path, &ask(path, json!({ "stream": false }))).await;
        let [whole] = &whole[..] else { panic!("{whole:?}") };
        assert_eq!((text(whole), &headers["content-type"]), ("Hello", &"application/json".parse().unwrap()));
        for end in [last, whole] {
            for (name, value) in [("model", "nano"), ("done_reason", "stop")] {
                assert_eq!(end[name], value);
            }
            assert_eq!((&end["done"], &end["eval_count"]), (&json!(true), &json!(2)));
            assert_eq!(end["total_duration"], 2_000_000);
            assert_eq!(
                (&end["prompt_eval_duration"], &end["eval_duration"]),
                (&json!(1_000_000), &json!(1_000_000))
            );
            assert!(end["prompt_eval_count"].as_u64().unwrap() > 0 && end["load_duration"] == 0);
            let time = end["created_at"].as_str().unwrap();
            assert!(time.starts_with("20") && time.ends_with('Z') && time.len() == 27, "{time}");
        }
    }
}

#[tokio::test]
async fn nothing_asked_says_that_the_model_is_there() {
    let backend = Scripted::stops(&["Yes."]);
    let state = state(backend.clone(), ServerConfig::default());
    for (path, body) in [
        (CHAT, json!({})),
        (CHAT, json!({ "messages": [], "keep_alive": 0 })),
        (GENERATE, json!({ "keep_alive": "5m" })),
        (GENERATE, json!({ "prompt": "", "raw": true })),
    ] {
        let (status, headers, lines) = post(&state, path, &body).await;
        assert_eq!((status, lines.len(), headers.get("x-kernmill-unknown-fields")), (200, 1, None));
        assert_eq!((text(&lines[0]), &lines[0]["done_reason"]), ("", &json!("load")));
    }
    assert!(backend.prompts.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_name_means_the_same_with_the_tag_latest() {
    let aliases = [("other:latest", "nano"), ("small:1b", "nano")];
    let aliases = aliases.map(|(name, meant)| (name.to_owned(), meant.to_owned())).into_iter().collect();
    let state = state(Scripted::stops(&["Yes."]), ServerConfig { aliases, ..ServerConfig::default() });
    for (name, expected) in [
        ("nano", 200),
        ("nano:latest", 200),
        ("small:1b", 200),
        ("other:latest", 200),
        ("other", 200),
        ("nano:1b", 404),
        ("nano:latest:latest", 404),
        (":latest", 404),
    ] {
        let body = ask(CHAT, json!({ "model": name, "stream": false }));
        let (status, _, lines) = post(&state, CHAT, &body).await;
        assert_eq!(status, expected, "{name}: {lines:?}");
        match expected {
            200 => assert_eq!(lines[0]["model"], name),
            _ => assert!(lines[0]["error"].as_str().unwrap().contains("there is no model"), "{lines:?}"),
        }
    }
    // OpenAI's API knows no tags.
    let (status, ..) =
        post(&state, "/v1/chat/completions", &ask(CHAT, json!({ "model": "nano:latest" }))).await;
    assert_eq!(status, 404);
}

#[tokio::test]
async fn options_are_read_and_those_of_the_machine_passed_over() {
    let state = state(Scripted::stops(&["one, ", "tw", "o, three"]), ServerConfig::default());
    let options = json!({
        "temperature": 0.5, "top_p": 0.9, "top_k": 40, "min_p": 0.05, "seed": -1, "num_predict": -1,
        "repeat_penalty": 1.1, "presence_penalty": 0.5, "frequency_penalty": 0.5, "stop": ["four", "two"],
        "num_gpu": 1, "num_thread": 8, "use_mmap": true,
        "num_ctx": 4096, "mirostat": 1, "repeat_last_n": 64,
    });
    let body = ask(GENERATE, json!({ "options": options, "stream": false, "keep_alive": -1 }));
    let (status, headers, lines) = post(&state, GENERATE, &body).await;
    assert_eq!((status, text(&lines[0]), &lines[0]["done_reason"]), (200, "one, ", &json!("stop")));
    let unknown = &headers["x-kernmill-unknown-fields"];
    assert_eq!(unknown, "options.num_ctx, options.mirostat, options.repeat_last_n");
    for (options, name) in [
        (json!({ "temperature": -1 }), "`options.temperature`"),
        (json!({ "top_p": 0 }), "`options.top_p`"),
        (json!({ "top_k": -2 }), "`options.top_k`"),
        (json!({ "min_p": 1.5 }), "`options.min_p`"),
        (json!({ "seed": 0.5 }), "`options.seed`"),
        (json!({ "repeat_penalty": 0 }), "`options.repeat_penalty`"),
        (json!({ "presence_penalty": 3 }), "`options.presence_penalty`"),
        (json!({ "frequency_penalty": "a" }), "`options.frequency_penalty`"),
        (json!({ "num_predict": -3 }), "`options.num_predict`"),
        (json!({ "num_predict": 1e300 }), "`options.num_predict`"),
        (json!({ "num_predict": 5000 }), "context"),
        (json!({ "stop": [1] }), "`options.stop`"),
        (json!(7), "options"),
    ] {
        let (status, _, lines) = post(&state, GENERATE, &ask(GENERATE, json!({ "options": options }))).await;
        let error = lines[0]["error"].as_str().unwrap();
        assert!(status == 400 && error.contains(name), "{options}: {error}");
    }
}

#[tokio::test]
async fn conversations_with_calls_are_read() {
    let backend = Scripted::stops(&["Yes."]);
    let state = state(backend.clone(), ServerConfig::default());
    let call = |city: &str| json!({ "function": { "name": "look", "arguments": { "city": city } } });
    let calls = [call("Oslo"), call("Rome")];
    let look =
        json!({ "type": "function", "function": { "name": "look", "parameters": { "type": "object" } } });
    let body = json!({
        "tools": [look], "think": "low", "stream": false,
        "messages": [
            { "role": "system", "content": "Be kind." },
            { "role": "user", "content": "Where?" },
            { "role": "assistant", "content": "I look.", "thinking": "Look.", "tool_calls": calls },
            { "role": "tool", "tool_name": "look", "content": "dark" },
            { "role": "tool", "content": "light" },
            { "role": "user", "content": "Go on.", "images": [] },
        ],
    });
    let (status, _, lines) = post(&state, CHAT, &body).await;
    assert_eq!((status, lines[0]["message"]["content"].as_str()), (200, Some("Yes.")), "{lines:?}");
    let prompt = backend.prompts.lock().unwrap().last().cloned().unwrap();
    assert!(prompt.contains("Be kind.") && prompt.contains("Go on."), "{prompt}");
}

#[tokio::test]
async fn wrong_fields_are_named_in_the_envelope_of_the_api() {
    let state = state(Scripted::stops(&["Yes."]), ServerConfig::default());
    let chat = |messages: Value| (CHAT, json!({ "messages": messages }));
    let after = |message: Value| {
        let call = json!({ "function": { "name": "look", "arguments": {} } });
        let called = json!({ "role": "assistant", "content": "", "tool_calls": [call] });
        chat(json!([{ "role": "user", "content": "a" }, called, message]))
    };
    let user = |with: Value| ask(CHAT, with);
    for ((path, body), name) in [
        (chat(json!("Hi")), "`messages`"),
        (chat(json!([{ "content": "Hi" }])), "`messages[0].role`"),
        (chat(json!([{ "role": "clown", "content": "Hi" }])), "`messages[0].role`"),
        (chat(json!([{ "role": "user" }])), "`messages[0].content`"),
        (chat(json!([{ "role": "user", "content": "a", "images": ["aGk="] }])), "`messages[0].images`"),
        (
            chat(json!([{ "role": "assistant", "tool_calls": [{ "function": { "name": "f" } }] }])),
            "`messages[0].role`",
        ),
        (chat(json!([{ "role": "tool", "content": "4" }])), "`messages[0].tool_name`"),
        (after(json!({ "role": "tool", "tool_name": "other", "content": "4" })), "`messages[2].tool_name`"),
        (after(json!({ "role": "tool", "tool_call_id": "x", "content": "4" })), "`messages[2].tool_call_id`"),
        ((CHAT, user(json!({ "tools": [{ "type": "browser" }] }))), "`tools[0].type`"),
        ((CHAT, user(json!({ "think": "long" }))), "`think`"),
        ((CHAT, user(json!({ "think": 3 }))), "`think`"),
        ((CHAT, user(json!({ "format": "xml" }))), "`format`"),
        ((CHAT, user(json!({ "format": { "type": "nothing" } }))), "format"),
        ((CHAT, user(json!({ "stream": "yes" }))), "`stream`"),
        ((CHAT, json!({ "model": "" })), "`model`"),
        ((GENERATE, ask(GENERATE, json!({ "suffix": "b" }))), "`suffix`"),
        ((GENERATE, ask(GENERATE, json!({ "template": "{{ .Prompt }}" }))), "`template`"),
        ((GENERATE, ask(GENERATE, json!({ "images": ["aGk="] }))), "`images`"),
        ((GENERATE, ask(GENERATE, json!({ "context": [1, 2] }))), "`context`"),
        ((GENERATE, ask(GENERATE, json!({ "raw": true, "system": "Be kind." }))), "`system`"),
        ((GENERATE, json!({ "prompt": 7 })), "`prompt`"),
        ((GENERATE, json!({ "prompt": "word ".repeat(2000) })), "the context holds 1024 tokens"),
    ] {
        let (status, _, lines) = post(&state, path, &body).await;
        assert_eq!((status, lines.len()), (400, 1), "{body}: {lines:?}");
        let error = lines[0]["error"].as_str().unwrap();
        assert!(error.contains(name), "{body}: {error}");
    }
}

#[tokio::test]
async fn a_failure_ends_the_stream_with_an_error() {
    let failed = Scripted::new(&["Hel"], Finish::Failed("it broke".to_owned()));
    let failed = state(failed, ServerConfig::default());
    let (status, _, lines) = post(&failed, CHAT, &ask(CHAT, json!({}))).await;
    assert_eq!((status, lines.len(), lines.last().unwrap()), (200, 2, &json!({ "error": "it broke" })));
    let (status, _, lines) = post(&failed, CHAT, &ask(CHAT, json!({ "stream": false }))).await;
    assert_eq!((status, &lines[0]["error"]), (500, &json!("it broke")));
    assert!(lines[0]["request_id"].as_str().unwrap().starts_with("req_"), "{}", lines[0]);
    let cut = state(Scripted::new(&["Hel"], Finish::MaxTokens), ServerConfig::default());
    let (_, _, lines) = post(&cut, GENERATE, &ask(GENERATE, json!({ "raw": true }))).await;
    assert_eq!(lines.last().unwrap()["done_reason"], "length");
}

#[tokio::test]
async fn clients_find_the_model_and_what_it_can_do() {
    let aliases = [("gpt-oss:20b".to_owned(), "nano".to_owned())].into_iter().collect();
    let state = state(Scripted::stops(&["Yes."]), ServerConfig { aliases, ..ServerConfig::default() });
    for path in ["/api/tags", "/api/ps"] {
        let (status, _, text) = send(&state, "GET", path, "", &json!({})).await;
        let list: Value = serde_json::from_str(&text).unwrap();
        let models = list["models"].as_array().unwrap();
        let names: Vec<&str> = models.iter().map(|model| model["name"].as_str().unwrap()).collect();
        assert_eq!((status, names), (200, vec!["nano:latest", "gpt-oss:20b"]));
        for model in models {
            assert_eq!(model["name"], model["model"]);
            assert_eq!(model["digest"].as_str().unwrap().len(), 64);
        }
        assert_eq!(models[0]["context_length"].as_u64(), (path == "/api/ps").then_some(1024));
    }
    for name in ["nano", "nano:latest", "gpt-oss:20b"] {
        for field in ["model", "name"] {
            // `send` puts the model's name where it is missing.
            let (status, _, lines) = post(&state, "/api/show", &json!({ "model": name, field: name })).await;
            assert_eq!((status, &lines[0]["capabilities"]), (200, &json!(["completion"])));
            let info = &lines[0]["model_info"];
            let architecture = info["general.architecture"].as_str().unwrap();
            assert_eq!(info[format!("{architecture}.context_length")], 1024);
        }
    }
    let (status, ..) = post(&state, "/api/show", &json!({ "model": "none" })).await;
    assert_eq!(status, 404);
    let (_, _, text) = send(&state, "GET", "/api/version", "", &json!({})).await;
    let version: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(version["version"].as_str().unwrap().split('.').count(), 3);
    assert_eq!(version["kernmill"], env!("CARGO_PKG_VERSION"));
}

#[test]
fn a_call_without_arguments_has_an_empty_object() {
    let backend = Scripted::stops(&[]);
    let facts = crate::backend::Backend::facts(&*backend);
    for text in ["", "null", "{}"] {
        let mut answer = AnswerEvents::new(OllamaRoute::Chat, "nano".to_owned());
        answer
            .take(facts, AnswerPiece::Begin(AnswerPart::Call { name: "look".to_owned(), is_builtin: false }));
        answer.take(facts, AnswerPiece::Delta(text.to_owned(), Vec::new()));
        let line = answer.take(facts, AnswerPiece::End(true)).unwrap();
        let function = &line["message"]["tool_calls"][0]["function"];
        assert_eq!((&function["name"], &function["arguments"]), (&json!("look"), &json!({})), "{text:?}");
    }
}
