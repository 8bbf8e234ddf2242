//! Schemas as the parser takes them.

use serde_json::{Value, json};

/// Whitespace between the tokens of JSON: at most a space, or a new line with its indentation. Unbounded, a
/// model may write new lines without end.
const WHITESPACE: &str = r"( |\n[ \t]{0,32})";

/// The schema of any JSON object.
pub(crate) fn any_object() -> Value {
    with_options(&json!({ "type": "object" }))
}

/// A schema with the options of this crate; those that it brings along do not count.
pub(crate) fn with_options(schema: &Value) -> Value {
    let mut schema = schema.clone();
    schema["x-guidance"] = json!({ "whitespace_pattern": WHITESPACE });
    schema
}
