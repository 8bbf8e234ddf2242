//! Sessions: prompts that a key keeps in files, with what was computed of them, so that they are there after
//! the next start. A session is its key's alone.

use crate::backend::BackendInfo;
use crate::caller::Caller;
use crate::chat::request::{self, CHAT};
use crate::chat::turn::PreparedTurn;
use crate::error::ApiError;
use crate::fields::Fields;
use crate::fields::shape::{Shape, like, object};
use crate::limits;
use crate::prompt;
use crate::reply;
use crate::scope::{MODEL, salt};
use crate::state::ServerState;
use axum::response::Response;
use kernmill_runtime::AdapterUse;
use kernmill_serve::{Finish, Request, RequestEvent, SavedTokens, cache_of, read_session};
use serde_json::{Value, json};
use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

/// Fields of a request to `/v1/sessions`.
pub const SESSION: Shape = object(&[
    like("name", || json!({ "type": "string", "pattern": "^[A-Za-z0-9_-][A-Za-z0-9_.-]{0,63}$" })),
    like("prompt", || {
        let ids = json!({ "type": "array", "items": { "type": "integer", "minimum": 0 } });
        json!({ "anyOf": [{ "type": ["string", "null"] }, ids] })
    }),
])
.named("SessionRequest", &["name", "model"])
.with(&[&CHAT]);

/// The end of the files' names.
const ENDING: &str = ".session";

/// Directory of a caller's sessions, which may not be there yet.
///
/// # Errors
/// When the server keeps none.
fn directory(state: &ServerState, caller: &Caller) -> Result<PathBuf, ApiError> {
    let refused = || ApiError::forbidden("sessions are not kept: the option --session-dir permits it");
    let root = state.config.sessions.as_ref().ok_or_else(refused)?;
    Ok(root.join(format!("{:016x}", caller.tenant)))
}

/// File of a session. Names are no paths.
fn file(directory: &Path, param: &str, name: &str) -> Result<PathBuf, ApiError> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if (1..=64).contains(&name.len()) && name.chars().all(is_plain) && !name.starts_with('.') {
        return Ok(directory.join(format!("{name}{ENDING}")));
    }
    let what = "must have 1 to 64 letters, digits, `_`, `-` and `.`, and begin with no `.`";
    Err(ApiError::field(param, format!("`{param}` {what}")))
}

/// Sessions of a directory: names, files, bytes and times.
fn all(directory: &Path) -> Vec<(String, PathBuf, fs::Metadata)> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut found: Vec<_> = entries
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?.strip_suffix(ENDING)?.to_owned();
            Some((name, entry.path(), entry.metadata().ok()?))
        })
        .collect();
    found.sort_by(|one, other| one.0.cmp(&other.0));
    found
}

/// The note of a session in its file: the model, and in a separate line the salt, if it has one.
fn note(model: &str, salt: [u8; 16]) -> String {
    let salt = u128::from_le_bytes(salt);
    if salt == 0 { model.to_owned() } else { format!("{model}\n{salt:032x}") }
}

/// The model and the salt that a file notes.
fn noted(note: &str) -> Option<(&str, [u8; 16])> {
    let Some((model, salt)) = note.rsplit_once('\n') else { return Some((note, [0; 16])) };
    Some((model, u128::from_str_radix(salt, 16).ok()?.to_le_bytes()))
}

/// A session as it was saved.
struct SessionRecord {
    /// The object that the API shows.
    shown: Value,
    tokens: Vec<u32>,
    salt: [u8; 16],
}

/// The session of a file, unless it is damaged.
fn kept(name: &str, path: &Path, metadata: &fs::Metadata) -> Option<SessionRecord> {
    let (tokens, note) = read_session(path).ok()?;
    let (model, salt) = noted(&note)?;
    let time = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let shown = json!({
        "object": "session",
        "name": name,
        "model": model,
        "tokens": tokens.len(),
        "bytes": metadata.len(),
        "created": time.map_or(0, |time| time.as_secs()),
    });
    Some(SessionRecord { shown, tokens, salt })
}

