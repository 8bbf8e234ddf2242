//! How a model wants its conversations: Harmony, a template, or neither.

use crate::calls::{CallFormat, TextParser};
use crate::conversation::{Conversation, Item};
use crate::event::{Anomalies, AnswerPart, Event};
use crate::harmony::{self, HarmonyTokens};
use crate::template::Template;
use kernmill_text::{Vocabulary, VocabularyError};
use std::collections::BTreeMap;
use std::fmt::Display;

/// Beginning of a user's turn, for models without a format.
const USER: &str = "User:";
/// Beginning of a model's turn, for models without a format.
const MODEL: &str = "Assistant:";

/// A conversation that a format refuses. The message says why, in one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refused(pub String);

impl Refused {
    fn of(error: impl Display) -> Refused {
        Refused(error.to_string())
    }
}

/// A model's format of conversations.
#[derive(Debug)]
pub enum Format {
    /// The format of GPT-OSS.
    Harmony,
    /// The templates that the model brings along.
    Template(Box<Templates>),
    /// Turns as lines of text, for models that know nothing of conversations.
    Plain {
        /// Ids before the first turn.
        begin: Vec<u32>,
    },
    /// None: the model's template is of no use. The text says why, and what helps.
    Unusable(String),
}

/// The templates of a model: one for conversations without functions, and perhaps one for those with.
#[derive(Debug)]
pub struct Templates {
    /// The template of all conversations that no other one is for.
    pub default: Template,
    /// The template of conversations with functions that the model may call.
    pub tool_use: Option<Template>,
}

impl Templates {
    /// The template of a conversation.
    pub fn of(&self, conversation: &Conversation) -> &Template {
        let tool_use = self.tool_use.as_ref().filter(|_| !conversation.tools.is_empty());
        tool_use.unwrap_or(&self.default)
    }

    /// How the model writes calls, if the templates tell.
    pub fn calls(&self) -> Option<&'static CallFormat> {
        self.tool_use.as_ref().unwrap_or(&self.default).calls()
    }
}

impl Format {
    /// The format of a model: Harmony where the vocabulary has its tokens, else the templates of its files,
    /// else lines of text behind the ids `begin`.
    pub fn of(vocabulary: &dyn Vocabulary, templates: Option<Templates>, begin: Vec<u32>) -> Format {
        match templates {
            _ if HarmonyTokens::of(vocabulary).is_ok() => Format::Harmony,
            Some(templates) => Format::Template(Box::new(templates)),
            None => Format::Plain { begin },
        }
    }

    /// A sentence about what a user should know before conversations are trusted; `None` if there is nothing.
    pub fn note(&self) -> Option<String> {
        match self {
            Format::Harmony | Format::Template(_) => None,
            Format::Plain { .. } => Some(format!(
                "this model has neither Harmony nor a chat template: turns are lines with `{USER}` and `{MODEL}`"
            )),
            Format::Unusable(why) => Some(format!("conversations are refused: {why}")),
        }
    }

    /// Name of the format: `harmony`, `template`, `plain` or `unusable`.
    pub fn name(&self) -> &'static str {
        match self {
            Format::Harmony => "harmony",
            Format::Template(..) => "template",
            Format::Plain { .. } => "plain",
            Format::Unusable(_) => "unusable",
        }
    }

    /// Ids of a prompt: the conversation, and what comes before the model's answer. `known` are ids that the
    /// model generated, by the place of their item: of whole messages in Harmony ([`Format::messages`]), of
    /// answers where a conversation is plain text. A template has no place for them.
    ///
    /// # Errors
    /// When the format refuses the conversation.
    pub fn prompt(
        &self,
        vocabulary: &dyn Vocabulary,
        conversation: &Conversation,
        known: &BTreeMap<usize, Vec<u32>>,
    ) -> Result<Vec<u32>, Refused> {
        match self {
            Format::Harmony => {
                let options = harmony::PromptOptions::default();
                let prompt = harmony::prompt_with(vocabulary, conversation, &options, known);
                Ok(prompt.map_err(Refused::of)?.ids)
            }
            Format::Template(templates) => {
                let prompt = templates.of(conversation).prompt(vocabulary, conversation);
                Ok(prompt.map_err(Refused::of)?.ids)
            }
            Format::Plain { begin } => plain(vocabulary, begin, conversation, known).map_err(Refused::of),
            Format::Unusable(why) => Err(Refused(why.clone())),
        }
    }

    /// The messages in ids that a model generated behind the prompt of a conversation: what part each is, its
    /// text, and its ids as a later prompt has them. A message without an end is left out, and so is all
    /// that is no Harmony.
    ///
    /// # Errors
    /// When the format refuses the conversation.
    pub fn messages(
        &self,
        vocabulary: &dyn Vocabulary,
        conversation: &Conversation,
        generated: &[u32],
    ) -> Result<Vec<(AnswerPart, String, Vec<u32>)>, Refused> {
        if !matches!(self, Format::Harmony) {
            return Ok(Vec::new());
        }
        let tokens = HarmonyTokens::of(vocabulary).map_err(Refused::of)?;
        let mut begin = vec![tokens.start];
        begin.extend(vocabulary.encode_ordinary("assistant").map_err(Refused::of)?);
        let mut events = Vec::new();
        let mut reader =
            harmony::HarmonyParser::new(vocabulary, conversation, &mut events).map_err(Refused::of)?;
        let (mut messages, mut open, mut ids) = (Vec::new(), None, begin.clone());
        for id in generated {
            // The first message begins in the prompt, the others with their own token.
            if *id == tokens.start {
                ids.clear();
            }
            ids.push(*id);
            reader.push(vocabulary, *id, &mut events);
            for event in events.drain(..) {
                match event {
                    Event::Begin(part) => open = Some((part, String::new())),
                    Event::Delta(text) => open.iter_mut().for_each(|(_, whole)| whole.push_str(&text)),
                    Event::End { .. } => {
                        let ids = std::mem::take(&mut ids);
                        messages.extend(open.take().map(|(part, text)| (part, text, ids)));
                    }
                }
            }
        }
        Ok(messages)
    }

    /// Tokens that end an answer, where `end_tokens` end a text.
    pub fn stop_tokens(&self, vocabulary: &dyn Vocabulary, end_tokens: &[u32]) -> Vec<u32> {
        match (self, HarmonyTokens::of(vocabulary)) {
            (Format::Harmony, Ok(tokens)) => tokens.stops(),
            _ => end_tokens.to_vec(),
        }
    }

    /// A string that ends an answer whatever is asked for: the next turn of the user, in plain text.
    pub(crate) fn stop(&self) -> Option<String> {
        matches!(self, Format::Plain { .. }).then(|| format!("\n{USER}"))
    }
}

