//! A request to `/v1/completions`: prompts, and what goes on behind them.

use crate::asked::Asked;
use crate::chat::request::{PASSED, STREAM, has_usage};
use crate::chat::turn::held_to;
use crate::error::ApiError;
use crate::fields::Fields;
use crate::fields::shape::{Shape, field, flag, like, object, whole};
use crate::form::{AnswerExtras, FORMAT, FORMS};
use crate::sampling::{self, SAMPLING, STOPS, VLLM};
use crate::scope::{MODEL, RequestScope};
use crate::{limits, prompt};
use kernmill_serve::Request;
use serde_json::{Value, json};

/// Fields of a request.
pub const COMPLETION: Shape = object(&[
    like("prompt", || {
        let text = json!({ "type": "string", "minLength": 1 });
        let id = json!({ "type": "integer", "minimum": 0 });
        let ids = json!({ "type": "array", "items": id, "minItems": 1 });
        let several = [&text, &ids]
            .map(|one| json!({ "type": "array", "items": one, "minItems": 1, "maxItems": limits::PROMPTS }));
        json!({ "anyOf": [text, ids, several[0], several[1]] })
    }),
    flag("echo"),
    whole("max_tokens", 0, limits::TOKENS).about("16 without it; 0 needs echo"),
    field("logprobs", Shape::Any(&[Shape::Flag, Shape::Whole(0, limits::TOP_LOGPROBS)])),
    whole("n", 1, limits::ANSWERS),
    whole("best_of", 1, limits::ANSWERS).about("The same as n"),
    like("suffix", || json!({ "enum": ["", null] })).about("Is not served"),
    flag("stream"),
    field("stream_options", STREAM),
    field("stop", STOPS),
    flag("ignore_eos"),
    field("response_format", FORMAT),
])
.named("CompletionRequest", &["model", "prompt"])
.with(&[&MODEL, &SAMPLING, &FORMS, &VLLM, &PASSED]);

/// The parts of the texts that the choices show.
pub struct Shows {
    /// Ids of the prompts.
    pub prompts: Vec<Vec<u32>>,
    /// Answers to each prompt.
    pub n: usize,
    /// Whether the prompt is part of the text.
    pub echo: bool,
    /// Whether nothing is to be generated.
    pub only_prompt: bool,
    /// Whether tokens are listed with their logarithms.
    pub logprobs: bool,
    /// Whether figures come at the end of a stream.
    pub has_usage: bool,
}

/// Tokens that are generated at most where nobody says how many: OpenAI's number.
const MAX_TOKENS: u32 = 16;

/// Reads the fields of a request: texts by prompt and answer, in the order of the choices.
///
/// # Errors
/// When a field is wrong, or a prompt does not fit the context.
pub fn take(scope: &RequestScope<'_>, mut fields: Fields) -> Result<Asked<Vec<Request>, Shows>, ApiError> {
    let facts = scope.facts;
    let (model, adapters) = scope.model(&mut fields)?;
    let prompts = prompt::prompts(scope, &mut fields, "prompt", limits::PROMPTS, "")?;
    if let Some(record) = &scope.record {
        record.prompts(prompts.len());
    }
    let echo = fields.flag("echo")?.unwrap_or(false);
    let asked = fields.whole("max_tokens")?.map(|tokens| tokens as u32);
    if asked == Some(0) && !echo {
        return Err(ApiError::field("max_tokens", "`max_tokens` is 0, expected at least 1 without `echo`"));
    }
    // Some clients send true for "those of the tokens".
    let logprobs = match fields.take("logprobs") {
        None | Some(Value::Bool(false)) => None,
        Some(Value::Bool(true)) => Some(0),
        Some(value) => {
            let top = value.as_u64().filter(|top| *top <= limits::TOP_LOGPROBS);
            let expected = format!("a whole number up to {}", limits::TOP_LOGPROBS);
            Some(top.ok_or_else(|| fields.wrong("logprobs", &value, &expected))? as u32)
        }
    };
    let n = fields.whole("n")?.unwrap_or(1);
    if let Some(best_of) = fields.whole("best_of")?
        && best_of != n
    {
        return Err(ApiError::field(
            "best_of",
            format!("`best_of` is {best_of}, expected {n}, which is `n`"),
        ));
    }
    if let Some(suffix) = fields.text("suffix")?
        && !suffix.is_empty()
    {
        return Err(ApiError::field(
            "suffix",
            "`suffix` is not served: the model only goes on from a prompt",
        ));
    }
    let streams = fields.flag("stream")?.unwrap_or(false);
    let has_usage = has_usage(&mut fields)?;
    let stop = sampling::stops(&mut fields)?;
    let goes_on = fields.flag("ignore_eos")?.unwrap_or(false);
    let mut stop_tokens = if goes_on { Vec::new() } else { facts.end_tokens.clone() };
    stop_tokens.extend(sampling::stop_tokens(&mut fields, facts.vocab)?);
    let request = scope.request(&mut fields, adapters)?;
    let AnswerExtras { mut wanted, drafts } = AnswerExtras::take(scope, &mut fields)?;
    wanted.take(&mut fields, "response_format")?;
    fields.refuse()?;
    let most = |prompt: &Vec<u32>| {
        let room = facts.context.saturating_sub(prompt.len() as u32);
        // To score a prompt, no room for an answer is needed: one token is made all the same.
        let least = if asked == Some(0) { 0 } else { 1 };
        let most = asked.unwrap_or_else(|| scope.max_tokens.unwrap_or(MAX_TOKENS).min(room));
        if most > room || room < least || prompt.len() > facts.context as usize {
            return Err(ApiError::context("prompt", prompt.len(), asked, facts.context));
        }
        Ok(most.max(1))
    };
    let most = prompts.iter().map(most).collect::<Result<Vec<u32>, ApiError>>()?;
    let constraint = wanted.rule().map(|rule| held_to(facts, &rule, &wanted.field)).transpose()?;
    let scores_prompt = echo && logprobs.is_some();
    let request = Request { constraint, drafts, logprobs, scores_prompt, stop, stop_tokens, ..request };
    let mut requests = Vec::new();
    for (prompt, max_tokens) in prompts.iter().zip(most) {
        for at in 0..n {
            let mut request = Request { prompt: prompt.clone(), max_tokens, ..request.clone() };
            request.sampler.seed = request.sampler.seed.map(|seed| seed.wrapping_add(at));
            requests.push(request);
        }
    }
    let (only_prompt, logprobs, n) = (asked == Some(0), logprobs.is_some(), n as usize);
    let shows = Shows { prompts, n, echo, only_prompt, logprobs, has_usage };
    Ok(Asked { ask: requests, shows, model, streams, unknown: fields.rest() })
}
