//! Messages to token ids.

use super::message::{Author, Channel, ContentType, HarmonyMessage, PromptOptions, messages_of_items};
use super::{HarmonyTokens, NoToken};
use crate::conversation::{Conversation, Item};
use crate::prompt::Prompt;
use kernmill_text::{Vocabulary, VocabularyError};
use std::collections::BTreeMap;

/// Why a conversation has no prompt.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HarmonyError {
    /// The vocabulary is another model's.
    #[error(transparent)]
    NoToken(#[from] NoToken),
    /// A name could be read as another part of a header.
    #[error(
        "{what} has the name `{}`, expected 1 to {NAME_BYTES} letters, digits and `_-.`",
        .name.chars().take(80).collect::<String>()
    )]
    Name {
        /// The kind of the name.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// A text cannot be encoded.
    #[error(transparent)]
    Vocabulary(#[from] VocabularyError),
}

/// Bytes of the longest name.
const NAME_BYTES: usize = 128;

/// Ids of a prompt: the conversation, and the beginning of the model's next message.
///
/// Contents are encoded as ordinary text: nothing that is written in them becomes a special token.
///
/// # Errors
/// When the vocabulary is another model's, a name is not valid, or a text cannot be encoded.
pub fn prompt(
    vocabulary: &dyn Vocabulary,
    conversation: &Conversation,
    options: &PromptOptions,
) -> Result<Prompt, HarmonyError> {
    prompt_with(vocabulary, conversation, options, &BTreeMap::new())
}

/// Ids of a prompt as [`prompt`] has them, where the ids of some messages are known: those that a model
/// generated, from the start token to the end of the message, by the place of their item. A message has no
/// other ids then, even if its text could be encoded in another way.
///
/// # Errors
/// As [`prompt`].
pub fn prompt_with(
    vocabulary: &dyn Vocabulary,
    conversation: &Conversation,
    options: &PromptOptions,
    known: &BTreeMap<usize, Vec<u32>>,
) -> Result<Prompt, HarmonyError> {
    let tokens = HarmonyTokens::of(vocabulary)?;
    check_names(conversation)?;
    let mut prompt = Prompt::default();
    for (item, message) in messages_of_items(conversation, options) {
        prompt.mark();
        match item.and_then(|item| known.get(&item)) {
            Some(ids) => prompt.ids.extend(ids),
            None => render(vocabulary, &tokens, &message, &mut prompt.ids)?,
        }
    }
    prompt.mark();
    prompt.ids.push(tokens.start);
    prompt.ids.extend(vocabulary.encode_ordinary("assistant")?);
    if conversation.begins_answer() {
        prompt.ids.push(tokens.channel);
        prompt.ids.extend(vocabulary.encode_ordinary(Channel::Final.name())?);
        prompt.ids.push(tokens.message);
    }
    prompt.mark();
    Ok(prompt)
}

/// Appends the ids of one message.
///
/// # Errors
/// When a text cannot be encoded.
pub fn render(
    vocabulary: &dyn Vocabulary,
    tokens: &HarmonyTokens,
    message: &HarmonyMessage,
    ids: &mut Vec<u32>,
) -> Result<(), VocabularyError> {
    let text = |text: &str, ids: &mut Vec<u32>| -> Result<(), VocabularyError> {
        ids.extend(vocabulary.encode_ordinary(text)?);
        Ok(())
    };
    ids.push(tokens.start);
    match &message.author {
        Author::System => text("system", ids)?,
        Author::Developer => text("developer", ids)?,
        Author::User(name) => {
            text("user", ids)?;
            if let Some(name) = name {
                text(&format!(":{name}"), ids)?;
            }
        }
        Author::Assistant => text("assistant", ids)?,
        Author::Tool(name) => text(name, ids)?,
    }
    let recipient = message.recipient.as_ref().map(|recipient| format!(" to={recipient}"));
    let (early, late) = if message.has_late_recipient { (None, recipient) } else { (recipient, None) };
    if let Some(recipient) = early {
        text(&recipient, ids)?;
    }
    if let Some(channel) = message.channel {
        ids.push(tokens.channel);
        text(channel.name(), ids)?;
    }
    if let Some(recipient) = late {
        text(&recipient, ids)?;
    }
    match &message.content_type {
        Some(ContentType::Plain(word)) => text(&format!(" {word}"), ids)?,
        Some(ContentType::Constrained(word)) => {
            text(" ", ids)?;
            ids.push(tokens.constrain);
            text(word, ids)?;
        }
        None => {}
    }
    ids.push(tokens.message);
    text(&message.text, ids)?;
    let is_call = message.author == Author::Assistant && message.recipient.is_some();
    ids.push(if is_call { tokens.call } else { tokens.end });
    Ok(())
}

/// Names stand in headers, where a space or a colon would begin something else.
fn check_names(conversation: &Conversation) -> Result<(), HarmonyError> {
    let is_legal = |name: &str| {
        (1..=NAME_BYTES).contains(&name.len())
            && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'))
    };
    let items = conversation.items.iter().filter_map(|item| match item {
        Item::User { name, .. } => name.as_ref().map(|name| ("a user", name)),
        Item::Call(call) => Some(("a called tool", &call.name)),
        Item::Output(output) => Some(("the tool of an output", &output.name)),
        _ => None,
    });
    let mut names = items.chain(conversation.tools.iter().map(|tool| ("a tool", &tool.name)));
    match names.find(|(_, name)| !is_legal(name)) {
        Some((what, name)) => Err(HarmonyError::Name { what, name: name.clone() }),
        None => Ok(()),
    }
}
