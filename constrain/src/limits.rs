//! Limits of rules and of the work that they make.

use crate::error::Error;
use crate::{joined, numbers};
use llguidance::api::ParserLimits;
use serde_json::Value;
use std::time::Duration;

/// Bytes of the largest JSON schema, written without spaces.
pub const SCHEMA_BYTES: usize = 128 << 10;

/// Levels of the deepest JSON schema.
pub const SCHEMA_DEPTH: usize = 64;

/// Bytes of the longest regular expression or grammar.
pub const GRAMMAR_BYTES: usize = 64 << 10;

/// Most properties of a schema's objects that others may stand beside. Of several objects, the squares of
/// their numbers count.
const OPEN_MEMBERS: usize = 1500;

/// Bytes of all tools' schemas together.
pub(crate) const TURN_BYTES: usize = 512 << 10;

/// How long the making of a parser may take. Its work is counted, and ends far earlier: this is for machines
/// that are much too slow.
pub(crate) const MAKING_TIME: Duration = Duration::from_secs(10);

/// Most bytes that are looked ahead at once for tokens that must come.
pub(crate) const FORCED_BYTES: usize = 256;

/// As many tokens that must come are enough to stop looking for more.
pub(crate) const FORCED_TOKENS: usize = 64;

/// Limits of the work: about 20 ms to begin with, 15 ms for a mask, and 40 MB for the lexer's states.
pub(crate) fn of_work() -> ParserLimits {
    ParserLimits {
        max_items_in_row: 2000,
        initial_lexer_fuel: 500_000,
        step_lexer_fuel: 200_000,
        step_max_items: 50_000,
        max_lexer_states: 20_000,
        max_grammar_size: 200_000,
        precompute_large_lexemes: false,
        verbose_errors: false,
    }
}

/// Checks size, depth, numbers and joined expressions of a schema, and gives its size in bytes. `what` names
/// it in errors.
pub(crate) fn check_schema(what: &str, schema: &Value) -> Result<usize, Error> {
    if !schema.is_object() {
        let found = match schema {
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Number(_) => "a number",
            Value::String(_) => "a string",
            Value::Array(_) | Value::Object(_) => "an array",
        };
        return Err(Error::Rule {
            what: what.to_owned(),
            reason: format!("it is {found}, expected an object"),
        });
    }
    let too_large = |found, unit, limit| Error::TooLarge { what: what.to_owned(), found, unit, limit };
    // Without recursion: depth is what is being checked.
    let mut level = vec![schema];
    let mut depth = 0;
    while !level.is_empty() {
        depth += 1;
        if depth > SCHEMA_DEPTH {
            return Err(too_large(depth, "levels", SCHEMA_DEPTH));
        }
        level = level.into_iter().flat_map(inside).collect();
    }
    numbers::check(what, schema)?;
    let members = (open_members(schema) as f64).sqrt().ceil() as usize;
    if members > OPEN_MEMBERS {
        return Err(too_large(members, "properties without `additionalProperties: false`", OPEN_MEMBERS));
    }
    let bytes = schema.to_string().len();
    if bytes > SCHEMA_BYTES {
        return Err(too_large(bytes, "bytes", SCHEMA_BYTES));
    }
    joined::check_schema(what, schema, SCHEMA_DEPTH)?;
    Ok(bytes)
}

/// Checks the size of a regular expression or grammar.
pub(crate) fn check_text(what: &str, text: &str) -> Result<(), Error> {
    if text.len() > GRAMMAR_BYTES {
        let (what, found) = (what.to_owned(), text.len());
        return Err(Error::TooLarge { what, found, unit: "bytes", limit: GRAMMAR_BYTES });
    }
    Ok(())
}

/// Work of the members of a schema's objects that others may stand beside: the names of those must be no
/// names of these, which is work by the square of their number. The depth of `schema` has been checked.
fn open_members(schema: &Value) -> usize {
    let is_open = |schema: &Value| schema.get("additionalProperties") != Some(&Value::Bool(false));
    let members = schema.get("properties").and_then(Value::as_object).filter(|_| is_open(schema));
    let own = members.map_or(0, |members| members.len().saturating_mul(members.len()));
    inside(schema).into_iter().map(open_members).fold(own, usize::saturating_add)
}

/// The values directly inside a value.
fn inside(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(members) => members.values().collect(),
        _ => Vec::new(),
    }
}
