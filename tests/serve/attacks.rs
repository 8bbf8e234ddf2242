//! Requests of an attacker. `docs/user/serve.md` lists each attack with its test; `guards.rs` has the others.

use super::Served;
use super::client::{Reply, get, get_with, post, post_bytes, post_with, raw};
use super::harmony;
use kernmill_server::{Keys, ServerConfig, limits};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// Checks that the server still says what it said.
struct Well(String);

impl Well {
    fn new(served: &Served) -> Well {
        Well(Well::text(served))
    }

    fn text(served: &Served) -> String {
        let body = json!({ "prompt": "A slice is a", "max_tokens": 6, "temperature": 0 });
        let reply = post(served.address, "/v1/completions", &body);
        assert_eq!(reply.status, 200, "{}", reply.body);
        reply.json()["choices"][0]["text"].as_str().unwrap().to_owned()
    }

    fn check(&self, served: &Served) {
        assert_eq!(Well::text(served), self.0);
        assert_eq!(get(served.address, "/health").status, 200);
        served.settle();
    }
}

/// The field that an error names, in the form of either API.
fn named(reply: &Reply) -> String {
    let error = &reply.json()["error"];
    format!(
        "{} {}",
        error["param"].as_str().unwrap_or_default(),
        error["message"].as_str().unwrap_or_default()
    )
}

const CHAT: &str = "/v1/chat/completions";
const COMPLETIONS: &str = "/v1/completions";
const RESPONSES: &str = "/v1/responses";
const MESSAGES: &str = "/v1/messages";

/// A small request to a route.
fn small(path: &str) -> Value {
    let messages = json!([{ "role": "user", "content": "Hi" }]);
    match path {
        CHAT => json!({ "model": "nano", "messages": messages, "max_tokens": 2, "logprobs": true }),
        COMPLETIONS => json!({ "model": "nano", "prompt": "a", "max_tokens": 2 }),
        RESPONSES => json!({ "model": "nano", "input": "Hi", "max_output_tokens": 2 }),
        MESSAGES => json!({ "model": "nano", "messages": messages, "max_tokens": 2 }),
        _ => json!({}),
    }
}

