//! Reading token ids: a file with a JSON list of numbers.

use crate::failure::{Failure, Result};
use kernmill_plan::input::{limit, read_named};
use std::path::Path;

/// The ids in the file at `path`, all below `vocab`.
pub fn read(path: &Path, vocab: usize) -> Result<Vec<u32>> {
    let text = read_named(path, limit::TOKEN_IDS_BYTES).map_err(Failure::read(path))?;
    let ids: Vec<serde_json::Value> = serde_json::from_slice(&text)
        .map_err(|error| Failure::input(path, format!("expected a JSON list of token ids: {error}")))?;
    ids.iter().enumerate().map(|(index, id)| token(path, index, id, vocab)).collect()
}

fn token(path: &Path, index: usize, id: &serde_json::Value, vocab: usize) -> Result<u32> {
    match id.as_u64() {
        Some(number) if number < vocab as u64 => Ok(number as u32),
        _ => Err(Failure::input(
            path,
            format!("token {index} is {id}, expected a whole number below {vocab}, the vocabulary"),
        )),
    }
}

/// Fails unless a prompt has tokens and they fit the context.
pub fn check_length(tokens: usize, context: u32) -> Result<()> {
    if tokens == 0 {
        return Err(Failure::BadInput(
            "the prompt has no tokens, expected at least one to start from".to_owned(),
        ));
    }
    if tokens > context as usize {
        return Err(Failure::BadInput(format!(
            "the prompt has {tokens} tokens, the context holds {context}: shorten it or raise --context (at most the model's)"
        )));
    }
    Ok(())
}
