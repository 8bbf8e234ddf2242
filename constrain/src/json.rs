//! Schemas as the parser takes them.

use crate::numbers::raise_bounds;
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
    raise_bounds(&mut schema);
    schema["x-guidance"] = json!({ "whitespace_pattern": WHITESPACE });
    schema
}

/// A schema whose parts count as far as a grammar can hold a text to them; `oneOf` counts as `anyOf`. The
/// depth of `schema` has been checked.
pub(crate) fn with_lenient_options(schema: &Value) -> Value {
    let mut schema = with_options(schema);
    drop_patterns_that_look_around(&mut schema);
    schema["x-guidance"]["lenient"] = json!(true);
    schema
}

/// Drops expressions that look around from everywhere in a schema: the parser has no leniency for them.
fn drop_patterns_that_look_around(schema: &mut Value) {
    let looks_around = |text: &str| ["(?=", "(?!", "(?<=", "(?<!"].iter().any(|begin| text.contains(begin));
    match schema {
        Value::Object(members) => {
            members.retain(|name, value| name != "pattern" || !value.as_str().is_some_and(looks_around));
            if let Some(Value::Object(patterns)) = members.get_mut("patternProperties") {
                patterns.retain(|pattern, _| !looks_around(pattern));
            }
            members.values_mut().for_each(drop_patterns_that_look_around);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_patterns_that_look_around),
        _ => {}
    }
}
