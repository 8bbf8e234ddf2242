//! Messages of OpenAI's chat API as a conversation.

use crate::error::ApiError;
use crate::fields::Fields;
use crate::limits;
use kernmill::chat::{Call, Conversation, Item, Output, Tool};
use serde_json::Value;

/// Appends messages to a conversation.
///
/// # Errors
/// When a message is wrong.
pub fn read(messages: Vec<Value>, conversation: &mut Conversation) -> Result<(), ApiError> {
    for (at, message) in messages.into_iter().enumerate() {
        let mut fields = Fields::of(message, &format!("messages[{at}]."))?;
        let role = fields.text("role")?.ok_or_else(|| fields.missing("role"))?;
        match role.as_str() {
            "system" | "developer" => {
                let text = content(&mut fields)?.ok_or_else(|| fields.missing("content"))?;
                conversation.items.push(Item::Instructions(text));
            }
            "user" => {
                let name = fields.text("name")?;
                let text = content(&mut fields)?.ok_or_else(|| fields.missing("content"))?;
                conversation.items.push(Item::User { name, text });
            }
            "assistant" => assistant(&mut fields, conversation)?,
            "tool" => {
                let id = fields.text("tool_call_id")?.ok_or_else(|| fields.missing("tool_call_id"))?;
                let text = content(&mut fields)?.unwrap_or_default();
                let name = called(conversation, &id).ok_or_else(|| {
                    let param = fields.name("tool_call_id");
                    let message = format!("`{param}` is \"{id}\", which no tool call before it has");
                    ApiError::field(param, message)
                })?;
                conversation.items.push(Item::Output(Output { id, name, text, is_builtin: false }));
            }
            _ => {
                let role = Value::String(role);
                return Err(fields.wrong("role", &role, "system, developer, user, assistant or tool"));
            }
        }
    }
    Ok(())
}

/// Name of the function that a call was of.
pub fn called(conversation: &Conversation, id: &str) -> Option<String> {
    conversation.items.iter().rev().find_map(|item| match item {
        Item::Call(call) if call.id == id => Some(call.name.clone()),
        _ => None,
    })
}

fn assistant(fields: &mut Fields, conversation: &mut Conversation) -> Result<(), ApiError> {
    let mut reasoning = None;
    // Each half of the clients knows one of the first two names.
    for name in ["reasoning_content", "reasoning", "thinking"] {
        reasoning = reasoning.or(fields.text(name)?);
    }
    let text = content(fields)?;
    let refusal = fields.text("refusal")?;
    let calls = fields.list("tool_calls", limits::TOOLS)?.unwrap_or_default();
    if let Some(reasoning) = reasoning.filter(|text| !text.is_empty()) {
        conversation.items.push(Item::Reasoning(reasoning));
    }
    let text = text.or(refusal).filter(|text| !text.is_empty() || calls.is_empty());
    if let Some(text) = text {
        // What is said before a call is for the user, and is not the answer yet.
        conversation.items.push(if calls.is_empty() { Item::Answer(text) } else { Item::Preamble(text) });
    } else if calls.is_empty() {
        return Err(fields.missing("content"));
    }
    for (at, call) in calls.into_iter().enumerate() {
        let mut call = Fields::of(call, &format!("{}[{at}].", fields.name("tool_calls")))?;
        let id = call.text("id")?.ok_or_else(|| call.missing("id"))?;
        let mut function = call.object("function")?.ok_or_else(|| call.missing("function"))?;
        let name = function.text("name")?.ok_or_else(|| function.missing("name"))?;
        check_name(&function.name("name"), &name)?;
        let arguments = match function.take("arguments") {
            None => "{}".to_owned(),
            Some(Value::String(arguments)) => arguments,
            Some(arguments @ Value::Object(_)) => arguments.to_string(),
            Some(other) => return Err(function.wrong("arguments", &other, "a string of JSON")),
        };
        conversation.items.push(Item::Call(Call { id, name, arguments, is_builtin: false }));
    }
    Ok(())
}

/// A message's text: a string, or parts of text.
///
/// # Errors
/// When a part is an image, audio or a file, or something is no text.
pub fn content(fields: &mut Fields) -> Result<Option<String>, ApiError> {
    text_of(fields, "content")
}

