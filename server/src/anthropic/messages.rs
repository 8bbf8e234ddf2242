//! Messages of Anthropic's API as a conversation.

use super::tools::NAME;
use crate::chat::messages::{called, order_results};
use crate::error::ApiError;
use crate::fields::Fields;
use crate::fields::shape::{Shape, field, flag, free, name, object, text, words};
use kernmill_chat::{Call, Conversation, Item, Output};
use serde_json::Value;

/// A text, or blocks of text.
pub const SYSTEM: Shape = Shape::Any(&[
    Shape::Text,
    Shape::List(&object(&[text("type"), text("text")]).needs(&["text"]), 0, usize::MAX),
]);

/// A message.
pub const MESSAGE: Shape = object(&[
    words("role", "user, assistant or system"),
    field("content", Shape::Any(&[Shape::Text, Shape::List(&BLOCK, 0, usize::MAX)])),
])
.needs(&["role", "content"]);

const BLOCK: Shape = object(&[
    text("type"),
    text("text"),
    text("thinking"),
    text("id"),
    name(NAME),
    free("input"),
    text("tool_use_id"),
    field("content", SYSTEM),
    flag("is_error"),
])
.needs(&["type"]);

/// Members of blocks that clients send back as they got them, or that say what to cache. They mean nothing to
/// a model.
const MEANINGLESS: &[&str] = &["cache_control", "caller", "citations", "signature"];

/// The beginning of lines of a system text that clients change with every request. The prefix cache would
/// find nothing after them.
const VOLATILE: &str = "x-anthropic-";

/// Appends the system text and the messages to a conversation. Whether its last message is the model's, which
/// its answer goes on in.
///
/// # Errors
/// When one of them is wrong.
pub fn read(fields: &mut Fields, conversation: &mut Conversation) -> Result<bool, ApiError> {
    if let Some(system) = text_of(fields, "system")? {
        let is_kept = |line: &&str| !line.starts_with(VOLATILE);
        let system = system.split('\n').filter(is_kept).collect::<Vec<&str>>().join("\n");
        if !system.trim().is_empty() {
            conversation.items.push(Item::Instructions(system.trim_matches('\n').to_owned()));
        }
    }
    let list = fields.list("messages")?.ok_or_else(|| fields.missing("messages"))?;
    if list.is_empty() {
        return Err(fields.wrong("messages", &Value::Array(list), "at least one message"));
    }
    // By the API, neighbours of one role are one turn.
    let mut turns: Vec<(String, Vec<(String, Fields)>)> = Vec::new();
    let mut last = String::new();
    for (at, message) in list.into_iter().enumerate() {
        let mut message = fields.within(&format!("messages[{at}]"), message)?;
        let role = message.needed_text("role")?;
        if !["user", "assistant", "system"].contains(&role.as_str()) {
            return Err(message.unlisted("role", &role));
        }
        last = message.name("role");
        let mut blocks = blocks(&mut message)?;
        match turns.last_mut() {
            Some((before, turn)) if *before == role => turn.append(&mut blocks),
            _ => turns.push((role, blocks)),
        }
    }
    let is_own = turns.last().is_some_and(|(role, _)| role == "assistant");
    for (role, blocks) in turns {
        match role.as_str() {
            "user" => user(blocks, conversation)?,
            "assistant" => assistant(blocks, conversation)?,
            _ => conversation.items.push(Item::Instructions(instructions(blocks)?)),
        }
    }
    if is_own && !matches!(conversation.items.last(), Some(Item::Answer(_))) {
        let message = format!(
            "`{last}` is \"assistant\" in the last message, which has no text to go on in, expected \"user\""
        );
        return Err(ApiError::field(last, message));
    }
    order_results(&mut conversation.items);
    Ok(is_own)
}

/// Text of the operator's among the messages.
fn instructions(blocks: Vec<(String, Fields)>) -> Result<String, ApiError> {
    let text = |(kind, mut block): (String, Fields)| match kind.as_str() {
        "text" => block.text("text")?.ok_or_else(|| block.missing("text")),
        _ => Err(no_text(&block, &kind)),
    };
    Ok(blocks.into_iter().map(text).collect::<Result<Vec<String>, ApiError>>()?.join("\n\n"))
}

