//! Features of this server alone: forms by grammars, other names of models, reasoning that comes back with
//! its ids, summaries, sessions, the log.

use super::client::{Reply, get, get_with, post, post_with, raw};
use super::harmony::random;
use super::killed::start;
use super::{Served, nano};
use kernmill_serve::SchedulerConfig as Scheduling;
use kernmill_server::{BackendInfo, EngineBackend, Keys, ServerConfig, Today, limits};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

fn messages() -> Value {
    json!([{ "role": "user", "content": "Is a slice sized?" }])
}

fn with(mut body: Value, more: &Value) -> Value {
    more.as_object().unwrap().iter().for_each(|(name, value)| body[name] = value.clone());
    body
}

#[test]
fn grammars_are_followed_where_the_server_permits_them() {
    let config = || ServerConfig { date: Today::None, ..ServerConfig::default() };
    let strict = Served::of(random(512, 2), "gpt-oss", config());
    let open = Served::of(random(512, 2), "gpt-oss", ServerConfig { grammars: true, ..config() });
    let regex = json!({ "regex": "(yes|no), because [a-z ]{4,20}" });
    let lark = json!({ "lark": "start: NUMBER (\",\" NUMBER)+\nNUMBER: /[0-9]{1,3}/" });
    let is_reason = |text: &str| {
        let reason = text.strip_prefix("yes, because ").or(text.strip_prefix("no, because "));
        reason.is_some_and(|rest| {
            (4..=20).contains(&rest.len()) && rest.chars().all(|c| c == ' ' || c.is_ascii_lowercase())
        })
    };
    let is_list = |text: &str| text.contains(',') && text.split(',').all(|part| part.parse::<u16>().is_ok());
    for seed in 0..4 {
        for (own, fits) in [(&regex, &is_reason as &dyn Fn(&str) -> bool), (&lark, &is_list)] {
            let base = json!({ "model": "gpt-oss", "kernmill": own, "seed": seed });
            let chat = json!({ "messages": messages(), "max_tokens": 100, "reasoning_effort": "none" });
            let completion = json!({ "prompt": "Is a slice sized?", "max_tokens": 100 });
            let response =
                json!({ "input": "Is it?", "max_output_tokens": 100, "reasoning": { "effort": "none" } });
            for (path, body, text) in [
                ("/v1/chat/completions", chat, "/choices/0/message/content"),
                ("/v1/completions", completion, "/choices/0/text"),
                ("/v1/responses", response, "/output/0/content/0/text"),
            ] {
                let body = with(base.clone(), &body);
                let reply = post(open.address, path, &body);
                assert_eq!(reply.status, 200, "{body}: {}", reply.body);
                let reply = reply.json();
                let text = reply.pointer(text).and_then(Value::as_str).unwrap_or_default();
                let has_ended =
                    reply["choices"][0]["finish_reason"] == "stop" || reply["status"] == "completed";
                // A list may go on until the tokens are used up.
                assert!(!has_ended || fits(text), "{body}: {reply}");
                assert!(has_ended || own == &lark, "{body}: {reply}");
                let refused = post(strict.address, path, &body);
                let error = &refused.json()["error"];
                let name = if own == &regex { "kernmill.regex" } else { "kernmill.lark" };
                assert_eq!((refused.status, error["param"].as_str()), (400, Some(name)), "{error}");
                assert!(error["message"].as_str().unwrap().contains("--allow-grammars"), "{error}");
            }
        }
    }
    let form = json!({ "type": "json_object" });
    for (own, more, param) in [
        (json!({ "regex": "a", "lark": "start: \"a\"" }), json!({}), "kernmill.lark"),
        (json!({ "regex": "a" }), json!({ "response_format": form }), "response_format"),
        (json!({ "regex": "(" }), json!({}), "kernmill.regex"),
        (json!({ "lark": "begin: \"a\"" }), json!({}), "kernmill.lark"),
        (json!({ "regex": 7 }), json!({}), "kernmill.regex"),
        (json!({ "grammar": "a" }), json!({}), "kernmill.grammar"),
        (json!({ "regex": "a".repeat(70_000) }), json!({}), "kernmill.regex"),
    ] {
        let body = json!({ "model": "gpt-oss", "messages": messages(), "kernmill": own });
        let reply = post(open.address, "/v1/chat/completions", &with(body, &more));
        assert_eq!(
            (reply.status, reply.json()["error"]["param"].as_str()),
            (400, Some(param)),
            "{}",
            reply.body
        );
    }
}