/// Text of a field: a string, or parts of text.
///
/// # Errors
/// As [`content`].
pub fn text_of(fields: &mut Fields, field: &str) -> Result<Option<String>, ApiError> {
    let parts = match fields.take(field) {
        None => return Ok(None),
        Some(Value::String(text)) => return Ok(Some(text)),
        Some(Value::Array(parts)) => parts,
        Some(other) => return Err(fields.wrong(field, &other, "a string or a list of text parts")),
    };
    let mut text = String::new();
    for (at, part) in parts.into_iter().enumerate() {
        let mut part = Fields::of(part, &format!("{}[{at}].", fields.name(field)))?;
        let kind = part.text("type")?.unwrap_or_else(|| "text".to_owned());
        match kind.as_str() {
            "text" | "input_text" | "output_text" => {
                text.push_str(&part.text("text")?.ok_or_else(|| part.missing("text"))?);
            }
            "refusal" => text.push_str(&part.text("refusal")?.unwrap_or_default()),
            _ => {
                let param = part.name("type");
                let message =
                    format!("`{param}` is \"{kind}\", expected \"text\": this model reads text only");
                return Err(ApiError::field(param, message));
            }
        }
    }
    Ok(Some(text))
}

/// Functions of OpenAI's chat API that a model may call.
///
/// # Errors
/// When a tool is wrong.
pub fn tools(fields: &mut Fields) -> Result<Vec<Tool>, ApiError> {
    let list = fields.list("tools", limits::TOOLS)?.unwrap_or_default();
    let mut tools = Vec::new();
    for (at, tool) in list.into_iter().enumerate() {
        let mut tool = Fields::of(tool, &format!("{}[{at}].", fields.name("tools")))?;
        let kind = tool.text("type")?.unwrap_or_else(|| "function".to_owned());
        if kind != "function" {
            let kind = Value::String(kind);
            return Err(tool.wrong("type", &kind, "\"function\""));
        }
        let mut function = tool.object("function")?.ok_or_else(|| tool.missing("function"))?;
        tools.push(function_tool(&mut function)?);
    }
    check_names(&tools, &fields.name("tools"))?;
    Ok(tools)
}

/// A function: its name, what it does, and the schema of its arguments.
///
/// # Errors
/// When one of these is wrong.
pub fn function_tool(function: &mut Fields) -> Result<Tool, ApiError> {
    tool_with(function, "parameters")
}

/// A function whose schema is in the field `schema`.
///
/// # Errors
/// As [`function_tool`].
pub fn tool_with(function: &mut Fields, schema: &str) -> Result<Tool, ApiError> {
    let name = function.text("name")?.ok_or_else(|| function.missing("name"))?;
    check_name(&function.name("name"), &name)?;
    let description = function.text("description")?.unwrap_or_default();
    let parameters = match function.take(schema) {
        Some(Value::Object(schema)) if schema.is_empty() => None,
        Some(schema @ Value::Object(_)) => Some(schema),
        None => None,
        Some(other) => return Err(function.wrong(schema, &other, "a JSON schema of an object")),
    };
    let strict = function.flag("strict")?.unwrap_or(false);
    Ok(Tool { name, description, parameters, strict })
}

/// Checks that no two functions have the same name.
///
/// # Errors
/// When two have.
pub fn check_names(tools: &[Tool], param: &str) -> Result<(), ApiError> {
    let is_twice = |(at, tool): &(usize, &Tool)| tools[..*at].iter().any(|other| other.name == tool.name);
    match tools.iter().enumerate().find(is_twice) {
        None => Ok(()),
        Some((_, tool)) => {
            let message = format!("`{param}` has two functions with the name `{}`", tool.name);
            Err(ApiError::field(param, message))
        }
    }
}

/// A function's name is part of the prompt's structure, so that it has no other characters.
///
/// # Errors
/// When the name has others, or is too long.
pub fn check_name(param: &str, name: &str) -> Result<(), ApiError> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if (1..=64).contains(&name.len()) && name.chars().all(is_plain) {
        return Ok(());
    }
    let message = format!("`{param}` must have 1 to 64 letters, digits, `_`, `-` and `.`");
    Err(ApiError::field(param, message))
}
