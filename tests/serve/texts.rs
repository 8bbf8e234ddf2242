//! Answers are those of the engine alone, in every form.

use super::client::{get, post};
use super::{Served, VOCAB, engine, tokenizer};
use crate::harness;
use kernmill_runtime::SamplerParams;
use kernmill_runtime::{SequenceTokens, Steps};
use kernmill_serve::{Answer, Request, SchedulerConfig as Scheduling, Serving};
use kernmill_server::ServerConfig;
use serde_json::{Value, json};

/// An engine for what is to be expected.
fn expecting() -> Serving {
    let tokenizer = Some(tokenizer().clone());
    Serving::new(engine(), Scheduling::default()).unwrap().with_tokenizer(tokenizer)
}

/// The engine's own text for a prompt.
fn alone(serving: &mut Serving, prompt: &[u32], tokens: u32, seed: u64, temperature: f32) -> Answer {
    let sampler = SamplerParams { temperature, top_p: 1.0, seed: Some(seed), ..SamplerParams::default() };
    let stop_tokens = tokenizer().get().unwrap().end_tokens();
    let greedy = Request::greedy(prompt.to_vec(), tokens);
    harness::answer(serving, Request { sampler, stop_tokens, drafts: false, ..greedy })
}

fn encode(text: &str) -> Vec<u32> {
    tokenizer().get().unwrap().encode(text, true).unwrap()
}

#[test]
fn completions_are_those_of_the_engine() {
    let served = Served::new(ServerConfig::default());
    let mut engine = expecting();
    for (seed, prompt) in ["A slice is a", "The standard library", "fn main"].into_iter().enumerate() {
        let ids = encode(prompt);
        let Answer { text, tokens: made, .. } = alone(&mut engine, &ids, 24, seed as u64, 0.8);
        let mut body = json!({ "prompt": prompt, "max_tokens": 24, "temperature": 0.8, "seed": seed });
        for streams in [false, true] {
            for as_ids in [false, true] {
                body["stream"] = json!(streams);
                body["prompt"] = if as_ids { json!(ids) } else { json!(prompt) };
                let reply = post(served.address, "/v1/completions", &body);
                assert_eq!(reply.status, 200, "{}", reply.body);
                let found: String = if streams {
                    let events = reply.events();
                    events.iter().map(|event| event["choices"][0]["text"].as_str().unwrap()).collect()
                } else {
                    assert_eq!(reply.json()["usage"]["completion_tokens"], json!(made.len()));
                    reply.json()["choices"][0]["text"].as_str().unwrap().to_owned()
                };
                assert_eq!(found, text);
            }
        }
    }
}

#[test]
fn several_prompts_and_answers_come_in_order() {
    let served = Served::new(ServerConfig::default());
    let mut engine = expecting();
    let prompts = ["A slice is a", "The standard library"];
    let body = json!({ "prompt": prompts, "n": 2, "max_tokens": 8, "temperature": 0.9, "seed": 5 });
    let reply = post(served.address, "/v1/completions", &body).json();
    let choices = reply["choices"].as_array().unwrap();
    assert_eq!(choices.len(), 4);
    for (at, choice) in choices.iter().enumerate() {
        let ids = encode(prompts[at / 2]);
        let Answer { text, .. } = alone(&mut engine, &ids, 8, 5 + at as u64 % 2, 0.9);
        assert_eq!((choice["index"].as_u64(), choice["text"].as_str()), (Some(at as u64), Some(&*text)));
    }
}

/// Logarithms of softmax in double precision.
fn log_softmax(logits: &[f32]) -> Vec<f64> {
    let most = logits.iter().copied().fold(f32::MIN, f32::max);
    let sum: f64 = logits.iter().map(|logit| f64::from(logit - most).exp()).sum();
    logits.iter().map(|logit| f64::from(logit - most) - sum.ln()).collect()
}

