//! From what Python asks for to a request of the scheduler.

use crate::error::Failure;
use crate::model::ModelInfo;
use kernmill_chat::{AnswerPart, Conversation, Event, Format, Turn, TurnOptions};
use kernmill_constrain::Rule;
use kernmill_runtime::SamplerParams;
use kernmill_serve::{Answer, Finish, Request, Token};
use pyo3::conversion::FromPyObjectOwned;
use pyo3::prelude::*;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Tokens of a text that goes on until the context is full.
const NO_LIMIT: u32 = u32::MAX;

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

/// A request without its prompt, and the form that its text is held to, by a mapping that `SamplingParams` of
/// the Python side makes and has checked the types of. `ends` end the text, unless that is to go on.
///
/// # Errors
/// When a parameter is wrong.
pub fn read(params: &Bound<'_, PyAny>, ends: &[u32]) -> PyResult<(Request, Option<Rule>)> {
    let top_k: i64 = item(params, "top_k")?;
    let bias: Option<HashMap<u32, f32>> = item(params, "logit_bias")?;
    let sampler = SamplerParams {
        temperature: item(params, "temperature")?,
        top_k: usize::try_from(top_k).ok().filter(|k| *k > 0),
        top_p: item(params, "top_p")?,
        min_p: item(params, "min_p")?,
        repetition_penalty: item(params, "repetition_penalty")?,
        presence_penalty: item(params, "presence_penalty")?,
        frequency_penalty: item(params, "frequency_penalty")?,
        logit_bias: bias.into_iter().flatten().collect(),
        seed: item(params, "seed")?,
    };
    let of_prompt: Option<u32> = item(params, "prompt_logprobs")?;
    let ends: &[u32] = if item(params, "ignore_eos")? { &[] } else { ends };
    let most: Option<u32> = item(params, "max_tokens")?;
    let request = Request {
        sampler,
        logprobs: item::<Option<u32>>(params, "logprobs")?.max(of_prompt),
        scores_prompt: of_prompt.is_some(),
        stop: item(params, "stop")?,
        stop_tokens: [ends, &item::<Vec<u32>>(params, "stop_token_ids")?].concat(),
        shows_special: !item::<bool>(params, "skip_special_tokens")?,
        drafts: item(params, "drafts")?,
        ..Request::greedy(Vec::new(), most.unwrap_or(NO_LIMIT))
    };
    let rule: Option<(String, String)> = item(params, "rule")?;
    Ok((request, rule.map(|(kind, text)| form(&kind, text)).transpose()?))
}

/// The value that a mapping has under a name.
fn item<'py, T: FromPyObjectOwned<'py>>(params: &Bound<'py, PyAny>, name: &str) -> PyResult<T> {
    params.get_item(name)?.extract().map_err(Into::into)
}

/// The request that continues `prompt`, whose text may be held to a form.
///
/// # Errors
/// When a parameter is wrong.
pub fn request(
    facts: &ModelInfo,
    prompt: Vec<u32>,
    request: Request,
    rule: Option<Rule>,
) -> Result<Request, Failure> {
    let request = with_prompt(facts, prompt, request)?;
    Ok(Request { constraint: rule.map(|rule| facts.constraint(&rule)).transpose()?, ..request })
}

/// The request that answers a conversation, which is JSON, and what reads the answer.
///
/// # Errors
/// When a parameter is wrong, or the model's format refuses the conversation.
pub fn answer(
    facts: &ModelInfo,
    conversation: &str,
    request: Request,
    form: Option<Rule>,
) -> Result<(Request, Turn), Failure> {
    let conversation = conversation_of(conversation)?;
    let (tokenizer, format) = (facts.tokenizer()?, facts.format()?);
    if matches!((format, &form), (Format::Harmony, Some(Rule::JsonObject))) {
        let what = "a JSON object without a schema cannot be asked of this model's format: give a schema";
        return Err(Failure::Unsupported(what.to_owned()));
    }
    // Where a stop string ends an answer, the turn sees.
    let options = TurnOptions { form, stop: request.stop, ..TurnOptions::default() };
    let (known, ends) = (BTreeMap::new(), &facts.end_tokens);
    let turn = Turn::new(tokenizer, format, &conversation, &known, options, ends).map_err(Failure::input)?;
    let constraint = match turn.rule {
        Some(_) => turn.constraint(facts.lexicon()?, &conversation.tools).map_err(Failure::input)?,
        None => None,
    };
    let stop_tokens = [turn.stop_tokens.clone(), request.stop_tokens].concat();
    let request = Request { constraint, stop: Vec::new(), stop_tokens, ..request };
    Ok((with_prompt(facts, turn.prompt.clone(), request)?, turn))
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

/// The request behind a prompt.
fn with_prompt(facts: &ModelInfo, prompt: Vec<u32>, request: Request) -> Result<Request, Failure> {
    let room = (facts.context as usize).saturating_sub(prompt.len()) as u32;
    if room == 0 && !prompt.is_empty() {
        let (length, context) = (prompt.len(), facts.context);
        let what =
            format!("the prompt has {length} tokens, the context holds {context}: no token can follow");
        return Err(Failure::Input(what));
    }
    request.sampler.check(facts.vocab as usize).map_err(Failure::input)?;
    let max_tokens = if request.max_tokens == NO_LIMIT { room.max(1) } else { request.max_tokens };
    Ok(Request { prompt, max_tokens, ..request })
}

/// The form of that kind that a text is held to.
fn form(kind: &str, text: String) -> Result<Rule, Failure> {
    Ok(match kind {
        "json" => {
            let schema: Result<Value, _> = serde_json::from_str(&text);
            let wrong = |error| Failure::Input(format!("the JSON schema is none: {error}"));
            Rule::JsonSchema(schema.map_err(wrong)?)
        }
        "json_object" => Rule::JsonObject,
        "regex" => Rule::Regex(text),
        "grammar" => Rule::Lark(text),
        other => {
            return Err(Failure::Input(format!("a form of kind {other}, expected json, regex, grammar")));
        }
    })
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