/// The sessions of a caller: `GET /v1/sessions`.
///
/// # Errors
/// When no sessions are kept.
pub async fn list(state: Arc<ServerState>, caller: Caller) -> Result<Response, ApiError> {
    reply::blocking(move || {
        let sessions = all(&directory(&state, &caller)?);
        let data: Vec<Value> = sessions
            .iter()
            .filter_map(|(name, path, metadata)| Some(kept(name, path, metadata)?.shown))
            .collect();
        Ok(reply::json(&json!({ "object": "list", "data": data })))
    })
    .await
}

/// A session with its token ids: `GET /v1/sessions/NAME`.
///
/// # Errors
/// When no session has the name, or no sessions are kept.
pub async fn one(state: Arc<ServerState>, caller: Caller, name: String) -> Result<Response, ApiError> {
    reply::blocking(move || {
        let (_, SessionRecord { mut shown, tokens, .. }) = found(&state, &caller, &name)?;
        shown["token_ids"] = json!(tokens);
        Ok(reply::json(&shown))
    })
    .await
}

/// Deletes a session: `DELETE /v1/sessions/NAME`.
///
/// # Errors
/// When no session has the name, or no sessions are kept.
pub async fn delete(state: Arc<ServerState>, caller: Caller, name: String) -> Result<Response, ApiError> {
    reply::blocking(move || {
        let none = || ApiError::session(&name);
        let path = file(&directory(&state, &caller)?, "name", &name).map_err(|_| none())?;
        fs::remove_file(path).map_err(|_| none())?;
        Ok(reply::json(&json!({ "object": "session", "name": name, "deleted": true })))
    })
    .await
}

/// The file of a session, and what it has.
fn found(state: &ServerState, caller: &Caller, name: &str) -> Result<(PathBuf, SessionRecord), ApiError> {
    let none = || ApiError::session(name);
    let path = file(&directory(state, caller)?, "name", name).map_err(|_| none())?;
    let metadata = fs::metadata(&path).map_err(|_| none())?;
    let kept = kept(name, &path, &metadata).ok_or_else(none)?;
    Ok((path, kept))
}

/// The session to save, and its place.
struct SaveRequest {
    name: String,
    path: PathBuf,
    saved: SavedTokens,
    /// Computes what is not cached.
    request: Request,
}

impl SaveRequest {
    fn read(state: &ServerState, caller: &Caller, body: &[u8]) -> Result<SaveRequest, ApiError> {
        let directory = directory(state, caller)?;
        let mut fields = Fields::of_body(&SESSION, body)?;
        let name = fields.needed_text("name")?;
        let path = file(&directory, "name", &name)?;
        let scope = state.scope(caller);
        let prompt = fields.take("prompt");
        let (model, adapters, tokens, salt) = match prompt {
            None => {
                let request = request::take(&scope, fields)?;
                let (adapters, salt) = (request.ask.request.adapters.clone(), request.ask.request.salt);
                let prepared = PreparedTurn::new(scope.facts, request.ask)?;
                (request.model, adapters, prepared.prompt().to_vec(), salt)
            }
            Some(prompt) => {
                let (model, adapters) = scope.model(&mut fields)?;
                let salt = salt(&mut fields)?;
                (model, adapters, ids(scope.facts, &fields, &prompt)?, salt)
            }
        };
        let most = scope.facts.context as usize;
        if tokens.is_empty() {
            return Err(ApiError::field("prompt", "`prompt` has no tokens, expected at least one"));
        }
        if tokens.len() >= most {
            return Err(ApiError::context("prompt", tokens.len(), Some(1), scope.facts.context));
        }
        let others = || all(&directory).into_iter().filter(|(other, ..)| *other != name);
        if others().count() >= limits::SESSIONS {
            let message =
                format!("this key has {} sessions, which is the most: delete one", limits::SESSIONS);
            return Err(ApiError::field("name", message));
        }
        let bytes: u64 = others().map(|(_, _, metadata)| metadata.len()).sum();
        if bytes >= limits::SESSION_BYTES {
            let message = format!(
                "the sessions of this key have {bytes} bytes, at most {} are kept: delete one",
                limits::SESSION_BYTES
            );
            return Err(ApiError::field("name", message));
        }
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&directory);
        made.map_err(|error| ApiError::unavailable(format!("sessions cannot be kept: {error}")))?;
        let request = Request {
            adapters: adapters.clone(),
            tenant: caller.tenant,
            salt,
            within: state.config.longest_answer,
            ..Request::greedy(tokens.clone(), 1)
        };
        let tenant = cache_of(caller.tenant, salt);
        let saved = SavedTokens { tokens, adapters, tenant, note: note(&model, salt) };
        Ok(SaveRequest { name, path, saved, request })
    }
}

