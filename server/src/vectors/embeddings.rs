//! `/v1/embeddings`: vectors of texts, as OpenAI's API has them.

use super::asking::{COMMON, Usual, check_makes_vectors, run, tokens};
use crate::caller::Caller;
use crate::error::ApiError;
use crate::fields::Fields;
use crate::fields::shape::{Shape, like, object, text, whole, words};
use crate::limits;
use crate::prompt::prompts;
use crate::reply;
use crate::scope::RequestScope;
use crate::state::ServerState;
use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kernmill_serve::{Answer, Request, Wanted};
use serde_json::{Value, json};
use std::sync::Arc;

/// Fields of a request.
pub const EMBEDDINGS: Shape = object(&[
    like("input", || {
        let text = json!({ "type": "string", "minLength": 1 });
        let id = json!({ "type": "integer", "minimum": 0 });
        let ids = json!({ "type": "array", "items": id, "minItems": 1 });
        let several = [&text, &ids]
            .map(|one| json!({ "type": "array", "items": one, "minItems": 1, "maxItems": limits::INPUTS }));
        json!({ "anyOf": [text, ids, several[0], several[1]] })
    }),
    whole("dimensions", 1, u32::MAX as u64).about("Elements of a vector: the first ones; all without it"),
    text("prompt_name")
        .about("Purpose of the texts, such as query: what the model has before these comes first"),
    words("encoding_format", "\"float\" or \"base64\"")
        .about("float without it; base64 is of f32, little-endian"),
])
.named("EmbeddingsRequest", &["model", "input"])
.with(&[&COMMON]);

/// How vectors are shown.
pub struct Embeddings {
    /// The model, as the request names it.
    pub model: String,
    is_base64: bool,
    unknown: Vec<String>,
}

/// Reads the fields of a request.
///
/// # Errors
/// When a field is wrong, or an input does not fit the context.
fn read(scope: &RequestScope<'_>, fields: &mut Fields) -> Result<(Vec<Request>, Embeddings), ApiError> {
    // With several models, a wrong name is likelier than a model that makes no vectors: names come first.
    if scope.others.is_empty() {
        check_makes_vectors(scope.facts)?;
    }
    let usual = Usual::take(scope, fields)?;
    check_makes_vectors(scope.facts)?;
    let dimensions = dimensions(scope, fields)?;
    let is_base64 = match fields.text("encoding_format")?.as_deref() {
        None | Some("float") => false,
        Some("base64") => true,
        Some(other) => return Err(fields.unlisted("encoding_format", other)),
    };
    let purpose = fields.text("prompt_name")?;
    let prompt = scope.facts.prompts.text(purpose.as_deref());
    let prompt = prompt.map_err(|message| ApiError::field("prompt_name", message))?;
    let ids = prompts(scope, fields, "input", limits::INPUTS, prompt)?;
    if let Some(ids) = ids.iter().find(|ids| ids.len() > scope.facts.context as usize) {
        return Err(ApiError::context("input", ids.len(), None, scope.facts.context));
    }
    let request = |ids: Vec<u32>| Request::values(ids, Wanted::Vector { dimensions });
    let requests = usual.all(ids.into_iter().map(request).collect(), "input")?;
    Ok((requests, Embeddings { model: usual.model, is_base64, unknown: fields.rest() }))
}

/// How many elements vectors shall have.
pub(super) fn dimensions(scope: &RequestScope<'_>, fields: &mut Fields) -> Result<Option<u32>, ApiError> {
    let (asked, most) = (fields.whole("dimensions")?, u64::from(scope.facts.width));
    match asked.filter(|asked| *asked > most) {
        Some(asked) => {
            Err(fields.wrong("dimensions", &json!(asked), &format!("a whole number from 1 to {most}")))
        }
        None => Ok(asked.map(|asked| asked as u32)),
    }
}

impl Embeddings {
    /// Reads the body of a line of a batch.
    ///
    /// # Errors
    /// When a field is wrong or not known, an input does not fit the context, or there are several inputs.
    pub fn of_line(scope: &RequestScope<'_>, mut fields: Fields) -> Result<(Request, Embeddings), ApiError> {
        let (mut requests, shows) = read(scope, &mut fields)?;
        if let Some(unknown) = shows.unknown.first() {
            return Err(ApiError::field(unknown, format!("unknown field `{unknown}`")));
        }
        let count = requests.len();
        let (Some(request), 1) = (requests.pop(), count) else {
            return Err(ApiError::field(
                "input",
                format!("`input` has {count} inputs: give a line for each"),
            ));
        };
        Ok((request, shows))
    }

    /// The answer.
    pub fn object(&self, answers: &[Answer]) -> Value {
        let one = |(index, answer): (usize, &Answer)| {
            let vector = match self.is_base64 {
                true => {
                    let bytes: Vec<u8> = answer.values.iter().flat_map(|x| x.to_le_bytes()).collect();
                    json!(STANDARD.encode(bytes))
                }
                false => json!(answer.values),
            };
            json!({ "object": "embedding", "index": index, "embedding": vector })
        };
        let tokens = tokens(answers);
        json!({
            "object": "list",
            "data": answers.iter().enumerate().map(one).collect::<Vec<_>>(),
            "model": self.model,
            "usage": { "prompt_tokens": tokens, "total_tokens": tokens },
        })
    }
}

/// Answers a request to `/v1/embeddings`.
///
/// # Errors
/// When the request is wrong or not taken up.
pub async fn embeddings(
    state: Arc<ServerState>,
    caller: Caller,
    body: Vec<u8>,
) -> Result<Response, ApiError> {
    let (worker, who) = (state.clone(), caller.clone());
    let (requests, shows) =
        reply::blocking(move || read(&worker.scope(&who), &mut Fields::of_body(&EMBEDDINGS, &body)?)).await?;
    let answers = run(&state, &caller, requests).await?;
    Ok(reply::with_warnings(reply::json(&shows.object(&answers)), &shows.unknown))
}
