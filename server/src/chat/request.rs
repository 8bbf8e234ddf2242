//! A request to `/v1/chat/completions`.

use super::messages;
use super::turn::Ask;
use crate::error::ApiError;
use crate::fields::Fields;
use crate::limits;
use crate::sampling;
use crate::scope::{Scope, salt};
use kernmill::chat::{Conversation, Effort, ResponseFormat, ToolChoice};
use kernmill::constrain::Rule;
use kernmill::serve::Class;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A request that was read.
pub struct ChatRequest {
    /// What is asked of the model.
    pub ask: Ask,
    /// Name of the model or adapter, as the answer repeats it.
    pub model: String,
    /// Number of answers.
    pub n: u64,
    /// Whether the answer comes in pieces.
    pub streams: bool,
    /// Whether figures come at the end of a stream.
    pub has_usage: bool,
    /// Names of fields that mean nothing here.
    pub unknown: Vec<String>,
}

impl ChatRequest {
    /// Reads the body of a request.
    ///
    /// # Errors
    /// When the body is no JSON, or a field is wrong.
    pub fn read(scope: &Scope<'_>, body: &[u8]) -> Result<ChatRequest, ApiError> {
        ChatRequest::take(scope, Fields::of_body(body)?)
    }

    /// Reads the fields of a request.
    ///
    /// # Errors
    /// When a field is wrong.
    pub fn take(scope: &Scope<'_>, mut fields: Fields) -> Result<ChatRequest, ApiError> {
        let (model, adapters) = scope.model(&mut fields)?;
        let messages =
            fields.list("messages", limits::MESSAGES)?.ok_or_else(|| fields.missing("messages"))?;
        if messages.is_empty() {
            return Err(fields.wrong("messages", &Value::Array(messages), "at least one message"));
        }
        let mut conversation = Conversation { date: scope.date, ..Conversation::default() };
        messages::read(messages, &mut conversation)?;
        conversation.tools = messages::tools(&mut fields)?;
        conversation.effort = effort(&mut fields)?;
        let choice = tool_choice(&mut fields, &conversation)?;
        response_format(&mut fields, &mut conversation)?;
        let Own { form, drafts } = Own::take(scope, &mut fields)?;
        check_form(&form, &conversation, "response_format")?;
        let max_tokens = fields.whole("max_completion_tokens", 1..=u64::from(u32::MAX))?;
        let older = fields.whole("max_tokens", 1..=u64::from(u32::MAX))?;
        let logprobs = fields.flag("logprobs")?.unwrap_or(false);
        let top = fields.whole("top_logprobs", 0..=limits::TOP_LOGPROBS)?;
        if top.is_some() && !logprobs {
            return Err(ApiError::field("top_logprobs", "`top_logprobs` needs `logprobs` to be true"));
        }
        let streams = fields.flag("stream")?.unwrap_or(false);
        let mut options = fields.object("stream_options")?;
        let has_usage = match &mut options {
            Some(options) => options.flag("include_usage")?.unwrap_or(false),
            None => false,
        };
        let ask = Ask {
            known: BTreeMap::new(),
            choice,
            form,
            drafts,
            prediction: prediction(&mut fields)?,
            max_tokens: max_tokens.or(older).map(|tokens| tokens as u32),
            param: "messages",
            sampler: sampling::sampler(&mut fields, scope.facts.vocab)?,
            stop: sampling::stops(&mut fields)?,
            logprobs: logprobs.then(|| top.unwrap_or(0) as u32),
            adapters,
            tenant: scope.tenant,
            salt: salt(&mut fields)?,
            class: class(&mut fields)?,
            within: scope.within,
            conversation,
        };
        let n = fields.whole("n", 1..=limits::ANSWERS)?.unwrap_or(1);
        fields.pass_over(&PASSED_OVER);
        Ok(ChatRequest { ask, model, n, streams, has_usage, unknown: fields.rest() })
    }
}

/// Fields of OpenAI's API that are taken and change nothing.
pub const PASSED_OVER: [&str; 13] = [
    "user",
    "metadata",
    "store",
    "verbosity",
    "parallel_tool_calls",
    "prompt_cache_key",
    "prompt_cache_retention",
    "safety_identifier",
    "modalities",
    "web_search_options",
    "function_call",
    "functions",
    "audio",
];

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

