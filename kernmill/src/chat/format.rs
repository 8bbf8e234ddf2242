//! The format of a model's conversations, by what its files have.

use crate::error::{Error, Result};
use kernmill_chat::{Format, FormatSource};
use kernmill_runtime::Tokenizer;

/// The format of conversations of a model with this tokenizer and, if its files have one, this template.
/// `end_tokens` end its texts.
///
/// # Errors
/// When the template is none.
pub fn format_of(tokenizer: &Tokenizer, template: Option<&str>, end_tokens: &[u32]) -> Result<Format> {
    let begin = tokenizer.encode("", true)?;
    let bos = begin.first().and_then(|id| tokenizer.token(*id));
    let eos = end_tokens.first().and_then(|id| tokenizer.token(*id));
    let source = FormatSource { template, begin: &begin, bos: bos.as_deref(), eos: eos.as_deref() };
    let format = Format::of(tokenizer, source);
    format.map_err(|error| Error::BadInput(error.to_string()))
}