/// The figures for evaluations: the logarithm of every token of a prompt, and the likeliest beside it.
#[test]
fn echoed_prompts_have_the_logarithms_of_the_logits() {
    let served = Served::new(ServerConfig::default());
    let mut engine = engine();
    let text = "A slice is a view into a block of memory. The standard library has many of them.";
    let ids = encode(text);
    let sequence = engine.create().unwrap();
    let mut rows = Vec::new();
    for piece in ids.chunks(engine.chunk() as usize) {
        engine
            .extend_in_order(&[SequenceTokens::all(sequence, piece)], &mut |row| {
                rows.push(log_softmax(row.logits))
            })
            .unwrap();
    }
    // The second time, the prompt could be found in the cache.
    for max_tokens in [1, 0, 1] {
        let body = json!({ "prompt": text, "max_tokens": max_tokens, "temperature": 0, "echo": true, "logprobs": 3 });
        let reply = post(served.address, "/v1/completions", &body).json();
        let choice = &reply["choices"][0];
        let listed = &choice["logprobs"];
        let own = listed["token_logprobs"].as_array().unwrap();
        assert_eq!(own.len(), ids.len() + max_tokens);
        assert_eq!(own[0], Value::Null);
        for (at, id) in ids.iter().enumerate().skip(1) {
            let row = &rows[at - 1];
            assert!((own[at].as_f64().unwrap() - row[*id as usize]).abs() < 1e-4, "token {at}");
            let best = row.iter().copied().fold(f64::MIN, f64::max);
            let top = listed["top_logprobs"][at].as_object().unwrap();
            assert!(
                top.len() <= 3 && top.values().any(|found| (found.as_f64().unwrap() - best).abs() < 1e-4)
            );
        }
        let text_of = |at: usize| listed["tokens"][at].as_str().unwrap();
        let whole: String = (1..ids.len()).map(text_of).collect();
        assert_eq!(whole, text);
        for at in 1..ids.len() {
            let offset = listed["text_offset"][at].as_u64().unwrap() as usize;
            assert!(text[offset..].starts_with(text_of(at)));
        }
        assert!(choice["text"].as_str().unwrap().starts_with(text));
        assert_eq!(reply["usage"]["completion_tokens"], json!(max_tokens));
    }
    // A text that ends at once has the token that ends it, whole and in a stream.
    let mut body = json!({
        "prompt": text, "max_tokens": 1, "echo": true, "logprobs": 1, "logit_bias": { "3071": 100 },
    });
    let reply = post(served.address, "/v1/completions", &body).json();
    let tokens = reply["choices"][0]["logprobs"]["tokens"].as_array().unwrap();
    assert_eq!((tokens.len(), tokens.last().unwrap()), (ids.len() + 1, &json!("<|endoftext|>")));
    assert_eq!(reply["choices"][0]["text"], text);
    body["stream"] = true.into();
    let events = post(served.address, "/v1/completions", &body).events();
    let listed: Vec<&Value> = events
        .iter()
        .filter_map(|event| event["choices"][0]["logprobs"]["tokens"].as_array())
        .flatten()
        .collect();
    assert_eq!(listed, [&json!("<|endoftext|>")]);
}

#[test]
fn a_chat_is_the_same_in_pieces_and_whole() {
    let served = Served::new(ServerConfig::default());
    let messages = json!([
        { "role": "system", "content": "Answer in one sentence." },
        { "role": "user", "content": [{ "type": "text", "text": "What is a slice?" }] },
    ]);
    let mut body = json!({
        "messages": messages, "max_tokens": 30, "seed": 4, "logprobs": true, "top_logprobs": 2, "n": 2,
        "temperature": 2, "reasoning_effort": "none",
    });
    let whole = post(served.address, "/v1/chat/completions", &body);
    assert_eq!(whole.status, 200, "{}", whole.body);
    let whole = whole.json();
    assert_eq!((&whole["object"], &whole["model"]), (&json!("chat.completion"), &json!("nano")));
    assert_ne!(whole["choices"][0]["message"], whole["choices"][1]["message"]);
    body["stream"] = json!(true);
    body["stream_options"] = json!({ "include_usage": true });
    let events = post(served.address, "/v1/chat/completions", &body).events();
    for index in 0..2 {
        let of = |event: &Value| {
            event["choices"].as_array().unwrap().iter().find(|one| one["index"] == index).cloned()
        };
        let choices: Vec<Value> = events.iter().filter_map(of).collect();
        assert_eq!(choices[0]["delta"]["role"], "assistant");
        let text: String = choices.iter().filter_map(|choice| choice["delta"]["content"].as_str()).collect();
        let expected = &whole["choices"][index];
        assert_eq!(text, expected["message"]["content"].as_str().unwrap());
        assert_eq!(choices.last().unwrap()["finish_reason"], expected["finish_reason"]);
        let scored: Vec<&Value> =
            choices.iter().filter_map(|choice| choice["logprobs"]["content"].as_array()).flatten().collect();
        let all: Vec<&Value> = expected["logprobs"]["content"].as_array().unwrap().iter().collect();
        assert_eq!(scored, all);
        let bytes: Vec<u8> = all
            .iter()
            .flat_map(|token| token["bytes"].as_array().unwrap())
            .map(|byte| byte.as_u64().unwrap() as u8)
            .collect();
        assert_eq!(String::from_utf8(bytes).unwrap(), text);
    }
    let last = events.last().unwrap();
    assert_eq!(last["choices"], json!([]));
    assert_eq!(last["usage"]["completion_tokens"], whole["usage"]["completion_tokens"]);
    assert_eq!(last["kernmill"]["seed"], 4);
}

