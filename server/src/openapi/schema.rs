//! Schemas of fields, in few words.

use serde_json::{Map, Value, json};

/// A text.
pub fn text() -> Value {
    json!({ "type": ["string", "null"] })
}

/// One of some words.
pub fn one_of(words: &[&str]) -> Value {
    let all: Vec<Value> = words.iter().map(|word| json!(word)).chain([Value::Null]).collect();
    json!({ "enum": all })
}

/// True or false.
pub fn flag() -> Value {
    json!({ "type": ["boolean", "null"] })
}

/// A whole number.
pub fn whole(least: u64, most: u64) -> Value {
    json!({ "type": ["integer", "null"], "minimum": least, "maximum": most })
}

/// A number.
pub fn number(least: f64, most: f64) -> Value {
    json!({ "type": ["number", "null"], "minimum": least, "maximum": most })
}

/// A list of at most so many.
pub fn list(items: Value, most: usize) -> Value {
    json!({ "type": ["array", "null"], "items": items, "maxItems": most })
}

/// A list that must be there, with at least one member.
pub fn some(items: Value, most: usize) -> Value {
    json!({ "type": "array", "items": items, "minItems": 1, "maxItems": most })
}

/// One of several schemas.
pub fn any(of: Vec<Value>) -> Value {
    json!({ "anyOf": of })
}

/// Another schema of the document.
pub fn of(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

/// An object with these fields. Those that are `required` must be there.
pub fn object<const N: usize>(required: &[&str], fields: [(&str, Value); N]) -> Value {
    let fields: Map<String, Value> =
        fields.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect();
    json!({ "type": "object", "required": required, "properties": fields })
}

/// An object, or none.
pub fn maybe<const N: usize>(required: &[&str], fields: [(&str, Value); N]) -> Value {
    let mut object = object(required, fields);
    object["type"] = json!(["object", "null"]);
    object
}

/// Anything: the field is taken and means nothing, or the server looks at it in another way.
pub fn anything() -> Value {
    json!({})
}

/// A schema with a sentence on it.
pub fn about(mut schema: Value, sentence: &str) -> Value {
    schema["description"] = json!(sentence);
    schema
}

/// An object with the fields of another one, too.
pub fn with(mut schema: Value, more: &[(&str, Value)]) -> Value {
    for (name, field) in more {
        schema["properties"][*name] = field.clone();
    }
    schema
}
