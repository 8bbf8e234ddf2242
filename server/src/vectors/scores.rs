//! `/rerank` and `/score`: how well documents answer a query.

use super::asking::{COMMON, Usual, run, tokens};
use crate::caller::Caller;
use crate::error::ApiError;
use crate::fields::Fields;
use crate::fields::shape::{Shape, field, flag, like, object, text, whole};
use crate::ids;
use crate::limits;
use crate::prompt::tokenizer;
use crate::reply;
use crate::scope::RequestScope;
use crate::state::ServerState;
use axum::response::Response;
use kernmill_serve::{Request, Scoring};
use serde_json::{Value, json};
use std::sync::Arc;

const TEXT: Shape = Shape::Any(&[Shape::Text, DOCUMENT]);
const DOCUMENT: Shape = object(&[text("text")]).named("Document", &["text"]).passing("id title url");

/// Fields of a request to `/rerank`.
pub const RERANK: Shape = object(&[
    text("query"),
    field("documents", Shape::List(&TEXT, 1, limits::INPUTS)),
    whole("top_n", 1, u32::MAX as u64).about("Results at most: the best ones; all without it"),
    flag("return_documents").about("True without it"),
    text("instruction").about("What queries are for, for models that are told so"),
])
.named("RerankRequest", &["model", "query", "documents"])
.with(&[&COMMON]);

/// Fields of a request to `/score`.
pub const SCORE: Shape = object(&[
    like("text_1", one_or_more).about("One for all of text_2, or as many"),
    like("text_2", one_or_more),
    text("instruction").about("What queries are for, for models that are told so"),
])
.named("ScoreRequest", &["model", "text_1", "text_2"])
.with(&[&COMMON]);

fn one_or_more() -> Value {
    let text = json!({ "type": "string" });
    json!({ "anyOf": [text, { "type": "array", "items": text, "minItems": 1, "maxItems": limits::INPUTS }] })
}

/// ScoredPairs of texts to be scored.
struct ScoredPairs {
    model: String,
    scoring: Scoring,
    requests: Vec<Request>,
    documents: Vec<String>,
    unknown: Vec<String>,
}

impl ScoredPairs {
    /// The requests of these texts. `field` is the one of the documents.
    fn new(
        scope: &RequestScope<'_>,
        fields: &mut Fields,
        queries: &[String],
        documents: Vec<String>,
        field: &str,
    ) -> Result<ScoredPairs, ApiError> {
        let usual = Usual::take(scope, fields)?;
        let instruction = fields.text("instruction")?;
        let facts = scope.facts;
        let scoring = facts.scoring.clone().map_err(ApiError::not_found)?;
        let [asked, given] =
            [queries, &documents].map(|texts| texts.iter().map(String::as_str).collect::<Vec<_>>());
        let requests = scoring
            .requests(tokenizer(facts)?, &asked, &given, instruction.as_deref(), facts.context)
            .map_err(|error| ApiError::too_long(field, &error.to_string(), facts.context))?;
        if let Some(request) =
            requests.iter().find(|it| !(1..=facts.context as usize).contains(&it.prompt.len()))
        {
            return Err(ApiError::context(field, request.prompt.len(), None, facts.context));
        }
        let requests = usual.all(requests, field)?;
        Ok(ScoredPairs { model: usual.model, scoring, requests, documents, unknown: fields.rest() })
    }

    /// The score of every document, and the tokens that were read.
    async fn run(&mut self, state: &Arc<ServerState>, caller: &Caller) -> Result<(Vec<f32>, u64), ApiError> {
        let answers = run(state, caller, std::mem::take(&mut self.requests)).await?;
        Ok((self.scoring.scores(&answers, self.documents.len()), tokens(&answers)))
    }
}

