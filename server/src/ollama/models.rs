//! First requests of Ollama's clients: a server's version, its models, and their abilities.

use super::request::{model, tagged};
use crate::caller::Caller;
use crate::error::ApiError;
use crate::fields::Fields;
use crate::fields::shape::{Shape, flag, object, text};
use crate::ids;
use crate::reply;
use crate::scope::RequestScope;
use crate::state::ServerState;
use axum::response::Response;
use kernmill_chat::Format;
use serde_json::{Value, json};
use std::time::Duration;

/// The version of Ollama whose API this is. Clients look at it before they ask for what is newer.
const VERSION: &str = "0.13.0";

/// A day that never comes: a model that is served stays.
const NEVER: &str = "9999-12-31T00:00:00Z";

/// Fields of a request to `/api/show`.
pub const SHOW: Shape =
    object(&[text("model"), text("name"), flag("verbose")]).named("OllamaShowRequest", &[]);

/// Versions: `/api/version`.
pub fn version() -> Response {
    reply::json(&json!({ "version": VERSION, "kernmill": env!("CARGO_PKG_VERSION") }))
}

/// The models, adapters and their other names: `/api/tags`.
pub fn list(state: &ServerState, caller: &Caller) -> Response {
    reply::json(&json!({ "models": entries(state, caller).map(|(_, entry)| entry).collect::<Vec<_>>() }))
}

/// Models that are in memory, which all of these are: `/api/ps`.
pub fn running(state: &ServerState, caller: &Caller) -> Response {
    let in_memory = |(state, mut entry): (&ServerState, Value)| {
        entry["expires_at"] = json!(NEVER);
        entry["size_vram"] = json!(0);
        entry["context_length"] = json!(state.backend.facts().context);
        entry
    };
    reply::json(&json!({ "models": entries(state, caller).map(in_memory).collect::<Vec<_>>() }))
}

/// The entry of each name of a model or adapter in lists.
fn entries<'a>(state: &'a ServerState, caller: &Caller) -> impl Iterator<Item = (&'a ServerState, Value)> {
    state.all().flat_map(move |state| {
        let names = state.scope(caller).served();
        names.into_iter().map(move |name| (state, entry(state, &name)))
    })
}

/// The description and the abilities of a model: `/api/show`.
///
/// # Errors
/// When the request is wrong, or there is no such model.
pub fn show(state: &ServerState, scope: &RequestScope<'_>, body: &[u8]) -> Result<Response, ApiError> {
    let mut fields = Fields::of_body(&SHOW, body)?;
    let older = fields.text("name")?;
    let name = fields.text("model")?.or(older);
    model(scope, name)?;
    fields.flag("verbose")?;
    let facts = scope.facts;
    let mut can = facts.capabilities();
    let calls = match &facts.format {
        Format::Harmony => true,
        Format::Template(templates) => templates.calls().is_some(),
        Format::Plain { .. } | Format::Unusable(_) => false,
    };
    let makes_texts = facts.vectors.is_none();
    if calls && makes_texts {
        can.push("tools");
    }
    if matches!(facts.format, Format::Harmony) && makes_texts {
        can.push("thinking");
    }
    let shown = json!({
        "modelfile": "",
        "parameters": "",
        "template": "",
        "details": details(&facts.preset),
        "model_info": {
            "general.architecture": "kernmill",
            "general.basename": facts.model,
            "kernmill.context_length": facts.context,
            "kernmill.vocab_size": facts.vocab,
        },
        "capabilities": can,
        "modified_at": modified(state),
    });
    Ok(reply::with_warnings(reply::json(&shown), &fields.rest()))
}

/// A model of a list.
fn entry(state: &ServerState, name: &str) -> Value {
    let facts = state.backend.facts();
    let digest = blake3::hash(format!("{name} {}", facts.fingerprint).as_bytes());
    json!({
        "name": tagged(name),
        "model": tagged(name),
        "modified_at": modified(state),
        "size": facts.weight_bytes,
        "digest": digest.to_hex().as_str(),
        "details": details(&facts.preset),
    })
}

/// The details of a model, as far as they are known.
fn details(preset: &str) -> Value {
    json!({
        "parent_model": "",
        "format": "kernmill",
        "family": "",
        "families": [],
        "parameter_size": "",
        "quantization_level": preset,
    })
}

fn modified(state: &ServerState) -> String {
    ids::timestamp(Duration::from_secs(state.started))
}
