//! Arguments that are written one by one, as JSON.

use super::format::{NAME_BYTES, Pairs};
use super::python::{ReadStep, container};
use crate::conversation::Tool;
use serde_json::Value;

/// How a value is written, by its schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueStyle {
    /// A string as it is.
    Text,
    /// A string as it is, or null.
    TextOrNull,
    /// JSON. A string may stand without quotes.
    Json,
}

/// The key that a text begins with, up to the value behind it.
pub(super) fn key(marks: &Pairs, text: &str) -> ReadStep<String> {
    let key_at = marks.before_key.len();
    let Some(length) = text[key_at..].find(marks.after_key[0]) else {
        let is_key = text.len() < key_at + NAME_BYTES && !text[key_at..].contains('\n');
        return if is_key { ReadStep::Unfinished } else { ReadStep::Other };
    };
    let key = &text[key_at..key_at + length];
    if key.contains('\n') || length >= NAME_BYTES {
        return ReadStep::Other;
    }
    let mut at = key_at + length + marks.after_key[0].len();
    for mark in &marks.after_key[1..] {
        let rest = text[at..].trim_start();
        if !rest.starts_with(mark) {
            return if mark.starts_with(rest) { ReadStep::Unfinished } else { ReadStep::Other };
        }
        at = text.len() - rest.len() + mark.len();
    }
    ReadStep::Whole(key.trim().to_owned(), at)
}

/// Whether a value that begins with `begun` is a text, which can be given out while it comes. `None` while
/// that is open.
pub(super) fn is_open_text(tool: Option<&Tool>, key: &str, begun: &str) -> Option<bool> {
    let (schema, root) = schema_of(tool, key);
    match writing(schema, root) {
        ValueStyle::Text => Some(true),
        // Null and strings of JSON are only known at their ends.
        ValueStyle::TextOrNull => begun.trim_start().chars().next().map(|c| !"nN\"".contains(c)),
        ValueStyle::Json => Some(false),
    }
}

/// The value that a text begins with, as JSON.
pub(super) fn whole(marks: &Pairs, text: &str, tool: Option<&Tool>, key: &str) -> ReadStep<String> {
    let (schema, root) = schema_of(tool, key);
    let length = match writing(schema, root) {
        ValueStyle::Json => end_of_json(text, marks.after_value),
        ValueStyle::Text | ValueStyle::TextOrNull => text.find(marks.after_value),
    };
    let Some(length) = length else { return ReadStep::Unfinished };
    let body = text[..length].strip_suffix(marks.margin).unwrap_or(&text[..length]);
    ReadStep::Whole(value(tool, key, body), length + marks.after_value.len())
}

/// Where a mark ends a value that may be JSON or a literal of Python: not in its strings. These have no new
/// lines, and begin where one can: models write apostrophes elsewhere.
fn end_of_json(text: &str, mark: &str) -> Option<usize> {
    if !text.trim_start().starts_with(['[', '{', '"']) {
        return text.find(mark);
    }
    let (mut quote, mut is_escaped, mut before) = (None, false, ',');
    for (at, c) in text.char_indices() {
        if quote.is_none() && text[at..].starts_with(mark) {
            return Some(at);
        }
        quote = match quote {
            None if matches!(c, '"' | '\'') && "[{(,:".contains(before) => Some(c),
            Some(open) if c == open && !is_escaped || c == '\n' => None,
            quote => quote,
        };
        is_escaped = c == '\\' && !is_escaped;
        before = if c.is_whitespace() { before } else { c };
    }
    None
}

fn schema_of<'t>(tool: Option<&'t Tool>, key: &str) -> (&'t Value, &'t Value) {
    let root = tool.and_then(|tool| tool.parameters.as_ref()).unwrap_or(&Value::Null);
    (&root["properties"][key], root)
}