/// The function that is to be called.
fn look() -> Value {
    let properties = json!({ "a": { "enum": ["x", "y"] } });
    let parameters = json!({
        "type": "object", "properties": properties, "required": ["a"], "additionalProperties": false,
    });
    json!([{ "type": "function", "name": "look", "parameters": parameters }])
}

/// A request for a call.
fn ask(seed: u64, streams: bool) -> Value {
    json!({
        "model": "gpt-oss", "store": false, "seed": seed, "max_output_tokens": 300, "stream": streams,
        "input": [{ "role": "user", "content": "Look it up, please." }],
        "tools": look(),
        "tool_choice": "required",
        // The random weights end their reasoning by it.
        "logit_bias": { "3068": 14 },
        "temperature": 3,
    })
}

/// A turn with a call: its response, and the items that the client has.
fn turn(served: &Served, seed: u64, streams: bool, include: bool) -> (Value, Vec<Value>) {
    let mut body = ask(seed, streams);
    if include {
        body["include"] = json!(["reasoning.encrypted_content"]);
    }
    let reply = post(served.address, "/v1/responses", &body);
    assert_eq!(reply.status, 200, "{}", reply.body);
    if !streams {
        let response = reply.json();
        let items = response["output"].as_array().unwrap().clone();
        return (response, items);
    }
    let data = reply.body.lines().filter_map(|line| line.strip_prefix("data: "));
    let events: Vec<Value> = data.map(|data| serde_json::from_str(data).unwrap()).collect();
    let items = events.iter().filter(|event| event["type"] == "response.output_item.done");
    (events.last().unwrap()["response"].clone(), items.map(|event| event["item"].clone()).collect())
}

/// The next turn: its response.
fn go_on(address: SocketAddr, items: &[Value], key: &[&str]) -> Reply {
    let call = items.iter().find(|item| item["type"] == "function_call").unwrap();
    let mut input = vec![json!({ "role": "user", "content": "Look it up, please." })];
    input.extend(items.iter().cloned());
    input.push(json!({ "type": "function_call_output", "call_id": call["call_id"], "output": "found" }));
    post_with(address, "/v1/responses", key, &follow_up(&json!(input)))
}

/// A request with what follows the call.
fn follow_up(input: &Value) -> Value {
    json!({ "model": "gpt-oss", "store": false, "max_output_tokens": 2, "input": input, "tools": look() })
}

