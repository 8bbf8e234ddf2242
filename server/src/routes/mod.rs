//! Which path leads where.

mod status;
mod table;

use crate::caller::Caller;
use crate::error::ApiError;
use crate::record::Record;
use crate::state::ServerState;
use crate::{anthropic, guard, ollama, page, reply};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderValue, Method, header};
use axum::response::Response;
use serde_json::json;
use std::sync::Arc;
use table::{ROUTES, RouteAccess, RouteCall};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// The descriptions of all routes, for clients.
#[cfg(test)]
pub(crate) fn operations() -> impl Iterator<Item = &'static crate::openapi::Operation> {
    ROUTES.iter().map(|route| &route.operation)
}

/// The routes of a server.
pub fn router(state: Arc<ServerState>) -> Router {
    // One handler: whatever is wrong has the same form, and the order of checks is in one place.
    Router::new().fallback(move |request: Request| {
        let state = state.clone();
        async move { respond(state, request).await }
    })
}

/// Answers a request, whatever it is.
pub(crate) async fn respond(state: Arc<ServerState>, request: Request) -> Response {
    let path = request.uri().path().to_owned();
    let record = state.record(name(&path), is_routine(&path), request.headers());
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
    record.status(status);
    if let Ok(id) = HeaderValue::from_str(record.id()) {
        response.headers_mut().insert("x-request-id", id);
    }
    response
}

/// A route's name in figures. Other paths that clients make up have none.
fn name(path: &str) -> &'static str {
    table::pattern_of(path).map_or("other", |(pattern, _)| pattern)
}

/// Whether monitors and browsers ask for a path again and again.
fn is_routine(path: &str) -> bool {
    let mut routes = table::pattern_of(path).into_iter().flat_map(|(pattern, _)| table::of_pattern(pattern));
    page::is_there(path) || routes.any(|route| route.access != RouteAccess::Keyed)
}

async fn route(state: Arc<ServerState>, request: Request, record: Arc<Record>) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    guard::check(&state.config, &parts.method, &parts.uri, &parts.headers)?;
    let (path, method) = (parts.uri.path(), &parts.method);
    if method == Method::OPTIONS {
        return Ok(reply::json(&json!({})));
    }
    let (pattern, name) = table::pattern_of(path).unwrap_or_default();
    let of = |method: &Method| table::of_pattern(pattern).find(|route| route.operation.method == *method);
    let is_get = method == Method::GET || method == Method::HEAD;
    let route = of(method).or_else(|| of(&Method::GET).filter(|_| is_get));
    let mut caller = Caller::default();
    if route.is_none_or(|route| route.access != RouteAccess::Open) {
        if is_get && page::is_there(path) {
            return page::file(path);
        }
        caller = state.config.keys.caller(&parts.headers)?;
        if let Some(name) = state.config.keys.name(&caller) {
            record.key(name);
        }
    }
    let route = route.ok_or_else(|| missing(method, path, pattern))?;
    let body = if method == Method::POST { read(&state, body).await? } else { Vec::new() };
    let names_model = route.operation.body.is_some_and(|shape| shape.has_field("model"));
    let (state, body) = if names_model { state.asked(body).await? } else { (state, body) };
    *record.metrics() = state.metrics.clone();
    caller.record = Some(record);
    let (name, query) = (name.to_owned(), parts.uri.query().unwrap_or_default().to_owned());
    (route.answer)(RouteCall { state, caller, headers: parts.headers, query, name, body }).await
}

/// The answer where nothing is found; `pattern` is that of the path, if it is one of a route.
fn missing(method: &Method, path: &str, pattern: &'static str) -> ApiError {
    let methods: Vec<&str> =
        table::of_pattern(pattern).map(|route| route.operation.method.as_str()).collect();
    if !methods.is_empty() {
        return ApiError::method(method.as_str(), path, &methods.join(" or "));
    }
    if path.starts_with(ollama::PATH) {
        let all =
            ROUTES.iter().map(|route| route.operation.path).filter(|path| path.starts_with(ollama::PATH));
        let message = format!(
            "there is no {path}: of Ollama's API, there are {}. The model is the one that kernmill was started \
             with; it downloads nothing",
            all.collect::<Vec<_>>().join(", ")
        );
        return ApiError::not_found(message);
    }
    ApiError::not_found(format!("there is nothing at {path}: /v1/models and /v1/chat/completions are there"))
}

async fn read(state: &ServerState, body: Body) -> Result<Vec<u8>, ApiError> {
    let most = state.config.body_bytes;
    let reading = timeout(state.config.body_time, to_bytes(body, most));
    match reading.await {
        Err(_) => Err(ApiError::timeout()),
        Ok(Ok(bytes)) => Ok(bytes.to_vec()),
        Ok(Err(_)) => Err(ApiError::too_large(most)),
    }
}