/// Answers a request to `/rerank`: the best documents first.
///
/// # Errors
/// When the request is wrong or not taken up, or the model gives no scores.
pub async fn rerank(state: Arc<ServerState>, caller: Caller, body: Vec<u8>) -> Result<Response, ApiError> {
    let (worker, who) = (state.clone(), caller.clone());
    let (mut pairs, most, shows) = reply::blocking(move || {
        let mut fields = Fields::of_body(&RERANK, &body)?;
        let query = fields.needed_text("query")?;
        let list = fields.list("documents")?.ok_or_else(|| fields.missing("documents"))?;
        if list.is_empty() {
            return Err(ApiError::field("documents", "`documents` is empty, expected at least one"));
        }
        let documents = list.into_iter().enumerate().map(|(at, document)| match document {
            Value::String(text) => Ok(text),
            other => fields.within(&format!("documents[{at}]"), other)?.needed_text("text"),
        });
        let documents = documents.collect::<Result<Vec<String>, ApiError>>()?;
        let most = fields.whole("top_n")?.map_or(usize::MAX, |most| most as usize);
        let shows = fields.flag("return_documents")?.unwrap_or(true);
        let pairs = ScoredPairs::new(&worker.scope(&who), &mut fields, &[query], documents, "documents")?;
        Ok((pairs, most, shows))
    })
    .await?;
    let (scores, tokens) = pairs.run(&state, &caller).await?;
    let mut order: Vec<usize> = (0..scores.len()).collect();
    // Where scores are equal, the earlier document comes first.
    order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
    let result = |at: usize| {
        let mut result = json!({ "index": at, "relevance_score": scores[at] });
        if shows {
            result["document"] = json!({ "text": pairs.documents[at] });
        }
        result
    };
    let results: Vec<Value> = order.into_iter().take(most).map(result).collect();
    let answer = json!({
        "id": ids::new("rerank-"),
        "model": pairs.model,
        "results": results,
        "usage": { "prompt_tokens": tokens, "total_tokens": tokens },
        "meta": { "billed_units": { "search_units": 1 } },
    });
    Ok(reply::with_warnings(reply::json(&answer), &pairs.unknown))
}

/// Answers a request to `/score`: a score for each pair of texts.
///
/// # Errors
/// As [`rerank`].
pub async fn score(state: Arc<ServerState>, caller: Caller, body: Vec<u8>) -> Result<Response, ApiError> {
    let (worker, who) = (state.clone(), caller.clone());
    let mut pairs = reply::blocking(move || {
        let mut fields = Fields::of_body(&SCORE, &body)?;
        let [queries, documents] = [texts(&mut fields, "text_1")?, texts(&mut fields, "text_2")?];
        if queries.len() != 1 && queries.len() != documents.len() {
            let (found, wanted) = (queries.len(), documents.len());
            let message = format!("`text_1` has {found} texts, expected 1, or {wanted} as `text_2` has");
            return Err(ApiError::field("text_1", message));
        }
        ScoredPairs::new(&worker.scope(&who), &mut fields, &queries, documents, "text_2")
    })
    .await?;
    let (scores, tokens) = pairs.run(&state, &caller).await?;
    let one = |(index, score): (usize, &f32)| json!({ "index": index, "object": "score", "score": score });
    let answer = json!({
        "id": ids::new("score-"),
        "object": "list",
        "created": ids::now(),
        "model": pairs.model,
        "data": scores.iter().enumerate().map(one).collect::<Vec<_>>(),
        "usage": { "prompt_tokens": tokens, "total_tokens": tokens, "completion_tokens": 0 },
    });
    Ok(reply::with_warnings(reply::json(&answer), &pairs.unknown))
}

/// One text or several.
fn texts(fields: &mut Fields, name: &str) -> Result<Vec<String>, ApiError> {
    let value = fields.take(name).ok_or_else(|| fields.missing(name))?;
    let wrong = |value: &Value| fields.wrong(name, value, "a string, or a list of strings");
    let list = match value {
        Value::String(text) => return Ok(vec![text]),
        Value::Array(list) => list,
        other => return Err(wrong(&other)),
    };
    if !(1..=limits::INPUTS).contains(&list.len()) {
        let message = format!("`{name}` has {} members, expected 1 to {}", list.len(), limits::INPUTS);
        return Err(ApiError::field(name, message));
    }
    let text = |value: &Value| value.as_str().map(str::to_owned).ok_or_else(|| wrong(value));
    list.iter().map(text).collect()
}