#[test]
fn reasoning_comes_back_with_its_ids() {
    let served =
        Served::of(random(1024, 4), "gpt-oss", ServerConfig { date: Today::None, ..ServerConfig::default() });
    let usage_of = |response: &Value| {
        let usage = &response["usage"];
        usage["input_tokens"].as_u64().unwrap() + usage["output_tokens"].as_u64().unwrap()
    };
    let cached = |items: &[Value]| {
        // A text that has ended is in the cache now.
        served.settle();
        let reply = go_on(served.address, items, &[]);
        assert_eq!(reply.status, 200, "{}", reply.body);
        reply.json()["usage"]["input_tokens_details"]["cached_tokens"].as_u64().unwrap()
    };
    // Random weights do not always reason, and only mostly spell words in odd tokens, which their text does
    // not tell.
    let is_odd = |(response, items): &(Value, Vec<Value>)| {
        let reasons =
            response["status"] == "completed" && items.len() == 2 && items[0]["type"] == "reasoning";
        let is_empty = items[0]["content"][0]["text"] == "";
        reasons && !is_empty && cached(items) < usage_of(response) - 4
    };
    let seed = (0..60).find(|seed| is_odd(&turn(&served, *seed, false, false))).unwrap();
    let (response, plain) = turn(&served, seed, false, false);
    assert!(plain.iter().all(|item| item["encrypted_content"].is_null()), "{response}");
    let (usage, all) = (&response["usage"], usage_of(&response));
    let (_, sealed) = turn(&served, seed, false, true);
    assert_eq!(sealed[0]["type"], "reasoning", "{sealed:?}");
    assert_eq!(sealed[0]["content"], plain[0]["content"]);
    // The token that was chosen last was not run, and neither were those that the call's form forces behind
    // it: a quote, a brace, the end.
    let run = cached(&sealed);
    assert!((all - 4..all).contains(&run), "{run} of {all}");
    // So does an answer that the server keeps.
    let mut stored = ask(seed, false);
    stored["store"] = json!(true);
    let stored = post(served.address, "/v1/responses", &stored).json();
    let call =
        stored["output"].as_array().unwrap().iter().find(|item| item["type"] == "function_call").unwrap();
    let mut next = follow_up(&json!([
        { "type": "function_call_output", "call_id": call["call_id"], "output": "found" },
    ]));
    next["previous_response_id"] = stored["id"].clone();
    let reply = post(served.address, "/v1/responses", &next).json();
    assert!(reply["usage"]["input_tokens_details"]["cached_tokens"].as_u64().unwrap() >= run, "{reply}");
    // A client may leave out what it need not understand.
    let mut short = sealed.clone();
    (short[0]["content"], short[0]["summary"]) = (json!([]), json!([]));
    assert!(cached(&short) >= run, "the turn before has put these ids there");
    // In a stream, an item ends before the call has come.
    let (last, streamed) = turn(&served, seed, true, true);
    let reasoning = usage["input_tokens"].as_u64().unwrap()
        + usage["output_tokens_details"]["reasoning_tokens"].as_u64().unwrap();
    assert!(cached(&streamed) >= reasoning, "{streamed:?}");
    assert!(cached(last["output"].as_array().unwrap()) >= run);
    // Items that the client has changed count as they are now.
    let mut changed = sealed.clone();
    changed[0]["content"][0]["text"] = json!("Something else.");
    assert!(cached(&changed) < reasoning);
    for wrong in ["", "AAAA", &sealed[0]["encrypted_content"].as_str().unwrap()[1..]] {
        let mut items = sealed.clone();
        items[0]["encrypted_content"] = json!(wrong);
        let reply = go_on(served.address, &items, &[]);
        let name = "input[1].encrypted_content".to_owned();
        assert_eq!(
            (reply.status, reply.json()["error"]["param"].as_str()),
            (400, Some(&*name)),
            "{}",
            reply.body
        );
    }
    let other =
        Served::of(random(1024, 2), "gpt-oss", ServerConfig { date: Today::None, ..ServerConfig::default() });
    assert_eq!(go_on(other.address, &sealed, &[]).status, 400, "another server has another key");
}

