//! The format of a model's conversations, by what its files have.

use crate::error::{Error, Result};
use kernmill_chat::{Format, Template, Templates};
use kernmill_runtime::Tokenizer;
use std::collections::BTreeMap;

/// The format of conversations of a model with this tokenizer and, if its files have one, this template.
/// `end_tokens` end its texts.
///
/// # Errors
/// When the template is none.
pub fn format_of(tokenizer: &Tokenizer, template: Option<&str>, end_tokens: &[u32]) -> Result<Format> {
    let begin = tokenizer.encode("", true)?;
    let named = [("bos_token", begin.first()), ("eos_token", end_tokens.first())];
    let named = named.into_iter().filter_map(|(name, id)| Some((name.to_owned(), tokenizer.token(*id?)?)));
    let tokens: BTreeMap<String, String> = named.collect();
    let made = template.map(|source| Template::new(source, tokenizer, &tokens)).transpose();
    let made = made.map_err(|error| Error::BadInput(error.to_string()))?;
    Ok(Format::of(tokenizer, made.map(|default| Templates { default, tool_use: None }), begin))
}
