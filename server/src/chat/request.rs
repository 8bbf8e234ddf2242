//! A request to `/v1/chat/completions`.

use super::messages;
use super::tools::{self, Tools, tool_choice};
use super::turn::TurnRequest;
use crate::error::ApiError;
use crate::fields::Fields;
use crate::form::AnswerExtras;
use crate::limits;
use crate::sampling;
use crate::scope::{RequestScope, salt};
use kernmill_chat::{Conversation, Effort, Item};
use kernmill_serve::Class;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A request that was read.
pub struct ChatRequest {
    /// The turn that is asked of the model.
    pub ask: TurnRequest,
    /// Name of the model or adapter, as the answer repeats it.
    pub model: String,
    /// Number of answers.
    pub n: u64,
    /// Whether the answer comes in pieces.
    pub streams: bool,
    /// Whether figures come at the end of a stream.
    pub has_usage: bool,
    /// Whether functions came in the older field, so that a call is answered in the older form.
    pub is_older: bool,
    /// Names of fields that mean nothing here.
    pub unknown: Vec<String>,
}

impl ChatRequest {
    /// Reads the body of a request.
    ///
    /// # Errors
    /// When the body is no JSON, or a field is wrong.
    pub fn read(scope: &RequestScope<'_>, body: &[u8]) -> Result<ChatRequest, ApiError> {
        ChatRequest::take(scope, Fields::of_body(body)?)
    }

    /// Reads the fields of a request.
    ///
    /// # Errors
    /// When a field is wrong.
    pub fn take(scope: &RequestScope<'_>, mut fields: Fields) -> Result<ChatRequest, ApiError> {
        let (model, adapters) = scope.model(&mut fields)?;
        let messages =
            fields.list("messages", limits::MESSAGES)?.ok_or_else(|| fields.missing("messages"))?;
        if messages.is_empty() {
            return Err(fields.wrong("messages", &Value::Array(messages), "at least one message"));
        }
        let mut conversation = Conversation { date: scope.date, ..Conversation::default() };
        messages::read(&mut fields, messages, &mut conversation)?;
        let continues = continues(&mut fields, &conversation)?;
        let Tools { tools, customs, is_older } = tools::tools(&mut fields)?;
        conversation.tools = tools;
        conversation.effort = effort(&mut fields)?;
        let is_older_choice = is_older || fields.look("tool_choice").is_none();
        let field = if is_older_choice { "function_call" } else { "tool_choice" };
        let (choice, allowed) = tool_choice(&mut fields, field, &conversation)?;
        let AnswerExtras { mut wanted, drafts } = AnswerExtras::take(scope, &mut fields)?;
        wanted.take(&mut fields, "response_format")?;
        conversation.format = wanted.schema;
        let max_tokens = fields.whole("max_completion_tokens", 1..=u64::from(u32::MAX))?;
        let older = fields.whole("max_tokens", 1..=u64::from(u32::MAX))?;
        let logprobs = fields.flag("logprobs")?.unwrap_or(false);
        let top = fields.whole("top_logprobs", 0..=limits::TOP_LOGPROBS)?;
        if top.is_some() && !logprobs {
            return Err(ApiError::field("top_logprobs", "`top_logprobs` needs `logprobs` to be true"));
        }
        let streams = fields.flag("stream")?.unwrap_or(false);
        let has_usage = has_usage(&mut fields)?;
        let ask = TurnRequest {
            known: BTreeMap::new(),
            customs,
            choice,
            allowed,
            one_call: is_older || fields.flag("parallel_tool_calls")? == Some(false),
            continues,
            form: wanted.text,
            form_field: wanted.field,
            drafts,
            prediction: prediction(&mut fields)?,
            max_tokens: max_tokens.or(older).map(|tokens| tokens as u32).or(scope.max_tokens),
            param: "messages",
            sampler: sampling::sampler(&mut fields, scope.facts.vocab)?,
            stop: sampling::stops(&mut fields)?,
            stop_tokens: sampling::stop_tokens(&mut fields, scope.facts.vocab)?,
            logprobs: logprobs.then(|| top.unwrap_or(0) as u32),
            adapters,
            tenant: scope.tenant,
            salt: salt(&mut fields)?,
            class: class(&mut fields)?,
            within: scope.within,
            conversation,
        };
        let n = fields.whole("n", 1..=limits::ANSWERS)?.unwrap_or(1);
        refuse(&mut fields)?;
        fields.pass_over(&PASSED_OVER);
        Ok(ChatRequest { ask, model, n, streams, has_usage, is_older, unknown: fields.rest() })
    }
}

/// Fields of OpenAI's API that are taken and change nothing.
pub const PASSED_OVER: [&str; 6] =
    ["user", "metadata", "store", "prompt_cache_key", "prompt_cache_retention", "safety_identifier"];

