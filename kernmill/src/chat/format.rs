//! How a model wants its conversations: Harmony, a template, or neither.

use super::vocabulary::ChatVocabulary;
use crate::error::{Error, Result};
use kernmill_chat::calls::{CallFormat, TextParser};
use kernmill_chat::harmony::{self, Tokens};
use kernmill_chat::{Anomalies, Conversation, Event, Item, Part, Template, Vocabulary};
use kernmill_runtime::Tokenizer;
use std::collections::BTreeMap;
use std::fmt::Display;

/// What a turn of the user begins with, for models without a format.
const USER: &str = "User:";
/// What a turn of the model begins with, for models without a format.
const MODEL: &str = "Assistant:";

/// A model's format of conversations.
#[derive(Debug)]
pub enum Format {
    /// The format of GPT-OSS.
    Harmony,
    /// The template that the model brings along, and how the model then writes calls, if the template tells.
    Template(Box<Template>, Option<&'static CallFormat>),
    /// Turns as lines of text, for models that know nothing of conversations.
    Plain,
}

/// A parser of what a model generates.
pub enum Reader {
    /// Harmony.
    Harmony(Box<harmony::Parser>),
    /// Text with thoughts and calls in it.
    Text(Box<TextParser>),
    /// Text is text. Whether the answer has begun.
    Plain(bool),
}

impl Format {
    /// The format of a model with this tokenizer and, if its files have one, this template. `end_tokens` end
    /// its texts.
    ///
    /// # Errors
    /// When the template is none.
    pub fn of(tokenizer: &Tokenizer, template: Option<&str>, end_tokens: &[u32]) -> Result<Format> {
        let vocabulary = ChatVocabulary(tokenizer);
        if Tokens::of(&vocabulary).is_ok() {
            return Ok(Format::Harmony);
        }
        let Some(template) = template else { return Ok(Format::Plain) };
        // The token that the tokenizer puts at the start of a text, if it does.
        let start = tokenizer.encode("", true)?.first().and_then(|id| tokenizer.token(*id));
        let end = end_tokens.first().and_then(|id| tokenizer.token(*id));
        let calls = CallFormat::of_template(template);
        let template = Template::new(template, &vocabulary, start.as_deref(), end.as_deref());
        Ok(Format::Template(Box::new(template.map_err(wrong)?), calls))
    }