/// Whether tools are called.
///
/// # Errors
/// When the field is none of the choices, or names a function that is not declared.
pub fn tool_choice(fields: &mut Fields, conversation: &Conversation) -> Result<ToolChoice, ApiError> {
    let expected = "\"auto\", \"none\", \"required\" or a function";
    let choice = match fields.take("tool_choice") {
        None => return Ok(ToolChoice::Auto),
        Some(Value::String(choice)) => match choice.as_str() {
            "auto" => ToolChoice::Auto,
            "none" => ToolChoice::None,
            "required" | "any" => ToolChoice::Required,
            _ => return Err(fields.wrong("tool_choice", &Value::String(choice), expected)),
        },
        Some(Value::Object(choice)) => {
            let name =
                choice.get("function").and_then(|function| function.get("name")).or(choice.get("name"));
            match name.and_then(Value::as_str) {
                Some(name) => ToolChoice::Function(name.to_owned()),
                None => return Err(fields.wrong("tool_choice", &Value::Object(choice), expected)),
            }
        }
        Some(other) => return Err(fields.wrong("tool_choice", &other, expected)),
    };
    check_choice(&choice, conversation)?;
    Ok(choice)
}

/// Checks that the tools of a choice are declared.
///
/// # Errors
/// When they are not.
pub fn check_choice(choice: &ToolChoice, conversation: &Conversation) -> Result<(), ApiError> {
    let what = match choice {
        ToolChoice::Function(name) if !conversation.tools.iter().any(|tool| tool.name == *name) => {
            format!("`tool_choice` is the function `{name}`, which `tools` does not declare")
        }
        ToolChoice::Required if conversation.tools.is_empty() => {
            "`tool_choice` asks for a call, and `tools` declares no function".to_owned()
        }
        _ => return Ok(()),
    };
    Err(ApiError::field("tool_choice", what))
}

/// Fields that only this server has, in the object `kernmill`.
pub struct Own {
    /// A form of the text: `regex` or `lark`.
    pub form: Option<Rule>,
    /// Whether steps may check guesses of how the text goes on.
    pub drafts: bool,
}

impl Own {
    /// Reads the object `kernmill`.
    ///
    /// # Errors
    /// When a field is wrong, there are two forms, or the server does not permit them.
    pub fn take(scope: &Scope<'_>, fields: &mut Fields) -> Result<Own, ApiError> {
        let Some(mut own) = fields.object("kernmill")? else { return Ok(Own { form: None, drafts: true }) };
        let (regex, lark) = (own.text("regex")?, own.text("lark")?);
        let drafts = own.flag("drafts")?.unwrap_or(true);
        if let Some(unknown) = own.rest().first() {
            let message = format!("`{unknown}` is not known, expected regex, lark or drafts");
            return Err(ApiError::field(unknown, message));
        }
        let (name, form) = match (regex, lark) {
            (None, None) => return Ok(Own { form: None, drafts }),
            (Some(text), None) => ("regex", Rule::Regex(text)),
            (None, Some(text)) => ("lark", Rule::Lark(text)),
            (Some(_), Some(_)) => {
                let message = "`kernmill` has `regex` and `lark`, expected one of them";
                return Err(ApiError::field("kernmill", message));
            }
        };
        if !scope.grammars {
            let name = own.name(name);
            let message = format!(
                "`{name}` is not permitted: the option --allow-grammars permits regular expressions and grammars"
            );
            return Err(ApiError::field(name, message));
        }
        Ok(Own { form: Some(form), drafts })
    }
}

/// Checks that a text has one form at most. `other` is the field of the conversation's.
///
/// # Errors
/// When it has two.
pub fn check_form(form: &Option<Rule>, conversation: &Conversation, other: &str) -> Result<(), ApiError> {
    if form.is_none() || conversation.format.is_none() {
        return Ok(());
    }
    let message = format!("the text has two forms: give `kernmill` or `{other}`, and not both");
    Err(ApiError::field("kernmill", message))
}

/// Reads the schema that the answer shall have.
fn response_format(fields: &mut Fields, conversation: &mut Conversation) -> Result<(), ApiError> {
    let Some(mut format) = fields.object("response_format")? else { return Ok(()) };
    let kind = format.text("type")?.ok_or_else(|| format.missing("type"))?;
    match kind.as_str() {
        "text" => Ok(()),
        "json_object" => {
            let schema = json!({ "type": "object" });
            let name = "json_object".to_owned();
            conversation.format = Some(ResponseFormat { name, description: None, schema });
            Ok(())
        }
        "json_schema" => {
            let mut inner = format.object("json_schema")?.ok_or_else(|| format.missing("json_schema"))?;
            conversation.format = Some(schema_format(&mut inner)?);
            Ok(())
        }
        _ => Err(format.wrong("type", &Value::String(kind), "\"text\", \"json_object\" or \"json_schema\"")),
    }
}

/// A form by its schema: `name`, `description`, `schema`.
///
/// # Errors
/// When a field is wrong, or there is no schema.
pub fn schema_format(fields: &mut Fields) -> Result<ResponseFormat, ApiError> {
    let name = fields.text("name")?.unwrap_or_else(|| "answer".to_owned());
    let description = fields.text("description")?;
    let schema = fields.take("schema").ok_or_else(|| fields.missing("schema"))?;
    if !schema.is_object() {
        return Err(fields.wrong("schema", &schema, "a JSON schema"));
    }
    Ok(ResponseFormat { name, description, schema })
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
