//! Status routes for operators.

use crate::error::ApiError;
use crate::metrics::merged;
use crate::reply;
use crate::state::ServerState;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// Whether the engines work.
pub(super) fn health(state: &ServerState) -> Result<Response, ApiError> {
    if state.loads().iter().any(|(_, load)| load.has_failed) {
        return Err(ApiError::unavailable("the engine has failed: the log says why"));
    }
    Ok(reply::json(&json!({ "status": "ok" })))
}

/// Whether requests are taken up.
pub(super) fn ready(state: &ServerState) -> Result<Response, ApiError> {
    for (_, load) in state.loads() {
        if load.is_draining || load.has_failed {
            return Err(ApiError::unavailable("no requests are accepted any more"));
        }
        if let Some(why) = &load.stage_lost {
            return Err(ApiError::stage_lost(why));
        }
    }
    Ok(reply::json(&json!({ "status": "ready" })))
}

/// The work that waits and runs at the first model, and where there are several, at each by its name.
pub(super) fn loads(state: &ServerState) -> Response {
    let loads = state.loads();
    let mut answer = loads[0].1.json();
    if loads.len() > 1 {
        answer["models"] = loads.iter().map(|(name, load)| ((*name).to_owned(), load.json())).collect();
    }
    reply::json(&answer)
}

/// Figures for Prometheus.
pub(super) fn metrics(state: &ServerState) -> Response {
    let texts: Vec<String> = state.all().map(|state| state.metrics.text(&state.backend.load())).collect();
    let mut response = merged(&texts).into_response();
    let kind = HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}
