//! Messages of OpenAI's chat API as a conversation.

use super::custom::wrapped;
use super::tools::NAME;
use crate::error::ApiError;
use crate::fields::Fields;
use crate::fields::shape::{Shape, field, inner, is, list, name, object, text};
use crate::limits;
use kernmill_chat::{Call, Conversation, Item, Output};
use serde_json::Value;

/// A part of a text.
pub const TEXT_PART: Shape = object(&[
    field("type", Shape::Words("text, input_text or output_text", &["refusal"])),
    text("text"),
    text("refusal"),
])
.named("TextPart", &["text"]);

/// A text, or parts of text.
pub const CONTENT: Shape = Shape::Any(&[Shape::Text, Shape::List(&TEXT_PART, 0, usize::MAX)]);

/// Arguments of a call.
pub const ARGUMENTS: Shape = Shape::Any(&[Shape::Text, object(&[])]);

const CALLED: Shape = object(&[name(NAME), field("arguments", ARGUMENTS)]).needs(&["name"]);

const CALL: Shape = Shape::Any(&[
    object(&[text("id"), is("type", "function"), field("function", CALLED)]).needs(&["id", "function"]),
    object(&[
        text("id"),
        is("type", "custom"),
        inner("custom", &["name", "input"], &[name(NAME), text("input")]),
    ])
    .needs(&["id", "custom"]),
]);

/// A message.
pub const MESSAGE: Shape = object(&[
    field("role", Shape::Words("system, developer, user, assistant or tool", &["function"])),
    field("content", CONTENT),
    text("name"),
    text("reasoning_content"),
    text("reasoning"),
    text("thinking"),
    text("refusal"),
    list("tool_calls", &CALL, limits::TOOLS),
    field("function_call", CALLED).about("The older form of tool_calls"),
    text("tool_call_id").about("Of a tool's message: the id of a call before it"),
])
.named("ChatMessage", &["role"]);

/// Members of messages, of their parts and of calls that clients send back as they got them. They mean
/// nothing to a model.
pub const MEANINGLESS: &[&str] = &["annotations", "cache_control", "index", "logprobs", "name", "type"];

/// Appends the messages of `body` to a conversation.
///
/// # Errors
/// When a message is wrong.
pub fn read(
    body: &mut Fields,
    messages: Vec<Value>,
    conversation: &mut Conversation,
) -> Result<(), ApiError> {
    for (at, message) in messages.into_iter().enumerate() {
        let mut fields = body.within(&format!("messages[{at}]"), message)?;
        let role = fields.needed_text("role")?;
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
                let id = fields.needed_text("tool_call_id")?;
                let text = content(&mut fields)?.unwrap_or_default();
                let name = called(conversation, &id).ok_or_else(|| {
                    let param = fields.name("tool_call_id");
                    let message = format!("`{param}` is \"{id}\", which no tool call before it has");
                    ApiError::field(param, message)
                })?;
                conversation.items.push(Item::Output(Output { id, name, text, is_builtin: false }));
            }
            // The older name of a tool's message, which has no id.
            "function" => {
                let name = fields.needed_text("name")?;
                let text = content(&mut fields)?.unwrap_or_default();
                let call = waiting(conversation, None, Some(&name)).ok_or_else(|| {
                    let param = fields.name("name");
                    let message = format!("`{param}` is \"{name}\", and no call of it waits for a result");
                    ApiError::field(param, message)
                })?;
                let (id, name) = (call.id.clone(), call.name.clone());
                conversation.items.push(Item::Output(Output { id, name, text, is_builtin: false }));
            }
            _ => return Err(fields.unlisted("role", &role)),
        }
        fields.pass_over(MEANINGLESS);
    }
    order_results(&mut conversation.items);
    Ok(())
}

/// The first call without a result that has this id and name, as far as these are given.
pub fn waiting<'a>(conversation: &'a Conversation, id: Option<&str>, name: Option<&str>) -> Option<&'a Call> {
    let items = &conversation.items;
    let has_result =
        |id: &str| items.iter().any(|item| matches!(item, Item::Output(output) if output.id == id));
    items.iter().find_map(|item| match item {
        Item::Call(call)
            if id.is_none_or(|id| call.id == id)
                && name.is_none_or(|name| call.name == name)
                && !has_result(&call.id) =>
        {
            Some(call)
        }
        _ => None,
    })
}

