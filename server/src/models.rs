//! Models, adapters and tokens.

use crate::backend::BackendInfo;
use crate::caller::Caller;
use crate::chat::request::{self, CHAT};
use crate::chat::turn::PreparedTurn;
use crate::error::ApiError;
use crate::fields::shape::{Shape, field, flag, list as list_of, object, text};
use crate::fields::{Fields, check_name};
use crate::ids;
use crate::limits;
use crate::prompt::{self, tokenizer};
use crate::reply;
use crate::sampling::ID;
use crate::state::ServerState;
use axum::response::Response;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The models, adapters and their other names: `/v1/models`, in the form of Anthropic's API or of OpenAI's.
pub fn list(state: &ServerState, is_anthropic: bool) -> Response {
    let mut data: Vec<Value> = described(state).collect();
    if is_anthropic {
        data = data.iter().map(anthropic).collect();
        let id = |model: Option<&Value>| model.map(|model| model["id"].clone());
        let (first, last) = (id(data.first()), id(data.last()));
        let page = json!({ "data": data, "has_more": false, "first_id": first, "last_id": last });
        return reply::json(&page);
    }
    // Codex reads `models`.
    reply::json(&json!({ "object": "list", "data": data, "models": [] }))
}

/// One of them: `/v1/models/NAME`.
///
/// # Errors
/// When no model has the name.
pub fn one(state: &ServerState, name: &str, is_anthropic: bool) -> Result<Response, ApiError> {
    match described(state).find(|model| model["id"] == name) {
        Some(model) if is_anthropic => Ok(reply::json(&anthropic(&model))),
        Some(model) => Ok(reply::json(&model)),
        None => Err(ApiError::model(name, &state.scope(&Caller::default()).names())),
    }
}

/// The descriptions of all models, adapters and their other names. An alias of an adapter that is not loaded
/// names no model.
fn described(state: &ServerState) -> impl Iterator<Item = Value> {
    state.all().flat_map(|state| {
        let (facts, scope) = (state.backend.facts(), state.scope(&Caller::default()));
        scope.served().into_iter().map(move |name| {
            let is_adapter = scope.adapter(&name).is_some();
            let root = if is_adapter { &facts.model } else { scope.meant_by(&name) };
            json!({
                "id": name,
                "object": "model",
                "created": state.started,
                "owned_by": "kernmill",
                "root": root,
                "parent": is_adapter.then_some(&facts.model),
                "max_model_len": facts.context,
                "capabilities": facts.capabilities(),
            })
        })
    })
}

impl BackendInfo {
    /// Names of what the model can do, as clients list them.
    pub fn capabilities(&self) -> Vec<&'static str> {
        let makes = if self.vectors.is_some() { "embedding" } else { "completion" };
        std::iter::once(makes).chain(self.scoring.is_ok().then_some("rerank")).collect()
    }
}

/// A model as Anthropic's API shows it.
fn anthropic(model: &Value) -> Value {
    let created = Duration::from_secs(model["created"].as_u64().unwrap_or_default());
    json!({
        "type": "model",
        "id": model["id"],
        "display_name": model["id"],
        "created_at": ids::timestamp(created),
        "max_input_tokens": model["max_model_len"],
        "max_tokens": model["max_model_len"],
    })
}

/// Fields of a request to `/tokenize`.
pub const TOKENIZE: Shape = object(&[
    text("prompt").about("A text, in place of messages"),
    flag("add_special_tokens"),
    flag("return_token_strs"),
])
.named("TokenizeRequest", &[])
.with(&[&CHAT]);

/// Fields of a request to `/detokenize`.
pub const DETOKENIZE: Shape = object(&[text("model"), list_of("tokens", &ID, limits::BODY_BYTES)])
    .named("DetokenizeRequest", &["tokens"]);

/// Letters of an adapter's name at most.
const NAME: usize = 64;

/// Fields of a request to `/v1/load_lora_adapter`.
pub const LOAD: Shape =
    object(&[text("lora_path")]).named("LoadAdapterRequest", &["lora_name", "lora_path"]).with(&[&UNLOAD]);

/// Fields of a request to `/v1/unload_lora_adapter`.
pub const UNLOAD: Shape =
    object(&[field("lora_name", Shape::Name(NAME))]).named("UnloadAdapterRequest", &["lora_name"]);

/// Ids of a text or of a conversation: `/tokenize`.
///
/// # Errors
/// When the request is wrong.
pub async fn tokenize(state: Arc<ServerState>, caller: Caller, body: Vec<u8>) -> Result<Response, ApiError> {
    reply::blocking(move || {
        let facts = state.backend.facts();
        let tokenizer = tokenizer(facts)?;
        let mut fields = Fields::of_body(&TOKENIZE, &body)?;
        let ids = match fields.text("prompt")? {
            Some(text) => {
                let adds = fields.flag("add_special_tokens")?.unwrap_or(true);
                prompt::encode(facts, "prompt", &text, adds)?
            }
            None if fields.take("messages").is_some() => {
                let mut request: Value = serde_json::from_slice(&body).unwrap_or_default();
                // Ids do not depend on the model's name, so that it may be left out.
                if request["model"].is_null() {
                    request["model"] = json!(facts.model);
                }
                let request = request::take(&state.scope(&caller), Fields::of(&TOKENIZE, request, "")?)?;
                PreparedTurn::new(facts, request.ask)?.prompt().to_vec()
            }
            None => return Err(ApiError::field("prompt", "`prompt` or `messages` is missing")),
        };
        let texts = fields.flag("return_token_strs")?.unwrap_or(false).then(|| {
            ids.iter()
                .map(|id| {
                    String::from_utf8_lossy(&tokenizer.token_bytes(*id).unwrap_or_default()).into_owned()
                })
                .collect::<Vec<_>>()
        });
        let count = ids.len();
        Ok(reply::json(
            &json!({ "count": count, "max_model_len": facts.context, "tokens": ids, "token_strs": texts }),
        ))
    })
    .await
}

