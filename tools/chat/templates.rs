//! Chat templates applied to conversations: `compare_templates.py` holds them to Python's Jinja.
//!
//! A line is an object with `template`, `conversation` and `tokens`, the texts of special tokens. The answer
//! is an object with `text`, `special`, the special tokens in it, and `tells_tools`, or with `error` and
//! `refused`.

use kernmill_chat::{AddedToken, Conversation, Template, TemplateError, Vocabulary, VocabularyError};
use serde_json::{Value, json};
use std::io::{BufRead, Error, Write, stdin, stdout};

/// Texts of the tokens around a text, by the names that templates have for them.
const TOKENS: [(&str, &str); 2] = [("bos_token", "<s>"), ("eos_token", "</s>")];

/// Bytes, and special tokens after them.
struct Bytes(Vec<String>);

impl Vocabulary for Bytes {
    fn encode_ordinary(&self, text: &str) -> Result<Vec<u32>, VocabularyError> {
        Ok(text.bytes().map(u32::from).collect())
    }

    fn encode_marked(&self, text: &str) -> Result<Vec<u32>, VocabularyError> {
        let (mut ids, mut rest) = (Vec::new(), text);
        while let Some(c) = rest.chars().next() {
            let found = self.0.iter().enumerate().filter(|(_, token)| rest.starts_with(*token));
            let length = match found.max_by_key(|(_, token)| token.len()) {
                Some((n, token)) => {
                    ids.push(256 + n as u32);
                    token.len()
                }
                None => {
                    ids.extend(rest[..c.len_utf8()].bytes().map(u32::from));
                    c.len_utf8()
                }
            };
            rest = &rest[length..];
        }
        Ok(ids)
    }

    fn added_tokens(&self) -> Vec<AddedToken> {
        let token = |(text, id): (&String, u32)| AddedToken { text: text.clone(), id, is_special: true };
        self.0.iter().zip(256..).map(token).collect()
    }

    fn bytes(&self, id: u32) -> Option<Vec<u8>> {
        match u8::try_from(id) {
            Ok(byte) => Some(vec![byte]),
            Err(_) => self.0.get(id as usize - 256).map(|token| token.clone().into_bytes()),
        }
    }
}

/// The last template, with its source and its special tokens: many conversations follow each other with one.
type Last = Option<(String, Vec<String>, Result<Template, TemplateError>)>;

fn answer(line: &str, last: &mut Last) -> Result<Value, Error> {
    let mut given: Value = serde_json::from_str(line)?;
    let conversation: Conversation = serde_json::from_value(given["conversation"].take())?;
    let vocabulary = Bytes(serde_json::from_value(given["tokens"].take())?);
    let source = given["template"].as_str().unwrap_or_default();
    if last.as_ref().is_none_or(|last| last.0 != source || last.1 != vocabulary.0) {
        let template = Template::new(
            source,
            &vocabulary,
            &TOKENS.map(|(name, text)| (name.to_owned(), text.to_owned())).into(),
        );
        *last = Some((source.to_owned(), vocabulary.0.clone(), template));
    }
    let Some((_, _, template)) = last else { return Ok(Value::Null) };
    let prompt = template
        .as_ref()
        .map_err(TemplateError::clone)
        .and_then(|template| Ok((template.prompt(&vocabulary, &conversation)?, template.tells_tools())));
    Ok(match prompt {
        Ok((prompt, tells_tools)) => {
            let bytes: Vec<u8> = prompt.ids.iter().filter_map(|id| vocabulary.bytes(*id)).flatten().collect();
            let special = prompt.ids.iter().filter(|id| **id >= 256).count();
            json!({"text": String::from_utf8_lossy(&bytes), "special": special, "tells_tools": tells_tools})
        }
        Err(error) => {
            let refused = matches!(error, TemplateError::Refused(_));
            json!({"error": error.to_string(), "refused": refused})
        }
    })
}

fn main() -> Result<(), Error> {
    let mut out = stdout().lock();
    let mut last = None;
    for line in stdin().lock().lines() {
        writeln!(out, "{}", answer(&line?, &mut last)?)?;
    }
    Ok(())
}
