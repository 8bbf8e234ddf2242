//! How tokens are chosen: the fields that all APIs share.

use crate::error::ApiError;
use crate::fields::Fields;
use crate::fields::shape::{Shape, field, like, list, number, object, refused, text};
use crate::limits;
use kernmill_runtime::SamplerParams;
use serde_json::{Map, Value, json};

/// Fields of sampling by the names that they have everywhere.
pub const DRAWN: Shape = object(&[
    number("temperature", 0.0, 100.0),
    field("top_p", Shape::Above(1.0)),
    like("top_k", || json!({ "type": ["integer", "null"], "minimum": -1 })).about("-1 and 0 are all tokens"),
    number("min_p", 0.0, 1.0),
    number("presence_penalty", -2.0, 2.0),
    number("frequency_penalty", -2.0, 2.0),
    like("logit_bias", || {
        json!({
            "type": ["object", "null"],
            "maxProperties": limits::BIASES,
            "additionalProperties": { "type": "number", "minimum": -100, "maximum": 100 },
        })
    })
    .about("By token id; -100 forbids a token"),
    like("seed", || json!({ "type": ["integer", "null"] })),
])
.named("DrawnFields", &[]);

/// Fields of sampling, and of the kind of work, but for Ollama's API.
pub const SAMPLING: Shape = object(&[number("repetition_penalty", 0.01, 100.0), text("service_tier")])
    .named("SamplingFields", &[])
    .with(&[&DRAWN]);

/// The id of a token.
pub const ID: Shape = Shape::Whole(0, u64::MAX);

/// Values that ask for nothing.
const NOTHING: &str = "false, 0, 0.0, [], {}";

/// Fields of vLLM that OpenAI's routes have: tokens that end a text, and what is refused.
pub const VLLM: Shape = object(&[
    list("stop_token_ids", &ID, limits::BIASES),
    refused("min_tokens", NOTHING, "a text ends where the model ends it"),
    refused("bad_words", NOTHING, "`logit_bias` with -100 forbids tokens"),
    refused(
        "allowed_token_ids",
        NOTHING,
        "a form of the text, such as `response_format`, forbids all others",
    ),
    refused("logits_processors", NOTHING, "`logit_bias` changes single logits"),
    refused("include_stop_str_in_output", NOTHING, "what ends a text is no part of it"),
    refused("use_beam_search", NOTHING, "texts are drawn one by one, and `n` gives several"),
    refused("truncate_prompt_tokens", NOTHING, "send less: nothing is cut"),
    refused("prompt_logprobs", NOTHING, "/v1/completions has them with `echo` and `logprobs`"),
])
.named("VllmFields", &[]);

/// Strings that end a text.
pub const STOPS: Shape = Shape::Json(|| {
    let stop = json!({ "type": "string", "minLength": 1, "maxLength": limits::STOP_BYTES });
    let several = json!({ "type": "array", "items": stop, "maxItems": limits::STOPS });
    json!({ "anyOf": [stop, several, { "type": "null" }], "description": "Lengths are in bytes" })
});

/// The sampling fields of a request. The seed is a fresh one where none is given.
///
/// # Errors
/// When a field is wrong.
pub fn sampler(fields: &mut Fields, vocab: u32) -> Result<SamplerParams, ApiError> {
    sampler_with(fields, vocab, "repetition_penalty")
}

/// The sampling fields of a request whose API calls the penalty of repetitions `penalty`.
///
/// # Errors
/// As [`sampler`].
pub fn sampler_with(fields: &mut Fields, vocab: u32, penalty: &str) -> Result<SamplerParams, ApiError> {
    let usual = SamplerParams::default();
    let float = |value: Option<f64>, otherwise: f32| value.map_or(otherwise, |value| value as f32);
    let top_p = float(fields.number("top_p")?, 1.0);
    let top_k = match fields.take("top_k") {
        // vLLM's clients write -1 for all.
        Some(value) if value.as_i64() == Some(-1) => None,
        Some(value) => {
            let found = value.as_u64().filter(|k| *k <= u64::from(vocab));
            let wrong = || fields.wrong("top_k", &value, &format!("a whole number up to {vocab}, or -1"));
            Some(found.ok_or_else(wrong)? as usize).filter(|k| *k > 0)
        }
        None => None,
    };
    let params = SamplerParams {
        temperature: float(fields.number("temperature")?, 1.0),
        top_p,
        top_k,
        min_p: float(fields.number("min_p")?, usual.min_p),
        repetition_penalty: float(fields.number(penalty)?, usual.repetition_penalty),
        presence_penalty: float(fields.number("presence_penalty")?, usual.presence_penalty),
        frequency_penalty: float(fields.number("frequency_penalty")?, usual.frequency_penalty),
        logit_bias: match fields.take("logit_bias") {
            None => Vec::new(),
            Some(Value::Object(biases)) => logit_bias(fields, biases, vocab)?,
            Some(other) => return Err(fields.wrong("logit_bias", &other, "an object of token ids")),
        },
        seed: Some(seed(fields)?),
    };
    params.check(vocab as usize).map_err(|error| ApiError::invalid(error.to_string()))?;
    Ok(params)
}

