//! `/api/embed` and `/api/embeddings`: vectors of texts, as Ollama's API has them.

use super::asking::{Usual, check_makes_vectors, run, tokens};
use super::embeddings::dimensions;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::fields::Fields;
use crate::fields::shape::{Shape, flag, free, like, object, passed, text, whole};
use crate::limits;
use crate::ollama::model;
use crate::prompt::tokenizer;
use crate::reply;
use crate::state::ServerState;
use axum::response::Response;
use kernmill_serve::{Answer, Request, Wanted};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Instant;

/// Fields of a request to `/api/embed`.
pub const EMBED: Shape = object(&[
    like("input", || {
        let text = json!({ "type": "string" });
        json!({ "anyOf": [text, { "type": "array", "items": text, "maxItems": limits::INPUTS }] })
    }),
    whole("dimensions", 0, u32::MAX as u64)
        .about("Elements of a vector: the first ones; all without it, or with 0"),
    flag("truncate").about("Whether a text is cut that is longer than the context; true without it"),
])
.named("OllamaEmbedRequest", &["model", "input"])
.with(&[&COMMON]);

/// Fields of a request to `/api/embeddings`, the older route.
pub const OLDER: Shape =
    object(&[text("prompt")]).named("OllamaEmbeddingsRequest", &["model", "prompt"]).with(&[&COMMON]);

const COMMON: Shape = object(&[
    text("model"),
    text("cache_salt").about("Cached prompts are shared by requests with the same salt alone"),
    text("service_tier"),
    free("options").about("Is taken, and changes nothing"),
    passed("keep_alive").about("Is taken, and changes nothing: the model stays"),
]);

/// A request that was read.
struct ReadTexts {
    model: String,
    requests: Vec<Request>,
    unknown: Vec<String>,
}

fn read(
    state: &ServerState,
    caller: &Caller,
    shape: &Shape,
    field: &str,
    body: &[u8],
) -> Result<ReadTexts, ApiError> {
    let (scope, mut fields) = (state.scope(caller), Fields::of_body(shape, body)?);
    let named = model(&scope, fields.text("model")?)?;
    check_makes_vectors(scope.facts)?;
    let usual = Usual::of_model(&scope, named, &mut fields)?;
    fields.object("options")?;
    let is_new = field == "input";
    let cuts = !is_new || fields.flag("truncate")?.unwrap_or(true);
    let dimensions = if is_new { dimensions(&scope, &mut fields)?.filter(|count| *count > 0) } else { None };
    let value = fields.take(field).ok_or_else(|| fields.missing(field))?;
    let wrong = |value: &Value| fields.wrong(field, value, "a string, or a list of strings");
    let texts = match &value {
        Value::String(text) if text.is_empty() => Vec::new(),
        Value::String(text) => vec![text.as_str()],
        Value::Array(list) if is_new && list.len() <= limits::INPUTS => {
            list.iter().map(|text| text.as_str().ok_or_else(|| wrong(text))).collect::<Result<_, _>>()?
        }
        other => return Err(wrong(other)),
    };
    let context = scope.facts.context as usize;
    let tokenizer = tokenizer(scope.facts)?;
    let prompt = scope.facts.prompts.of_any(&[]);
    let request = |text: &str| {
        let mut ids = tokenizer
            .encode(&[prompt, text].concat(), true)
            .map_err(|error| ApiError::field(field, error.to_string()))?;
        if ids.is_empty() || (ids.len() > context && !cuts) {
            return Err(ApiError::context(field, ids.len(), None, scope.facts.context));
        }
        ids.truncate(context);
        Ok(Request::values(ids, Wanted::Vector { dimensions }))
    };
    let requests = usual.all(texts.into_iter().map(request).collect::<Result<_, _>>()?, field)?;
    Ok(ReadTexts { model: usual.model, requests, unknown: fields.rest() })
}

async fn answer(
    state: &Arc<ServerState>,
    caller: &Caller,
    shape: &'static Shape,
    field: &'static str,
    body: Vec<u8>,
) -> Result<(ReadTexts, Vec<Answer>), ApiError> {
    let (worker, who) = (state.clone(), caller.clone());
    let mut asked = reply::blocking(move || read(&worker, &who, shape, field, &body)).await?;
    let answers = run(state, caller, std::mem::take(&mut asked.requests)).await?;
    Ok((asked, answers))
}

/// Answers a request to `/api/embed`.
///
/// # Errors
/// When the request is wrong or not taken up.
pub async fn embed(state: Arc<ServerState>, caller: Caller, body: Vec<u8>) -> Result<Response, ApiError> {
    let start = Instant::now();
    let (asked, answers) = answer(&state, &caller, &EMBED, "input", body).await?;
    let vectors: Vec<&[f32]> = answers.iter().map(|answer| &answer.values[..]).collect();
    let answer = json!({
        "model": asked.model,
        "embeddings": vectors,
        "total_duration": start.elapsed().as_nanos() as u64,
        "load_duration": 0,
        "prompt_eval_count": tokens(&answers),
    });
    Ok(reply::with_warnings(reply::json(&answer), &asked.unknown))
}

/// Answers a request to `/api/embeddings`.
///
/// # Errors
/// When the request is wrong or not taken up.
pub async fn older(state: Arc<ServerState>, caller: Caller, body: Vec<u8>) -> Result<Response, ApiError> {
    let (asked, answers) = answer(&state, &caller, &OLDER, "prompt", body).await?;
    let vector = answers.first().map_or(&[][..], |answer| &answer.values);
    Ok(reply::with_warnings(reply::json(&json!({ "embedding": vector })), &asked.unknown))
}