#[test]
fn other_names_mean_the_model() {
    let aliases = BTreeMap::from([("gpt-4o".to_owned(), "nano".to_owned())]);
    let served = Served::new(ServerConfig { aliases, ..ServerConfig::default() });
    let ask = |model: &str| {
        let body = json!({ "model": model, "messages": messages(), "max_tokens": 8, "seed": 1 });
        post(served.address, "/v1/chat/completions", &body)
    };
    let (own, other) = (ask("nano").json(), ask("gpt-4o").json());
    assert_eq!(other["model"], "gpt-4o");
    assert_eq!(other["choices"], own["choices"]);
    let unknown = ask("gpt-5");
    assert_eq!(unknown.status, 404);
    assert!(unknown.body.contains("nano, gpt-4o"), "{}", unknown.body);
    let list = get(served.address, "/v1/models").json();
    let names: Vec<&Value> = list["data"].as_array().unwrap().iter().map(|model| &model["id"]).collect();
    assert_eq!(names, ["nano", "gpt-4o"]);
    assert_eq!(get(served.address, "/v1/models/gpt-4o").json()["root"], "nano");
    let config = |name: &str, meant: &str| {
        let aliases = BTreeMap::from([(name.to_owned(), meant.to_owned())]);
        ServerConfig { aliases, ..ServerConfig::default() }.check_names(&["nano"], &[])
    };
    assert!(config("nano", "nano").unwrap_err().contains("is a model already"));
    assert!(config("a", "nan").unwrap_err().contains("there is no model `nan`, expected one of: nano"));
    assert!(
        ServerConfig::alias("a").is_err()
            && ServerConfig::alias("=a").is_err()
            && ServerConfig::alias("a b=c").is_err()
    );
}

#[test]
fn responses_are_counted_compacted_and_not_cancelled() {
    let served =
        Served::of(random(1024, 2), "gpt-oss", ServerConfig { date: Today::None, ..ServerConfig::default() });
    let path = "/v1/responses";
    let body = json!({ "model": "gpt-oss", "input": "Hi", "max_output_tokens": 4, "reasoning": { "effort": "none" } });
    let response = post(served.address, path, &body).json();
    let count = post(served.address, "/v1/responses/input_tokens", &body).json();
    assert_eq!(
        count,
        json!({ "object": "response.input_tokens", "input_tokens": response["usage"]["input_tokens"] })
    );
    let id = response["id"].as_str().unwrap();
    assert_eq!(post(served.address, &format!("{path}/{id}/cancel"), &json!({})).status, 400);
    assert_eq!(post(served.address, &format!("{path}/resp_none/cancel"), &json!({})).status, 404);
    let input = json!([
        { "role": "user", "content": "We launch on Tuesday." },
        { "role": "assistant", "content": "On Tuesday, then." },
    ]);
    let body = json!({ "model": "gpt-oss", "input": input, "max_output_tokens": 12,
        "reasoning": { "effort": "none" }, "seed": 1 });
    let compact = post(served.address, "/v1/responses/compact", &body);
    assert_eq!(compact.status, 200, "{}", compact.body);
    let compact = compact.json();
    assert_eq!(compact["object"], "response.compaction");
    let output = compact["output"].as_array().unwrap();
    assert_eq!(
        (output.len(), &output[0]["role"], &output[1]["type"]),
        (2, &json!("user"), &json!("compaction"))
    );
    let mut next = output.clone();
    next.push(json!({ "role": "user", "content": "Which day?" }));
    let body = json!({ "model": "gpt-oss", "input": next, "max_output_tokens": 4 });
    assert_eq!(post(served.address, path, &body).status, 200);
    let mut forged = body.clone();
    forged["input"][1]["encrypted_content"] = json!("AAAA");
    assert_eq!(post(served.address, path, &forged).json()["error"]["param"], "input[1].encrypted_content");
}

/// A server that keeps sessions in a directory, with the keys of two people.
fn keeping(dir: &Path) -> Served {
    let keys = Keys::read("ann secret-key-of-ann\nbob secret-key-of-bob").unwrap();
    let config = ServerConfig { keys, sessions: Some(dir.to_owned()), ..ServerConfig::default() };
    let (loaded, ends) = nano(512, 4);
    let facts = BackendInfo::of(&loaded, "nano", &ends).unwrap();
    let serving = loaded.into_serving(Scheduling::default()).unwrap();
    Served::over(vec![Arc::new(EngineBackend::start(serving, facts).unwrap())], config)
}