/// How values of a schema are written. `root` has its definitions.
pub(crate) fn writing(schema: &Value, root: &Value) -> ValueStyle {
    let schema = resolved(schema, root);
    if is_text(schema) {
        return ValueStyle::Text;
    }
    let mut kinds = Vec::new();
    kinds_of(schema, root, 0, &mut kinds);
    let limits = ["pattern", "minLength", "maxLength", "enum", "const", "$ref"];
    let is_free = |schema: &Value| limits.iter().all(|limit| schema.get(limit).is_none());
    let mut parts = ["anyOf", "oneOf", "allOf"].iter().filter_map(|list| schema[list].as_array()).flatten();
    let is_text_or_null = kinds.contains(&"null") && kinds.contains(&"string");
    let has_others = kinds.iter().any(|kind| !["null", "string"].contains(kind));
    if is_text_or_null && !has_others && is_free(schema) && parts.all(is_free) {
        ValueStyle::TextOrNull
    } else {
        ValueStyle::Json
    }
}

/// JSON of a value that is written as a text, by the schema of the argument that it is for.
pub(super) fn value(tool: Option<&Tool>, key: &str, text: &str) -> String {
    let quoted = || Value::from(text).to_string();
    let (schema, root) = schema_of(tool, key);
    if writing(schema, root) == ValueStyle::Text {
        return quoted();
    }
    let mut kinds = Vec::new();
    kinds_of(schema, root, 0, &mut kinds);
    let has = |kind: &str| kinds.contains(&kind);
    let json = match text.trim() {
        // As Python writes them.
        "True" => "true",
        "False" => "false",
        "None" => "null",
        text => text,
    };
    let is_right = match serde_json::from_str::<Value>(json) {
        Err(_) => false,
        Ok(_) if !has("string") => true,
        Ok(Value::Null) => has("null"),
        Ok(Value::Bool(_)) => has("boolean"),
        Ok(Value::Number(_)) => has("number") || has("integer"),
        Ok(Value::String(_)) => true,
        Ok(Value::Array(_)) => has("array"),
        Ok(Value::Object(_)) => has("object"),
    };
    if is_right {
        return json.to_owned();
    }
    // Templates of some models write lists and objects in Python's way.
    let may_be = json.starts_with(['[', '(']) && has("array") || json.starts_with('{') && has("object");
    container(json).filter(|_| may_be).unwrap_or_else(quoted)
}

/// A schema in place of a reference to it.
pub(crate) fn resolved<'s>(schema: &'s Value, root: &'s Value) -> &'s Value {
    let mut schema = schema;
    // References may go in a circle.
    for _ in 0..16 {
        let place = schema["$ref"].as_str().and_then(|place| place.strip_prefix('#'));
        match place.and_then(|place| root.pointer(place)) {
            Some(referred) => schema = referred,
            None => break,
        }
    }
    schema
}

/// Whether a schema is that of a string and nothing else, which is then written as it is.
fn is_text(schema: &Value) -> bool {
    let values = schema["enum"].as_array().map(Vec::as_slice).unwrap_or_default();
    match schema.get("type") {
        Some(kind) => kind == "string",
        None => !values.is_empty() && values.iter().all(Value::is_string) || schema["const"].is_string(),
    }
}

/// Adds the types that values of a schema may have; none if it does not say.
fn kinds_of<'s>(schema: &'s Value, root: &'s Value, depth: usize, kinds: &mut Vec<&'s str>) {
    let schema = resolved(schema, root);
    match &schema["type"] {
        Value::String(kind) => kinds.push(kind),
        Value::Array(list) => kinds.extend(list.iter().filter_map(Value::as_str)),
        _ if depth < 8 => {
            let lists = ["anyOf", "oneOf", "allOf"].map(|key| schema[key].as_array());
            for schema in lists.into_iter().flatten().flatten() {
                kinds_of(schema, root, depth + 1, kinds);
            }
            let values = schema["enum"].as_array().map(Vec::as_slice).unwrap_or_default();
            kinds.extend(values.iter().any(Value::is_string).then_some("string"));
            kinds.extend(values.iter().any(Value::is_number).then_some("number"));
            kinds.extend(values.iter().any(Value::is_boolean).then_some("boolean"));
            kinds.extend(values.iter().any(Value::is_null).then_some("null"));
        }
        _ => {}
    }
}

/// A piece of a string of JSON, without its quotes.
pub(super) fn piece(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// A member of an object, with what comes before it.
pub(super) fn member(count: usize, key: &str, value: &str) -> String {
    let before = if count == 0 { "{" } else { ", " };
    format!("{before}{}: {value}", Value::from(key))
}
