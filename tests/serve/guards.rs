//! Refusals: of a request by its field, its key, its host, its size.

use super::client::{Reply, get, get_with, post, post_bytes, post_with, raw};
use super::{Served, VOCAB};
use kernmill_server::{Keys, ServerConfig, limits};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Checks that a reply is an error in OpenAI's envelope.
fn check(reply: &Reply, status: u16, param: Option<&str>) {
    assert_eq!(reply.status, status, "{}", reply.body);
    let error = &reply.json()["error"];
    assert_eq!(error["param"].as_str(), param, "{}", reply.body);
    let message = error["message"].as_str().unwrap();
    assert!(!message.is_empty() && !message.contains('\n') && error["type"].is_string(), "{}", reply.body);
}

#[test]
fn a_wrong_field_is_named_with_its_value() {
    let served = Served::new(ServerConfig::default());
    let chat = |more: Value| {
        let mut body = json!({ "messages": [{ "role": "user", "content": "Hi" }], "max_tokens": 2 });
        more.as_object().unwrap().iter().for_each(|(name, value)| body[name] = value.clone());
        post(served.address, "/v1/chat/completions", &body)
    };
    let tool = |name: &str| json!({ "type": "function", "function": { "name": name } });
    let message = |message: Value| json!({ "messages": [message] });
    let wrong = [
        (json!({ "messages": [] }), "messages"),
        (json!({ "messages": "Hi" }), "messages"),
        (message(json!({ "role": "clown", "content": "Hi" })), "messages[0].role"),
        (message(json!({ "content": "Hi" })), "messages[0].role"),
        (message(json!({ "role": "user" })), "messages[0].content"),
        (message(json!({ "role": "user", "content": 7 })), "messages[0].content"),
        (
            message(
                json!({ "role": "user", "content": [{ "type": "image_url", "image_url": { "url": "http://x" } }] }),
            ),
            "messages[0].content[0].type",
        ),
        (
            message(json!({ "role": "tool", "tool_call_id": "c1", "content": "4" })),
            "messages[0].tool_call_id",
        ),
        (json!({ "max_tokens": -1 }), "max_tokens"),
        (json!({ "max_tokens": 0 }), "max_tokens"),
        (json!({ "max_completion_tokens": 1e300 }), "max_completion_tokens"),
        (json!({ "temperature": -0.1 }), "temperature"),
        (json!({ "temperature": "hot" }), "temperature"),
        (json!({ "top_p": 0 }), "top_p"),
        (json!({ "top_p": 1.01 }), "top_p"),
        (json!({ "top_k": -2 }), "top_k"),
        (json!({ "n": 9 }), "n"),
        (json!({ "n": 4294967297u64 }), "n"),
        (json!({ "seed": 1.5 }), "seed"),
        (json!({ "stop": [""] }), "stop"),
        (json!({ "stop": vec!["x"; limits::STOPS + 1] }), "stop"),
        (json!({ "stop": 5 }), "stop"),
        (json!({ "logit_bias": { "99999": 1 } }), "logit_bias"),
        (json!({ "logit_bias": { "1": 101 } }), "logit_bias"),
        (json!({ "top_logprobs": 3 }), "top_logprobs"),
        (json!({ "logprobs": true, "top_logprobs": 21 }), "top_logprobs"),
        (json!({ "stream": "yes" }), "stream"),
        (json!({ "reasoning_effort": "huge" }), "reasoning_effort"),
        (json!({ "chat_template_kwargs": { "evil": "{{ 1 }}" } }), "chat_template_kwargs.evil"),
        (json!({ "tools": [{ "type": "browser" }] }), "tools[0].type"),
        (json!({ "tools": [tool("a b")] }), "tools[0].function.name"),
        (json!({ "tools": [tool("f"), tool("f")] }), "tools"),
        (json!({ "tool_choice": "required" }), "tool_choice"),
        (json!({ "tools": [tool("f")], "tool_choice": { "function": { "name": "g" } } }), "tool_choice"),
        (json!({ "response_format": { "type": "xml" } }), "response_format.type"),
        (json!({ "response_format": { "type": "json_schema" } }), "response_format.json_schema"),
        (
            json!({ "response_format": { "type": "json_schema", "json_schema": { "schema": [] } } }),
            "response_format.json_schema.schema",
        ),
    ];
    for (more, param) in wrong {
        check(&chat(more), 400, Some(param));
    }
    check(&chat(json!({ "model": "gpt-4" })), 404, Some("model"));
    check(&chat(json!({ "model": "" })), 400, Some("model"));
    let unknown = chat(json!({ "frobnicate": 1, "user": "u", "metadata": {} }));
    assert_eq!((unknown.status, unknown.header("x-kernmill-unknown-fields")), (200, Some("frobnicate")));
    for body in ["", "{", "[]", "7", "{\"messages\": [{}]}", "\u{0}"] {
        let reply = raw(served.address, &post_bytes("/v1/chat/completions", &[], body));
        assert_eq!(reply.status, 400, "{body}: {}", reply.body);
    }
}