fn seed(fields: &mut Fields) -> Result<u64, ApiError> {
    match fields.take("seed") {
        // Short enough for every language to read it back.
        None => Ok(fastrand::u64(..1 << 53)),
        Some(value) => {
            let seed = value.as_u64().or_else(|| value.as_i64().map(i64::cast_unsigned));
            seed.ok_or_else(|| fields.wrong("seed", &value, "a whole number"))
        }
    }
}

fn logit_bias(fields: &Fields, biases: Map<String, Value>, vocab: u32) -> Result<Vec<(u32, f32)>, ApiError> {
    let name = fields.name("logit_bias");
    if biases.len() > limits::BIASES {
        let message = format!("`{name}` has {} members, expected at most {}", biases.len(), limits::BIASES);
        return Err(ApiError::field(name, message));
    }
    biases
        .into_iter()
        .map(|(id, bias)| {
            let token = id.parse().ok().filter(|id: &u32| *id < vocab);
            let value = bias.as_f64().filter(|bias| (-100.0..=100.0).contains(bias));
            match (token, value) {
                // By the API, the ends of the range ban and enforce.
                (Some(token), Some(-100.0)) => Ok((token, f32::NEG_INFINITY)),
                (Some(token), Some(value)) => Ok((token, value as f32)),
                _ => Err(ApiError::field(
                    &name,
                    format!(
                        "`{name}` has {id}: {bias}, expected ids below {vocab} and numbers from -100 to 100"
                    ),
                )),
            }
        })
        .collect()
}

/// Tokens that end a text, besides those of the model: vLLM's field.
///
/// # Errors
/// When the field is no list of token ids.
pub fn stop_tokens(fields: &mut Fields, vocab: u32) -> Result<Vec<u32>, ApiError> {
    let list = fields.list("stop_token_ids")?.unwrap_or_default();
    let id = |id: &Value| id.as_u64().and_then(|id| u32::try_from(id).ok()).filter(|id| *id < vocab);
    let ids: Option<Vec<u32>> = list.iter().map(id).collect();
    ids.ok_or_else(|| {
        let expected = format!("a list of token ids below {vocab}");
        fields.wrong("stop_token_ids", &Value::Array(list), &expected)
    })
}

/// Strings that end a text.
///
/// # Errors
/// When there are too many of them, or one is empty or too long.
pub fn stops(fields: &mut Fields) -> Result<Vec<String>, ApiError> {
    stops_of(fields, "stop")
}

/// Strings that end a text, of the field `field`.
///
/// # Errors
/// As [`stops`].
pub fn stops_of(fields: &mut Fields, field: &str) -> Result<Vec<String>, ApiError> {
    let name = fields.name(field);
    let values = match fields.take(field) {
        None => return Ok(Vec::new()),
        Some(Value::String(stop)) => vec![Value::String(stop)],
        Some(Value::Array(stops)) if stops.len() <= limits::STOPS => stops,
        Some(other) => {
            return Err(fields.wrong(field, &other, &format!("a string or up to {} of them", limits::STOPS)));
        }
    };
    values
        .into_iter()
        .map(|stop| match stop {
            Value::String(stop) if (1..=limits::STOP_BYTES).contains(&stop.len()) => Ok(stop),
            _ => {
                let message =
                    format!("`{name}` has a member that is no string of 1 to {} bytes", limits::STOP_BYTES);
                Err(ApiError::field(&name, message))
            }
        })
        .collect()
}
