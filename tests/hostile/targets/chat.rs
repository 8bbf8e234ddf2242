//! Conversations, templates, and what models generate.

use kernmill_chat::calls::{ArgumentStyle, CallFormat, FORMATS, TextParser, ThoughtMarks};
use kernmill_chat::harmony::{HarmonyParser, PromptOptions, prompt};
use kernmill_chat::{
    AddedToken, AnswerPart, Conversation, Event, Template, Tool, Vocabulary, VocabularyError,
};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Texts of the tokens around a text, by the names that templates have for them.
const NAMED: [(&str, &str); 2] = [("bos_token", "<s>"), ("eos_token", "</s>")];

/// Ids of bytes, the tokens of Harmony and some others after them, and ids without text.
pub(super) struct Bytes;

const TOKENS: [&str; 13] = [
    "<|start|>",
    "<|message|>",
    "<|end|>",
    "<|channel|>",
    "<|constrain|>",
    "<|return|>",
    "<|call|>",
    "<|endoftext|>",
    "<|im_end|>",
    "[TOOL_CALLS]",
    "<tool_call>",
    "<think>",
    "</s>",
];

impl Vocabulary for Bytes {
    fn encode_ordinary(&self, text: &str) -> Result<Vec<u32>, VocabularyError> {
        Ok(text.bytes().map(u32::from).collect())
    }

    fn encode_marked(&self, text: &str) -> Result<Vec<u32>, VocabularyError> {
        let (mut ids, mut rest) = (Vec::new(), text.as_bytes());
        while let Some(first) = rest.first() {
            match TOKENS.iter().zip(256..).find(|(token, _)| rest.starts_with(token.as_bytes())) {
                Some((token, id)) => {
                    ids.push(id);
                    rest = &rest[token.len()..];
                }
                None => {
                    ids.push(u32::from(*first));
                    rest = &rest[1..];
                }
            }
        }
        Ok(ids)
    }

    fn added_tokens(&self) -> Vec<AddedToken> {
        let token = |(text, id): (&&str, u32)| AddedToken { text: (*text).to_owned(), id, is_special: true };
        TOKENS.iter().zip(256..).map(token).collect()
    }

    fn bytes(&self, id: u32) -> Option<Vec<u8>> {
        match u8::try_from(id) {
            Ok(byte) => Some(vec![byte]),
            Err(_) => TOKENS.get(id as usize - 256).map(|token| token.as_bytes().to_vec()),
        }
    }
}

/// Parts begin and end one after the other, and no piece of a text is empty.
fn check(events: &[Event]) {
    let mut is_open = false;
    for event in events {
        match event {
            Event::Begin(_) => assert!(!std::mem::replace(&mut is_open, true)),
            Event::Delta(text) => assert!(is_open && !text.is_empty()),
            Event::End { .. } => assert!(std::mem::replace(&mut is_open, false)),
        }
    }
    assert!(!is_open);
}

/// The arguments of a complete call are an object: its values were turned into JSON.
fn check_arguments(events: &[Event]) {
    let mut arguments = None;
    for event in events {
        match (event, &mut arguments) {
            (Event::Begin(AnswerPart::Call { .. }), _) => arguments = Some(String::new()),
            (Event::Delta(text), Some(arguments)) => arguments.push_str(text),
            (Event::End { is_complete: true }, Some(text)) => {
                assert!(serde_json::from_str::<Map<String, Value>>(text).is_ok(), "{text:?}");
                arguments = None;
            }
            (Event::End { .. }, _) => arguments = None,
            _ => {}
        }
    }
}

/// Output of a model: a byte is itself, those from 0xC0 on may be special tokens.
pub fn generated(data: &[u8]) {
    let Some((format, events)) = read(data) else { return };
    // Where a brace is, a call may be an object, whose arguments are passed on as they are.
    if format.is_some_and(|format| format.arguments != ArgumentStyle::Object) && !data.contains(&b'{') {
        check_arguments(&events);
    }
    check(&events);
}

/// The name of the format of calls, if an input is read as a whole call of it.
pub fn reads_call(data: &[u8]) -> Option<&'static str> {
    let (format, events) = read(data)?;
    let mut events =
        events.iter().skip_while(|event| !matches!(event, Event::Begin(AnswerPart::Call { .. })));
    let is_whole = events.any(|event| *event == Event::End { is_complete: true });
    format.filter(|_| is_whole).map(|format| format.name)
}

/// The events of a model's output, and its format of calls, which is Harmony if none is named.
fn read(data: &[u8]) -> Option<(Option<&'static CallFormat>, Vec<Event>)> {
    let (kind, bytes) = data.split_first()?;
    let ids = bytes.iter().map(|byte| if *byte >= 0xF0 { u32::from(*byte) + 16 } else { u32::from(*byte) });
    let mut events = Vec::new();
    let format = FORMATS.get(usize::from(*kind));
    if format.is_some() {
        let name = "f".to_owned();
        let parameters = Some(json!({"properties": {"a": {"type": "string"}, "b": {"type": "integer"},
            "c": {"type": ["string", "null"]}, "d": {"type": "array"}, "e": {"type": "object"}}}));
        let tool = Tool { name, description: String::new(), parameters, strict: false };
        let mut parser = TextParser::new(&Bytes, format, vec![tool], ThoughtMarks::default(), false);
        ids.for_each(|id| parser.push(&Bytes, id, &mut events));
        parser.finish(&mut events);
    } else if let Ok(mut parser) = HarmonyParser::new(&Bytes, &Conversation::default(), &mut events) {
        ids.for_each(|id| parser.push(&Bytes, id, &mut events));
        parser.finish(&mut events);
    }
    Some((format, events))
}

/// A template, a zero byte, and a conversation as JSON. No text of the conversation becomes a special token
/// in Harmony; with a template, the library checks that itself.
pub fn chat_template(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (source, json) =
        text.split_once('\0').unwrap_or((text, r#"{"items": [{"user": {"text": "Hello"}}]}"#));
    let Ok(conversation) = serde_json::from_str::<Conversation>(json) else { return };
    if let Ok(prompt) = prompt(&Bytes, &conversation, &PromptOptions::default()) {
        let starts = prompt.ids.iter().filter(|id| **id == 256).count();
        assert!(starts <= conversation.items.len() + 3, "a text made a message");
    }
    if let Ok(template) = Template::new(
        source,
        &Bytes,
        &BTreeMap::from(NAMED.map(|(name, text)| (name.to_owned(), text.to_owned()))),
    ) {
        let _ = template.prompt(&Bytes, &conversation);
    }
}