/// Ids of a prompt: a text, or ids.
fn ids(facts: &BackendInfo, fields: &Fields, value: &Value) -> Result<Vec<u32>, ApiError> {
    let vocab = facts.vocab;
    let wrong = || fields.wrong("prompt", value, &format!("a string, or token ids below {vocab}"));
    match value {
        Value::String(text) => prompt::encode(facts, "prompt", text, true),
        Value::Array(ids) => {
            let id = |id: &Value| id.as_u64().filter(|id| *id < u64::from(vocab)).map(|id| id as u32);
            ids.iter().map(id).collect::<Option<_>>().ok_or_else(wrong)
        }
        _ => Err(wrong()),
    }
}

/// Saves a session: `POST /v1/sessions`. The part of its prompt that is not cached is computed first.
///
/// # Errors
/// When the request is wrong or not taken up, or the key keeps too much already.
pub async fn save(state: Arc<ServerState>, caller: Caller, body: Vec<u8>) -> Result<Response, ApiError> {
    let (worker, record) = (state.clone(), caller.record.clone());
    let asked = reply::blocking(move || {
        let asked = SaveRequest::read(&worker, &caller, &body)?;
        worker.charge(&caller, asked.saved.tokens.len())?;
        Ok(asked)
    })
    .await?;
    let SaveRequest { name, path, saved, request } = asked;
    let mut running = state.submit(request, &record);
    running.accepted().await?;
    loop {
        match running.next().await {
            Some(RequestEvent::Token(_)) => {}
            Some(RequestEvent::Done(answer)) => match answer.finish {
                Finish::Failed(why) | Finish::Astray(why) => return Err(ApiError::internal(why)),
                Finish::Unavailable(why) => return Err(ApiError::stage_lost(&why)),
                Finish::Ended(reason) if answer.tokens.is_empty() => {
                    return Err(ApiError::unavailable(reason.to_string()));
                }
                _ => break,
            },
            None => return Err(ApiError::internal("the engine has failed: the log says why")),
        }
    }
    let cached = state.backend.save_session(path.clone(), saved).await;
    let cached = cached.map_err(|why| {
        // Which file it is, is the operator's affair.
        tracing::warn!("a session was not saved: {why}");
        ApiError::unavailable("the session could not be saved: the log says why")
    })?;
    reply::blocking(move || {
        let metadata = fs::metadata(&path).map_err(|_| ApiError::session(&name))?;
        let SessionRecord { mut shown, .. } =
            kept(&name, &path, &metadata).ok_or_else(|| ApiError::session(&name))?;
        shown["saved_tokens"] = json!(cached);
        Ok(reply::json(&shown))
    })
    .await
}

/// Brings what a session has into the prefix cache: `POST /v1/sessions/NAME/restore`.
///
/// # Errors
/// When no session has the name, or its model is not there any more.
pub async fn restore(first: Arc<ServerState>, caller: Caller, name: String) -> Result<Response, ApiError> {
    let (state, mut session, path, adapters, tenant) = reply::blocking(move || {
        let (path, SessionRecord { shown, salt, .. }) = found(&first, &caller, &name)?;
        let state = first.named(shown["model"].as_str().unwrap_or_default());
        let mut model = Fields::of(&MODEL, json!({ "model": shown["model"] }), "")?;
        let (_, adapters): (String, Vec<AdapterUse>) = state.scope(&caller).model(&mut model)?;
        Ok((state, shown, path, adapters, cache_of(caller.tenant, salt)))
    })
    .await?;
    let restored = state.backend.restore_session(path, adapters, tenant).await;
    let restored =
        restored.map_err(|why| ApiError::field("name", format!("the session does not come back: {why}")))?;
    session["restored_tokens"] = json!(restored);
    Ok(reply::json(&session))
}