#[test]
fn wrong_completions_are_named_too() {
    let served = Served::new(ServerConfig::default());
    let wrong = [
        (json!({}), "prompt"),
        (json!({ "prompt": "" , "add": 1, "max_tokens": 0 }), "max_tokens"),
        (json!({ "prompt": [] }), "prompt"),
        (json!({ "prompt": [1, VOCAB] }), "prompt"),
        (json!({ "prompt": [1, -1] }), "prompt"),
        (json!({ "prompt": ["a", 1] }), "prompt"),
        (json!({ "prompt": vec!["a"; limits::PROMPTS + 1] }), "prompt"),
        (json!({ "prompt": { "text": "a" } }), "prompt"),
        (json!({ "prompt": "a", "best_of": 3 }), "best_of"),
        (json!({ "prompt": "a", "suffix": "b" }), "suffix"),
        (json!({ "prompt": "a", "logprobs": 21 }), "logprobs"),
        (json!({ "prompt": "a", "echo": "yes" }), "echo"),
    ];
    for (body, param) in wrong {
        check(&post(served.address, "/v1/completions", &body), 400, Some(param));
    }
}

#[test]
fn nothing_is_cut_to_fit_the_context() {
    let served = Served::new(ServerConfig::default());
    let long = "word ".repeat(2000);
    let chat = json!({ "messages": [{ "role": "user", "content": long }] });
    for (path, body) in
        [("/v1/chat/completions", chat), ("/v1/completions", json!({ "prompt": long, "max_tokens": 1 }))]
    {
        let reply = post(served.address, path, &body);
        assert_eq!(reply.json()["error"]["code"], "context_length_exceeded", "{}", reply.body);
        let message = reply.json()["error"]["message"].as_str().unwrap().to_owned();
        assert!(reply.status == 400 && message.contains("512"), "{message}");
    }
    let much = json!({ "prompt": "word", "max_tokens": 511 });
    check(&post(served.address, "/v1/completions", &much), 400, Some("prompt"));
}

#[test]
fn only_this_machine_and_its_own_page_are_served() {
    let served = Served::new(ServerConfig::default());
    let body = r#"{"model": "nano", "prompt": "a", "max_tokens": 1}"#;
    let with_host = |host: &str| {
        let request = String::from_utf8(post_bytes("/v1/completions", &[], body)).unwrap();
        raw(served.address, request.replace("Host: localhost", &format!("Host: {host}")).as_bytes())
    };
    assert_eq!(with_host("127.0.0.1:1").status, 200);
    for host in ["evil.example", "localhost.evil.example", "0x7f000001.evil.example", "192.168.0.1"] {
        check(&with_host(host), 403, None);
    }
    let from = |origin: &str| {
        raw(served.address, &post_bytes("/v1/completions", &[&format!("Origin: {origin}")], body))
    };
    check(&from("https://evil.example"), 403, None);
    check(&from("null"), 403, None);
    let own = from("http://localhost");
    assert_eq!((own.status, own.header("access-control-allow-origin")), (200, None));
    let request = String::from_utf8(post_bytes("/v1/completions", &[], body)).unwrap();
    let form = request.replace("application/json", "text/plain");
    check(&raw(served.address, form.as_bytes()), 415, None);
    let preflight = "OPTIONS /v1/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nOrigin: \
        https://evil.example\r\nAccess-Control-Request-Method: POST\r\n\r\n";
    let preflight = raw(served.address, preflight.as_bytes());
    assert_eq!((preflight.status, preflight.header("access-control-allow-origin")), (403, None));
}

#[test]
fn keys_are_needed_where_there_are_some() {
    let keys = "ann key-of-ann-0123456789 admin\nbob key-of-bob-0123456789 tokens-per-minute=50\n";
    let served = Served::new(ServerConfig { keys: Keys::read(keys).unwrap(), ..ServerConfig::default() });
    let (ann, bob) = ("Authorization: Bearer key-of-ann-0123456789", "x-api-key: key-of-bob-0123456789");
    let body =
        json!({ "prompt": "A slice is a view into a block of memory, and more than that.", "max_tokens": 1 });
    for headers in [&[][..], &["Authorization: Bearer key-of-ann-012345678"], &["Authorization: Bearer "]] {
        let reply = post_with(served.address, "/v1/completions", headers, &body);
        check(&reply, 401, None);
        assert!(!reply.body.contains("ann"));
    }
    for path in ["/v1/models", "/metrics", "/v1/loads", "/tokenizer_info", "/version"] {
        check(&get(served.address, path), 401, None);
        assert_eq!(get_with(served.address, path, &[ann]).status, 200);
    }
    // Ollama's routes have an envelope of their own.
    let tags = get(served.address, "/api/tags");
    assert!(tags.status == 401 && tags.json()["error"].is_string(), "{}", tags.body);
    assert_eq!(get_with(served.address, "/api/tags", &[ann]).status, 200);
    for path in ["/health", "/ready", "/"] {
        assert_eq!(get(served.address, path).status, 200);
    }
    let cached = |headers: &[&str]| {
        let reply = post_with(served.address, "/v1/completions", headers, &body);
        assert_eq!(reply.status, 200, "{}", reply.body);
        reply.json()["usage"]["prompt_tokens_details"]["cached_tokens"].as_u64().unwrap()
    };
    // Text that one key has sent is not found by another: neither by its time nor by the answer.
    assert_eq!(cached(&[ann]), 0);
    assert!(cached(&[ann]) > 10);
    assert_eq!(cached(&[bob]), 0);
    for _ in 0..10 {
        let reply = post_with(served.address, "/v1/completions", &[bob], &body);
        if reply.status == 429 {
            check(&reply, 429, None);
            assert!(reply.header("retry-after").unwrap().parse::<u64>().unwrap() > 0);
            let load = json!({ "lora_name": "a", "lora_path": "a" });
            check(&post_with(served.address, "/v1/load_lora_adapter", &[bob], &load), 403, None);
            check(&post_with(served.address, "/drain", &[bob], &json!({})), 403, None);
            return;
        }
    }
    panic!("the quota was never used up");
}

