//! Messages of Ollama's API as a conversation. Calls have no ids there: a result belongs to the first call of
//! its function that has none yet.

use crate::chat::messages::{ARGUMENTS, CONTENT, MEANINGLESS, arguments, content, order_results, waiting};
use crate::chat::tools::NAME;
use crate::error::ApiError;
use crate::fields::Fields;
use crate::fields::shape::{Shape, field, inner, list, name, object, text};
use crate::limits;
use kernmill_chat::{Call, Conversation, Item, Output};
use serde_json::Value;

/// A message.
pub const MESSAGE: Shape = object(&[
    field("role", Shape::Words("system, user, assistant or tool", &["developer"])),
    field("content", CONTENT),
    text("thinking"),
    field("images", IMAGES).about("Is not served"),
    list("tool_calls", &CALL, limits::TOOLS),
    text("tool_name").about("The function that a tool's message has the result of"),
    text("name"),
    text("tool_call_id"),
])
.named("OllamaMessage", &["role"]);

/// A list that is served only where it is empty.
pub const IMAGES: Shape = Shape::List(&Shape::Anything, 0, 0);

const CALL: Shape =
    object(&[text("id"), inner("function", &["name"], &[name(NAME), field("arguments", ARGUMENTS)])])
        .needs(&["function"]);

/// Appends the messages of `body` to a conversation. Whether the last one is the model's, which its answer
/// goes on in.
///
/// # Errors
/// When a message is wrong.
pub fn read(
    body: &mut Fields,
    messages: Vec<Value>,
    conversation: &mut Conversation,
) -> Result<bool, ApiError> {
    let mut last = None;
    for (at, message) in messages.into_iter().enumerate() {
        let mut message = body.within(&format!("messages[{at}]"), message)?;
        let role = message.needed_text("role")?;
        no_images(&mut message)?;
        match role.as_str() {
            "system" | "developer" => {
                let text = content(&mut message)?.ok_or_else(|| message.missing("content"))?;
                conversation.items.push(Item::Instructions(text));
            }
            "user" => {
                let text = content(&mut message)?.ok_or_else(|| message.missing("content"))?;
                conversation.items.push(Item::User { name: None, text });
            }
            "assistant" => assistant(&mut message, conversation)?,
            "tool" => output(&mut message, conversation)?,
            _ => return Err(message.unlisted("role", &role)),
        }
        message.pass_over(MEANINGLESS);
        last = Some((role, message.name("role")));
    }
    order_results(&mut conversation.items);
    match (last, conversation.items.last()) {
        (Some((role, _)), Some(Item::Answer(_))) if role == "assistant" => Ok(true),
        (Some((role, name)), _) if role == "assistant" => {
            let message = format!(
                "`{name}` is \"assistant\" in the last message, which has no text to go on in, expected another"
            );
            Err(ApiError::field(name, message))
        }
        _ => Ok(false),
    }
}

/// Refuses images, which no model here reads.
///
/// # Errors
/// When there is one, or something that is no list.
pub fn no_images(fields: &mut Fields) -> Result<(), ApiError> {
    match fields.take("images") {
        None => Ok(()),
        Some(Value::Array(images)) if images.is_empty() => Ok(()),
        Some(_) => {
            let name = fields.name("images");
            let message = format!("`{name}` is given, expected none: this model reads text only");
            Err(ApiError::field(name, message))
        }
    }
}

fn assistant(message: &mut Fields, conversation: &mut Conversation) -> Result<(), ApiError> {
    let thinking = message.text("thinking")?;
    let text = content(message)?.unwrap_or_default();
    let calls = message.list("tool_calls")?.unwrap_or_default();
    if let Some(thinking) = thinking.filter(|text| !text.is_empty()) {
        conversation.items.push(Item::Reasoning(thinking));
    }
    if calls.is_empty() {
        conversation.items.push(Item::Answer(text));
    } else if !text.is_empty() {
        // Text before a call is for the user, and is not the answer yet.
        conversation.items.push(Item::Preamble(text));
    }
    for (at, call) in calls.into_iter().enumerate() {
        let mut call = message.within(&format!("tool_calls[{at}]"), call)?;
        call.pass_over(MEANINGLESS);
        let id = call.text("id")?.filter(|id| !id.is_empty());
        let id = id.unwrap_or_else(|| format!("call_{}", conversation.items.len()));
        let mut function = call.object("function")?.ok_or_else(|| call.missing("function"))?;
        let name = function.needed_name("name")?;
        let arguments = arguments(&mut function, "arguments")?;
        function.pass_over(MEANINGLESS);
        conversation.items.push(Item::Call(Call { id, name, arguments, is_builtin: false }));
    }
    Ok(())
}

/// A result of a tool.
fn output(message: &mut Fields, conversation: &mut Conversation) -> Result<(), ApiError> {
    let text = content(message)?.unwrap_or_default();
    let id = message.text("tool_call_id")?.filter(|id| !id.is_empty());
    let older = message.text("name")?;
    let name = message.text("tool_name")?.or(older).filter(|name| !name.is_empty());
    let Some(call) = waiting(conversation, id.as_deref(), name.as_deref()) else {
        let field = message.name(if id.is_some() { "tool_call_id" } else { "tool_name" });
        let message = match id.or(name) {
            Some(given) => format!("`{field}` is \"{given}\", and no call before it waits for its result"),
            None => format!("`{field}` is missing, and no call before it waits for a result"),
        };
        return Err(ApiError::field(field, message));
    };
    let (id, name) = (call.id.clone(), call.name.clone());
    conversation.items.push(Item::Output(Output { id, name, text, is_builtin: false }));
    Ok(())
}