/// Text of a field: a string, or blocks of text, between which there is an empty line.
fn text_of(fields: &mut Fields, field: &str) -> Result<Option<String>, ApiError> {
    let blocks = match fields.take(field) {
        None => return Ok(None),
        Some(Value::String(text)) => return Ok(Some(text)),
        Some(Value::Array(blocks)) => blocks,
        Some(other) => return Err(fields.wrong(field, &other, "a string or a list of text blocks")),
    };
    let mut texts = Vec::new();
    for (at, block) in blocks.into_iter().enumerate() {
        let mut block = fields.within(&format!("{field}[{at}]"), block)?;
        block.pass_over(MEANINGLESS);
        match block.text("type")?.as_deref() {
            None | Some("text") => {
                texts.push(block.needed_text("text")?);
            }
            Some(kind) => return Err(no_text(&block, kind)),
        }
    }
    Ok(Some(texts.join("\n\n")))
}

/// An error about a block that this model cannot read.
fn no_text(block: &Fields, kind: &str) -> ApiError {
    let param = block.name("type");
    let message = format!("`{param}` is \"{kind}\", expected \"text\": this model reads text only");
    ApiError::field(param, message)
}

/// The blocks of a message; a text is one block.
fn blocks(message: &mut Fields) -> Result<Vec<(String, Fields)>, ApiError> {
    let expected = "a string or a list of blocks";
    let list = match message.take("content") {
        None => return Err(message.missing("content")),
        Some(text @ Value::String(_)) => vec![serde_json::json!({ "type": "text", "text": text })],
        Some(Value::Array(list)) => list,
        Some(other) => return Err(message.wrong("content", &other, expected)),
    };
    let named = |(at, block): (usize, Value)| {
        let mut block = message.within(&format!("content[{at}]"), block)?;
        let kind = block.needed_text("type")?;
        block.pass_over(MEANINGLESS);
        Ok((kind, block))
    };
    list.into_iter().enumerate().map(named).collect()
}

fn user(blocks: Vec<(String, Fields)>, conversation: &mut Conversation) -> Result<(), ApiError> {
    let mut texts: Vec<String> = Vec::new();
    let said = |texts: &mut Vec<String>, conversation: &mut Conversation| {
        if !texts.is_empty() {
            let text = std::mem::take(texts).join("\n\n");
            conversation.items.push(Item::User { name: None, text });
        }
    };
    for (kind, mut block) in blocks {
        match kind.as_str() {
            "text" => texts.push(block.needed_text("text")?),
            "tool_result" => {
                said(&mut texts, conversation);
                let id = block.needed_text("tool_use_id")?;
                let name = called(conversation, &id).ok_or_else(|| {
                    let param = block.name("tool_use_id");
                    let message = format!("`{param}` is \"{id}\", which no tool_use before it has");
                    ApiError::field(param, message)
                })?;
                let mut text = text_of(&mut block, "content")?.unwrap_or_default();
                if block.flag("is_error")? == Some(true) {
                    text.insert_str(0, "Error: ");
                }
                conversation.items.push(Item::Output(Output { id, name, text, is_builtin: false }));
            }
            "image" | "document" => return Err(no_text(&block, &kind)),
            _ => return Err(block.wrong("type", &Value::String(kind), "text or tool_result")),
        }
    }
    said(&mut texts, conversation);
    Ok(())
}

fn assistant(blocks: Vec<(String, Fields)>, conversation: &mut Conversation) -> Result<(), ApiError> {
    // Text before a call is for the user, and is not the answer yet.
    let last_call = blocks.iter().rposition(|(kind, _)| kind == "tool_use");
    for (at, (kind, mut block)) in blocks.into_iter().enumerate() {
        match kind.as_str() {
            "text" => {
                let text = block.needed_text("text")?;
                let is_before_call = last_call.is_some_and(|call| at < call);
                let item = if is_before_call { Item::Preamble(text) } else { Item::Answer(text) };
                conversation.items.push(item);
            }
            "thinking" => {
                let text = block.needed_text("thinking")?;
                if !text.is_empty() {
                    conversation.items.push(Item::Reasoning(text));
                }
            }
            // Another server's, which nobody else can read.
            "redacted_thinking" => {}
            "tool_use" => {
                let id = block.needed_text("id")?;
                let name = block.needed_name("name")?;
                let input = block.take("input").ok_or_else(|| block.missing("input"))?;
                if !input.is_object() {
                    return Err(block.wrong("input", &input, "an object"));
                }
                let arguments = input.to_string();
                conversation.items.push(Item::Call(Call { id, name, arguments, is_builtin: false }));
            }
            "image" | "document" => return Err(no_text(&block, &kind)),
            _ => {
                let expected = "text, thinking, redacted_thinking or tool_use";
                return Err(block.wrong("type", &Value::String(kind), expected));
            }
        }
    }
    Ok(())
}