/// A parser of what a model generates.
#[derive(Clone, Debug)]
pub(crate) enum AnswerReader {
    /// Harmony.
    Harmony(Box<harmony::HarmonyParser>),
    /// Text with thoughts and calls in it.
    Text(Box<TextParser>),
    /// Text is text.
    Plain {
        /// Whether the answer has begun.
        has_begun: bool,
    },
}

impl AnswerReader {
    /// Takes one more token.
    pub(crate) fn push(&mut self, vocabulary: &dyn Vocabulary, id: u32, events: &mut Vec<Event>) {
        match self {
            AnswerReader::Harmony(parser) => parser.push(vocabulary, id, events),
            AnswerReader::Text(parser) => parser.push(vocabulary, id, events),
            AnswerReader::Plain { .. } => {}
        }
    }

    /// Takes more text, which only counts where text is text.
    pub(crate) fn text(&mut self, text: &str, events: &mut Vec<Event>) {
        let AnswerReader::Plain { has_begun } = self else { return };
        let text = if *has_begun { text } else { text.trim_start() };
        if text.is_empty() {
            return;
        }
        if !std::mem::replace(has_begun, true) {
            events.push(Event::Begin(AnswerPart::Answer));
        }
        events.push(Event::Delta(text.to_owned()));
    }

    /// Deviations from the format that were seen.
    pub(crate) fn anomalies(&self) -> Anomalies {
        match self {
            AnswerReader::Harmony(parser) => parser.anomalies().clone(),
            AnswerReader::Text(parser) => parser.anomalies().clone(),
            AnswerReader::Plain { .. } => Anomalies::default(),
        }
    }

    /// Ends the answer.
    pub(crate) fn finish(&mut self, is_complete: bool, events: &mut Vec<Event>) {
        match self {
            AnswerReader::Harmony(parser) => parser.finish(events),
            AnswerReader::Text(parser) => parser.finish(events),
            AnswerReader::Plain { has_begun: true } => events.push(Event::End { is_complete }),
            AnswerReader::Plain { has_begun: false } => {}
        }
    }
}

/// A conversation as lines of text. Each turn is encoded by itself, so that a longer conversation begins with
/// the ids of a shorter one.
fn plain(
    vocabulary: &dyn Vocabulary,
    begin: &[u32],
    conversation: &Conversation,
    answers: &BTreeMap<usize, Vec<u32>>,
) -> Result<Vec<u32>, VocabularyError> {
    let mut ids = begin.to_vec();
    for (at, item) in conversation.items.iter().enumerate() {
        match (item, answers.get(&at)) {
            (Item::Answer(_), Some(answer)) => ids.extend(answer),
            (Item::Answer(text), None) => ids.extend(vocabulary.encode_ordinary(&format!(" {text}"))?),
            (Item::User { text, .. }, _) => {
                let break_ = if at == 0 { "" } else { "\n" };
                ids.extend(vocabulary.encode_ordinary(&format!("{break_}{USER} {text}\n{MODEL}"))?);
            }
            (Item::Instructions(text), _) => ids.extend(vocabulary.encode_ordinary(&format!("{text}\n"))?),
            _ => {}
        }
    }
    Ok(ids)
}