/// Whether the answer goes on in the last message, which is the model's: vLLM's fields.
fn continues(fields: &mut Fields, conversation: &Conversation) -> Result<bool, ApiError> {
    let field = "continue_final_message";
    let continues = fields.flag(field)?.unwrap_or(false);
    match (continues, fields.flag("add_generation_prompt")?) {
        (true, Some(true)) => {
            let message =
                "`continue_final_message` and `add_generation_prompt` are true, expected one of them";
            Err(ApiError::field(field, message))
        }
        (false, Some(false)) => {
            let message = "`add_generation_prompt` is false, which needs `continue_final_message` to be true";
            Err(ApiError::field("add_generation_prompt", message))
        }
        (true, _) if !matches!(conversation.items.last(), Some(Item::Answer(_))) => {
            let expected = "false, since the last message is not the model's";
            Err(fields.wrong(field, &json!(true), expected))
        }
        _ => Ok(continues),
    }
}

/// Refuses fields that would change the answer, and that nothing is done about.
fn refuse(fields: &mut Fields) -> Result<(), ApiError> {
    sampling::refuse(fields)?;
    let is_text =
        |value: &Value| value.as_array().is_some_and(|kinds| kinds.iter().all(|kind| kind == "text"));
    fields.refuse("modalities", is_text, "this model answers with text")?;
    let is_false = |value: &Value| *value == json!(false);
    fields.refuse("ignore_eos", is_false, "/v1/completions has it")?;
    fields.refuse("echo", is_false, "/v1/completions has it")?;
    fields.refuse("chat_template", |_| false, "the model has its own")?;
    let is_empty = |value: &Value| value.as_array().is_some_and(Vec::is_empty);
    fields.refuse("documents", is_empty, "write them into a message")
}

/// Whether figures come at the end of a stream, by `stream_options`.
///
/// # Errors
/// When a field is wrong.
pub fn has_usage(fields: &mut Fields) -> Result<bool, ApiError> {
    let Some(mut options) = fields.object("stream_options")? else { return Ok(false) };
    // Noise for the lengths of encrypted packets, which clients throw away.
    options.pass_over(&["include_obfuscation"]);
    Ok(options.flag("include_usage")?.unwrap_or(false))
}

/// Text that much of the answer is likely to repeat, such as a file that is to be edited.
fn prediction(fields: &mut Fields) -> Result<Option<String>, ApiError> {
    let Some(mut prediction) = fields.object("prediction")? else { return Ok(None) };
    match prediction.text("type")?.as_deref() {
        Some("content") => {}
        Some(other) => return Err(prediction.wrong("type", &json!(other), "\"content\"")),
        None => return Err(prediction.missing("type")),
    }
    let expected = "a string or a list of text parts";
    let content = prediction.take("content").ok_or_else(|| prediction.missing("content"))?;
    let text = match &content {
        Value::String(text) => Some(text.clone()),
        Value::Array(parts) => parts.iter().map(|part| part["text"].as_str()).collect(),
        _ => None,
    };
    text.map(Some).ok_or_else(|| prediction.wrong("content", &content, expected))
}

/// How long the model is to reason, by any of the names that clients give it.
fn effort(fields: &mut Fields) -> Result<Effort, ApiError> {
    let mut given = fields.take("reasoning_effort").map(|value| ("reasoning_effort".to_owned(), value));
    if let Some(mut reasoning) = fields.object("reasoning")? {
        let value = reasoning.take("effort").map(|value| (reasoning.name("effort"), value));
        given = given.or(value);
    }
    if let Some(mut template) = fields.object("chat_template_kwargs")? {
        let value = template.take("reasoning_effort").map(|value| (template.name("reasoning_effort"), value));
        given = given.or(value);
        if template.take("enable_thinking") == Some(Value::Bool(false)) {
            given = given.or(Some((template.name("enable_thinking"), json!("none"))));
        }
        if let Some(other) = template.rest().first() {
            let message =
                format!("`{other}` is not known here, expected reasoning_effort or enable_thinking");
            return Err(ApiError::field(other, message));
        }
    }
    let Some((name, value)) = given else { return Ok(Effort::default()) };
    value.as_str().and_then(Effort::named).ok_or_else(|| {
        let message = format!("`{name}` is {value}, expected none, minimal, low, medium, high, xhigh or max");
        ApiError::field(name, message)
    })
}

/// The kind of work.
///
/// # Errors
/// When the field is no string.
pub fn class(fields: &mut Fields) -> Result<Class, ApiError> {
    Ok(match fields.text("service_tier")?.as_deref() {
        Some("flex" | "batch") => Class::Batch,
        _ => Class::Interactive,
    })
}
