//! The meaning of fields: the backend gets the same requests as by HTTP.

use super::{Served, ask};
use crate::backend::Backend;
use crate::scripted::{Scripted, send, state};
use crate::state::ServerConfig;
use kernmill_serve::{Finish, Request};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use tonic::Code;
use vllm_proto::candidate_tokens::Select;
use vllm_proto::decoding_parameters::{StringChoices, StructuredOutput};
use vllm_proto::finish_info::{FinishReason, StopReason as Reason};
use vllm_proto::generate_request::Prompt;
use vllm_proto::{
    CandidateTokens, DecodingParameters, EngineReasoningGate, GenerateRequest, GenerateResponse,
    KvCacheParameters, KvHintsEnvelope, MediaItem, RandomSampling, ResponseOptions, StoppingCriteria,
    TokenIds,
};

fn grammars() -> ServerConfig {
    ServerConfig { grammars: true, ..ServerConfig::default() }
}

/// The last request that a backend was asked for.
fn last(backend: &Scripted) -> Request {
    backend.requests.lock().unwrap().last().unwrap().clone()
}

#[tokio::test]
async fn http_and_grpc_ask_for_the_same() {
    let backend = Scripted::stops(&["Yes", ", it", " is."]);
    let served = Served::new(backend.clone(), ServerConfig::default()).await;
    let mut client = served.inference().await;
    let http = state(backend.clone(), ServerConfig::default());
    let bare = |request: &mut GenerateRequest| request.temperature = None;
    let sampled = |request: &mut GenerateRequest| {
        request.temperature = Some(0.7);
        request.sampling = Some(RandomSampling {
            num_sequences: 1,
            top_k: Some(40),
            top_p: Some(0.9),
            min_p: Some(0.05),
            seed: Some(-42),
        });
        request.decoding = Some(DecodingParameters {
            presence_penalty: 0.5,
            frequency_penalty: -0.25,
            repetition_penalty: 1.2,
            logit_bias: HashMap::from([(9, -100.0), (5, 1.5)]),
            ..DecodingParameters::default()
        });
        let stopping = request.stopping.as_mut().unwrap();
        stopping.stop_strings = vec!["END".to_owned()];
        stopping.ignore_eos = true;
        let top = Some(CandidateTokens { select: Some(Select::TopN(2)) });
        request.response =
            Some(ResponseOptions { output_logprobs: true, output_candidates: top, ..Default::default() });
    };
    let scored = |request: &mut GenerateRequest| {
        request.prompt = Some(Prompt::TokenIds(TokenIds { ids: vec![7, 8, 9] }));
        request.response = Some(ResponseOptions { prompt_logprobs: true, ..Default::default() });
    };
    type Change<'a> = &'a dyn Fn(&mut GenerateRequest);
    let cases: [(Change<'_>, Value); 3] = [
        (&bare, json!({ "temperature": 0, "seed": 1 })),
        (
            &sampled,
            json!({
                "temperature": 0.7, "top_k": 40, "top_p": 0.9, "min_p": 0.05, "seed": -42,
                "presence_penalty": 0.5, "frequency_penalty": -0.25, "repetition_penalty": 1.2,
                "logit_bias": { "5": 1.5, "9": -100 }, "stop": ["END"], "ignore_eos": true, "logprobs": 2,
            }),
        ),
        (&scored, json!({ "prompt": [7, 8, 9], "temperature": 0, "seed": 1, "echo": true, "logprobs": 0 })),
    ];
    for (change, mut body) in cases {
        let mut request = ask("Hello there", 7);
        request.sampling = Some(RandomSampling { seed: Some(1), ..RandomSampling::default() });
        change(&mut request);
        let is_scored = request.response.as_ref().is_some_and(|options| options.prompt_logprobs);
        if body["prompt"].is_null() {
            body["prompt"] = json!("Hello there");
        }
        body["max_tokens"] = json!(7);
        let (status, _, text) = send(&http, "POST", "/v1/completions", "", &body).await;
        assert_eq!(status, 200, "{text}");
        let over_http = last(&backend);
        let whole = client.generate(request.clone()).await.unwrap().into_inner();
        assert_eq!(format!("{:?}", last(&backend)), format!("{over_http:?}"), "{body}");
        let answer: Value = serde_json::from_str(&text).unwrap();
        let outputs = whole.outputs.unwrap();
        if !is_scored {
            assert_eq!(answer["choices"][0]["text"], outputs.text);
        }
        assert_eq!(outputs.text, "Yes, it is.");
        // A stream asks for the same, and comes to the same.
        let mut stream = client.generate_stream(request).await.unwrap().into_inner();
        assert_eq!(format!("{:?}", last(&backend)), format!("{over_http:?}"), "{body}");
        let mut text = String::new();
        while let Some(response) = stream.message().await.unwrap() {
            text.push_str(&response.outputs.map(|outputs| outputs.text).unwrap_or_default());
        }
        assert_eq!(text, outputs.text);
    }
}

#[tokio::test]
async fn responses_have_what_was_asked_for() {
    let backend = Scripted::new(&["Yes", " STOP"], Finish::Text("STOP".to_owned()));
    let served = Served::new(backend.clone(), ServerConfig::default()).await;
    let mut client = served.inference().await;
    let GenerateResponse { prompt_info, outputs } = client.generate(ask("Hi", 5)).await.unwrap().into_inner();
    let (prompt, outputs) = (prompt_info.unwrap(), outputs.unwrap());
    assert_eq!(prompt.num_prompt_tokens as usize, last(&backend).prompt.len());
    assert!(prompt.token_ids.is_empty() && outputs.token_ids.is_empty() && outputs.logprobs.is_empty());
    let info = outputs.finish_info.unwrap();
    assert_eq!(info.finish_reason(), FinishReason::Stop);
    assert_eq!(info.stop_reason, Some(Reason::StopString("STOP".to_owned())));
    assert_eq!((info.num_output_tokens, info.num_cached_tokens, outputs.num_tokens), (2, Some(3), 2));
    let mut request = ask("Hi", 5);
    request.response = Some(ResponseOptions {
        prompt_token_ids: true,
        output_text: Some(false),
        output_token_ids: true,
        skip_special_tokens: Some(false),
        ..ResponseOptions::default()
    });
    let stopping = request.stopping.as_mut().unwrap();
    (stopping.include_stop_strings, stopping.stop_strings) = (true, vec!["STOP".to_owned()]);
    let shown = client.generate(request.clone()).await.unwrap().into_inner();
    assert_eq!(shown.prompt_info.unwrap().token_ids, last(&backend).prompt);
    let outputs = shown.outputs.unwrap();
    assert_eq!((outputs.text.as_str(), outputs.token_ids), ("", vec![1, 2]));
    assert!(last(&backend).shows_special);
    request.response.as_mut().unwrap().output_text = None;
    let shown = client.generate(request).await.unwrap().into_inner();
    assert_eq!(shown.outputs.unwrap().text, "Yes STOPSTOP");
}

#[tokio::test]
async fn the_rest_of_the_fields_is_honoured() {
    let backend = Scripted::stops(&["Yes."]);
    let served = Served::new(backend.clone(), grammars()).await;
    let mut client = served.inference().await;
    let mut of = async |request: GenerateRequest| {
        client.generate(request).await.unwrap();
        last(&backend)
    };
    assert_eq!(of(ask("Hi", 0)).await.max_tokens, 20);
    let cut = GenerateRequest {
        prompt: Some(Prompt::TokenIds(TokenIds { ids: vec![4, 5, 6, 7] })),
        truncate_prompt_tokens: 2,
        priority: -9,
        session_id: Some("talk".to_owned()),
        watermarking: Some(false),
        engine_reasoning_gate: Some(EngineReasoningGate {
            reasoning_ended: Some(true),
            ..Default::default()
        }),
        ..GenerateRequest::default()
    };
    let cut = of(cut).await;
    assert_eq!((cut.prompt, cut.priority, cut.salt), (vec![6, 7], 4, [0; 16]));
    let kv = |salt: &str, bypass_prefix_cache| GenerateRequest {
        kv: Some(KvCacheParameters {
            cache_salt: salt.to_owned(),
            bypass_prefix_cache,
            ..Default::default()
        }),
        ..ask("Hi", 5)
    };
    let salted = of(kv("a", false)).await.salt;
    assert_eq!(of(kv("a", false)).await.salt, salted);
    let others = [of(kv("b", false)).await.salt, of(kv("", true)).await.salt, of(kv("", true)).await.salt];
    let all = [salted, [0; 16]].into_iter().chain(others);
    assert_eq!(all.collect::<std::collections::BTreeSet<_>>().len(), 5);
    let decoding = |decoding| GenerateRequest { decoding: Some(decoding), ..ask("Hi", 5) };
    let allowed = DecodingParameters {
        allowed_token_ids: vec![3, 5],
        bad_words_token_ids: vec![TokenIds { ids: vec![5] }],
        ..DecodingParameters::default()
    };
    let banned = of(decoding(allowed)).await.sampler.logit_bias;
    assert_eq!(banned.len(), 3071);
    assert!(banned.iter().all(|(id, bias)| *id != 3 && *bias == f32::NEG_INFINITY));
    for output in [
        StructuredOutput::Json("{\"type\": \"integer\"}".to_owned()),
        StructuredOutput::JsonObject(true),
        StructuredOutput::Choice(StringChoices { choices: vec!["yes".to_owned(), "n(o".to_owned()] }),
        StructuredOutput::Regex("[0-9]+".to_owned()),
        StructuredOutput::Grammar("start: \"yes\"".to_owned()),
    ] {
        let held = DecodingParameters { structured_output: Some(output), ..DecodingParameters::default() };
        assert!(of(decoding(held)).await.constraint.is_some());
    }
    let not_held = DecodingParameters {
        structured_output: Some(StructuredOutput::JsonObject(false)),
        ..Default::default()
    };
    assert!(of(decoding(not_held)).await.constraint.is_none());
}

#[tokio::test]
async fn no_end_comes_before_the_least_number_of_tokens() {
    let backend = Scripted::stops(&["Yes."]);
    let served = Served::new(backend.clone(), ServerConfig::default()).await;
    let mut request = ask("Hi", 5);
    let stopping = request.stopping.as_mut().unwrap();
    (stopping.min_new_tokens, stopping.stop_token_ids) = (2, vec![77]);
    served.inference().await.generate(request).await.unwrap();
    let asked = last(&backend);
    let ends: Vec<u32> = backend.facts().end_tokens.iter().copied().chain([77]).collect();
    assert_eq!(asked.stop_tokens, ends);
    let mut constraint = asked.constraint.unwrap();
    for _ in 0..2 {
        let mask = constraint.mask().unwrap();
        assert!(ends.iter().all(|id| !mask.allows(*id)) && mask.allows(5) && mask.allows(100));
        constraint.accept(5).unwrap();
    }
    let mask = constraint.mask().unwrap();
    assert!(ends.iter().all(|id| mask.allows(*id)) && mask.allows(5));
}

/// A change of a request that may not be.
type Wrong<'a> = (&'a str, Code, &'a dyn Fn(&mut GenerateRequest));

#[tokio::test]
async fn what_is_wrong_or_not_served_is_named() {
    let served = Served::new(Scripted::stops(&["Yes."]), ServerConfig::default()).await;
    let mut client = served.inference().await;
    let decoding = |request: &mut GenerateRequest, output| {
        request.decoding = Some(DecodingParameters { structured_output: Some(output), ..Default::default() });
    };
    let stopping = |request: &mut GenerateRequest, stopping| request.stopping = Some(stopping);
    let ids = |ids: &[u32]| Some(Prompt::TokenIds(TokenIds { ids: ids.to_vec() }));
    let (invalid, unserved) = (Code::InvalidArgument, Code::Unimplemented);
    let wrong: [Wrong<'_>; 24] = [
        ("`media`", unserved, &|r| r.media.push(MediaItem::default())),
        ("`kv_hints`", unserved, &|r| r.kv_hints = Some(KvHintsEnvelope::default())),
        ("`watermarking`", unserved, &|r| r.watermarking = Some(true)),
        ("`engine_reasoning_gate`", unserved, &|r| {
            r.engine_reasoning_gate = Some(EngineReasoningGate::default());
        }),
        ("`kv.kv_transfer_params`", unserved, &|r| {
            let kv_transfer_params = Some(prost_types::Struct::default());
            r.kv = Some(KvCacheParameters { kv_transfer_params, ..Default::default() });
        }),
        ("`stopping.thinking_token_budget`", unserved, &|r| {
            stopping(r, StoppingCriteria { thinking_token_budget: Some(0), ..Default::default() });
        }),
        ("`stopping.min_new_tokens`", unserved, &|r| {
            let stop_strings = vec!["x".to_owned()];
            stopping(r, StoppingCriteria { min_new_tokens: 2, stop_strings, ..Default::default() });
        }),
        ("`stopping.min_new_tokens`", invalid, &|r| {
            stopping(r, StoppingCriteria { min_new_tokens: 9, max_new_tokens: 8, ..Default::default() });
        }),
        ("`stopping.stop_token_ids`", invalid, &|r| {
            stopping(r, StoppingCriteria { stop_token_ids: vec![3072], ..Default::default() });
        }),
        ("`stop_strings`", invalid, &|r| {
            stopping(r, StoppingCriteria { stop_strings: vec![String::new()], ..Default::default() });
        }),
        ("`decoding.structural_tag`", unserved, &|r| {
            decoding(r, StructuredOutput::StructuralTag("{}".into()))
        }),
        ("--allow-grammars", invalid, &|r| decoding(r, StructuredOutput::Regex("a".to_owned()))),
        ("--allow-grammars", invalid, &|r| decoding(r, StructuredOutput::Grammar("start: \"a\"".to_owned()))),
        ("`decoding.json`", invalid, &|r| decoding(r, StructuredOutput::Json("{".to_owned()))),
        ("`decoding.choice`", invalid, &|r| decoding(r, StructuredOutput::Choice(StringChoices::default()))),
        ("`decoding.bad_words_token_ids`", unserved, &|r| {
            let bad_words_token_ids = vec![TokenIds { ids: vec![1, 2] }];
            r.decoding = Some(DecodingParameters { bad_words_token_ids, ..Default::default() });
        }),
        ("`temperature`", invalid, &|r| r.temperature = Some(f32::NAN)),
        ("`top_p`", invalid, &|r| {
            r.sampling = Some(RandomSampling { top_p: Some(0.0), ..Default::default() })
        }),
        ("at most 1", invalid, &|r| {
            r.sampling = Some(RandomSampling { num_sequences: 2, ..Default::default() });
        }),
        ("`response.output_candidates.top_n`", invalid, &|r| {
            let output_candidates = Some(CandidateTokens { select: Some(Select::TopN(21)) });
            r.response = Some(ResponseOptions { output_candidates, ..Default::default() });
        }),
        ("`response.prompt_candidates`", unserved, &|r| {
            let prompt_candidates = Some(CandidateTokens { select: Some(Select::All(true)) });
            r.response = Some(ResponseOptions { prompt_candidates, ..Default::default() });
        }),
        ("`prompt`", invalid, &|r| r.prompt = None),
        ("`token_ids`", invalid, &|r| r.prompt = ids(&[3072])),
        ("context holds 1024", invalid, &|r| r.prompt = ids(&[1; 1020])),
    ];
    for (named, code, change) in wrong {
        let mut request = ask("Hi", 8);
        change(&mut request);
        let status = client.generate(request).await.unwrap_err();
        assert_eq!(status.code(), code, "{named}: {}", status.message());
        assert!(status.message().contains(named), "{named}: {}", status.message());
    }
    for (model, lora_name) in [("other", ""), ("", "poet"), ("nano", "poet")] {
        let (model, lora_name) = (model.to_owned(), lora_name.to_owned());
        let status = client.generate(GenerateRequest { model, lora_name, ..ask("Hi", 8) }).await.unwrap_err();
        assert_eq!(status.code(), Code::NotFound, "{}", status.message());
    }
}

#[tokio::test]
async fn a_stream_has_several_sequences_with_seeds_of_their_own() {
    let backend = Scripted::stops(&["Yes", "."]);
    let served = Served::new(backend.clone(), ServerConfig::default()).await;
    let mut request = ask("Hi", 8);
    request.sampling = Some(RandomSampling { num_sequences: 3, seed: Some(7), ..Default::default() });
    request.response = Some(ResponseOptions { prompt_logprobs: true, ..Default::default() });
    let mut stream = served.inference().await.generate_stream(request).await.unwrap().into_inner();
    let first = stream.message().await.unwrap().unwrap();
    assert!(first.prompt_info.is_some() && first.outputs.is_none(), "the prompt comes first");
    let mut texts = [const { String::new() }; 3];
    let mut ends = 0;
    while let Some(response) = stream.message().await.unwrap() {
        assert!(response.prompt_info.is_none());
        let outputs = response.outputs.unwrap();
        texts[outputs.index as usize].push_str(&outputs.text);
        ends += usize::from(outputs.finish_info.is_some());
    }
    assert_eq!((texts, ends), (["Yes.", "Yes.", "Yes."].map(str::to_owned), 3));
    let requests = backend.requests.lock().unwrap().clone();
    let asked: Vec<_> =
        requests.iter().map(|request| (request.sampler.seed, request.scores_prompt)).collect();
    assert_eq!(asked, [(Some(7), true), (Some(8), false), (Some(9), false)]);
}

#[tokio::test]
async fn a_call_goes_to_the_model_that_it_names() {
    let (first, other) = (Scripted::stops(&["Yes."]), Scripted::called("other"));
    let served =
        Served::of(&[first.clone() as Arc<dyn Backend>, other.clone()], ServerConfig::default()).await;
    let mut client = served.inference().await;
    for (name, [by_first, by_other]) in [("", [1, 0]), ("nano", [2, 0]), ("other", [2, 1])] {
        let request = GenerateRequest { model: name.to_owned(), ..ask("Hi", 3) };
        client.generate(request).await.unwrap();
        let asked = |backend: &Scripted| backend.requests.lock().unwrap().len();
        assert_eq!([asked(&first), asked(&other)], [by_first, by_other], "{name}");
    }
    let unknown = GenerateRequest { model: "nobody".to_owned(), ..ask("Hi", 3) };
    let status = client.generate(unknown).await.unwrap_err();
    assert!(status.code() == Code::NotFound && status.message().contains("nano, other"), "{status}");
}
