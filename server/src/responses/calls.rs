//! Calls of tools and their results among the items of a request.

use super::tools::NAME;
use crate::chat::custom::wrapped;
use crate::chat::messages;
use crate::chat::tools::spaced;
use crate::error::ApiError;
use crate::fields::{Fields, check_name};
use kernmill_chat::{Call, Conversation, Item, Output};

/// Appends a call of a function.
///
/// # Errors
/// When a field is wrong.
pub fn function(item: &mut Fields, conversation: &mut Conversation) -> Result<(), ApiError> {
    let (id, name) = head(item)?;
    let arguments = messages::arguments(item, "arguments")?;
    append(conversation, Call { id, name, arguments, is_builtin: false });
    Ok(())
}

/// Appends a call of a custom tool.
///
/// # Errors
/// When a field is wrong.
pub fn custom(item: &mut Fields, conversation: &mut Conversation) -> Result<(), ApiError> {
    let (id, name) = head(item)?;
    let input = item.needed_text("input")?;
    append(conversation, Call { id, name, arguments: wrapped(&input), is_builtin: false });
    Ok(())
}

/// The id of a call, and the name that the model is told of its tool.
fn head(item: &mut Fields) -> Result<(String, String), ApiError> {
    let id = item.needed_text("call_id")?;
    let name = item.needed_text("name")?;
    let name = spaced(item.text("namespace")?.as_deref(), &name);
    check_name(&item.name("name"), &name, NAME)?;
    Ok((id, name))
}

fn append(conversation: &mut Conversation, call: Call) {
    // Text before a call is for the user, and is not the answer yet.
    if let Some(last) = conversation.items.last_mut()
        && let Item::Answer(text) = last
    {
        *last = Item::Preamble(std::mem::take(text));
    }
    conversation.items.push(Item::Call(call));
}

/// Appends the result of a call.
///
/// # Errors
/// When a field is wrong, or no call before it has this id.
pub fn output(item: &mut Fields, conversation: &mut Conversation) -> Result<(), ApiError> {
    let id = item.needed_text("call_id")?;
    let text = messages::text_of(item, "output")?.ok_or_else(|| item.missing("output"))?;
    let name = messages::called(conversation, &id).ok_or_else(|| {
        let param = item.name("call_id");
        ApiError::field(&param, format!("`{param}` is \"{id}\", which no call before it has"))
    })?;
    conversation.items.push(Item::Output(Output { id, name, text, is_builtin: false }));
    Ok(())
}
