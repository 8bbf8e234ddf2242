//! A request to `vllm.Inference`: what each field asks of the backend. The fields that HTTP has too are read
//! by the same code.

use super::response::Shows;
use crate::backend::BackendInfo;
use crate::caller::Caller;
use crate::chat::turn::{held_to, tokenizer};
use crate::error::ApiError;
use crate::fields::Fields;
use crate::limits;
use crate::prompt;
use crate::sampling;
use crate::scope::{RequestScope, salt_of};
use crate::state::ServerState;
use kernmill_constrain::{Constraint, Rule};
use kernmill_runtime::AdapterUse;
use kernmill_runtime::SamplerParams;
use kernmill_serve::Request;
use serde_json::{Map, Number, Value, json};
use std::collections::BTreeSet;
use std::time::Duration;
use vllm_proto::candidate_tokens::Select;
use vllm_proto::decoding_parameters::StructuredOutput;
use vllm_proto::generate_request::Prompt;
use vllm_proto::{CandidateTokens, DecodingParameters, GenerateRequest, RandomSampling, StoppingCriteria};

/// Tokens that are generated where a request says no number, by the protocol.
const NEW_TOKENS: u32 = 20;

/// A request that was read.
pub struct GenerateCall {
    /// Ids of the prompt.
    pub prompt: Vec<u32>,
    /// For each sequence.
    pub requests: Vec<Request>,
    /// The parts that the responses show.
    pub shows: Shows,
    /// Tokens that end a sequence and are no part of it.
    pub stop_ids: Vec<u32>,
    /// Fields that change nothing here.
    pub passed_over: Vec<&'static str>,
}

impl GenerateCall {
    /// Reads a request. The rest of the client's time is `within`.
    ///
    /// # Errors
    /// When a field is wrong, or asks for something that is not served.
    pub fn read(
        state: &ServerState,
        caller: &Caller,
        request: GenerateRequest,
        streams: bool,
        within: Option<Duration>,
    ) -> Result<GenerateCall, ApiError> {
        refuse(&request)?;
        let facts = state.backend.facts();
        let scope = state.scope(caller);
        let adapters = adapters(&scope, &request)?;
        let prompt = prompt(facts, &request)?;
        let sampling = request.sampling.unwrap_or_default();
        let decoding = request.decoding.unwrap_or_default();
        let stopping = request.stopping.unwrap_or_default();
        let options = request.response.unwrap_or_default();
        let kv = request.kv.unwrap_or_default();
        let n = sampling.num_sequences.max(1);
        if u64::from(n) > limits::ANSWERS || (n > 1 && !streams) {
            let most = if streams { limits::ANSWERS } else { 1 };
            let message = format!(
                "`sampling.num_sequences` is {n}, expected at most {most}: a stream has up to {}, a single response one",
                limits::ANSWERS
            );
            return Err(ApiError::field("sampling.num_sequences", message));
        }
        let sampler = sampler(request.temperature, &sampling, &decoding, facts.vocab)?;
        let max_tokens = max_tokens(&stopping, prompt.len(), facts.context)?;
        let shows = Shows {
            prompt_ids: options.prompt_token_ids,
            prompt_logprobs: options.prompt_logprobs,
            prompt_top: top("response.prompt_candidates", options.prompt_candidates)?,
            text: options.output_text.unwrap_or(true),
            ids: options.output_token_ids,
            logprobs: options.output_logprobs,
            top: top("response.output_candidates", options.output_candidates)?,
            stop_strings: stopping.include_stop_strings,
        };
        let stop = json!({ "stop_strings": stopping.stop_strings });
        let stop = sampling::stops_of(&mut Fields::of(stop, "")?, "stop_strings")?;
        let stop_tokens = stop_tokens(facts, &stopping)?;
        let tokenizer = tokenizer(facts)?;
        // The text of a special token stops where the token comes.
        let specials = stop.iter().filter_map(|stop| tokenizer.special_token_id(stop));
        let stop_ids = stop_tokens.iter().copied().chain(specials).collect();
        let rule = rule(state.config.grammars, &decoding)?;
        let mut requests = Vec::new();
        for at in 0..n {
            let mut sampler = sampler.clone();
            sampler.seed = sampler.seed.map(|seed| seed.wrapping_add(u64::from(at)));
            requests.push(Request {
                constraint: constraint(facts, rule.as_ref(), &stopping, &stop_tokens)?,
                sampler,
                logprobs: shows.listed(),
                // The first sequence tells of the prompt.
                scores_prompt: shows.scores_prompt() && at == 0,
                stop: stop.clone(),
                stop_tokens: stop_tokens.clone(),
                shows_special: !options.skip_special_tokens.unwrap_or(true),
                adapters: adapters.clone(),
                tenant: caller.tenant,
                salt: salt(kv.bypass_prefix_cache, &kv.cache_salt),
                // The protocol's least number comes first.
                priority: request.priority.saturating_neg().clamp(-4, 4),
                within: state.config.longest_answer.into_iter().chain(within).min(),
                ..Request::greedy(prompt.clone(), max_tokens)
            });
        }
        let session = request.session_id.filter(|session| !session.is_empty());
        let passed_over = session.map(|_| "session_id").into_iter().collect();
        Ok(GenerateCall { prompt, requests, shows, stop_ids, passed_over })
    }
}

