//! Health, reflection, keys, and what `vllm.Control` does.

use super::{Served, ask, slow};
use crate::caller::Keys;
use crate::scripted::Scripted;
use crate::state::ServerConfig;
use std::collections::BTreeSet;
use tonic::{Code, Request};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
use vllm_proto::control_client::ControlClient;
use vllm_proto::{
    GetModelInfoRequest, GetServerInfoRequest, IsPausedRequest, ListLorasRequest, LoadLoraRequest,
    ShutdownRequest, SleepRequest, UnloadLoraRequest, UpdateWeightsRequest,
};

fn service(name: &str) -> HealthCheckRequest {
    HealthCheckRequest { service: name.to_owned() }
}

#[tokio::test]
async fn health_follows_the_drain() {
    let served = Served::new(slow(), ServerConfig::default()).await;
    let mut health = HealthClient::new(served.channel().await);
    let mut watch = health.watch(service("vllm.Inference")).await.unwrap().into_inner();
    let mut none = health.watch(service("vllm.Other")).await.unwrap().into_inner();
    let next = |response: Option<tonic_health::pb::HealthCheckResponse>| response.map(|found| found.status());
    assert_eq!(next(watch.message().await.unwrap()), Some(ServingStatus::Serving));
    assert_eq!(next(none.message().await.unwrap()), Some(ServingStatus::ServiceUnknown));
    for name in ["", "vllm.Inference", "vllm.Control"] {
        let status = health.check(service(name)).await.unwrap().into_inner().status();
        assert_eq!(status, ServingStatus::Serving, "{name}");
    }
    assert_eq!(health.check(service("vllm.Other")).await.unwrap_err().code(), Code::NotFound);
    ControlClient::new(served.channel().await).shutdown(ShutdownRequest {}).await.unwrap();
    assert_eq!(next(watch.message().await.unwrap()), Some(ServingStatus::NotServing));
    assert_eq!(next(watch.message().await.unwrap()), None);
    let status = health.check(service("")).await.unwrap().into_inner().status();
    assert_eq!(status, ServingStatus::NotServing);
}

#[tokio::test]
async fn reflection_tells_the_schema() {
    let served = Served::new(Scripted::stops(&["Yes."]), ServerConfig::default()).await;
    let mut client = ServerReflectionClient::new(served.channel().await);
    let mut of = async |question: MessageRequest| {
        let request = ServerReflectionRequest { host: String::new(), message_request: Some(question) };
        let asked = tonic::codegen::tokio_stream::once(request);
        let mut stream = client.server_reflection_info(asked).await.unwrap().into_inner();
        stream.message().await.unwrap().unwrap().message_response.unwrap()
    };
    let MessageResponse::ListServicesResponse(list) = of(MessageRequest::ListServices(String::new())).await
    else {
        panic!("no list of services")
    };
    let names: BTreeSet<_> = list.service.iter().map(|service| service.name.as_str()).collect();
    for name in ["vllm.Inference", "vllm.Control", "grpc.health.v1.Health"] {
        assert!(names.contains(name), "{names:?}");
    }
    for symbol in ["vllm.Inference", "vllm.GenerateRequest", "google.protobuf.Struct", "vllm.Control.Abort"] {
        let found = of(MessageRequest::FileContainingSymbol(symbol.to_owned())).await;
        assert!(matches!(found, MessageResponse::FileDescriptorResponse(_)), "{symbol}: {found:?}");
    }
}

/// A message with a key.
fn with_key<T>(key: &str, message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.metadata_mut().insert("authorization", format!("Bearer {key}").parse().unwrap());
    request
}