/// The text of ids: `/detokenize`.
///
/// # Errors
/// When the request is wrong.
pub async fn detokenize(state: Arc<ServerState>, body: Vec<u8>) -> Result<Response, ApiError> {
    reply::blocking(move || {
        let facts = state.backend.facts();
        let mut fields = Fields::of_body(&DETOKENIZE, &body)?;
        fields.text("model")?;
        let list = fields.list("tokens")?.ok_or_else(|| fields.missing("tokens"))?;
        let id = |value: &Value| value.as_u64().filter(|id| *id < u64::from(facts.vocab)).map(|id| id as u32);
        let ids: Option<Vec<u32>> = list.iter().map(id).collect();
        let wrong = || {
            let most = facts.vocab - 1;
            ApiError::field("tokens", format!("`tokens` has a member that is no token id from 0 to {most}"))
        };
        let text = tokenizer(facts)?.decode(&ids.ok_or_else(wrong)?);
        let text = text.map_err(|error| ApiError::internal(error.to_string()))?;
        Ok(reply::json(&json!({ "prompt": text })))
    })
    .await
}

/// The answer of `/tokenizer_info`, for clients that count tokens.
pub fn tokenizer_info(state: &ServerState) -> Response {
    let facts = state.backend.facts();
    // An empty text stands for a token that the model's files say there is not.
    let token = |name| facts.named_tokens.get(name).filter(|text| !text.is_empty());
    reply::json(&json!({
        "tokenizer_class": "kernmill",
        "vocab_size": facts.vocab,
        "model_max_length": facts.context,
        "bos_token": token("bos_token"),
        "eos_token": token("eos_token"),
        "pad_token": token("pad_token"),
        "chat_format": facts.format.name(),
    }))
}

/// Loads an adapter: `/v1/load_lora_adapter`.
///
/// # Errors
/// When the caller may not, the path leads out of the directory of adapters, or it cannot be loaded.
pub async fn load_adapter(
    state: Arc<ServerState>,
    caller: Caller,
    body: Vec<u8>,
) -> Result<Response, ApiError> {
    check_admin(&caller)?;
    let mut fields = Fields::of_body(&LOAD, &body)?;
    let name = fields.needed_text("lora_name")?;
    let path = fields.needed_text("lora_path")?;
    load(&state, &caller, &name, &path).await?;
    Ok(reply::json(&json!({ "status": "loaded", "lora_name": name })))
}

/// Loads the adapter of a path below the directory of adapters under a name of its own.
///
/// # Errors
/// As [`load_adapter`].
pub async fn load(state: &ServerState, caller: &Caller, name: &str, path: &str) -> Result<(), ApiError> {
    check_admin(caller)?;
    let forbidden =
        || ApiError::forbidden("adapters are not loaded by requests: the option --lora-dir permits it");
    let root = state.config.adapters.as_ref().ok_or_else(forbidden)?;
    check_name("lora_name", name, NAME)?;
    let adapters = state.backend.adapters();
    if state.all().any(|state| state.backend.facts().model == name) || adapters.iter().any(|own| own == name)
    {
        let message = format!("`lora_name` is `{name}`, which is a model already");
        return Err(ApiError::field("lora_name", message));
    }
    let loaded = state.backend.load_adapter(name.to_owned(), inside(root, path)?).await;
    loaded.map_err(|why| ApiError::field("lora_path", why))
}

/// A path below the directory of adapters, links followed.
fn inside(root: &Path, path: &str) -> Result<std::path::PathBuf, ApiError> {
    let wrong = || ApiError::field("lora_path", "`lora_path` is no directory below that of --lora-dir");
    let root = root.canonicalize().map_err(|_| wrong())?;
    let path = root.join(path).canonicalize().map_err(|_| wrong())?;
    if path.starts_with(&root) && path.is_dir() { Ok(path) } else { Err(wrong()) }
}

/// Forgets an adapter: `/v1/unload_lora_adapter`.
///
/// # Errors
/// When the caller may not, or no adapter has the name.
pub async fn unload_adapter(
    state: Arc<ServerState>,
    caller: Caller,
    body: Vec<u8>,
) -> Result<Response, ApiError> {
    check_admin(&caller)?;
    let mut fields = Fields::of_body(&UNLOAD, &body)?;
    let name = fields.needed_text("lora_name")?;
    unload(&state, &caller, &name).await?;
    Ok(reply::json(&json!({ "status": "unloaded", "lora_name": name })))
}

/// Forgets the adapter of a name.
///
/// # Errors
/// As [`unload_adapter`].
pub async fn unload(state: &ServerState, caller: &Caller, name: &str) -> Result<(), ApiError> {
    check_admin(caller)?;
    if state.backend.unload_adapter(name.to_owned()).await {
        return Ok(());
    }
    Err(ApiError::model(name, &state.backend.adapters()))
}

/// Ends the taking up of requests: `/drain`.
///
/// # Errors
/// When the caller may not.
pub fn drain(state: &ServerState, caller: &Caller) -> Result<Response, ApiError> {
    check_admin(caller)?;
    tracing::info!(grace_seconds = state.config.grace.as_secs_f64(), "drain");
    state.all().for_each(|state| state.backend.drain(state.config.grace));
    Ok(reply::json(
        &json!({ "status": "draining", "seconds": state.config.grace.as_secs_f64(), "at": ids::now() }),
    ))
}

fn check_admin(caller: &Caller) -> Result<(), ApiError> {
    if caller.is_admin { Ok(()) } else { Err(ApiError::forbidden("this key is no `admin` in the keys file")) }
}
