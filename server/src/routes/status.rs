//! Status routes for operators.

use crate::error::ApiError;
use crate::reply;
use crate::state::ServerState;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// Whether the engine works.
pub(super) fn health(state: &ServerState) -> Result<Response, ApiError> {
    if state.backend.load().has_failed {
        return Err(ApiError::unavailable("the engine has failed: the log says why"));
    }
    Ok(reply::json(&json!({ "status": "ok" })))
}

/// Whether requests are taken up.
pub(super) fn ready(state: &ServerState) -> Result<Response, ApiError> {
    let load = state.backend.load();
    if load.is_draining || load.has_failed {
        return Err(ApiError::unavailable("no requests are accepted any more"));
    }
    if let Some(why) = &load.stage_lost {
        return Err(ApiError::stage_lost(why));
    }
    Ok(reply::json(&json!({ "status": "ready" })))
}

/// Figures for Prometheus.
pub(super) fn metrics(state: &ServerState) -> Response {
    let mut response = state.metrics.text(&state.backend.load()).into_response();
    let kind = HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}
