//! Token ids: reading a file with a JSON list of numbers, and whether a prompt fits the context.

use kernmill::{Error, Result};
use kernmill_os::files::read_named;
use kernmill_os::text::shortened;
use kernmill_plan::limit;
use serde::Deserializer as _;
use serde::de::{SeqAccess, Visitor};
use serde_json::Value;
use std::fmt;
use std::path::Path;

/// Reads token ids from the file at `path`: a JSON list of whole numbers below `vocab`.
///
/// # Errors
/// When the file cannot be read, is no such list, or has a number that is not below `vocab`.
pub fn read(path: &Path, vocab: usize) -> Result<Vec<u32>> {
    let text = read_named(path, limit::TOKEN_IDS_BYTES).map_err(Error::read(path))?;
    parse(&text, vocab).map_err(|what| Error::input(path, what))
}

/// Advice when a prompt does not fit a context of `context` tokens, as the end of a message that states the
/// context.
pub fn what_helps(context: u32, longest: u32) -> String {
    if context < longest {
        format!(": shorten it, or raise --context (at most {longest}, the model's longest)")
    } else {
        ", the model's longest: shorten it".to_owned()
    }
}

/// Reads a number of tokens that are generated at most; -1 is as many as fit the context.
///
/// # Errors
/// When the text is no such number.
pub fn most(text: &str) -> std::result::Result<u32, String> {
    match text.parse() {
        Ok(tokens) => Ok(tokens),
        Err(_) if text == "-1" => Ok(u32::MAX),
        Err(_) => Err("expected a whole number from 0, or -1 for as many as fit the context".to_owned()),
    }
}

/// Checks that a prompt of `tokens` tokens has some, and that they fit a context of `context` tokens. The
/// longest context of the model is `longest`.
///
/// # Errors
/// When there are no tokens, or too many.
pub fn check_length(tokens: usize, context: u32, longest: u32) -> Result<()> {
    if tokens == 0 {
        return Err(Error::bad_input(
            "the prompt has no tokens, expected at least one to start from".to_owned(),
        ));
    }
    if tokens > context as usize {
        let help = what_helps(context, longest);
        return Err(Error::bad_input(format!(
            "the prompt has {tokens} tokens, the context holds {context}{help}"
        )));
    }
    Ok(())
}

/// The ids of a JSON list. One element at a time is looked at: a list of them as values would take 30 times
/// the memory.
fn parse(text: &[u8], vocab: usize) -> std::result::Result<Vec<u32>, String> {
    let mut json = serde_json::Deserializer::from_slice(text);
    let ids = json.deserialize_seq(Ids { vocab }).and_then(|ids| json.end().map(|()| ids));
    match ids {
        Ok(ids) => ids,
        Err(error) => Err(format!("expected a JSON list of token ids: {error}")),
    }
}

/// Reads ids; the first that cannot be one is the result, and no error of the JSON.
struct Ids {
    vocab: usize,
}

impl<'de> Visitor<'de> for Ids {
    type Value = std::result::Result<Vec<u32>, String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> std::result::Result<Self::Value, A::Error> {
        let mut ids = Ok(Vec::new());
        while let Some(id) = elements.next_element::<Value>()? {
            if let Ok(list) = &mut ids {
                match id.as_u64() {
                    Some(number) if number < self.vocab as u64 => list.push(number as u32),
                    _ => ids = Err(wrong(list.len(), &id.to_string(), self.vocab)),
                }
            }
        }
        Ok(ids)
    }
}

fn wrong(index: usize, id: &str, vocab: usize) -> String {
    let id = shortened(id);
    format!("token {index} is {id}, expected a whole number below {vocab}, the vocabulary")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_ids_are_read_and_others_say_where_they_are_wrong() {
        assert_eq!(parse(b" [1, 2,\n 0] ", 3), Ok(vec![1, 2, 0]));
        assert_eq!(parse(b"[]", 3), Ok(vec![]));
        for (text, says) in [
            ("[1, 3]", "token 1 is 3, expected a whole number below 3"),
            ("[1, -1]", "token 1 is -1"),
            ("[0.5, 9]", "token 0 is 0.5"),
            ("[[1]]", "token 0 is [1]"),
            ("[1, \"a\"]", "token 1 is \"a\""),
            ("[1, 2", "expected a JSON list of token ids: EOF"),
            ("[1] 2", "expected a JSON list of token ids: trailing characters"),
            ("{\"a\": 1}", "expected a JSON list of token ids: invalid type: map, expected a list"),
            ("", "expected a JSON list of token ids: EOF"),
        ] {
            let refused = parse(text.as_bytes(), 3).unwrap_err();
            assert!(refused.starts_with(says), "{text}: {refused}");
        }
    }
}
