//! JSON schemas as types of TypeScript, in the form that the models were trained with.

use serde_json::Value;
use std::fmt::Write;

/// The type of a schema. `indent` stands before every line but the first.
pub(super) fn type_of(schema: &Value, indent: &str) -> String {
    if let Some(variants) = schema.get("oneOf").and_then(Value::as_array) {
        return alternatives(variants, indent);
    }
    let name = match schema.get("type") {
        Some(Value::String(name)) => name,
        Some(Value::Array(names)) => {
            let named: Vec<&str> = names.iter().filter_map(Value::as_str).map(scalar).collect();
            return if named.is_empty() { "any".to_owned() } else { named.join(" | ") };
        }
        _ => return "any".to_owned(),
    };
    match name.as_str() {
        "object" => object(schema, indent),
        "string" => {
            let values = schema.get("enum").and_then(Value::as_array).into_iter().flatten();
            let values: Vec<String> = values.filter_map(Value::as_str).map(quoted).collect();
            if values.is_empty() { "string".to_owned() } else { values.join(" | ") }
        }
        "number" | "integer" => "number".to_owned(),
        "boolean" => "boolean".to_owned(),
        "array" => match schema.get("items") {
            Some(items) => type_of(items, indent) + "[]",
            None => "Array<any>".to_owned(),
        },
        _ => "any".to_owned(),
    }
}

/// A name in a list of types.
fn scalar(name: &str) -> &str {
    if name == "integer" { "number" } else { name }
}

fn quoted(text: &str) -> String {
    format!("\"{text}\"")
}

fn text<'a>(schema: &'a Value, key: &str) -> Option<&'a str> {
    schema.get(key).and_then(Value::as_str)
}

fn is_enum(schema: &Value) -> bool {
    schema.get("enum").and_then(Value::as_array).is_some_and(|values| !values.is_empty())
}

/// The type, and null if it may be that.
fn nullable(schema: &Value, indent: &str) -> String {
    let found = type_of(schema, indent);
    let is_nullable = schema.get("nullable").and_then(Value::as_bool).unwrap_or(false);
    if is_nullable && !found.contains("null") { found + " | null" } else { found }
}

/// The comment of a default value.
fn default(schema: &Value) -> Option<String> {
    let value = schema.get("default")?;
    Some(match value {
        Value::String(value) if is_enum(schema) => format!("default: {value}"),
        Value::String(value) => format!("default: \"{value}\""),
        value => format!("default: {value}"),
    })
}

/// Variants, each on a separate line, with what is said of them.
fn alternatives(variants: &[Value], indent: &str) -> String {
    let mut out = String::new();
    for variant in variants {
        let _ = write!(out, "\n{indent} | {}", nullable(variant, &format!("{indent}   ")));
        // A default is in quotes here whether or not the values are listed.
        let default = variant.get("default").map(|value| match value {
            Value::String(value) => format!("default: \"{value}\""),
            value => format!("default: {value}"),
        });
        out += &trailing([text(variant, "description").map(str::to_owned), default]);
    }
    out
}

/// A comment at the end of a line.
fn trailing(parts: [Option<String>; 2]) -> String {
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() { String::new() } else { format!(" // {}", parts.join(" ")) }
}

fn object(schema: &Value, indent: &str) -> String {
    let mut out = String::new();
    if let Some(description) = text(schema, "description") {
        let _ = writeln!(out, "{indent}// {description}");
    }
    out += "{\n";
    let required: Vec<&str> = match schema.get("required") {
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    for (key, value) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let mark = if required.contains(&key.as_str()) { "" } else { "?" };
        property(&mut out, &format!("{key}{mark}"), value, indent);
    }
    out + indent + "}"
}

/// A member of an object, with its comments before it.
fn property(out: &mut String, key: &str, schema: &Value, indent: &str) {
    if let Some(title) = text(schema, "title") {
        let _ = write!(out, "{indent}// {title}\n{indent}//\n");
    }
    let has_variants = schema.get("oneOf").is_some();
    if let Some(description) = text(schema, "description").filter(|_| !has_variants) {
        let _ = writeln!(out, "{indent}// {description}");
    }
    let examples = schema.get("examples").and_then(Value::as_array).filter(|list| !list.is_empty());
    if let Some(examples) = examples {
        let _ = writeln!(out, "{indent}// Examples:");
        for example in examples.iter().filter_map(Value::as_str) {
            let _ = writeln!(out, "{indent}// - \"{example}\"");
        }
    }
    if let Some(variants) = schema.get("oneOf").and_then(Value::as_array) {
        return variant_property(out, key, schema, variants, indent);
    }
    let _ = write!(out, "{indent}{key}: {},", nullable(schema, &format!("{indent}    ")));
    *out += &trailing([default(schema).filter(|_| !has_variants), None]);
    out.push('\n');
}

/// A member that is one of several types: each is on a separate line.
fn variant_property(out: &mut String, key: &str, schema: &Value, variants: &[Value], indent: &str) {
    let description = text(schema, "description");
    let first = variants.first().and_then(|variant| text(variant, "description"));
    // A description that the first variant has as well is not repeated above it.
    let above = description.filter(|said| first != Some(said));
    for line in [above.map(str::to_owned), default(schema)].into_iter().flatten() {
        let _ = writeln!(out, "{indent}// {line}");
    }
    let _ = writeln!(out, "{indent}{key}:");
    for (n, variant) in variants.iter().enumerate() {
        let _ = write!(out, "{indent} | {}", nullable(variant, &format!("{indent}   ")));
        let said = text(variant, "description")
            .filter(|said| Some(*said) != description && !(n == 0 && above.is_some()));
        *out += &trailing([said.map(str::to_owned), default(variant)]);
        out.push('\n');
    }
    let _ = writeln!(out, "{indent},");
}
