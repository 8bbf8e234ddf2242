//! From what Python asks for to a request of the scheduler.

use crate::error::Failure;
use crate::model::Facts;
use kernmill::chat::{Conversation, Event, Format, Reader, ToolChoice, TurnGrammar};
use kernmill::constrain::Rule;
use kernmill::runtime::AdapterUse;
use kernmill::serve::{Class, Request};
use kernmill::{SamplerParams, chat};
use pyo3::FromPyObject;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};

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
pub struct Place {
    /// Weighted adapters of all tokens.
    pub adapters: Vec<AdapterUse>,
    /// Whether somebody looks on.
    pub is_interactive: bool,
    /// Claim within the class.
    pub priority: i32,
}

/// A conversation's answer in the making.
pub struct Reading {
    reader: Reader,
    /// What has been read and not taken.
    events: Vec<Event>,
}

impl Reading {
    /// Takes a token and the text that it released; the events that follow.
    pub fn push(&mut self, facts: &Facts, id: u32, text: &str) -> Result<Vec<Event>, Failure> {
        self.reader.push(facts.tokenizer()?, id, &mut self.events);
        self.reader.text(text, &mut self.events);
        Ok(std::mem::take(&mut self.events))
    }

    /// Ends the answer; the events that are left.
    pub fn finish(&mut self, is_complete: bool) -> Vec<Event> {
        self.reader.finish(is_complete, &mut self.events);
        std::mem::take(&mut self.events)
    }
}

/// The request that continues `prompt`.
///
/// # Errors
/// When a parameter is wrong.
pub fn request(facts: &Facts, prompt: Vec<u32>, params: &Params, place: Place) -> Result<Request, Failure> {
    let form = form(params)?;
    let request = base(facts, prompt, params, place)?;
    let ends = if params.ignore_eos { Vec::new() } else { facts.end_tokens.clone() };
    let rule = match form {
        Some(Given::JsonObject) => Some(Rule::JsonObject),
        Some(Given::Form(form)) => Some(form.into()),
        None => None,
    };
    let constraint = rule.map(|rule| facts.constraint(&rule)).transpose()?;
    Ok(Request { constraint, stop_tokens: [ends, request.stop_tokens].concat(), ..request })
}

/// The request that answers a conversation, which is JSON, and what reads the answer.
///
/// # Errors
/// When a parameter is wrong, or the model's format refuses the conversation.
pub fn answer(
    facts: &Facts,
    conversation: &str,
    params: &Params,
    place: Place,
) -> Result<(Request, Reading), Failure> {
    let conversation = conversation_of(conversation)?;
    let (tokenizer, format) = (facts.tokenizer()?, facts.format()?);
    let prompt = format.prompt(tokenizer, &conversation, &BTreeMap::new())?;
    let given = form(params)?;
    let request = base(facts, prompt, params, place)?;
    let rule = match (format, given) {
        (Format::Harmony, Some(Given::JsonObject)) => {
            let what = "a JSON object without a schema cannot be asked of this model's format: give a schema";
            return Err(Failure::Unsupported(what.to_owned()));
        }
        (Format::Harmony, given) => {
            let turn = Turn::of(&conversation, ToolChoice::Auto);
            let form = given.and_then(Given::form);
            Some(Rule::Harmony(Turn { answer: form.or(turn.answer.clone()), ..turn }))
        }
        (_, Some(Given::JsonObject)) => Some(Rule::JsonObject),
        (_, Some(Given::Form(form))) => Some(form.into()),
        (_, None) => None,
    };
    let constraint = rule.map(|rule| facts.constraint(&rule)).transpose()?;
    let mut events = Vec::new();
    let reader = format.reader(tokenizer, &conversation, &mut events)?;
    let stop = [format.stop_strings(), request.stop].concat();
    let ends = format.stop_tokens(tokenizer, &facts.end_tokens);
    let stop_tokens = [ends, request.stop_tokens].concat();
    let request = Request { constraint, stop, stop_tokens, ..request };
    Ok((request, Reading { reader, events }))
}

/// Ids of the prompt that a conversation, which is JSON, makes.
///
/// # Errors
/// When the model's format refuses the conversation.
pub fn prompt_of(facts: &Facts, conversation: &str) -> Result<Vec<u32>, Failure> {
    let conversation = conversation_of(conversation)?;
    Ok(facts.format()?.prompt(facts.tokenizer()?, &conversation, &BTreeMap::new())?)
}

fn conversation_of(json: &str) -> Result<Conversation, Failure> {
    serde_json::from_str(json).map_err(|error| Failure::Input(format!("the conversation is none: {error}")))
}

/// What both kinds of requests have.
fn base(facts: &Facts, prompt: Vec<u32>, params: &Params, place: Place) -> Result<Request, Failure> {
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
        stop: params.stop.clone(),
        stop_tokens: params.stop_token_ids.clone(),
        shows_special: !params.skip_special_tokens,
        drafts: params.drafts,
        adapters: place.adapters,
        class: if place.is_interactive { Class::Interactive } else { Class::Batch },
        priority: place.priority,
        ..Request::greedy(prompt, 1)
    })
}

/// A form that was given.
enum Given {
    JsonObject,
    Form(Form),
}

impl Given {
    fn form(self) -> Option<Form> {
        match self {
            Given::JsonObject => None,
            Given::Form(form) => Some(form),
        }
    }
}

fn form(params: &Params) -> Result<Option<Given>, Failure> {
    let Some((kind, text)) = &params.rule else { return Ok(None) };
    Ok(Some(match kind.as_str() {
        "json" => {
            let schema: Result<Value, _> = serde_json::from_str(text);
            let wrong = |error| Failure::Input(format!("the JSON schema is none: {error}"));
            Given::Form(Form::JsonSchema(schema.map_err(wrong)?))
        }
        "json_object" => Given::JsonObject,
        "regex" => Given::Form(Form::Regex(text.clone())),
        "grammar" => Given::Form(Form::Lark(text.clone())),
        other => {
            return Err(Failure::Input(format!("a form of kind {other}, expected json, regex, grammar")));
        }
    }))
}

/// Name of a part of an answer.
pub fn part_name(part: &chat::Part) -> (&'static str, Option<&str>) {
    match part {
        chat::Part::Reasoning => ("reasoning", None),
        chat::Part::Preamble => ("preamble", None),
        chat::Part::Answer => ("answer", None),
        chat::Part::Call { name, .. } => ("call", Some(name)),
    }
}
