//! From what Python asks for to a request of the scheduler.

use crate::error::Failure;
use crate::model::ModelInfo;
use kernmill_chat::{AnswerPart, Conversation, Event, Format, Turn, TurnOptions};
use kernmill_constrain::Rule;
use kernmill_runtime::AdapterUse;
use kernmill_runtime::SamplerParams;
use kernmill_serve::{Answer, Class, Finish, Request, Token};
use pyo3::FromPyObject;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// How a text is made; `SamplingParams` of the Python side makes a mapping of these, which it has checked the
/// types of.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Params {
    max_tokens: Option<u32>,
    temperature: f32,
    top_p: f32,
    top_k: i64,
    min_p: f32,
    repetition_penalty: f32,
    presence_penalty: f32,
    frequency_penalty: f32,
    seed: Option<u64>,
    logit_bias: Option<HashMap<u32, f32>>,
    logprobs: Option<u32>,
    prompt_logprobs: Option<u32>,
    stop: Vec<String>,
    stop_token_ids: Vec<u32>,
    ignore_eos: bool,
    skip_special_tokens: bool,
    drafts: bool,
    /// Kind and text of the form that the text is held to.
    rule: Option<(String, String)>,
}

/// Where the request stands among others.
pub struct RequestPlacement {
    /// Weighted adapters of all tokens.
    pub adapters: Vec<AdapterUse>,
    /// Whether somebody looks on.
    pub is_interactive: bool,
    /// Claim within the class.
    pub priority: i32,
}

/// A conversation's answer in the making.
pub struct Reading {
    turn: Turn,
    facts: Arc<ModelInfo>,
    /// Tokens that have come.
    count: usize,
}

impl Reading {
    /// The answer to a turn that begins.
    pub fn new(turn: Turn, facts: Arc<ModelInfo>) -> Reading {
        Reading { turn, facts, count: 0 }
    }

    /// Takes a token; whether it is part of the answer, which may have ended before.
    pub fn push(&mut self, token: &Token) -> bool {
        if self.turn.has_ended() {
            return false;
        }
        self.count += 1;
        // The tokenizer was read before the conversation was.
        if let Ok(tokenizer) = self.facts.tokenizer() {
            self.turn.push(tokenizer, token.id, &token.text);
        }
        true
    }

    /// Whether no more tokens are needed.
    pub fn has_ended(&self) -> bool {
        self.turn.has_ended()
    }

    /// Ends the answer. One that a stop string has ended was cancelled, and may have run on.
    pub fn end(&mut self, answer: &mut Answer) {
        if self.turn.has_ended() {
            answer.tokens.truncate(self.count);
            let stop = self.turn.stop().map(|stop| Finish::Text(stop.to_owned()));
            answer.finish = stop.unwrap_or(Finish::Complete);
        }
        self.turn.finish(answer.finish.is_complete());
    }

    /// Events since the last time.
    pub fn events(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.turn.pop()).map(|piece| piece.event).collect()
    }
}

/// The request that continues `prompt`.
///
/// # Errors
/// When a parameter is wrong.
pub fn request(
    facts: &ModelInfo,
    prompt: Vec<u32>,
    params: &Params,
    place: RequestPlacement,
) -> Result<Request, Failure> {
    let rule = form(params)?;
    let request = base(facts, prompt, params, place)?;
    let ends = if params.ignore_eos { Vec::new() } else { facts.end_tokens.clone() };
    let constraint = rule.map(|rule| facts.constraint(&rule)).transpose()?;
    let (stop, stop_tokens) = (params.stop.clone(), [ends, request.stop_tokens].concat());
    Ok(Request { constraint, stop, stop_tokens, ..request })
}