const ANN: &[&str] = &["x-api-key: secret-key-of-ann"];
const BOB: &[&str] = &["x-api-key: secret-key-of-bob"];

fn delete(address: SocketAddr, path: &str, key: &str) -> Reply {
    let request = format!("DELETE {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{key}\r\n\r\n");
    raw(address, request.as_bytes())
}

#[test]
fn sessions_outlive_the_server_and_are_their_keys_alone() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("sessions");
    let text = "A slice is a view into a block of memory. ".repeat(8);
    let prompt = json!({ "model": "nano", "prompt": text, "max_tokens": 1, "temperature": 0 });
    let cached = |served: &Served, key: &[&str]| {
        let reply = post_with(served.address, "/v1/completions", key, &prompt).json();
        let usage = &reply["usage"];
        (
            usage["prompt_tokens_details"]["cached_tokens"].as_u64().unwrap(),
            usage["prompt_tokens"].as_u64().unwrap(),
        )
    };
    let served = keeping(&dir);
    let body = json!({ "name": "slices", "model": "nano", "prompt": text });
    let saved = post_with(served.address, "/v1/sessions", ANN, &body);
    assert_eq!(saved.status, 200, "{}", saved.body);
    let saved = saved.json();
    let tokens = saved["tokens"].as_u64().unwrap();
    assert!(tokens > 50 && saved["saved_tokens"].as_u64().unwrap() + 1 >= tokens, "{saved}");
    let chat = json!({ "name": "talk", "model": "nano", "messages": messages() });
    assert_eq!(post_with(served.address, "/v1/sessions", ANN, &chat).status, 200);
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let own = std::fs::read_dir(&dir).unwrap().next().unwrap().unwrap().path();
    assert_eq!((mode(&own), mode(&own.join("slices.session"))), (0o700, 0o600));
    drop(served);

    let served = keeping(&dir);
    let list = get_with(served.address, "/v1/sessions", ANN).json();
    let names: Vec<&Value> = list["data"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["slices", "talk"]);
    assert_eq!(get_with(served.address, "/v1/sessions", BOB).json()["data"], json!([]));
    let one = get_with(served.address, "/v1/sessions/slices", ANN).json();
    assert_eq!(one["token_ids"].as_array().unwrap().len() as u64, tokens);
    for reply in [
        get_with(served.address, "/v1/sessions/slices", BOB),
        post_with(served.address, "/v1/sessions/slices/restore", BOB, &json!({})),
        delete(served.address, "/v1/sessions/slices", BOB[0]),
        get_with(served.address, "/v1/sessions/..%2Fslices", ANN),
        get_with(served.address, "/v1/sessions/none", ANN),
        delete(served.address, "/v1/sessions/none", ANN[0]),
    ] {
        assert_eq!(reply.status, 404, "{}", reply.body);
    }
    assert_eq!(get(served.address, "/v1/sessions").status, 401);
    let restored = post_with(served.address, "/v1/sessions/slices/restore", ANN, &json!({})).json();
    assert_eq!(restored["restored_tokens"], json!(tokens - 1), "{restored}");
    assert_eq!(cached(&served, BOB).0, 0);
    assert_eq!(cached(&served, ANN), (tokens - 1, tokens));
    assert_eq!(delete(served.address, "/v1/sessions/slices", ANN[0]).status, 200);
    assert_eq!(delete(served.address, "/v1/sessions/slices", ANN[0]).status, 404);
}