/// Puts results that follow each other into the order of their calls. A format without ids knows by the
/// order alone which call a result belongs to.
pub fn order_results(items: &mut [Item]) {
    let mut from = 0;
    while from < items.len() {
        let is_result = |item: &&Item| matches!(item, Item::Output(_));
        let count = items[from..].iter().take_while(is_result).count();
        if count > 1 {
            let (before, rest) = items.split_at_mut(from);
            let call = |item: &Item| match item {
                Item::Output(output) => {
                    before.iter().rposition(|item| matches!(item, Item::Call(call) if call.id == output.id))
                }
                _ => None,
            };
            rest[..count].sort_by_cached_key(call);
        }
        from += count.max(1);
    }
}

/// Arguments of a call as its API gives them: JSON of an object, as a text or itself. Models and clients
/// write no arguments in several ways.
///
/// # Errors
/// When they are something else.
pub fn arguments(fields: &mut Fields, field: &str) -> Result<String, ApiError> {
    match fields.take(field) {
        None => Ok("{}".to_owned()),
        Some(Value::String(text)) if matches!(text.trim(), "" | "null") => Ok("{}".to_owned()),
        Some(Value::String(text)) => Ok(text),
        Some(arguments @ Value::Object(_)) => Ok(arguments.to_string()),
        Some(other) => Err(fields.wrong(field, &other, "an object, or the text of one")),
    }
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
    let calls = fields.list("tool_calls")?.unwrap_or_default();
    let older = fields.object("function_call")?;
    let has_calls = !calls.is_empty() || older.is_some();
    if let Some(reasoning) = reasoning.filter(|text| !text.is_empty()) {
        conversation.items.push(Item::Reasoning(reasoning));
    }
    let text = text.or(refusal).filter(|text| !text.is_empty() || !has_calls);
    if let Some(text) = text {
        // Text before a call is for the user, and is not the answer yet.
        conversation.items.push(if has_calls { Item::Preamble(text) } else { Item::Answer(text) });
    } else if !has_calls {
        return Err(fields.missing("content"));
    }
    for (at, call) in calls.into_iter().enumerate() {
        let mut call = fields.within(&format!("tool_calls[{at}]"), call)?;
        call.pass_over(MEANINGLESS);
        let id = call.needed_text("id")?;
        if let Some(mut custom) = call.object("custom")? {
            let name = custom.needed_name("name")?;
            let input = custom.needed_text("input")?;
            let arguments = wrapped(&input);
            conversation.items.push(Item::Call(Call { id, name, arguments, is_builtin: false }));
            continue;
        }
        let mut function = call.object("function")?.ok_or_else(|| call.missing("function"))?;
        conversation.items.push(called_function(&mut function, id)?);
    }
    // A message has a call of either kind; one that has both repeats it.
    if let Some(mut function) = older.filter(|_| !matches!(conversation.items.last(), Some(Item::Call(_)))) {
        let id = format!("call_{}", conversation.items.len());
        conversation.items.push(called_function(&mut function, id)?);
    }
    Ok(())
}

/// A call of this id, of a function's name and arguments.
fn called_function(function: &mut Fields, id: String) -> Result<Item, ApiError> {
    let name = function.needed_name("name")?;
    let arguments = arguments(function, "arguments")?;
    Ok(Item::Call(Call { id, name, arguments, is_builtin: false }))
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
        let mut part = fields.within(&format!("{field}[{at}]"), part)?;
        let kind = part.text("type")?.unwrap_or_else(|| "text".to_owned());
        match kind.as_str() {
            "text" | "input_text" | "output_text" => {
                text.push_str(&part.needed_text("text")?);
            }
            "refusal" => text.push_str(&part.text("refusal")?.unwrap_or_default()),
            _ => {
                let param = part.name("type");
                let message =
                    format!("`{param}` is \"{kind}\", expected \"text\": this model reads text only");
                return Err(ApiError::field(param, message));
            }
        }
        part.pass_over(MEANINGLESS);
    }
    Ok(Some(text))
}