#[test]
fn numbers_that_no_field_can_hold_are_refused_by_its_name() {
    let served = Served::new(ServerConfig::default());
    let well = Well::new(&served);
    let real =
        ["temperature", "top_p", "min_p", "repetition_penalty", "presence_penalty", "frequency_penalty"];
    let whole = [
        (CHAT, vec!["max_tokens", "max_completion_tokens", "n", "top_logprobs", "top_k", "seed"]),
        (COMPLETIONS, vec!["max_tokens", "n", "best_of", "logprobs", "top_k", "seed"]),
        (RESPONSES, vec!["max_output_tokens", "top_k", "seed"]),
        (MESSAGES, vec!["max_tokens", "top_k"]),
    ];
    let no_number = [r#""1""#, "{}", "[1]", "[]"];
    let no_real = ["-1000", "101", "1e308", "-1e308", "18446744073709551616"];
    let no_whole =
        ["-2", "0.5", "-0.5", "1e15", "1e308", "-9223372036854775809", "18446744073709551616", "1e-300"];
    let mut sent = 0;
    for (path, whole) in whole {
        let real = real.iter().take(if path == MESSAGES { 2 } else { real.len() });
        let fields =
            real.map(|field| (*field, &no_real[..])).chain(whole.iter().map(|field| (*field, &no_whole[..])));
        for (field, values) in fields {
            for value in values.iter().chain(&no_number).filter(|value| (field, **value) != ("seed", "-2")) {
                let mut body = small(path);
                body[field] = json!("HERE");
                let body = body.to_string().replace(r#""HERE""#, value);
                let reply = raw(served.address, &post_bytes(path, &[], &body));
                assert_eq!(reply.status, 400, "{path} {field} {value}: {}", reply.body);
                assert!(named(&reply).contains(field), "{path} {field} {value}: {}", reply.body);
                sent += 1;
            }
        }
    }
    assert!(sent > 300, "{sent}");
    for value in ["-1", "3072", "4294967296", "1e3", "0.5", "18446744073709551616", "\"a\"", "[[1]]", "null"]
    {
        for (path, field) in [(COMPLETIONS, "prompt"), ("/detokenize", "tokens")] {
            let body = format!(r#"{{"model": "nano", "{field}": [1, {value}]}}"#);
            let reply = raw(served.address, &post_bytes(path, &[], &body));
            assert!(reply.status == 400 && named(&reply).contains(field), "{path} {value}: {}", reply.body);
        }
        let body = format!(r#"{{"model": "nano", "prompt": "a", "logit_bias": {{{value:?}: 1}}}}"#);
        let reply = raw(served.address, &post_bytes(COMPLETIONS, &[], &body));
        assert!(reply.status == 400 && named(&reply).contains("logit_bias"), "{value}: {}", reply.body);
    }
    for value in ["NaN", "Infinity", "-Infinity", "1e999", "0x10", "01", "1_000", "--1"] {
        let body = format!(r#"{{"model": "nano", "prompt": "a", "max_tokens": {value}}}"#);
        let reply = raw(served.address, &post_bytes(COMPLETIONS, &[], &body));
        assert!(reply.status == 400 && reply.body.contains("no JSON"), "{value}: {}", reply.body);
    }
    well.check(&served);
}

#[test]
fn heads_that_flood_are_refused() {
    let served = Served::new(ServerConfig::default());
    let well = Well::new(&served);
    let long = "a".repeat(2 * limits::HEAD_BYTES);
    let heads = [
        ("many headers", "GET /health HTTP/1.1\r\nHost: localhost\r\n".to_owned() + &"X: 1\r\n".repeat(300)),
        ("a long value", format!("GET /health HTTP/1.1\r\nHost: localhost\r\nX: {long}\r\n")),
        ("a long name", format!("GET /health HTTP/1.1\r\nHost: localhost\r\n{long}: 1\r\n")),
        ("a long path", format!("GET /{long} HTTP/1.1\r\nHost: localhost\r\n")),
        ("a long query", format!("GET /v1/models?{long} HTTP/1.1\r\nHost: localhost\r\n")),
        (
            "a long key",
            format!("GET /v1/models HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {long}\r\n"),
        ),
        ("no host", "GET /v1/models HTTP/1.1\r\n".to_owned()),
        ("no protocol", "GET /v1/models\r\n".to_owned()),
        (
            "two lengths",
            "POST /drain HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n"
                .to_owned(),
        ),
        ("a length below 0", "POST /drain HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n".to_owned()),
        ("bytes of no text", "GET /v1/models HTTP/1.1\r\nHost: localhost\r\nX\u{0}Y: \u{1}\r\n".to_owned()),
    ];
    for (what, head) in heads {
        let status = raw(served.address, format!("{head}Connection: close\r\n\r\n").as_bytes()).status;
        // 0: the connection was closed at once.
        assert!([0, 400, 414, 431].contains(&status), "{what}: {status}");
    }
    well.check(&served);
}

#[test]
fn slow_clients_hold_nobody_up_and_are_left() {
    let served = Served::new(ServerConfig { body_time: Duration::from_secs(3), ..ServerConfig::default() });
    let well = Well::new(&served);
    let request = post_bytes(COMPLETIONS, &[], r#"{"model": "nano", "prompt": "a", "max_tokens": 1}"#);
    let head = request.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap() + 4;
    let open = |bytes: &[u8]| {
        let mut stream = TcpStream::connect(served.address).unwrap();
        stream.write_all(bytes).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(limits::HEAD_SECONDS + 20))).unwrap();
        stream
    };
    let mut heads: Vec<TcpStream> = (0..150).map(|n| open(&request[..n % head])).collect();
    let mut bodies: Vec<TcpStream> = (0..50).map(|n| open(&request[..head + n % 20])).collect();
    let start = Instant::now();
    well.check(&served);
    let waited = start.elapsed();
    assert!(
        waited < Duration::from_secs(limits::HEAD_SECONDS),
        "others wait for {waited:?}, as long as the slow ones"
    );
    // A byte now and then is not enough.
    for _ in 0..4 {
        std::thread::sleep(Duration::from_secs(1));
        bodies.iter_mut().for_each(|stream| drop(stream.write_all(b" ")));
        heads.iter_mut().for_each(|stream| drop(stream.write_all(b"a")));
    }
    let rest = |stream: &mut TcpStream| {
        let mut rest = Vec::new();
        match stream.read_to_end(&mut rest) {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => panic!("it is not left"),
            _ => String::from_utf8_lossy(&rest).into_owned(),
        }
    };
    for stream in &mut bodies {
        let rest = rest(stream);
        assert!(rest.is_empty() || rest.starts_with("HTTP/1.1 408"), "{rest}");
    }
    for stream in &mut heads {
        let rest = rest(stream);
        assert!(rest.is_empty() || rest.starts_with("HTTP/1.1 4"), "{rest}");
    }
    well.check(&served);
}

#[test]
fn bodies_end_at_their_limit_however_they_come() {
    let served = Served::new(ServerConfig {
        body_bytes: 10_000,
        body_time: Duration::from_secs(5),
        ..ServerConfig::default()
    });
    let well = Well::new(&served);
    let head = |more: &str| {
        format!(
            "POST {COMPLETIONS} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: \
             application/json\r\n{more}\r\n\r\n"
        )
    };
    // No length beforehand.
    let mut chunks = head("Transfer-Encoding: chunked");
    (0..40).for_each(|_| chunks += &format!("400\r\n{}\r\n", "a".repeat(1024)));
    assert_eq!(raw(served.address, (chunks + "0\r\n\r\n").as_bytes()).status, 413);
    // A length that is only claimed.
    for length in [10_001, u64::MAX] {
        let status = raw(served.address, head(&format!("Content-Length: {length}")).as_bytes()).status;
        assert!([0, 400, 408, 413, 431].contains(&status), "{length}: {status}");
    }
    // Nothing is unpacked.
    let packed = head("Content-Encoding: gzip\r\nContent-Length: 4") + "\u{1f}aaa";
    assert_eq!(raw(served.address, packed.as_bytes()).status, 415);
    let deep = "[".repeat(9_000);
    for body in [
        deep.clone(),
        format!(r#"{{"model": "nano", "prompt": {deep}"#),
        format!(r#"{{"a": {}1"#, r#"{"a":"#.repeat(1500)),
    ] {
        assert_eq!(raw(served.address, &post_bytes(COMPLETIONS, &[], &body)).status, 400);
    }
    well.check(&served);
}

/// Schemas that take memory or time without end where nothing limits their compiling.
fn bombs() -> Vec<(&'static str, Value)> {
    let property = |n: u32| json!({ "properties": { format!("p{n}"): { "type": "integer" } } });
    let nested = |levels: usize, wrap: fn(Value) -> Value| {
        (0..levels).fold(json!({ "type": "string" }), |inner, _| wrap(inner))
    };
    let object = |properties: Value| json!({ "type": "object", "properties": properties, "required": ["a"] });
    let of = |inner: Value| json!({ "type": "object", "properties": { "a": inner }, "required": ["a"] });
    let text = |pattern: &str| of(json!({ "type": "string", "pattern": pattern }));
    let wide: serde_json::Map<String, Value> =
        (0..2000).map(|n| (format!("p{n}"), json!({ "type": "string" }))).collect();
    let halves = |depth: usize| {
        let list: serde_json::Map<String, Value> = (0..depth)
            .map(|n| {
                let next = json!({ "$ref": format!("#/$defs/d{}", n + 1) });
                let both = json!({ "l": next, "r": next });
                (format!("d{n}"), json!({ "type": "object", "properties": both, "required": ["l", "r"] }))
            })
            .chain([(format!("d{depth}"), json!({ "type": "null" }))])
            .collect();
        json!({ "$ref": "#/$defs/d0", "$defs": list })
    };
    vec![
        (
            "deep",
            nested(60, |inner| json!({ "type": "object", "properties": { "a": inner }, "required": ["a"] })),
        ),
        ("deep lists", nested(60, |inner| json!({ "type": "array", "items": inner, "minItems": 3 }))),
        (
            "deep choices",
            nested(
                30,
                |inner| json!({ "anyOf": [inner.clone(), { "type": "array", "items": { "type": "null" } }] }),
            ),
        ),
        ("wide", object(Value::Object(wide.clone()))),
        (
            "wide and all required",
            json!({ "type": "object", "properties": wide.clone(), "required": wide.keys().collect::<Vec<_>>() }),
        ),
        ("recursive", json!({ "type": "object", "properties": { "a": { "$ref": "#" } }, "required": ["a"] })),
        ("recursive at once", json!({ "$ref": "#" })),
        (
            "recursive in a ring",
            json!({ "$ref": "#/$defs/a", "$defs": { "a": { "$ref": "#/$defs/b" }, "b": { "$ref": "#/$defs/a" } } }),
        ),
        ("doubled at each level", halves(40)),
        ("a reference to nothing", json!({ "$ref": "#/$defs/missing" })),
        ("many repeats", text("((a{1,100}){1,100}){1,100}")),
        ("nested repeats", text("^(a+)+$")),
        ("nested repeats with an end", text("^(([a-z])+.)+[A-Z]([a-z])+$")),
        ("a long expression", text(&"(a|b)?".repeat(10_000))),
        ("classes that repeat", text("[\\w\\W]{50000}")),
        ("looks around", text("(?=(a+))\\1")),
        (
            "a long list",
            of(json!({ "type": "array", "items": { "type": "string" }, "minItems": 1_000_000_000 })),
        ),
        ("a longest list", of(json!({ "type": "array", "items": {}, "maxItems": u64::MAX }))),
        (
            "a long text",
            of(json!({ "type": "string", "minLength": 1_000_000_000, "maxLength": 1_000_000_001 })),
        ),
        ("lengths below 0", of(json!({ "type": "string", "minLength": -1 }))),
        ("a fine number", of(json!({ "type": "number", "multipleOf": 1e-300, "minimum": 1e300 }))),
        ("a number between", of(json!({ "type": "integer", "minimum": -1e300, "maximum": 1e300 }))),
        ("nothing fits", of(json!({ "type": "integer", "minimum": 2, "maximum": 1 }))),
        ("many values", of(json!({ "enum": (0..20_000).collect::<Vec<u32>>() }))),
        ("all at once", of(json!({ "allOf": (0..200).map(property).collect::<Vec<_>>() }))),
        ("one of many", of(json!({ "oneOf": (0..200).map(property).collect::<Vec<_>>() }))),
    ]
}

#[test]
fn schema_bombs_are_refused_or_held_to() {
    let served = Served::new(ServerConfig::default());
    let well = Well::new(&served);
    let (scripted, _, _dir) = harmony::served(0.0);
    let mut refused = 0;
    for (what, schema) in bombs() {
        let form = json!({ "type": "json_schema", "json_schema": { "name": "bomb", "schema": schema } });
        let tools = json!([{ "type": "function", "function": { "name": "bomb", "parameters": schema } }]);
        let both = [
            (&served, "nano", json!({ "response_format": form })),
            (&scripted, "gpt-oss", json!({ "response_format": form, "reasoning_effort": "none" })),
            (&scripted, "gpt-oss", json!({ "tools": tools, "tool_choice": "required" })),
        ];
        for (at, model, more) in both {
            let mut body =
                json!({ "model": model, "messages": [{ "role": "user", "content": "Hi" }], "max_tokens": 6 });
            more.as_object().unwrap().iter().for_each(|(name, value)| body[name] = value.clone());
            let start = Instant::now();
            let reply = post(at.address, CHAT, &body);
            assert!(start.elapsed() < Duration::from_secs(60), "{what}: {:?}", start.elapsed());
            match reply.status {
                200 => {
                    assert!(reply.json()["choices"][0]["finish_reason"].is_string(), "{what}: {}", reply.body)
                }
                400 => {
                    // A model reads the schema in its prompt, which then may be too long.
                    let is_too_long = reply.json()["error"]["code"] == "context_length_exceeded";
                    assert!(
                        is_too_long
                            || ["response_format", "tools", "schema"]
                                .iter()
                                .any(|field| named(&reply).contains(field)),
                        "{what}: {}",
                        reply.body
                    );
                    refused += 1;
                }
                other => panic!("{what}: {other}: {}", reply.body),
            }
        }
    }
    assert!(refused > 10, "{refused}");
    assert_eq!(get(scripted.address, "/health").status, 200);
    well.check(&served);
}

#[test]
fn templates_are_texts_and_come_from_nobody() {
    let (served, ..) = harmony::served(0.0);
    let attacks = [
        "{{ 7 * 7 }}",
        "{% for a in range(1000000000) %}{{ a }}{% endfor %}",
        "{{ self.__init__.__globals__ }}",
        "{% include '/etc/passwd' %}",
        "{{ ''.join(['a'] * 1000000000) }}",
    ];
    for attack in attacks {
        let body = json!({ "messages": [{ "role": "system", "content": attack },
            { "role": "user", "content": attack }] });
        let ids = post(served.address, "/tokenize", &body).json()["tokens"].clone();
        let text = post(served.address, "/detokenize", &json!({ "tokens": ids })).json()["prompt"]
            .as_str()
            .unwrap()
            .to_owned();
        assert_eq!(text.matches(attack).count(), 2, "{text}");
        // A template of the request's own is refused.
        let asked = json!({ "model": "gpt-oss", "messages": [{ "role": "user", "content": "Hi" }],
            "chat_template": attack });
        let reply = post(served.address, CHAT, &asked);
        assert!(reply.status == 400 && named(&reply).starts_with("chat_template "), "{}", reply.body);
        for kwargs in [
            json!({ "chat_template": attack }),
            json!({ "tools": attack }),
            json!({ "reasoning_effort": attack }),
        ] {
            let mut asked = asked.clone();
            asked["chat_template_kwargs"] = kwargs;
            let reply = post(served.address, CHAT, &asked);
            assert!(reply.status == 400 && named(&reply).contains("chat_template_kwargs"), "{}", reply.body);
        }
    }
}

const KEYS: &str = "ann key-of-ann-0123456789 admin\nbob key-of-bob-0123456789\n";
const ANN: &str = "Authorization: Bearer key-of-ann-0123456789";
const BOB: &str = "Authorization: Bearer key-of-bob-0123456789";

#[test]
fn what_one_key_stored_is_not_there_for_another() {
    let served = Served::new(ServerConfig { keys: Keys::read(KEYS).unwrap(), ..ServerConfig::default() });
    let asked = json!({ "model": "nano", "input": "The secret is 4711.", "max_output_tokens": 2 });
    let id = post_with(served.address, RESPONSES, &[ANN], &asked).json()["id"].as_str().unwrap().to_owned();
    let paths = [format!("{RESPONSES}/{id}"), format!("{RESPONSES}/{id}/input_items")];
    let missing = "resp_".to_owned() + &"0".repeat(id.len() - 5);
    for path in &paths {
        assert_eq!(get_with(served.address, path, &[ANN]).status, 200);
        // It is told no more than about one that never was.
        let (foreign, none) = (
            get_with(served.address, path, &[BOB]),
            get_with(served.address, &path.replace(&id, &missing), &[BOB]),
        );
        assert_eq!((foreign.status, unnamed(&foreign).replace(&id, &missing)), (404, unnamed(&none)));
        assert_eq!(get(served.address, path).status, 401);
    }
    let mut next = asked.clone();
    next["previous_response_id"] = json!(id);
    let foreign = post_with(served.address, RESPONSES, &[BOB], &next);
    assert!(foreign.status == 404 && !foreign.body.contains("4711"), "{}", foreign.body);
    let delete =
        format!("DELETE {} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{BOB}\r\n\r\n", paths[0]);
    assert_eq!(raw(served.address, delete.as_bytes()).status, 404);
    for path in ["/../resp", "/%2e%2e/x", "/*", "/", "/?id=1", "/\u{e9}"] {
        let status = get_with(served.address, &format!("{RESPONSES}{path}"), &[BOB]).status;
        assert!([0, 400, 404].contains(&status), "{path}: {status}");
    }
    assert_eq!(get_with(served.address, &paths[0], &[ANN]).status, 200);
    assert_eq!(post_with(served.address, RESPONSES, &[ANN], &next).status, 200);
}

/// The body of an error without the request's own name.
fn unnamed(reply: &Reply) -> String {
    let mut body = reply.json();
    let name = body.as_object_mut().unwrap().remove("request_id").expect("errors name their request");
    assert!(name.as_str().unwrap().starts_with("req_"), "{name}");
    body.to_string()
}

/// Keys are compared as hashes, in constant time, and all of them are (`server/src/caller.rs`).
#[test]
fn wrong_keys_are_all_told_the_same() {
    let served = Served::new(ServerConfig { keys: Keys::read(KEYS).unwrap(), ..ServerConfig::default() });
    let right = "key-of-ann-0123456789";
    let guesses = (0..right.len()).map(|length| right[..length].to_owned());
    let more = ["KEY-OF-ANN-0123456789", "key-of-ann-0123456789x", "ann", "*", "key-of-ann-012345678\u{e9}"];
    let more = more.into_iter().map(str::to_owned).chain(["k".repeat(8000)]);
    let first = get_with(served.address, "/v1/models", &[]);
    assert_eq!(first.status, 401);
    for guess in guesses.chain(more) {
        for header in [format!("Authorization: Bearer {guess}"), format!("x-api-key: {guess}")] {
            let reply = get_with(served.address, "/v1/models", &[&header]);
            assert_eq!((reply.status, unnamed(&reply)), (401, unnamed(&first)), "{header}");
        }
    }
    // A key in the address would be in logs: it does not count.
    assert_eq!(get(served.address, &format!("/v1/models?api_key={right}")).status, 401);
    assert_eq!(get_with(served.address, "/v1/models", &[ANN]).status, 200);
}

/// Whatever a request names, the server connects to nobody.
#[test]
fn addresses_in_requests_are_never_asked() {
    let trap = TcpListener::bind("127.0.0.1:0").unwrap();
    trap.set_nonblocking(true).unwrap();
    let url = format!("http://{}/x", trap.local_addr().unwrap());
    let dir = tempfile::tempdir().unwrap();
    let served =
        Served::new(ServerConfig { adapters: Some(dir.path().to_owned()), ..ServerConfig::default() });
    let from = |content: Value| json!([{ "role": "user", "content": content }]);
    let said = |content| json!({ "model": "nano", "max_tokens": 2, "messages": from(content) });
    let form = json!({ "type": "json_schema", "json_schema": { "name": "a", "schema": { "$ref": url } } });
    let mut by_reference = said(json!("Hi"));
    by_reference["response_format"] = form;
    let bodies = [
        (CHAT, said(json!([{ "type": "image_url", "image_url": { "url": url } }]))),
        (CHAT, said(json!([{ "type": "file", "file": { "file_id": url } }]))),
        (CHAT, by_reference),
        (
            RESPONSES,
            json!({ "model": "nano", "input": [{ "role": "user", "content": [{ "type": "input_image",
                "image_url": url }] }] }),
        ),
        (
            RESPONSES,
            json!({ "model": "nano", "input": "Hi",
                "tools": [{ "type": "mcp", "server_label": "a", "server_url": url }] }),
        ),
        (MESSAGES, said(json!([{ "type": "image", "source": { "type": "url", "url": url } }]))),
        ("/v1/load_lora_adapter", json!({ "lora_name": "a", "lora_path": url })),
    ];
    for (path, body) in bodies {
        let reply = post(served.address, path, &body);
        assert_eq!(reply.status, 400, "{path} {body}: {}", reply.body);
    }
    let asked = trap.accept();
    assert!(asked.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock));
    // A connection that is made is seen.
    drop(TcpStream::connect(trap.local_addr().unwrap()).unwrap());
    assert!(trap.accept().is_ok());
}
