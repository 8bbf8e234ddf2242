//! Messages of Harmony, and conversations as such.

use super::sections::{SystemText, developer_text};
use crate::conversation::{Call, Conversation, Item, Output};

/// The author of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Author {
    /// The host of the model.
    System,
    /// The operator.
    Developer,
    /// A user, perhaps with a name.
    User(Option<String>),
    /// The model.
    Assistant,
    /// A tool, by its name.
    Tool(String),
}

/// Where a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Channel {
    /// Reasoning, and calls of builtin tools.
    Analysis,
    /// Calls of functions, and what the user is told before.
    Commentary,
    /// The answer.
    Final,
}

impl Channel {
    /// Name of the channel in a header.
    pub fn name(self) -> &'static str {
        match self {
            Channel::Analysis => "analysis",
            Channel::Commentary => "commentary",
            Channel::Final => "final",
        }
    }
}

/// Form of a content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContentType {
    /// A word such as `json` or `code`.
    Plain(String),
    /// A word after the constrain token.
    Constrained(String),
}

/// One message with its header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HarmonyMessage {
    /// The author.
    pub author: Author,
    /// The recipient, if the message is not for everybody.
    pub recipient: Option<String>,
    /// Whether the recipient stands after the channel, as models write it, not after the author.
    pub has_late_recipient: bool,
    /// Where the message goes.
    pub channel: Option<Channel>,
    /// Form of the content.
    pub content_type: Option<ContentType>,
    /// Content.
    pub text: String,
}

impl HarmonyMessage {
    /// A message with a text and nothing else.
    pub fn new(author: Author, text: impl Into<String>) -> HarmonyMessage {
        let text = text.into();
        HarmonyMessage {
            author,
            recipient: None,
            has_late_recipient: false,
            channel: None,
            content_type: None,
            text,
        }
    }

    /// This message on a channel.
    #[must_use]
    pub fn on(self, channel: Channel) -> HarmonyMessage {
        HarmonyMessage { channel: Some(channel), ..self }
    }

    /// This message to a recipient.
    #[must_use]
    pub fn to(self, recipient: impl Into<String>) -> HarmonyMessage {
        HarmonyMessage { recipient: Some(recipient.into()), ..self }
    }
}

/// Choices about prompts that hosts may make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptOptions {
    /// The identity that the model is given.
    pub identity: String,
    /// Until when the model is told to know what happened.
    pub knowledge_cutoff: String,
    /// Whether past calls are written as models generate them. This keeps the prefix cache, but the reference
    /// template has another form.
    pub has_generated_calls: bool,
}

impl Default for PromptOptions {
    fn default() -> PromptOptions {
        PromptOptions {
            identity: "You are ChatGPT, a large language model trained by OpenAI.".to_owned(),
            knowledge_cutoff: "2024-06".to_owned(),
            has_generated_calls: false,
        }
    }
}

/// The messages of a conversation.
///
/// Reasoning is left out if an answer comes after it. Instructions at the beginning make one developer
/// message, with the tools and the form of the answer; later ones have a message each, at their place.
pub fn messages(conversation: &Conversation, options: &PromptOptions) -> Vec<HarmonyMessage> {
    messages_of_items(conversation, options).into_iter().map(|(_, message)| message).collect()
}

/// The messages of a conversation, each with the place of its item; those of the host have none.
pub(super) fn messages_of_items(
    conversation: &Conversation,
    options: &PromptOptions,
) -> Vec<(Option<usize>, HarmonyMessage)> {
    let system = SystemText {
        identity: &options.identity,
        knowledge_cutoff: &options.knowledge_cutoff,
        date: conversation.date,
        effort: conversation.effort,
        builtin: &conversation.builtin,
        has_functions: !conversation.tools.is_empty(),
    };
    let mut all = vec![(None, HarmonyMessage::new(Author::System, system.text()))];
    let items = &conversation.items;
    let first = items.iter().position(|item| !matches!(item, Item::Instructions(_))).unwrap_or(items.len());
    let (head, rest) = items.split_at(first);
    let instructions: Vec<&str> = head.iter().map(text).collect();
    let instructions = (!instructions.is_empty()).then(|| instructions.join("\n\n"));
    let developer =
        developer_text(instructions.as_deref(), &conversation.tools, conversation.format.as_ref());
    all.extend(developer.map(|text| (None, HarmonyMessage::new(Author::Developer, text))));
    let answered = rest.iter().rposition(|item| matches!(item, Item::Answer(_))).unwrap_or(0);
    for (n, item) in rest.iter().enumerate() {
        if n >= answered || !matches!(item, Item::Reasoning(_)) {
            all.push((Some(first + n), message(item, options)));
        }
    }
    all
}

/// Text of an item.
fn text(item: &Item) -> &str {
    match item {
        Item::Instructions(text) | Item::Reasoning(text) | Item::Preamble(text) | Item::Answer(text) => text,
        Item::User { text, .. } | Item::Output(Output { text, .. }) => text,
        Item::Call(Call { arguments, .. }) => arguments,
    }
}

fn message(item: &Item, options: &PromptOptions) -> HarmonyMessage {
    let assistant = || HarmonyMessage::new(Author::Assistant, text(item));
    match item {
        Item::Instructions(text) => {
            HarmonyMessage::new(Author::Developer, developer_text(Some(text), &[], None).unwrap_or_default())
        }
        Item::User { name, text } => HarmonyMessage::new(Author::User(name.clone()), text),
        Item::Reasoning(_) => assistant().on(Channel::Analysis),
        Item::Preamble(_) => assistant().on(Channel::Commentary),
        Item::Answer(_) => assistant().on(Channel::Final),
        Item::Call(call) => HarmonyMessage {
            has_late_recipient: options.has_generated_calls,
            content_type: Some(call_type(call, options)),
            ..assistant().on(channel(call.is_builtin)).to(qualified(&call.name, call.is_builtin))
        },
        Item::Output(Output { name, text, is_builtin, .. }) => {
            let author = Author::Tool(qualified(name, *is_builtin));
            HarmonyMessage::new(author, text).on(channel(*is_builtin)).to("assistant")
        }
    }
}

fn channel(is_builtin: bool) -> Channel {
    if is_builtin { Channel::Analysis } else { Channel::Commentary }
}

fn qualified(name: &str, is_builtin: bool) -> String {
    if is_builtin { name.to_owned() } else { format!("functions.{name}") }
}

fn call_type(call: &Call, options: &PromptOptions) -> ContentType {
    match (call.is_builtin, options.has_generated_calls) {
        (true, _) => ContentType::Plain("code".to_owned()),
        (false, false) => ContentType::Plain("json".to_owned()),
        (false, true) => ContentType::Constrained("json".to_owned()),
    }
}
