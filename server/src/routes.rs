//! Which path leads where.

use crate::error::ApiError;
use crate::record::Record;
use crate::state::State;
use crate::{anthropic, chat, completions, guard, models, ollama, openapi, page, reply, responses, sessions};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderValue, Method, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use std::sync::Arc;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// The routes of a server.
pub fn router(state: Arc<State>) -> Router {
    // One handler: whatever is wrong has the same form, and the order of checks is in one place.
    Router::new().fallback(move |request: Request| {
        let state = state.clone();
        async move { respond(state, request).await }
    })
}

/// Answers a request, whatever it is.
pub(crate) async fn respond(state: Arc<State>, request: Request) -> Response {
    let path = request.uri().path().to_owned();
    let is_routine = ROUTINE.contains(&path.as_str()) || page::is_there(&path);
    let record = state.record(name(&path), is_routine, request.headers());
    let origin = request.headers().get(header::ORIGIN).cloned();
    let is_anthropic = path.starts_with("/v1/messages") || request.headers().contains_key(anthropic::VERSION);
    // A panic is one request's, and a client that goes away ends what it asked for.
    let mut task = JoinSet::new();
    task.spawn(route(state.clone(), request, record.clone()));
    let defect = || Err(ApiError::internal("the server has a defect: the log says which"));
    let result = task.join_next().await.and_then(Result::ok).unwrap_or_else(defect);
    let mut response = result.unwrap_or_else(|error| {
        let mut body = match path.as_str() {
            path if path.starts_with(ollama::PATH) => error.ollama(),
            _ if is_anthropic => error.anthropic(),
            _ => error.json(),
        };
        body["request_id"] = record.id().into();
        error.response_of(&body)
    });
    if let Some(origin) =
        origin.filter(|origin| state.config.origins.iter().any(|own| own.as_bytes() == origin.as_bytes()))
    {
        let headers = response.headers_mut();
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(header::VARY, HeaderValue::from_static("Origin"));
        headers.insert(
            header::ACCESS_CONTROL_ALLOW_HEADERS,
            HeaderValue::from_static("authorization, content-type, x-api-key"),
        );
        let methods = HeaderValue::from_static("GET, POST, DELETE");
        headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, methods);
    }
    let status = response.status().as_u16();
    state.metrics.responded(name(&path), status);
    record.status(status);
    if let Ok(id) = HeaderValue::from_str(record.id()) {
        response.headers_mut().insert("x-request-id", id);
    }
    response
}

/// What monitors ask for again and again.
const ROUTINE: [&str; 6] = ["/health", "/v1/health", "/ping", "/ready", "/metrics", "/v1/loads"];

/// Every route that takes a body.
pub(crate) const POSTS: [&str; 17] = [
    "/v1/chat/completions",
    "/v1/completions",
    "/tokenize",
    "/detokenize",
    "/v1/load_lora_adapter",
    "/v1/unload_lora_adapter",
    "/v1/embeddings",
    "/drain",
    "/v1/responses",
    "/v1/responses/compact",
    "/v1/responses/input_tokens",
    "/v1/sessions",
    "/v1/messages",
    "/v1/messages/count_tokens",
    "/api/chat",
    "/api/generate",
    "/api/show",
];

/// Every other route.
pub(crate) const GETS: [&str; 15] = [
    "/v1/models",
    "/v1/sessions",
    "/openapi.json",
    "/health",
    "/v1/health",
    "/ready",
    "/version",
    "/metrics",
    "/v1/loads",
    "/tokenizer_info",
    "/",
    "/ping",
    "/api/tags",
    "/api/ps",
    "/api/version",
];

/// A route's name in figures: paths of clients' own are none.
fn name(path: &str) -> &'static str {
    if path.starts_with("/v1/models/") {
        return "/v1/models/NAME";
    }
    if path.starts_with(responses::PATH) && !POSTS.contains(&path) {
        return "/v1/responses/ID";
    }
    if path.starts_with("/v1/sessions/") {
        return "/v1/sessions/NAME";
    }
    POSTS.into_iter().chain(GETS).find(|route| *route == path).unwrap_or("other")
}

