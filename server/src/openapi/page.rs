//! `docs/user/fields.md` is what the tables of requests say. `UPDATE_EXPECT=1 cargo test --workspace --lib --
//! openapi::page` writes it.

use crate::fields::shape::{Field, Object, Shape};
use crate::routes::operations;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;

const HEAD: &str = "# Fields of requests

Every field that a request to the [server](serve.md) may have, from the tables that requests are read by. The
tests write this page; do not edit it.

In the tables, `a.b` is field `b` of the object `a`. A field that is null is one that is not there. What is in
lists is in `/openapi.json`.
";

/// A schema in words.
fn told(schema: &Value) -> String {
    let all = |name: &str| schema[name].as_array().into_iter().flatten().filter(|value| !value.is_null());
    let kind = all("type").chain([&schema["type"]]).find_map(Value::as_str);
    let [least, most] = ["minimum", "maximum"].map(|name| schema[name].as_f64());
    let range = match (least, most.filter(|most| *most < f64::from(u32::MAX))) {
        (Some(least), Some(most)) => format!(" from {least} to {most}"),
        (Some(least), None) => format!(" from {least}"),
        (None, Some(most)) => format!(" above 0, up to {most}"),
        (None, None) => String::new(),
    };
    if let Some(name) = schema["$ref"].as_str().and_then(|name| name.rsplit('/').next()) {
        return format!("[{name}](#{})", name.to_lowercase());
    }
    match kind {
        _ if schema["enum"].is_array() && all("enum").next().is_none() => "nothing".to_owned(),
        _ if schema["enum"].is_array() => {
            all("enum").map(|value| format!("`{value}`")).collect::<Vec<_>>().join(" or ")
        }
        _ if schema["anyOf"].is_array() => {
            let mut ways: Vec<String> = all("anyOf").map(told).filter(|way| way != "nothing").collect();
            ways.dedup();
            ways.join(" or ")
        }
        Some("string") => "text".to_owned(),
        Some("boolean") => "true or false".to_owned(),
        Some("integer") => format!("whole number{range}"),
        Some("number") => format!("number{range}"),
        Some("array") => {
            let most =
                schema["maxItems"].as_u64().map(|most| format!(" of at most {most}")).unwrap_or_default();
            let of = Some(told(&schema["items"])).filter(|of| !of.contains(" or ") && of != "anything");
            format!("list{most}{}", of.map(|of| format!(": {of}")).unwrap_or_default())
        }
        Some("null") => "nothing".to_owned(),
        Some(other) => other.to_owned(),
        None if schema["const"].is_string() => format!("`{}`", schema["const"]),
        None => "anything".to_owned(),
    }
}

/// Fields that belong into the table of an object, and whether they are needed: not those of one with a name.
fn fields(object: &Object) -> Vec<(Field, bool)> {
    let own = object.own.iter().map(|field| (*field, object.needed.contains(&field.name)));
    let unnamed = object.more.iter().filter_map(|more| match more {
        Shape::Object(more) if more.name.is_empty() => Some(fields(more)),
        _ => None,
    });
    own.chain(unnamed.flatten()).collect()
}

/// A row for each field: where it is, what it may be, and a sentence on it.
fn rows(object: &Object, path: &str) -> String {
    let row = |(field, is_needed): (Field, bool)| {
        let (path, schema) = (format!("{path}{}", field.name), field.schema(true));
        let needed = if is_needed && path.contains('.') { "needed; " } else { "" };
        let about = schema["description"].as_str().unwrap_or_default();
        let inner = match &field.shape {
            Shape::Object(inner) if inner.name.is_empty() => rows(inner, &format!("{path}.")),
            _ => String::new(),
        };
        format!("| `{path}` | {needed}{} | {about} |\n{inner}", told(&schema))
    };
    fields(object).into_iter().map(row).collect()
}

/// Shapes with names, each before those inside of it.
fn named<'a>(shape: &'a Shape, found: &mut Vec<&'a Shape>) {
    if !shape.name().is_empty() {
        if found.iter().any(|other| other.name() == shape.name()) {
            return;
        }
        found.push(shape);
    }
    match shape {
        Shape::Object(object) => {
            object.own.iter().for_each(|field| named(&field.shape, found));
            object.more.iter().for_each(|more| named(more, found));
        }
        Shape::Any(shapes) => shapes.iter().for_each(|shape| named(shape, found)),
        Shape::List(of, ..) => named(of, found),
        _ => {}
    }
}

fn section(object: &Object, routes: &[String]) -> String {
    let code = |names: &[&str]| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let link = |name: &str| format!("[{name}](#{})", name.to_lowercase());
    let more = object.more.iter().map(|more| more.name()).filter(|name| !name.is_empty());
    let facts = [
        ("route", routes.join(", ")),
        ("needed", code(object.needed)),
        ("has the fields of", more.map(link).collect::<Vec<_>>().join(", ")),
        ("taken, and changes nothing", code(&object.passed.split_whitespace().collect::<Vec<_>>())),
    ];
    let facts = facts.iter().filter(|(_, what)| !what.is_empty());
    let facts: String = facts.map(|(name, what)| format!("| {name} | {what} |\n")).collect();
    let heads =
        [("\n| | |\n|---|---|\n", facts), ("\n| field | value | |\n|---|---|---|\n", rows(object, ""))];
    let tables = heads.iter().filter(|(_, rows)| !rows.is_empty());
    let tables: String = tables.map(|(head, rows)| format!("{head}{rows}")).collect();
    format!("\n## {}\n{tables}", object.name)
}

#[test]
fn the_page_of_fields_is_what_requests_are_read_by() {
    let (mut found, mut routes): (Vec<&Shape>, BTreeMap<&str, Vec<String>>) = Default::default();
    for route in operations() {
        if let Some(body) = route.body {
            named(body, &mut found);
            routes.entry(body.name()).or_default().push(format!("`{} {}`", route.method, route.path));
        }
    }
    let mut text = HEAD.to_owned();
    for shape in found {
        if let Shape::Object(object) = shape {
            text += &section(object, routes.get(object.name).map_or(&[], Vec::as_slice));
        }
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/user/fields.md");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(path, &text).unwrap();
    }
    let page = fs::read_to_string(path).unwrap_or_default();
    assert!(page == text, "docs/user/fields.md is not what requests are read by: UPDATE_EXPECT=1 writes it");
}