#[test]
fn salts_part_cached_prompts_and_sessions() {
    let dir = tempfile::tempdir().unwrap();
    let served = keeping(dir.path());
    let text = "A slice is a view into a block of memory. ".repeat(8);
    let cached = |served: &Served, path: &str, salt: &str| {
        let (field, value, figure) = match path {
            "/v1/completions" => ("prompt", json!(text), "/usage/prompt_tokens_details/cached_tokens"),
            "/v1/responses" => ("input", json!(text), "/usage/input_tokens_details/cached_tokens"),
            "/v1/messages" => ("messages", messages(), "/usage/cache_read_input_tokens"),
            _ => ("messages", messages(), "/usage/prompt_tokens_details/cached_tokens"),
        };
        let length = if path == "/v1/responses" { "max_output_tokens" } else { "max_tokens" };
        let body = json!({ "model": "nano", field: value, length: 1, "cache_salt": salt });
        let reply = post_with(served.address, path, ANN, &body);
        assert_eq!(reply.status, 200, "{path}: {}", reply.body);
        reply.json().pointer(figure).and_then(Value::as_u64).unwrap_or_else(|| panic!("{}", reply.body))
    };
    for path in ["/v1/completions", "/v1/chat/completions", "/v1/responses", "/v1/messages"] {
        let found = ["one", "one", "two", "two"].map(|salt| cached(&served, path, &format!("{path} {salt}")));
        assert!(found[0] == 0 && found[1] > 0 && found[2] == 0 && found[3] == found[1], "{path} {found:?}");
        let body = json!({ "model": "nano", "cache_salt": "" });
        assert_eq!(post_with(served.address, path, ANN, &body).status, 400, "{path}");
    }

    let body = json!({ "name": "salted", "model": "nano", "prompt": text, "cache_salt": "one" });
    let saved = post_with(served.address, "/v1/sessions", ANN, &body).json();
    let tokens = saved["tokens"].as_u64().unwrap();
    assert!(saved["model"] == "nano" && saved["saved_tokens"].as_u64().unwrap() + 1 >= tokens, "{saved}");
    drop(served);
    let served = keeping(dir.path());
    let restored = post_with(served.address, "/v1/sessions/salted/restore", ANN, &json!({})).json();
    assert_eq!(restored["restored_tokens"], json!(tokens - 1), "{restored}");
    let found = ["two", "one"].map(|salt| cached(&served, "/v1/completions", salt));
    assert_eq!(found, [0, tokens - 1]);
    let body = json!({ "model": "nano", "prompt": text, "max_tokens": 1 });
    let reply = post_with(served.address, "/v1/completions", ANN, &body).json();
    assert_eq!(reply["usage"]["prompt_tokens_details"]["cached_tokens"], json!(0), "{reply}");
}

#[test]
fn sessions_are_bounded_and_permitted() {
    let dir = tempfile::tempdir().unwrap();
    let served = keeping(dir.path());
    let save = |body: Value| {
        post_with(served.address, "/v1/sessions", ANN, &with(json!({ "model": "nano" }), &body))
    };
    for (body, param) in [
        (json!({ "prompt": "a" }), "name"),
        (json!({ "name": "../a", "prompt": "a" }), "name"),
        (json!({ "name": ".a", "prompt": "a" }), "name"),
        (json!({ "name": "a".repeat(65), "prompt": "a" }), "name"),
        (json!({ "name": "a", "prompt": [5000] }), "prompt"),
        (json!({ "name": "a", "prompt": "a ".repeat(600) }), "prompt"),
        (json!({ "name": "a" }), "messages"),
    ] {
        let reply = save(body);
        assert_eq!(
            (reply.status, reply.json()["error"]["param"].as_str()),
            (400, Some(param)),
            "{}",
            reply.body
        );
    }
    assert_eq!(save(json!({ "name": "a", "prompt": "One" })).status, 200);
    let file = std::fs::read_dir(dir.path()).unwrap().next().unwrap().unwrap().path().join("a.session");
    for n in 1..limits::SESSIONS {
        std::fs::copy(&file, file.with_file_name(format!("b{n}.session"))).unwrap();
    }
    let full = save(json!({ "name": "c", "prompt": "One" }));
    assert!(full.status == 400 && full.body.contains("which is the most"), "{}", full.body);
    // One that is there may be saved anew.
    assert_eq!(save(json!({ "name": "a", "prompt": "Two" })).status, 200);
    // A file of another kind is no session, and a large one counts.
    std::fs::remove_file(file.with_file_name("b1.session")).unwrap();
    let large = std::fs::File::create(file.with_file_name("b2.session")).unwrap();
    large.set_len(limits::SESSION_BYTES).unwrap();
    let full = save(json!({ "name": "c", "prompt": "One" }));
    assert!(full.status == 400 && full.body.contains("bytes, at most"), "{}", full.body);
    assert_eq!(get_with(served.address, "/v1/sessions/b2", ANN).status, 404);

    let without = Served::new(ServerConfig::default());
    let reply =
        post(without.address, "/v1/sessions", &json!({ "name": "a", "model": "nano", "prompt": "One" }));
    assert!(reply.status == 403 && reply.body.contains("--session-dir"), "{}", reply.body);
}