/// Refuses what the protocol has and kernmill has not.
fn refuse(request: &GenerateRequest) -> Result<(), ApiError> {
    let kv = request.kv.as_ref();
    let stopping = request.stopping.as_ref();
    let gate = request.engine_reasoning_gate.as_ref();
    let found = [
        (!request.media.is_empty(), "media", "this model reads text"),
        (request.kv_hints.is_some(), "kv_hints", "the prefix cache keeps what it has room for"),
        (request.watermarking == Some(true), "watermarking", "texts have no watermark: leave it out"),
        (
            gate.is_some_and(|gate| gate.reasoning_ended != Some(true)),
            "engine_reasoning_gate",
            "a text is held to its form from the first token on",
        ),
        (
            kv.is_some_and(|kv| kv.kv_transfer_params.is_some()),
            "kv.kv_transfer_params",
            "one process computes all of a text",
        ),
        (
            kv.is_some_and(|kv| kv.ec_transfer_params.is_some()),
            "kv.ec_transfer_params",
            "one process computes all of a text",
        ),
        (
            stopping.and_then(|stopping| stopping.thinking_token_budget).is_some_and(|tokens| tokens != -1),
            "stopping.thinking_token_budget",
            "reasoning has no budget of its own: leave it out, or send -1",
        ),
    ];
    match found.into_iter().find(|(is_there, ..)| *is_there) {
        Some((_, field, why)) => Err(ApiError::unserved(field, why)),
        None => Ok(()),
    }
}

/// The adapters that a request names. No name is that of the model.
fn adapters(scope: &RequestScope<'_>, request: &GenerateRequest) -> Result<Vec<AdapterUse>, ApiError> {
    let named = Some(&request.model).filter(|name| !name.is_empty()).unwrap_or(&scope.facts.model);
    let adapter = &request.lora_name;
    if !adapter.is_empty() && scope.adapter(adapter).is_none() {
        let known = scope.adapters.join(", ");
        let what =
            format!("`lora_name` is `{adapter}`, expected the name of an adapter that is loaded: {known}");
        return Err(ApiError::not_found(what));
    }
    let mut fields = Fields::of(json!({ "model": named, "lora_path": adapter }), "")?;
    let (_, adapters) = scope.model(&mut fields).map_err(|error| error.renamed("lora_path", "lora_name"))?;
    Ok(adapters)
}

/// Ids of the prompt. If it is to be cut, its end is kept.
fn prompt(facts: &BackendInfo, request: &GenerateRequest) -> Result<Vec<u32>, ApiError> {
    let mut ids = match &request.prompt {
        None => return Err(ApiError::field("prompt", "`prompt` is missing, expected `text` or `token_ids`")),
        // A text that is cut to fit may be longer than the context.
        Some(Prompt::Text(text)) if request.truncate_prompt_tokens > 0 => tokenizer(facts)?
            .encode(text, true)
            .map_err(|error| ApiError::field("text", error.to_string()))?,
        Some(Prompt::Text(text)) => prompt::encode(facts, "text", text, true)?,
        Some(Prompt::TokenIds(tokens)) => {
            known("token_ids", &tokens.ids, facts.vocab)?;
            tokens.ids.clone()
        }
    };
    let most = request.truncate_prompt_tokens as usize;
    if most > 0 && ids.len() > most {
        ids.drain(..ids.len() - most);
    }
    if ids.is_empty() {
        return Err(ApiError::field("prompt", "the prompt has no tokens, expected at least one"));
    }
    Ok(ids)
}