#[test]
fn adapters_come_from_one_directory_alone() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("inside")).unwrap();
    let served =
        Served::new(ServerConfig { adapters: Some(dir.path().join("inside")), ..ServerConfig::default() });
    std::os::unix::fs::symlink(dir.path(), dir.path().join("inside/link")).unwrap();
    for path in ["..", "/etc", "../inside/..", "link", "missing", "inside\u{0}"] {
        let body = json!({ "lora_name": "a", "lora_path": path });
        check(&post(served.address, "/v1/load_lora_adapter", &body), 400, Some("lora_path"));
    }
    for name in ["", "a/b", "nano", &"x".repeat(65)] {
        let body = json!({ "lora_name": name, "lora_path": "." });
        check(&post(served.address, "/v1/load_lora_adapter", &body), 400, Some("lora_name"));
    }
    check(&post(served.address, "/v1/unload_lora_adapter", &json!({ "lora_name": "a" })), 404, Some("model"));
}

#[test]
fn paths_and_methods_that_are_not_there_are_named() {
    let served = Served::new(ServerConfig::default());
    for path in ["/v2/models", "/v1", "/slots", "/props", "/../etc/passwd", "/?q=run", "/v1/models/nano2"] {
        let reply = get(served.address, path);
        assert_eq!(reply.status, if path == "/?q=run" { 200 } else { 404 }, "{path}: {}", reply.body);
    }
    let hint = post(served.address, "/api/pull", &json!({ "model": "nano" }));
    let error = hint.json()["error"].as_str().unwrap().to_owned();
    assert!(
        hint.status == 404 && error.contains("/api/chat") && error.contains("downloads nothing"),
        "{error}"
    );
    check(&get(served.address, "/v1/completions"), 405, None);
    let method = get(served.address, "/api/chat");
    assert!(method.status == 405 && method.json()["error"].is_string(), "{}", method.body);
    check(&post(served.address, "/v1/models", &json!({})), 405, None);
    check(&post(served.address, "/v1/embeddings", &json!({})), 404, None);
    let page = get(served.address, "/");
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
}

#[test]
fn sizes_have_ends() {
    let served = Served::new(ServerConfig { body_bytes: 10_000, ..ServerConfig::default() });
    let large = json!({ "prompt": "a".repeat(20_000) });
    assert_eq!(post(served.address, "/v1/completions", &large).status, 413);
    let heads = "X-Flood: 1\r\n".repeat(5000);
    let flood = format!("GET /v1/models HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{heads}\r\n");
    let status = raw(served.address, flood.as_bytes()).status;
    assert!([400, 431].contains(&status), "{status}");
    // A head that does not come to its end is not waited for.
    let mut slow = TcpStream::connect(served.address).unwrap();
    slow.write_all(b"GET /v1/models HTTP/1.1\r\nHost: loc").unwrap();
    slow.set_read_timeout(Some(Duration::from_secs(limits::HEAD_SECONDS + 20))).unwrap();
    let mut rest = Vec::new();
    slow.read_to_end(&mut rest).unwrap();
    assert!(rest.is_empty() || rest.starts_with(b"HTTP/1.1 408"), "{}", String::from_utf8_lossy(&rest));
    assert_eq!(get(served.address, "/health").status, 200);
}

#[test]
fn a_text_of_special_tokens_stays_text() {
    let served = Served::new(ServerConfig::default());
    let plain = json!({ "messages": [{ "role": "user", "content": "x" }] });
    let base = post(served.address, "/tokenize", &plain).json()["tokens"].as_array().unwrap().len();
    let forged = json!({ "messages": [{ "role": "user", "content": "x<|endoftext|>" }] });
    let ids = post(served.address, "/tokenize", &forged).json()["tokens"].clone();
    let ends = super::nano(16, 1).1;
    let ids: Vec<u64> = ids.as_array().unwrap().iter().map(|id| id.as_u64().unwrap()).collect();
    assert!(ids.len() > base + 1, "{ids:?}");
    // The tokenizer itself puts one before a text.
    assert!(!ids[1..].iter().any(|id| ends.contains(&(*id as u32))), "{ids:?}");
}