/// The request that answers a conversation, which is JSON, and what reads the answer.
///
/// # Errors
/// When a parameter is wrong, or the model's format refuses the conversation.
pub fn answer(
    facts: &ModelInfo,
    conversation: &str,
    params: &Params,
    place: RequestPlacement,
) -> Result<(Request, Turn), Failure> {
    let conversation = conversation_of(conversation)?;
    let (tokenizer, format) = (facts.tokenizer()?, facts.format()?);
    let form = form(params)?;
    if matches!((format, &form), (Format::Harmony, Some(Rule::JsonObject))) {
        let what = "a JSON object without a schema cannot be asked of this model's format: give a schema";
        return Err(Failure::Unsupported(what.to_owned()));
    }
    let options = TurnOptions { form, stop: params.stop.clone(), ..TurnOptions::default() };
    let (known, ends) = (BTreeMap::new(), &facts.end_tokens);
    let turn = Turn::new(tokenizer, format, &conversation, &known, options, ends).map_err(Failure::input)?;
    let constraint = match turn.rule {
        Some(_) => turn.constraint(facts.lexicon()?, &conversation.tools).map_err(Failure::input)?,
        None => None,
    };
    let request = base(facts, turn.prompt.clone(), params, place)?;
    let stop_tokens = [turn.stop_tokens.clone(), request.stop_tokens].concat();
    Ok((Request { constraint, stop_tokens, ..request }, turn))
}

/// Ids of the prompt that a conversation, which is JSON, makes.
///
/// # Errors
/// When the model's format refuses the conversation.
pub fn prompt_of(facts: &ModelInfo, conversation: &str) -> Result<Vec<u32>, Failure> {
    let conversation = conversation_of(conversation)?;
    facts.format()?.prompt(facts.tokenizer()?, &conversation, &BTreeMap::new()).map_err(Failure::input)
}

fn conversation_of(json: &str) -> Result<Conversation, Failure> {
    serde_json::from_str(json).map_err(|error| Failure::Input(format!("the conversation is none: {error}")))
}

/// The fields that both kinds of requests have.
fn base(
    facts: &ModelInfo,
    prompt: Vec<u32>,
    params: &Params,
    place: RequestPlacement,
) -> Result<Request, Failure> {
    let room = (facts.context as usize).saturating_sub(prompt.len()) as u32;
    if room == 0 && !prompt.is_empty() {
        let (length, context) = (prompt.len(), facts.context);
        let what =
            format!("the prompt has {length} tokens, the context holds {context}: no token can follow");
        return Err(Failure::Input(what));
    }
    let sampler = SamplerParams {
        temperature: params.temperature,
        top_k: usize::try_from(params.top_k).ok().filter(|k| *k > 0),
        top_p: params.top_p,
        min_p: params.min_p,
        repetition_penalty: params.repetition_penalty,
        presence_penalty: params.presence_penalty,
        frequency_penalty: params.frequency_penalty,
        logit_bias: params.logit_bias.iter().flatten().map(|(id, bias)| (*id, *bias)).collect(),
        seed: params.seed,
    };
    sampler.check(facts.vocab as usize).map_err(Failure::input)?;
    Ok(Request {
        max_tokens: params.max_tokens.unwrap_or(room.max(1)),
        sampler,
        logprobs: params.logprobs.max(params.prompt_logprobs),
        scores_prompt: params.prompt_logprobs.is_some(),
        stop_tokens: params.stop_token_ids.clone(),
        shows_special: !params.skip_special_tokens,
        drafts: params.drafts,
        adapters: place.adapters,
        class: if place.is_interactive { Class::Interactive } else { Class::Batch },
        priority: place.priority,
        ..Request::greedy(prompt, 1)
    })
}

/// The form that the text is held to.
fn form(params: &Params) -> Result<Option<Rule>, Failure> {
    let Some((kind, text)) = &params.rule else { return Ok(None) };
    Ok(Some(match kind.as_str() {
        "json" => {
            let schema: Result<Value, _> = serde_json::from_str(text);
            let wrong = |error| Failure::Input(format!("the JSON schema is none: {error}"));
            Rule::JsonSchema(schema.map_err(wrong)?)
        }
        "json_object" => Rule::JsonObject,
        "regex" => Rule::Regex(text.clone()),
        "grammar" => Rule::Lark(text.clone()),
        other => {
            return Err(Failure::Input(format!("a form of kind {other}, expected json, regex, grammar")));
        }
    }))
}

/// Name of a part of an answer.
pub fn part_name(part: &AnswerPart) -> (&'static str, Option<&str>) {
    match part {
        AnswerPart::Reasoning => ("reasoning", None),
        AnswerPart::Preamble => ("preamble", None),
        AnswerPart::Answer => ("answer", None),
        AnswerPart::Call { name, .. } => ("call", Some(name)),
    }
}
