//! Calls that end before their texts do: nothing of them stays.

use super::super::aborts::Aborts;
use super::super::inference::Inference;
use super::{Served, ask, slow};
use crate::backend::Backend;
use crate::caller::{Caller, Keys};
use crate::limits;
use crate::script::ScriptBackend;
use crate::state::{ServerConfig, ServerState};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tonic::{Code, Request};
use vllm_proto::control_client::ControlClient;
use vllm_proto::finish_info::FinishReason;
use vllm_proto::generate_request::Prompt;
use vllm_proto::inference_server;
use vllm_proto::{AbortRequest, GenerateRequest, TokenIds};

/// Waits until nothing runs or waits any more.
async fn idle(backend: &ScriptBackend) {
    loop {
        let load = backend.load();
        if load.running.iter().chain(&load.waiting).sum::<u32>() == 0 {
            return;
        }
        sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_hundred_streams_that_are_left_leave_nothing() {
    let backend = slow();
    let served = Served::new(backend.clone(), ServerConfig::default()).await;
    let channel = served.channel().await;
    let mut random = fastrand::Rng::with_seed(7);
    let mut clients = JoinSet::new();
    for at in 0..100 {
        let channel = channel.clone();
        let (way, few, millis) = (random.u32(..4), random.usize(0..6), random.u64(1..60));
        clients.spawn(async move {
            let mut client = super::InferenceClient::new(channel.clone());
            let mut request = Request::new(ask("It is long", 30_000));
            request.get_mut().request_id = format!("call-{at}");
            match way {
                // The stream is dropped after a few responses, or before the first one.
                0 => {
                    let mut stream = client.generate_stream(request).await.unwrap().into_inner();
                    for _ in 0..few {
                        stream.message().await.unwrap();
                    }
                }
                // A call without a stream is dropped while it waits.
                1 => {
                    let called = client.generate(request);
                    assert!(tokio::time::timeout(Duration::from_millis(millis), called).await.is_err());
                }
                // The time that the client gives passes. The client's own end of it may notice first.
                2 => {
                    request.set_timeout(Duration::from_millis(millis));
                    let ended = match client.generate_stream(request).await {
                        Ok(stream) => {
                            let mut stream = stream.into_inner();
                            loop {
                                match stream.message().await {
                                    Ok(response) => assert!(response.is_some(), "the text has ended"),
                                    Err(status) => break status,
                                }
                            }
                        }
                        Err(status) => status,
                    };
                    assert!(matches!(ended.code(), Code::DeadlineExceeded | Code::Cancelled), "{ended}");
                }
                // Another call aborts it, and its stream ends as it should.
                _ => {
                    let mut stream = client.generate_stream(request).await.unwrap().into_inner();
                    let request_ids = vec![format!("call-{at}")];
                    ControlClient::new(channel).abort(AbortRequest { request_ids }).await.unwrap();
                    let mut end = None;
                    while let Some(response) = stream.message().await.unwrap() {
                        end = response.outputs.and_then(|outputs| outputs.finish_info);
                    }
                    assert_eq!(end.unwrap().finish_reason(), FinishReason::Aborted);
                }
            }
        });
    }
    while let Some(ended) = clients.join_next().await {
        ended.unwrap();
    }
    idle(&backend).await;
    // The server goes on.
    let mut client = served.inference().await;
    let whole = client.generate(ask("short", 30)).await.unwrap().into_inner();
    let outputs = whole.outputs.unwrap();
    assert!(outputs.text.contains("Yes."), "{}", outputs.text);
    assert_eq!(outputs.finish_info.unwrap().finish_reason(), FinishReason::Stop);
    idle(&backend).await;
}

#[tokio::test]
async fn the_time_of_a_call_is_kept_by_the_server() {
    let backend = slow();
    let models: [Arc<dyn Backend>; 1] = [backend.clone()];
    let state = ServerState::new(&models, ServerConfig::default()).unwrap();
    let service = Inference::new(state, Arc::new(Aborts::default()));
    let call = |time: &'static str| {
        let mut request = Request::new(ask("It is long", 30_000));
        request.extensions_mut().insert(Caller::default());
        request.metadata_mut().insert("grpc-timeout", time.parse().unwrap());
        request
    };
    for time in ["50m", "1n", "0S", "20000u"] {
        let status = inference_server::Inference::generate(&service, call(time)).await.unwrap_err();
        assert_eq!(status.code(), Code::DeadlineExceeded, "{time}: {status}");
    }
    for time in ["50", "m", "123456789m", "5x", "-5S", "S5"] {
        let status = inference_server::Inference::generate(&service, call(time)).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{time}: {status}");
        assert!(status.message().contains("`grpc-timeout`"), "{status}");
    }
    idle(&backend).await;
}

#[tokio::test]
async fn a_name_is_one_calls_and_another_keys_call_cannot_be_aborted() {
    let keys = Keys::read("ann secret-key-of-ann\nbob secret-key-of-bob\n").unwrap();
    let served = Served::new(slow(), ServerConfig { keys, ..ServerConfig::default() }).await;
    let channel = served.channel().await;
    let mut inference = served.inference().await;
    let as_of = |key: &'static str| {
        move |message: GenerateRequest| {
            let mut request = Request::new(message);
            request.metadata_mut().insert("authorization", format!("Bearer {key}").parse().unwrap());
            request
        }
    };
    let (ann, bob) = (as_of("secret-key-of-ann"), as_of("secret-key-of-bob"));
    let named = || GenerateRequest { request_id: "one".to_owned(), ..ask("It is long", 30_000) };
    let mut stream = inference.generate_stream(ann(named())).await.unwrap().into_inner();
    let twice = inference.generate_stream(ann(named())).await.unwrap_err();
    assert_eq!(twice.code(), Code::AlreadyExists);
    let other = inference.generate_stream(bob(named())).await.unwrap();
    drop(other);
    let mut control = ControlClient::new(channel);
    let mut abort = async |key: &str| {
        let mut request = Request::new(AbortRequest { request_ids: vec!["one".to_owned()] });
        request.metadata_mut().insert("authorization", format!("Bearer {key}").parse().unwrap());
        control.abort(request).await.unwrap();
    };
    abort("secret-key-of-bob").await;
    for _ in 0..5 {
        let response = stream.message().await.unwrap().unwrap();
        assert!(response.outputs.is_none_or(|outputs| outputs.finish_info.is_none()));
    }
    abort("secret-key-of-ann").await;
    let mut end = None;
    while let Some(response) = stream.message().await.unwrap() {
        end = response.outputs.and_then(|outputs| outputs.finish_info);
    }
    assert_eq!(end.unwrap().finish_reason(), FinishReason::Aborted);
}

#[tokio::test]
async fn a_message_that_is_too_large_is_refused_with_the_limit() {
    let served = Served::new(slow(), ServerConfig::default()).await;
    let mut client = served.inference().await;
    let of = |ids: usize| GenerateRequest {
        // An id of two bytes.
        prompt: Some(Prompt::TokenIds(TokenIds { ids: vec![3000; ids] })),
        ..ask("", 1)
    };
    let status = client.generate(of(limits::MESSAGE_BYTES / 2 + 100)).await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
    assert!(status.message().contains("4194304"), "{status}");
    // One that is just smaller is read, and found too long for the context.
    let status = client.generate(of(limits::MESSAGE_BYTES / 2 - 100)).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument, "{status}");
}