/// Checks that ids are those of tokens.
fn known(field: &str, ids: &[u32], vocab: u32) -> Result<(), ApiError> {
    match ids.iter().find(|id| **id >= vocab) {
        Some(id) => {
            let message = format!("`{field}` has {id}, expected token ids from 0 to {}", vocab - 1);
            Err(ApiError::field(field, message))
        }
        None => Ok(()),
    }
}

/// How tokens are chosen. Where the protocol's zero means that nothing is said, nothing is.
fn sampler(
    temperature: Option<f32>,
    sampling: &RandomSampling,
    decoding: &DecodingParameters,
    vocab: u32,
) -> Result<SamplerParams, ApiError> {
    let mut fields = Map::new();
    let repetition = Some(decoding.repetition_penalty).filter(|penalty| *penalty != 0.0);
    for (name, value) in [
        ("temperature", Some(temperature.unwrap_or(0.0))),
        ("top_p", sampling.top_p),
        ("min_p", sampling.min_p),
        ("presence_penalty", Some(decoding.presence_penalty)),
        ("frequency_penalty", Some(decoding.frequency_penalty)),
        ("repetition_penalty", repetition),
    ] {
        if let Some(value) = value {
            fields.insert(name.to_owned(), number(name, value)?.into());
        }
    }
    if let Some(top_k) = sampling.top_k {
        fields.insert("top_k".to_owned(), top_k.into());
    }
    if let Some(seed) = sampling.seed {
        fields.insert("seed".to_owned(), seed.into());
    }
    let mut biases = Map::new();
    let mut given: Vec<(&u32, &f32)> = decoding.logit_bias.iter().collect();
    given.sort_by_key(|(id, _)| **id);
    for (id, bias) in given {
        biases.insert(id.to_string(), number("logit_bias", *bias)?.into());
    }
    fields.insert("logit_bias".to_owned(), Value::Object(biases));
    let mut params = sampling::sampler(&mut Fields::of(Value::Object(fields), "")?, vocab)?;
    params.logit_bias.extend(banned(decoding, vocab)?);
    Ok(params)
}

/// A number for the code that reads JSON, which knows no infinite ones.
fn number(field: &str, value: f32) -> Result<Number, ApiError> {
    Number::from_f64(f64::from(value))
        .ok_or_else(|| ApiError::field(field, format!("`{field}` is {value}, expected a number")))
}

/// Tokens that may not come: all but those that are allowed, and those of bad words.
fn banned(decoding: &DecodingParameters, vocab: u32) -> Result<Vec<(u32, f32)>, ApiError> {
    let mut banned = BTreeSet::new();
    if !decoding.allowed_token_ids.is_empty() {
        known("decoding.allowed_token_ids", &decoding.allowed_token_ids, vocab)?;
        let allowed: BTreeSet<u32> = decoding.allowed_token_ids.iter().copied().collect();
        banned.extend((0..vocab).filter(|id| !allowed.contains(id)));
    }
    let field = "decoding.bad_words_token_ids";
    for words in &decoding.bad_words_token_ids {
        known(field, &words.ids, vocab)?;
        match words.ids[..] {
            [id] => drop(banned.insert(id)),
            [] => {
                let message =
                    format!("`{field}` has an empty member, expected at least one token id in each");
                return Err(ApiError::field(field, message));
            }
            _ => {
                return Err(ApiError::unserved(
                    field,
                    "single tokens can be banned, and no sequences of them",
                ));
            }
        }
    }
    Ok(banned.into_iter().map(|id| (id, f32::NEG_INFINITY)).collect())
}

/// Tokens that are generated at most. The protocol's own number gives way to a context that is nearly full.
fn max_tokens(stopping: &StoppingCriteria, prompt: usize, context: u32) -> Result<u32, ApiError> {
    let room = (context as usize).saturating_sub(prompt) as u32;
    let asked = match stopping.max_new_tokens {
        0 => NEW_TOKENS.min(room.max(1)),
        asked => asked,
    };
    if asked > room {
        return Err(ApiError::context("prompt", prompt, Some(asked), context));
    }
    if stopping.min_new_tokens > asked {
        let message = format!(
            "`stopping.min_new_tokens` is {}, expected at most {asked}, the most that are generated",
            stopping.min_new_tokens
        );
        return Err(ApiError::field("stopping.min_new_tokens", message));
    }
    Ok(asked)
}

