//! A request to `/v1/chat/completions`.

use super::messages::{self, CONTENT, MESSAGE};
use super::tools::{self, CHOICE, FUNCTION, TOOL, Tools, tool_choice};
use super::turn::TurnRequest;
use crate::asked::Asked;
use crate::error::ApiError;
use crate::fields::Fields;
use crate::fields::shape::{Shape, field, flag, inner, like, list, object, passed, refused, whole, words};
use crate::form::{AnswerExtras, FORMAT, FORMS};
use crate::limits;
use crate::sampling::{self, SAMPLING, STOPS, VLLM};
use crate::scope::{MODEL, RequestScope};
use kernmill_chat::{Conversation, Effort, Item, TurnOptions};
use kernmill_serve::Request;
use serde_json::{Value, json};

/// Lengths of reasoning.
pub const EFFORT: Shape = Shape::Words(EFFORTS, &[]);

const EFFORTS: &str = "none, minimal, low, medium, high, xhigh or max";

/// Whether figures come at the end of a stream. The other field is noise for the lengths of encrypted
/// packets, which clients throw away.
pub const STREAM: Shape = object(&[flag("include_usage"), passed("include_obfuscation")]);

/// Fields of a request.
pub const CHAT: Shape = object(&[
    field("messages", Shape::List(&MESSAGE, 1, limits::MESSAGES)),
    list("tools", &TOOL, limits::TOOLS),
    field("tool_choice", CHOICE),
    flag("parallel_tool_calls").about("Without them, a turn has one call at most"),
    list("functions", &FUNCTION, limits::TOOLS).about("The older name of tools"),
    field("function_call", CHOICE).about("The older name of tool_choice"),
    flag("continue_final_message").about("Goes on in the last message, which is the model's"),
    like("add_generation_prompt", || json!({ "enum": [true, false, null] }))
        .about("Not so with continue_final_message"),
    field("response_format", FORMAT),
    field("reasoning_effort", EFFORT),
    inner("reasoning", &[], &[field("effort", EFFORT)]),
    inner("chat_template_kwargs", &[], &[field("reasoning_effort", EFFORT), flag("enable_thinking")]),
    whole("max_completion_tokens", 1, limits::TOKENS),
    whole("max_tokens", 1, limits::TOKENS),
    whole("n", 1, limits::ANSWERS),
    flag("logprobs"),
    whole("top_logprobs", 0, limits::TOP_LOGPROBS).about("Needs logprobs"),
    flag("stream"),
    field("stream_options", STREAM),
    field("stop", STOPS),
    inner("prediction", &["type", "content"], &[words("type", "\"content\""), field("content", CONTENT)])
        .about("Text that much of the answer repeats"),
])
.named("ChatRequest", &["model", "messages"])
.with(&[&MODEL, &SAMPLING, &FORMS, &VLLM, &UNSERVED, &PASSED]);

const UNSERVED: Shape = object(&[
    refused("modalities", "[], [\"text\"]", "this model answers with text"),
    refused("ignore_eos", "false", "/v1/completions has it"),
    refused("echo", "false", "/v1/completions has it"),
    refused("chat_template", "", "the model has its own"),
    refused("documents", "[]", "write them into a message"),
]);

/// Fields of OpenAI's API that are taken and change nothing.
pub const PASSED: Shape = object(&[])
    .named("PassedFields", &[])
    .passing("user metadata store prompt_cache_key prompt_cache_retention safety_identifier");

/// The parts that the answer shows.
pub struct Shows {
    /// Number of answers.
    pub n: u64,
    /// Whether figures come at the end of a stream.
    pub has_usage: bool,
    /// Whether functions came in the older field, so that a call is answered in the older form.
    pub is_older: bool,
}

/// Reads the body of a request.
///
/// # Errors
/// When the body is no JSON, or a field is wrong.
pub fn read(scope: &RequestScope<'_>, body: &[u8]) -> Result<Asked<TurnRequest, Shows>, ApiError> {
    take(scope, Fields::of_body(&CHAT, body)?)
}

/// Reads the fields of a request.
///
/// # Errors
/// When a field is wrong.
pub fn take(scope: &RequestScope<'_>, mut fields: Fields) -> Result<Asked<TurnRequest, Shows>, ApiError> {
    let (model, adapters) = scope.model(&mut fields)?;
    let messages = fields.list("messages")?.ok_or_else(|| fields.missing("messages"))?;
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
    let max_tokens = fields.whole("max_completion_tokens")?;
    let older = fields.whole("max_tokens")?;
    let logprobs = fields.flag("logprobs")?.unwrap_or(false);
    let top = fields.whole("top_logprobs")?;
    if top.is_some() && !logprobs {
        return Err(ApiError::field("top_logprobs", "`top_logprobs` needs `logprobs` to be true"));
    }
    let streams = fields.flag("stream")?.unwrap_or(false);
    let has_usage = has_usage(&mut fields)?;
    let wishes = TurnOptions {
        choice,
        allowed,
        one_call: is_older || fields.flag("parallel_tool_calls")? == Some(false),
        continues,
        form: wanted.text,
        stop: sampling::stops(&mut fields)?,
    };
    let request = Request {
        stop_tokens: sampling::stop_tokens(&mut fields, scope.facts.vocab)?,
        logprobs: logprobs.then(|| top.unwrap_or(0) as u32),
        drafts,
        ..scope.request(&mut fields, adapters)?
    };
    let ask = TurnRequest {
        customs,
        wishes,
        form_field: wanted.field,
        prediction: prediction(&mut fields)?,
        max_tokens: max_tokens.or(older).map(|tokens| tokens as u32).or(scope.max_tokens),
        ..TurnRequest::new(conversation, "messages", request)
    };
    let n = fields.whole("n")?.unwrap_or(1);
    fields.refuse()?;
    let shows = Shows { n, has_usage, is_older };
    Ok(Asked { ask, shows, model, streams, unknown: fields.rest() })
}

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

/// Whether figures come at the end of a stream, by `stream_options`.
///
/// # Errors
/// When a field is wrong.
pub fn has_usage(fields: &mut Fields) -> Result<bool, ApiError> {
    let Some(mut options) = fields.object("stream_options")? else { return Ok(false) };
    Ok(options.flag("include_usage")?.unwrap_or(false))
}

/// Text that much of the answer is likely to repeat, such as a file that is to be edited.
fn prediction(fields: &mut Fields) -> Result<Option<String>, ApiError> {
    let Some(mut prediction) = fields.object("prediction")? else { return Ok(None) };
    let kind = prediction.needed_text("type")?;
    if kind != "content" {
        return Err(prediction.unlisted("type", &kind));
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
        let message = format!("`{name}` is {value}, expected {EFFORTS}");
        ApiError::field(name, message)
    })
}
