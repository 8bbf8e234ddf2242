//! Ollama's API: the texts are those of the other APIs, and its clients find what they look for.

use super::client::{Reply, get_with, post, post_with};
use super::{Served, harmony};
use kernmill_server::{Keys, ServerConfig, Today};
use serde_json::{Value, json};

/// A request with more fields.
fn with(mut body: Value, more: &Value) -> Value {
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

/// The contents of a stream's lines: text, thinking and calls; and the last line.
fn joined(reply: &Reply) -> ([String; 2], Vec<Value>, Value) {
    let mut lines = reply.lines();
    let last = lines.pop().unwrap();
    assert_eq!((&last["done"], said(&last)), (&json!(true), [String::new(), String::new()]));
    let (mut texts, mut calls) = ([String::new(), String::new()], Vec::new());
    for line in &lines {
        assert_eq!((&line["done"], &line["model"]), (&json!(false), &last["model"]));
        for (whole, piece) in texts.iter_mut().zip(said(line)) {
            whole.push_str(&piece);
        }
        calls.extend(line["message"]["tool_calls"].as_array().into_iter().flatten().cloned());
    }
    (texts, calls, last)
}

/// Text and thinking of an object of either route.
fn said(object: &Value) -> [String; 2] {
    let (text, place) = match object.get("message") {
        Some(message) => (&message["content"], message),
        None => (&object["response"], object),
    };
    [text.as_str().unwrap().to_owned(), place["thinking"].as_str().unwrap_or_default().to_owned()]
}

#[test]
fn greedy_texts_are_those_of_the_other_apis() {
    let served = Served::new(ServerConfig { date: Today::None, ..ServerConfig::default() });
    let mut seen = String::new();
    for (question, think, effort) in
        [("What is 17 + 25?", json!("low"), "low"), ("What is a slice?", json!(false), "none")]
    {
        let messages = json!([
            { "role": "system", "content": "Be short." },
            { "role": "user", "content": question },
        ]);
        let openai = json!({
            "model": "nano", "messages": messages, "max_tokens": 60, "temperature": 0, "reasoning_effort": effort,
        });
        let openai = post(served.address, "/v1/chat/completions", &openai).json();
        let message = &openai["choices"][0]["message"];
        let expected = ["content", "reasoning_content"]
            .map(|name| message[name].as_str().unwrap_or_default().to_owned());
        let options = json!({ "temperature": 0, "num_predict": 60 });
        let common = json!({ "model": "nano:latest", "think": think, "options": options });
        for (path, body) in [
            ("/api/chat", json!({ "messages": messages })),
            ("/api/generate", json!({ "system": "Be short.", "prompt": question })),
        ] {
            let body = with(body, &common);
            let (texts, _, last) = joined(&post(served.address, path, &body));
            let whole = post(served.address, path, &with(body, &json!({ "stream": false }))).json();
            assert_eq!((&texts, &said(&whole)), (&expected, &expected), "{path}");
            for end in [&last, &whole] {
                assert_eq!(end["eval_count"], openai["usage"]["completion_tokens"]);
                assert_eq!(end["prompt_eval_count"], openai["usage"]["prompt_tokens"]);
                let finish = openai["choices"][0]["finish_reason"].as_str();
                assert_eq!(end["done_reason"].as_str(), finish);
                let [all, prompt, eval] = ["total_duration", "prompt_eval_duration", "eval_duration"]
                    .map(|name| end[name].as_u64().unwrap());
                assert!(prompt > 0 && eval > 0 && prompt + eval <= all, "{end}");
            }
        }
        seen += &expected.concat();
    }
    assert!(seen.len() > 20, "{seen}");
}

#[test]
fn a_raw_prompt_is_gone_on_with_as_in_completions() {
    let served = Served::new(ServerConfig::default());
    for (prompt, options, more) in [
        ("A slice is a", json!({}), json!({})),
        (
            "A slice is a",
            json!({ "stop": ["."], "seed": 3, "temperature": 0.7 }),
            json!({ "stop": ["."], "seed": 3, "temperature": 0.7 }),
        ),
        (
            "fn main",
            json!({ "repeat_penalty": 1.5, "top_k": 5, "seed": 1 }),
            json!({ "repetition_penalty": 1.5, "top_k": 5, "seed": 1 }),
        ),
    ] {
        let greedy = json!({ "temperature": 0 });
        let completion = with(with(json!({ "prompt": prompt, "max_tokens": 24 }), &greedy), &more);
        let expected = post(served.address, "/v1/completions", &completion).json();
        let expected = expected["choices"][0]["text"].as_str().unwrap();
        let options = with(with(json!({ "num_predict": 24 }), &greedy), &options);
        let body = json!({ "model": "nano", "prompt": prompt, "raw": true, "options": options });
        let ([text, thinking], ..) = joined(&post(served.address, "/api/generate", &body));
        let whole = post(served.address, "/api/generate", &with(body, &json!({ "stream": false }))).json();
        assert_eq!((&*text, &*thinking, &*said(&whole)[0]), (expected, "", expected));
        assert!(!text.is_empty());
    }
    // The form of the model's text is kept here, too.
    let schema = json!({
        "type": "object", "properties": { "n": { "enum": [1, 2] } }, "required": ["n"], "additionalProperties": false
    });
    let body = json!({ "model": "nano", "prompt": "JSON: ", "raw": true, "format": schema, "stream": false });
    let text = said(&post(served.address, "/api/generate", &body).json())[0].clone();
    assert!(serde_json::from_str::<Value>(&text).unwrap()["n"].is_u64(), "{text}");
}

#[test]
fn thinking_calls_and_forms_come_in_their_fields() {
    let (served, ..) = harmony::served(0.0);
    let chat = |messages: &Value, more: Value| {
        let body = with(json!({ "model": "gpt-oss", "messages": messages }), &more);
        let whole = post(served.address, "/api/chat", &with(body.clone(), &json!({ "stream": false })));
        assert_eq!(whole.status, 200, "{}", whole.body);
        let (whole, (texts, calls, last)) = (whole.json(), joined(&post(served.address, "/api/chat", &body)));
        assert_eq!((&texts, &last["done_reason"]), (&said(&whole), &whole["done_reason"]));
        let functions =
            |calls: &[Value]| calls.iter().map(|call| call["function"].clone()).collect::<Vec<_>>();
        let whole_calls = whole["message"]["tool_calls"].as_array().cloned().unwrap_or_default();
        assert_eq!(functions(&calls), functions(&whole_calls));
        whole["message"].clone()
    };
    let said = |text: &str| json!({ "role": "user", "content": text });
    let greeting = chat(&json!([said("Hi")]), json!({}));
    assert_eq!(
        (&greeting["content"], &greeting["thinking"]),
        (&json!("Hello there."), &json!("A greeting."))
    );

    let parameters =
        json!({ "type": "object", "properties": { "city": { "type": "string" } }, "required": ["city"] });
    let tools = json!([{ "type": "function", "function": { "name": "weather", "parameters": parameters } }]);
    let mut messages = vec![said("How is the weather?")];
    let called = chat(&json!(messages), json!({ "tools": tools }));
    let function = &called["tool_calls"][0]["function"];
    assert_eq!((&function["name"], &function["arguments"]), (&json!("weather"), &json!({ "city": "Oslo" })));
    assert_eq!((&called["content"], &called["thinking"]), (&json!(""), &json!("I look.")));
    messages.push(called);
    messages.push(json!({ "role": "tool", "tool_name": "weather", "content": "rain" }));
    let answer = chat(&json!(messages), json!({ "tools": tools }));
    assert_eq!(answer["content"], "It rains in Oslo.");

    // Whatever the model would say.
    let schema = json!({
        "type": "object",
        "properties": { "age": { "type": "integer", "minimum": 0, "maximum": 99 } },
        "required": ["age"],
        "additionalProperties": false,
    });
    let person = chat(&json!([said("A person")]), json!({ "format": schema, "think": false }));
    let person: Value = serde_json::from_str(person["content"].as_str().unwrap()).unwrap();
    assert!(person["age"].as_u64().unwrap() < 100 && person.as_object().unwrap().len() == 1);
    let any = chat(
        &json!([said("A person")]),
        json!({ "format": "json", "think": false, "options": { "num_predict": 400 } }),
    );
    assert!(any["content"].as_str().unwrap().starts_with('{'), "{any}");
}

#[test]
fn keys_are_asked_for_and_errors_are_those_of_the_api() {
    let keys = Keys::read("ann key-of-ann-0123456789").unwrap();
    let served = Served::new(ServerConfig { keys, ..ServerConfig::default() });
    let ann = "Authorization: Bearer key-of-ann-0123456789";
    let body = json!({ "model": "nano", "prompt": "A", "raw": true, "options": { "num_predict": 2 } });
    for path in ["/api/tags", "/api/ps", "/api/version"] {
        let refused = get_with(served.address, path, &[]);
        assert!(refused.status == 401 && refused.json()["error"].is_string(), "{}", refused.body);
        assert_eq!(get_with(served.address, path, &[ann]).status, 200);
    }
    let refused = post_with(served.address, "/api/generate", &[], &body);
    assert!(refused.status == 401 && refused.json()["error"].is_string(), "{}", refused.body);
    let (_, _, last) = joined(&post_with(served.address, "/api/generate", &[ann], &body));
    assert_eq!((&last["eval_count"], &last["done_reason"]), (&json!(2), &json!("length")));
    let metrics = get_with(served.address, "/metrics", &[ann]).body;
    for line in [r#"route="/api/generate",status="200""#, r#"route="/api/tags",status="401""#] {
        assert!(metrics.contains(line), "{line} is not in {metrics}");
    }
}