async fn route(state: Arc<State>, request: Request, record: Arc<Record>) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    guard::check(&state.config, &parts.method, &parts.uri, &parts.headers)?;
    let path = parts.uri.path();
    let is_get = parts.method == Method::GET || parts.method == Method::HEAD;
    if parts.method == Method::OPTIONS {
        return Ok(reply::json(&json!({})));
    }
    // Operators and browsers ask for these without a key.
    match path {
        "/health" | "/v1/health" | "/ping" if is_get => return health(&state),
        "/ready" if is_get => return ready(&state),
        _ if is_get && page::is_there(path) => return page::file(path),
        _ => {}
    }
    let mut caller = state.config.keys.caller(&parts.headers)?;
    if let Some(name) = state.config.keys.name(&caller) {
        record.key(name);
    }
    caller.record = Some(record);
    if let Some(rest) = path.strip_prefix(responses::PATH)
        && (is_get || matches!(parts.method, Method::DELETE | Method::POST))
        && !POSTS.contains(&path)
    {
        let query = parts.uri.query().unwrap_or_default();
        return responses::stored(&state, &caller, &parts.method, rest, query);
    }
    if path == sessions::PATH && is_get {
        return sessions::stored(state, caller, parts.method, None).await;
    }
    if let Some(rest) = path.strip_prefix(sessions::PATH).and_then(|rest| rest.strip_prefix('/')) {
        return match (rest.strip_suffix("/restore"), &parts.method) {
            (Some(name), &Method::POST) => sessions::restore(state, caller, name.to_owned()).await,
            (None, method) if is_get || method == Method::DELETE => {
                sessions::stored(state, caller, parts.method.clone(), Some(rest.to_owned())).await
            }
            _ => Err(missing(&parts.method, path)),
        };
    }
    if is_get {
        let is_anthropic = parts.headers.contains_key(anthropic::VERSION);
        return match path {
            "/v1/models" => Ok(models::list(&state, is_anthropic)),
            "/openapi.json" => Ok(reply::json(&openapi::document())),
            "/version" => Ok(reply::json(&json!({ "version": env!("CARGO_PKG_VERSION") }))),
            "/metrics" => Ok(metrics(&state)),
            "/v1/loads" => Ok(reply::json(&state.backend.load().json())),
            "/tokenizer_info" => Ok(models::tokenizer_info(&state)),
            "/api/tags" => Ok(ollama::list(&state, &state.scope(&caller))),
            "/api/ps" => Ok(ollama::running(&state, &state.scope(&caller))),
            "/api/version" => Ok(ollama::version()),
            _ => match path.strip_prefix("/v1/models/") {
                Some(name) => models::one(&state, name, is_anthropic),
                None => Err(missing(&parts.method, path)),
            },
        };
    }
    if parts.method != Method::POST || !POSTS.contains(&path) {
        return Err(missing(&parts.method, path));
    }
    let body = read(&state, body).await?;
    match path {
        "/v1/chat/completions" => chat::answer(state, caller, body).await,
        "/v1/completions" => completions::answer(state, caller, body).await,
        "/v1/responses" => {
            let is_open = parts.headers.contains_key(responses::OPEN_RESPONSES);
            responses::answer(state, caller, body, is_open).await
        }
        "/v1/responses/compact" => responses::compact(state, caller, body).await,
        "/v1/responses/input_tokens" => responses::count(state, caller, body).await,
        "/v1/sessions" => sessions::save(state, caller, body).await,
        "/v1/messages" => anthropic::answer(state, caller, body).await,
        "/v1/messages/count_tokens" => anthropic::count(state, caller, body).await,
        "/api/chat" => ollama::answer(state, caller, body).await,
        "/api/generate" => ollama::generate(state, caller, body).await,
        "/api/show" => ollama::show(&state, &state.scope(&caller), &body),
        "/tokenize" => models::tokenize(state, caller, body).await,
        "/detokenize" => models::detokenize(state, body).await,
        "/v1/load_lora_adapter" => models::load_adapter(state, caller, body).await,
        "/v1/unload_lora_adapter" => models::unload_adapter(state, caller, body).await,
        "/drain" => models::drain(&state, &caller),
        "/v1/embeddings" => Err(ApiError::not_found("this model makes texts, and no embeddings")),
        _ => Err(missing(&parts.method, path)),
    }
}

/// What is answered where there is nothing.
fn missing(method: &Method, path: &str) -> ApiError {
    if POSTS.contains(&path) || GETS.contains(&path) {
        let expected = if POSTS.contains(&path) { "POST" } else { "GET" };
        return ApiError::method(method.as_str(), path, expected);
    }
    if path.starts_with(ollama::PATH) {
        let message = format!(
            "there is no {path}: of Ollama's API, /api/chat, /api/generate, /api/tags, /api/show, /api/ps and \
             /api/version are there. The model is the one that kernmill was started with; it downloads nothing"
        );
        return ApiError::not_found(message);
    }
    ApiError::not_found(format!("there is nothing at {path}: /v1/models and /v1/chat/completions are there"))
}

async fn read(state: &State, body: Body) -> Result<Vec<u8>, ApiError> {
    let most = state.config.body_bytes;
    let reading = timeout(state.config.body_time, to_bytes(body, most));
    match reading.await {
        Err(_) => Err(ApiError::timeout()),
        Ok(Ok(bytes)) => Ok(bytes.to_vec()),
        Ok(Err(_)) => Err(ApiError::too_large(most)),
    }
}

fn health(state: &State) -> Result<Response, ApiError> {
    if state.backend.load().has_failed {
        return Err(ApiError::unavailable("the engine has failed: the log says why"));
    }
    Ok(reply::json(&json!({ "status": "ok" })))
}

fn ready(state: &State) -> Result<Response, ApiError> {
    let load = state.backend.load();
    if load.is_draining || load.has_failed {
        return Err(ApiError::unavailable("no requests are accepted any more"));
    }
    if let Some(why) = &load.stage_lost {
        return Err(ApiError::stage_lost(why));
    }
    Ok(reply::json(&json!({ "status": "ready" })))
}

fn metrics(state: &State) -> Response {
    let mut response = state.metrics.text(&state.backend.load()).into_response();
    let kind = HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}