    /// Name of the format: `harmony`, `template` or `plain`.
    pub fn name(&self) -> &'static str {
        match self {
            Format::Harmony => "harmony",
            Format::Template(..) => "template",
            Format::Plain => "plain",
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
        tokenizer: &Tokenizer,
        conversation: &Conversation,
        known: &BTreeMap<usize, Vec<u32>>,
    ) -> Result<Vec<u32>> {
        let vocabulary = ChatVocabulary(tokenizer);
        match self {
            Format::Harmony => {
                let options = harmony::Options::default();
                Ok(harmony::prompt_with(&vocabulary, conversation, &options, known).map_err(wrong)?.ids)
            }
            Format::Template(template, _) => {
                Ok(template.prompt(&vocabulary, conversation).map_err(wrong)?.ids)
            }
            Format::Plain => plain(tokenizer, conversation, known),
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
        tokenizer: &Tokenizer,
        conversation: &Conversation,
        generated: &[u32],
    ) -> Result<Vec<(Part, String, Vec<u32>)>> {
        let vocabulary = ChatVocabulary(tokenizer);
        if !matches!(self, Format::Harmony) {
            return Ok(Vec::new());
        }
        let tokens = Tokens::of(&vocabulary).map_err(wrong)?;
        let mut begin = vec![tokens.start];
        begin.extend(vocabulary.encode_ordinary("assistant").map_err(wrong)?);
        let mut events = Vec::new();
        let mut reader = self.reader(tokenizer, conversation, &mut events)?;
        let (mut messages, mut open, mut ids) = (Vec::new(), None, begin.clone());
        for id in generated {
            // The first message begins in the prompt, the others with their own token.
            if *id == tokens.start {
                ids.clear();
            }
            ids.push(*id);
            reader.push(tokenizer, *id, &mut events);
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

    /// A parser of what follows the prompt of a conversation. What it begins with is appended to `events`.
    ///
    /// # Errors
    /// When the format refuses the conversation.
    pub fn reader(
        &self,
        tokenizer: &Tokenizer,
        conversation: &Conversation,
        events: &mut Vec<Event>,
    ) -> Result<Reader> {
        let vocabulary = ChatVocabulary(tokenizer);
        Ok(match self {
            Format::Harmony => {
                let parser = harmony::Parser::new(&vocabulary, conversation, events);
                Reader::Harmony(Box::new(parser.map_err(wrong)?))
            }
            Format::Template(template, calls) => {
                let is_thinking = template.text(conversation).map_err(wrong)?.trim_end().ends_with("<think>");
                let names = conversation.tools.iter().map(|tool| tool.name.clone()).collect();
                Reader::Text(Box::new(TextParser::new(&vocabulary, *calls, names, is_thinking)))
            }
            Format::Plain => Reader::Plain(false),
        })
    }

    /// Tokens that end an answer, where `end_tokens` end a text.
    pub fn stop_tokens(&self, tokenizer: &Tokenizer, end_tokens: &[u32]) -> Vec<u32> {
        match (self, Tokens::of(&ChatVocabulary(tokenizer))) {
            (Format::Harmony, Ok(tokens)) => tokens.stops(),
            _ => end_tokens.to_vec(),
        }
    }

    /// Strings that end an answer.
    pub fn stop_strings(&self) -> Vec<String> {
        match self {
            Format::Plain => vec![format!("\n{USER}")],
            _ => Vec::new(),
        }
    }
}

impl Reader {
    /// Takes one more token, and the text that it releases.
    pub fn push(&mut self, tokenizer: &Tokenizer, id: u32, events: &mut Vec<Event>) {
        match self {
            Reader::Harmony(parser) => parser.push(&ChatVocabulary(tokenizer), id, events),
            Reader::Text(parser) => parser.push(&ChatVocabulary(tokenizer), id, events),
            Reader::Plain(_) => {}
        }
    }

    /// Takes more text, which only counts where text is text.
    pub fn text(&mut self, text: &str, events: &mut Vec<Event>) {
        let Reader::Plain(has_begun) = self else { return };
        let text = if *has_begun { text } else { text.trim_start() };
        if text.is_empty() {
            return;
        }
        if !*has_begun {
            *has_begun = true;
            events.push(Event::Begin(Part::Answer));
        }
        events.push(Event::Delta(text.to_owned()));
    }

    /// Deviations from the format that were seen.
    pub fn anomalies(&self) -> Anomalies {
        match self {
            Reader::Harmony(parser) => parser.anomalies().clone(),
            Reader::Text(parser) => parser.anomalies().clone(),
            Reader::Plain(_) => Anomalies::default(),
        }
    }

    /// Ends the answer.
    pub fn finish(&mut self, is_complete: bool, events: &mut Vec<Event>) {
        match self {
            Reader::Harmony(parser) => parser.finish(events),
            Reader::Text(parser) => parser.finish(events),
            Reader::Plain(true) => events.push(Event::End { is_complete }),
            Reader::Plain(false) => {}
        }
    }
}

/// A conversation as lines of text. Each turn is encoded by itself, so that a longer conversation begins with
/// the ids of a shorter one.
fn plain(
    tokenizer: &Tokenizer,
    conversation: &Conversation,
    answers: &BTreeMap<usize, Vec<u32>>,
) -> Result<Vec<u32>> {
    let vocabulary = ChatVocabulary(tokenizer);
    let encode = |text: &str| vocabulary.encode_ordinary(text).map_err(wrong);
    let mut ids = tokenizer.encode("", true)?;
    for (at, item) in conversation.items.iter().enumerate() {
        match (item, answers.get(&at)) {
            (Item::Answer(_), Some(answer)) => ids.extend(answer),
            (Item::Answer(text), None) => ids.extend(encode(&format!(" {text}"))?),
            (Item::User { text, .. }, _) => {
                let text = format!("{USER} {text}\n{MODEL}");
                let break_ = if at == 0 { "" } else { "\n" };
                ids.extend(encode(&format!("{break_}{text}"))?);
            }
            (Item::Instructions(text), _) => ids.extend(encode(&format!("{text}\n"))?),
            _ => {}
        }
    }
    Ok(ids)
}

fn wrong(error: impl Display) -> Error {
    Error::BadInput(error.to_string())
}