/// Tokens that end a sequence.
fn stop_tokens(facts: &BackendInfo, stopping: &StoppingCriteria) -> Result<Vec<u32>, ApiError> {
    let field = "stopping.stop_token_ids";
    let own = &stopping.stop_token_ids;
    known(field, own, facts.vocab)?;
    if own.len() > limits::BIASES {
        let message = format!("`{field}` has {} members, expected at most {}", own.len(), limits::BIASES);
        return Err(ApiError::field(field, message));
    }
    let ends = if stopping.ignore_eos { &[][..] } else { &facts.end_tokens };
    Ok(ends.iter().chain(own).copied().collect())
}

/// How many of the likeliest tokens are listed; `None` where candidates are not asked for.
fn top(field: &str, candidates: Option<CandidateTokens>) -> Result<Option<u32>, ApiError> {
    match candidates.and_then(|candidates| candidates.select) {
        None | Some(Select::All(false)) => Ok(None),
        Some(Select::TopN(top)) if u64::from(top) <= limits::TOP_LOGPROBS => Ok(Some(top)),
        Some(Select::TopN(top)) => {
            let message = format!("`{field}.top_n` is {top}, expected at most {}", limits::TOP_LOGPROBS);
            Err(ApiError::field(field, message))
        }
        Some(Select::All(true) | Select::TokenIds(_)) => {
            Err(ApiError::unserved(field, "the likeliest tokens are listed, as `top_n` asks for"))
        }
    }
}

/// The rule of the text.
fn rule(grammars: bool, decoding: &DecodingParameters) -> Result<Option<Rule>, ApiError> {
    let Some(output) = &decoding.structured_output else { return Ok(None) };
    let permitted = |field: &str, rule: Rule| {
        if grammars {
            return Ok(Some(rule));
        }
        let message = format!(
            "`{field}` is not permitted: the option --allow-grammars permits regular expressions and grammars"
        );
        Err(ApiError::field(field, message))
    };
    match output {
        StructuredOutput::Json(text) => {
            let schema = serde_json::from_str(text).map_err(|error| {
                ApiError::field("decoding.json", format!("`decoding.json` is no JSON schema: {error}"))
            })?;
            Ok(Some(Rule::JsonSchema(schema)))
        }
        StructuredOutput::JsonObject(wanted) => Ok(wanted.then_some(Rule::JsonObject)),
        StructuredOutput::Choice(choices) => {
            if choices.choices.is_empty() {
                let message = "`decoding.choice` has no choices, expected at least one";
                return Err(ApiError::field("decoding.choice", message));
            }
            let texts: Vec<_> = choices.choices.iter().map(|text| fancy_regex::escape(text)).collect();
            Ok(Some(Rule::Regex(format!("({})", texts.join("|")))))
        }
        StructuredOutput::Regex(text) => permitted("decoding.regex", Rule::Regex(text.clone())),
        StructuredOutput::Grammar(text) => permitted("decoding.grammar", Rule::Lark(text.clone())),
        StructuredOutput::StructuralTag(_) => Err(ApiError::unserved(
            "decoding.structural_tag",
            "use `json`, `json_object`, `choice`, `regex` or `grammar`",
        )),
    }
}

/// The constraint of a sequence's form, or of its least number of tokens: then no token that ends it comes
/// before.
fn constraint(
    facts: &BackendInfo,
    rule: Option<&Rule>,
    stopping: &StoppingCriteria,
    stop_tokens: &[u32],
) -> Result<Option<Constraint>, ApiError> {
    let least = stopping.min_new_tokens;
    match rule {
        None if least == 0 => Ok(None),
        Some(rule) if least == 0 => held_to(facts, rule, "decoding.structured_output").map(Some),
        rule => {
            let field = "stopping.min_new_tokens";
            if rule.is_some() {
                return Err(ApiError::unserved(field, "a form says by itself where the text may end"));
            }
            if !stopping.stop_strings.is_empty() {
                return Err(ApiError::unserved(field, "stop strings end a text wherever they come"));
            }
            let ends: BTreeSet<u32> = facts.end_tokens.iter().chain(stop_tokens).copied().collect();
            let ends: Vec<String> = ends.iter().map(u32::to_string).collect();
            if ends.is_empty() {
                return Ok(None);
            }
            let grammar = format!("start: <[^{}]>{{{least}}} <[*]>*", ends.join(","));
            held_to(facts, &Rule::Lark(grammar), field).map(Some)
        }
    }
}

/// Name of the part of the prefix cache that a request uses. One that shall find nothing has a part of its
/// own.
fn salt(bypasses: bool, salt: &str) -> [u8; 16] {
    if bypasses {
        return fastrand::u128(1..).to_le_bytes();
    }
    if salt.is_empty() { [0; 16] } else { salt_of(salt) }
}