#[test]
fn the_log_has_a_line_for_each_request_and_no_texts() {
    let dir = tempfile::tempdir().unwrap();
    let (keys, log) = (dir.path().join("keys"), dir.path().join("log"));
    std::fs::write(&keys, "ann secret-key-of-ann\n").unwrap();
    let files = [&log, &keys].map(|path| path.to_str().unwrap());
    let (mut child, address) =
        start(0, &["--log-format", "json", "--log-file", files[0], "--api-keys", files[1]]);
    let mut body = json!({ "messages": [{ "role": "user", "content": "zebra crossing" }], "max_tokens": 6 });
    let whole = post_with(address, "/v1/chat/completions", ANN, &body);
    body["stream"] = json!(true);
    let streamed = post_with(address, "/v1/chat/completions", ANN, &body);
    assert_eq!((whole.status, streamed.status), (200, 200));
    body["temperature"] = json!("zebra");
    assert_eq!(post_with(address, "/v1/chat/completions", ANN, &body).status, 400);
    body["model"] = json!("zebra");
    assert_eq!(post(address, "/v1/chat/completions", &body).status, 401);
    assert_eq!(get(address, "/zebra").status, 401);
    let ended = std::process::Command::new("kill").arg(child.id().to_string()).status().unwrap();
    assert!(ended.success() && child.wait().unwrap().success());
    let text = std::fs::read_to_string(&log).unwrap();
    assert!(!text.contains("zebra") && !text.contains("crossing") && !text.contains("secret-key"), "{text}");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |what: &str| lines.iter().filter(|line| line["message"] == what).collect::<Vec<_>>();
    assert_eq!((of("start").len(), of("drain").len(), of("end").len()), (1, 1, 1), "{text}");
    assert_eq!(of("start")[0]["model"], "nano");
    let requests = of("request");
    let statuses: Vec<&Value> = requests.iter().map(|line| &line["status"]).collect();
    assert_eq!(statuses, [200, 200, 400, 401, 401], "{text}");
    assert_eq!(requests[0]["id"], whole.header("x-request-id").unwrap());
    let usage = &whole.json()["usage"];
    for line in &requests[..2] {
        for (name, value) in [("key", "ann"), ("model", "nano"), ("route", "/v1/chat/completions")] {
            assert_eq!(line[name], value, "{line}");
        }
        assert_eq!(line["tokens_in"], usage["prompt_tokens"], "{line}");
        let times: Vec<f64> = ["queue_ms", "first_token_ms", "total_ms"]
            .iter()
            .map(|name| line[name].as_f64().unwrap())
            .collect();
        assert!(times.is_sorted() && times[0] >= 0.0, "{line}");
    }
    assert_eq!(requests[0]["tokens_out"], usage["completion_tokens"], "{text}");
    assert!(requests[1]["tokens_cached"].as_u64().unwrap() > 0, "{text}");
    assert_eq!((&requests[3]["key"], &requests[4]["route"]), (&Value::Null, &json!("other")));
}
