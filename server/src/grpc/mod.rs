//! gRPC, in the protocol of vLLM: the services `vllm.Inference` and `vllm.Control`, with the keys, limits and
//! figures that HTTP has, over the same backend. `docs/user/grpc.md` has what each field means.

mod aborts;
mod control;
mod health;
mod inference;
mod request;
mod response;
mod schema;
mod status;
#[cfg(test)]
mod tests;

use crate::error::ApiError;
use crate::guard;
use crate::limits;
use crate::record::Record;
use crate::state::ServerState;
use crate::tls::Stream;
use aborts::Aborts;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use control::Control;
use health::Health;
use hyper::server::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::graceful::Watcher;
use hyper_util::service::TowerToHyperService;
use inference::Inference;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use tonic::service::Routes;
use tonic_health::pb::health_server::HealthServer;
use tower::ServiceExt;
use vllm_proto::control_server::ControlServer;
use vllm_proto::inference_server::InferenceServer;

/// The service that answers calls.
pub type Service = Router;

/// Bytes before a message: whether it is compressed, and its length.
const PREFIX: usize = 5;

/// How often a connection on which nothing comes is asked whether it is there, and the time for the answer.
const PING: [Duration; 2] = [Duration::from_secs(30), Duration::from_secs(20)];

/// Methods that have a name of their own in figures and in the log.
const METHODS: [&str; 13] = [
    "/vllm.Inference/Generate",
    "/vllm.Inference/GenerateStream",
    "/vllm.Control/GetServerInfo",
    "/vllm.Control/GetModelInfo",
    "/vllm.Control/Abort",
    "/vllm.Control/LoadLora",
    "/vllm.Control/UnloadLora",
    "/vllm.Control/ListLoras",
    "/vllm.Control/Shutdown",
    "/grpc.health.v1.Health/Check",
    "/grpc.health.v1.Health/Watch",
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
];

/// The services, which answer calls for this state.
///
/// # Errors
/// When reflection refuses the schema, which would be a defect.
pub fn service(state: Arc<ServerState>) -> io::Result<Service> {
    let aborts = Arc::new(Aborts::default());
    let inference = Inference::new(state.clone(), aborts.clone());
    let control = Control::new(state.clone(), aborts);
    let reflection = || {
        tonic_reflection::server::Builder::configure()
            .register_file_descriptor_set(schema::descriptors())
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    // Requests have been limited before they are read here, and answers are checked where they are made.
    let routes =
        Routes::new(InferenceServer::new(inference).max_decoding_message_size(limits::MESSAGE_BYTES))
            .add_service(ControlServer::new(control).max_decoding_message_size(limits::MESSAGE_BYTES))
            .add_service(HealthServer::new(Health::new(state.clone())))
            .add_service(reflection().build_v1().map_err(io::Error::other)?)
            .add_service(reflection().build_v1alpha().map_err(io::Error::other)?);
    let routes = routes.prepare().into_axum_router();
    // One handler, as for HTTP: the order of checks is in one place.
    Ok(Router::new().fallback(move |request: Request| {
        let (state, routes) = (state.clone(), routes.clone());
        async move { respond(state, routes, request).await }
    }))
}

/// Answers the calls of a connection.
pub async fn answer(stream: Box<dyn Stream>, service: Service, watcher: Watcher) {
    let [interval, patience] = PING;
    let connection = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits::CALLS)
        .max_header_list_size(limits::HEAD_BYTES as u32)
        .keep_alive_interval(interval)
        .keep_alive_timeout(patience)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
    // A client may do to its connection as it likes.
    let _ = watcher.watch(connection).await;
}

/// Answers a call, whatever it is.
async fn respond(state: Arc<ServerState>, routes: Router, request: Request) -> Response {
    let path = request.uri().path();
    let name = METHODS.into_iter().find(|method| *method == path).unwrap_or("other");
    // Monitors and clients that look around ask without a key, and again and again.
    let is_open = path.starts_with("/grpc.");
    let record = state.record(name, is_open, request.headers());
    let kind = request.headers().get(CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
    if !kind.starts_with(b"application/grpc") {
        record.status(415);
        return with_id(StatusCode::UNSUPPORTED_MEDIA_TYPE.into_response(), &record);
    }
    let response = match prepare(&state, request, &record, is_open).await {
        Ok(request) => routes.oneshot(request).await.unwrap_or_else(|never| match never {}),
        Err(error) => status::of(&error).into_http(),
    };
    // A call that has failed before it has begun says so in its head.
    let code = response.headers().get("grpc-status").and_then(|code| code.to_str().ok());
    let status = status::http(code.and_then(|code| code.parse().ok()).unwrap_or(0));
    record.status(status);
    with_id(response, &record)
}

/// A response that names its request.
fn with_id(mut response: Response, record: &Record) -> Response {
    if let Ok(id) = HeaderValue::from_str(record.id()) {
        response.headers_mut().insert("x-request-id", id);
    }
    response
}

/// A call whose caller is known, and whose message has come, if it is but one.
async fn prepare(
    state: &ServerState,
    request: Request,
    record: &Arc<Record>,
    is_open: bool,
) -> Result<Request, ApiError> {
    guard::check_source(&state.config, request.uri(), request.headers())?;
    if is_open {
        return Ok(request);
    }
    let mut caller = state.config.keys.caller(request.headers())?;
    if let Some(name) = state.config.keys.name(&caller) {
        record.key(name);
    }
    caller.record = Some(record.clone());
    let (mut parts, body) = request.into_parts();
    parts.extensions.insert(caller);
    let reading = timeout(state.config.body_time, to_bytes(body, limits::MESSAGE_BYTES + PREFIX)).await;
    let bytes = reading.map_err(|_| ApiError::timeout())?.map_err(|_| {
        let most = limits::MESSAGE_BYTES;
        ApiError::exhausted(format!("the request is larger than a message may be, which is {most} bytes"))
    })?;
    Ok(Request::from_parts(parts, Body::from(bytes)))
}