#[tokio::test]
async fn keys_are_needed_and_some_may_more() {
    let keys = Keys::read("ann secret-key-of-ann admin\nbob secret-key-of-bob tokens-per-minute=1\n");
    let config = ServerConfig { keys: keys.unwrap(), ..ServerConfig::default() };
    let served = Served::new(Scripted::stops(&["Yes."]), config).await;
    let mut inference = served.inference().await;
    let mut control = ControlClient::new(served.channel().await);
    assert_eq!(inference.generate(ask("Hi", 5)).await.unwrap_err().code(), Code::Unauthenticated);
    let wrong = inference.generate(with_key("secret-key-of-cid", ask("Hi", 5))).await.unwrap_err();
    assert_eq!(wrong.code(), Code::Unauthenticated);
    assert_eq!(
        control.get_server_info(GetServerInfoRequest {}).await.unwrap_err().code(),
        Code::Unauthenticated
    );
    // Monitors have none.
    let status = HealthClient::new(served.channel().await).check(service("")).await.unwrap();
    assert_eq!(status.into_inner().status(), ServingStatus::Serving);
    let (ann, bob) = ("secret-key-of-ann", "secret-key-of-bob");
    let response = inference.generate(with_key(ann, ask("Hi", 5))).await.unwrap();
    assert!(response.metadata().get("x-request-id").is_some());
    inference.generate(with_key(bob, ask("Hi, you there", 5))).await.unwrap();
    let used = inference.generate(with_key(bob, ask("Hi", 5))).await.unwrap_err();
    assert_eq!(used.code(), Code::ResourceExhausted);
    assert!(used.metadata().get("grpc-retry-pushback-ms").is_some());
    let denied = control.shutdown(with_key(bob, ShutdownRequest {})).await.unwrap_err();
    assert_eq!(denied.code(), Code::PermissionDenied);
    let load = LoadLoraRequest { lora_name: "terse".to_owned(), source_path: "terse".to_owned() };
    let denied = control.load_lora(with_key(bob, load.clone())).await.unwrap_err();
    assert_eq!(denied.code(), Code::PermissionDenied);
    // Without --lora-dir nobody may.
    let denied = control.load_lora(with_key(ann, load)).await.unwrap_err();
    assert_eq!(denied.code(), Code::PermissionDenied);
    assert!(denied.message().contains("--lora-dir"), "{denied}");
}

#[tokio::test]
async fn control_says_what_there_is_and_loads_adapters() {
    let adapters = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).to_owned();
    let config = ServerConfig {
        adapters: Some(adapters),
        aliases: [("small".to_owned(), "nano".to_owned())].into(),
        ..ServerConfig::default()
    };
    let served = Served::new(slow(), config).await;
    let mut control = ControlClient::new(served.channel().await);
    let info = control.get_server_info(GetServerInfoRequest {}).await.unwrap().into_inner();
    assert_eq!((info.max_model_len, info.proto_version.as_str()), (65_536, vllm_proto::VERSION));
    let model = control.get_model_info(GetModelInfoRequest {}).await.unwrap().into_inner();
    assert_eq!((model.model_id.as_str(), model.served_model_aliases), ("nano", vec!["small".to_owned()]));
    assert!(model.supports_text_input && model.supports_token_ids_input && model.supports_lora);
    let load = |path: &str| LoadLoraRequest { lora_name: "terse".to_owned(), source_path: path.to_owned() };
    let outside = control.load_lora(load("..")).await.unwrap_err();
    assert_eq!(outside.code(), Code::InvalidArgument);
    assert!(outside.message().contains("`source_path`"), "{outside}");
    let loaded = control.load_lora(load("src")).await.unwrap().into_inner().adapter.unwrap();
    assert_eq!((loaded.lora_name.as_str(), loaded.source_path.as_str()), ("terse", "src"));
    let twice = control.load_lora(load("src")).await.unwrap_err();
    assert_eq!(twice.code(), Code::InvalidArgument);
    let list = control.list_loras(ListLorasRequest {}).await.unwrap().into_inner().adapters;
    let names: Vec<_> = list.iter().map(|adapter| adapter.lora_name.as_str()).collect();
    assert_eq!(names, ["poet", "terse"]);
    assert!(list[1] == loaded && list[0].lora_id != loaded.lora_id);
    let used = vllm_proto::GenerateRequest { lora_name: "terse".to_owned(), ..ask("short", 5) };
    served.inference().await.generate(used).await.unwrap();
    let unload = UnloadLoraRequest { lora_name: "terse".to_owned() };
    let unloaded = control.unload_lora(unload.clone()).await.unwrap().into_inner().adapter.unwrap();
    assert_eq!(unloaded, loaded);
    assert_eq!(control.unload_lora(unload).await.unwrap_err().code(), Code::NotFound);
}

#[tokio::test]
async fn what_there_is_not_is_said() {
    let served = Served::new(Scripted::stops(&["Yes."]), ServerConfig::default()).await;
    let mut control = ControlClient::new(served.channel().await);
    let none = [
        control.sleep(SleepRequest::default()).await.map(drop),
        control.is_paused(IsPausedRequest {}).await.map(drop),
        control.update_weights(UpdateWeightsRequest::default()).await.map(drop),
    ];
    for (result, name) in none.into_iter().zip(["Sleep", "IsPaused", "UpdateWeights"]) {
        let status = result.unwrap_err();
        assert_eq!(status.code(), Code::Unimplemented);
        assert!(status.message().contains(name), "{status}");
    }
}
