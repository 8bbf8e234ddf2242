//! Random schemas, and the check of what they describe.

use fastrand::Rng;
use serde_json::{Map, Value, json};

/// A schema of an object, at most three levels deep, with a definition that it may refer to.
pub fn schema(rng: &mut Rng) -> Value {
    let mut schema = object(rng, 3);
    schema["$defs"] = json!({ "shared": leaf(rng) });
    schema
}

fn any(rng: &mut Rng, levels: u32) -> Value {
    match rng.u8(..8) {
        0 | 1 if levels > 0 => object(rng, levels - 1),
        2 if levels > 0 => {
            let least = rng.u64(..3);
            let most = least + rng.u64(..3).max(1);
            json!({ "type": "array", "items": any(rng, levels - 1), "minItems": least, "maxItems": most })
        }
        3 => json!({ "anyOf": [{ "type": "boolean" }, string(rng), { "type": "null" }] }),
        4 => json!({ "$ref": "#/$defs/shared" }),
        _ => leaf(rng),
    }
}

fn object(rng: &mut Rng, levels: u32) -> Value {
    let mut properties = Map::new();
    let names = ["name", "a b", "größe", "\"q\"", "back\\slash", "list", "x", "nested", "名前"];
    for _ in 0..rng.usize(..5) {
        let name = names[rng.usize(..names.len())];
        properties.insert(name.to_owned(), any(rng, levels));
    }
    let required: Vec<&String> = properties.keys().filter(|_| rng.bool()).collect();
    json!({ "type": "object", "required": required, "properties": properties, "additionalProperties": false })
}

fn string(rng: &mut Rng) -> Value {
    match rng.u8(..3) {
        0 => json!({ "type": "string", "pattern": "^[a-c]{2,4}$" }),
        1 => json!({ "type": "string", "minLength": rng.u32(..3), "maxLength": 2 + rng.u32(..20) }),
        _ => json!({ "type": "string" }),
    }
}

fn leaf(rng: &mut Rng) -> Value {
    let low = rng.i32(-50..50);
    match rng.u8(..8) {
        0 => json!({ "type": "integer", "minimum": low, "maximum": low + rng.i32(0..2000) }),
        1 => json!({ "type": "number", "minimum": low, "exclusiveMaximum": low + 1 + rng.i32(0..9) }),
        2 => json!({ "type": "boolean" }),
        3 => json!({ "type": "null" }),
        4 => json!({ "enum": ["red", "green", 7, null, "a\nb"] }),
        5 => json!({ "const": { "k": [1, "two"] } }),
        _ => string(rng),
    }
}

/// Whether a value is one that a schema of this file describes. `root` has the definitions.
pub fn describes(schema: &Value, root: &Value, value: &Value) -> bool {
    if schema.get("$ref").is_some() {
        return describes(&root["$defs"]["shared"], root, value);
    }
    if let Some(constant) = schema.get("const") {
        return constant == value;
    }
    if let Some(values) = schema["enum"].as_array() {
        return values.contains(value);
    }
    if let Some(schemas) = schema["anyOf"].as_array() {
        return schemas.iter().any(|schema| describes(schema, root, value));
    }
    let least =
        |name: &str, found: f64| schema.get(name).is_none_or(|least| found >= least.as_f64().unwrap());
    let most = |name: &str, found: f64| schema.get(name).is_none_or(|most| found <= most.as_f64().unwrap());
    match (schema["type"].as_str().unwrap(), value) {
        ("boolean", Value::Bool(_)) | ("null", Value::Null) => true,
        ("integer", Value::Number(n)) => {
            // Minus zero is an integer, too.
            let n = n.as_f64().unwrap();
            n.fract() == 0.0 && least("minimum", n) && most("maximum", n)
        }
        ("number", Value::Number(n)) => {
            let n = n.as_f64().unwrap();
            // The nearest number to one just below the bound may be the bound.
            least("minimum", n) && most("exclusiveMaximum", n)
        }
        ("string", Value::String(text)) => {
            let length = text.chars().count() as f64;
            let is_match = (2..=4).contains(&text.len()) && text.chars().all(|c| ('a'..='c').contains(&c));
            least("minLength", length)
                && most("maxLength", length)
                && (schema.get("pattern").is_none() || is_match)
        }
        ("array", Value::Array(items)) => {
            let length = items.len() as f64;
            let are_right = items.iter().all(|item| describes(&schema["items"], root, item));
            least("minItems", length) && most("maxItems", length) && are_right
        }
        ("object", Value::Object(members)) => {
            let known = schema["properties"].as_object().unwrap();
            let mut required = schema["required"].as_array().unwrap().iter();
            required.all(|name| members.contains_key(name.as_str().unwrap()))
                && members
                    .iter()
                    .all(|(name, value)| known.get(name).is_some_and(|schema| describes(schema, root, value)))
        }
        _ => false,
    }
}