#[test]
fn stop_strings_end_an_answer_wherever_its_tokens_end() {
    let served = Served::new(ServerConfig::default());
    let messages = [json!({ "role": "user", "content": "What can you do?" })];
    let body =
        json!({ "messages": messages, "max_tokens": 60, "temperature": 0, "reasoning_effort": "none" });
    let whole = post(served.address, "/v1/chat/completions", &body).json();
    let text = whole["choices"][0]["message"]["content"].as_str().unwrap().to_owned();
    let letters: Vec<char> = text.chars().collect();
    assert!(letters.len() > 40, "{text}");
    for at in (5..35).step_by(6) {
        let stop: String = letters[at..at + 3].iter().collect();
        let expected = &text[..text.find(&stop).unwrap()];
        for streams in [false, true] {
            let mut body = body.clone();
            (body["stop"], body["stream"]) = (json!([stop]), json!(streams));
            let reply = post(served.address, "/v1/chat/completions", &body);
            if streams {
                let events = reply.events();
                let text: String = events
                    .iter()
                    .filter_map(|event| event["choices"][0]["delta"]["content"].as_str())
                    .collect();
                assert_eq!(text, expected);
                assert_eq!(events.last().unwrap()["choices"][0]["finish_reason"], "stop");
            } else {
                let reply = reply.json();
                assert_eq!(reply["usage"]["prompt_tokens"], whole["usage"]["prompt_tokens"]);
                assert!(reply["usage"]["prompt_tokens_details"]["cached_tokens"].as_u64().unwrap() > 0);
                let choice = &reply["choices"][0];
                assert_eq!(choice["message"]["content"], expected);
                assert_eq!(choice["finish_reason"], "stop");
            }
        }
    }
    served.settle();
}

#[test]
fn a_turn_computes_what_is_new() {
    let served = Served::new(ServerConfig::default());
    let mut messages =
        vec![json!({ "role": "user", "content": "What is a slice? Say much about it, please." })];
    let mut before = 0;
    for turn in 0..4 {
        let body = json!({ "messages": messages, "max_tokens": 12, "seed": turn });
        let reply = post(served.address, "/v1/chat/completions", &body).json();
        let usage = &reply["usage"];
        let cached = usage["prompt_tokens_details"]["cached_tokens"].as_u64().unwrap();
        assert!(cached + 1 >= before, "turn {turn}: {cached} of {before} tokens were cached");
        before = usage["prompt_tokens"].as_u64().unwrap();
        messages.push(reply["choices"][0]["message"].clone());
        messages.push(json!({ "role": "user", "content": format!("And then? {turn}") }));
    }
}

#[test]
fn texts_and_ids_go_to_and_fro() {
    let served = Served::new(ServerConfig::default());
    let reply =
        post(served.address, "/tokenize", &json!({ "prompt": "A slice is a", "return_token_strs": true }))
            .json();
    let ids = reply["tokens"].clone();
    assert_eq!(ids, json!(encode("A slice is a")));
    assert_eq!((reply["count"].as_u64(), reply["token_strs"][2].as_str()), (Some(5), Some(" slice")));
    let text = post(served.address, "/detokenize", &json!({ "tokens": ids })).json();
    assert_eq!(text, json!({ "prompt": "A slice is a" }));
    let chat = json!({ "messages": [{ "role": "user", "content": "Hi" }] });
    let count = post(served.address, "/tokenize", &chat).json()["count"].as_u64();
    let usage = post(served.address, "/v1/chat/completions", &chat).json()["usage"]["prompt_tokens"].as_u64();
    assert_eq!(count, usage);
    assert_eq!(get(served.address, "/tokenizer_info").json()["vocab_size"], json!(VOCAB));
}
