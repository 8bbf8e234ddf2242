//! `/openapi.json`: all routes, and the fields of their requests with their limits.
//!
//! Routes come from the table that answers them, and requests from the tables that they are read by. The
//! tests hold what these say to the reading: every field is known to it, of no other type, and within no
//! other limits.

mod answers;

use crate::fields::shape::Shape;
use answers::answers;
use axum::http::Method;
use serde_json::{Map, Value, json};

/// The description of a route for clients.
pub(crate) struct Operation {
    pub path: &'static str,
    pub method: Method,
    pub about: &'static str,
    /// Fields of the request's body, if there is one.
    pub body: Option<&'static Shape>,
    /// Schema of the response.
    pub answer: &'static str,
}

/// Statuses of errors, and when they come.
const ERRORS: [(&str, &str); 8] = [
    ("400", "A field is wrong: the error names it"),
    ("401", "The key is missing or wrong"),
    ("403", "The key, the host or the page may not"),
    ("404", "There is no such thing"),
    ("408", "The body did not come in time"),
    ("413", "The body is too large"),
    ("415", "The body is no JSON"),
    ("429", "The key has used up what it may"),
];

/// The document about these routes.
pub(crate) fn document<'a>(routes: impl Iterator<Item = &'a Operation>) -> Value {
    let (mut paths, mut schemas): (Map<String, Value>, Map<String, Value>) = Default::default();
    for route in routes {
        if let Some(body) = route.body {
            body.define(&mut schemas);
        }
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method.as_str().to_lowercase()] = operation(route);
    }
    schemas.extend(answers());
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "kernmill",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Fields that are not listed are taken, mean nothing, and are named in the header \
                x-kernmill-unknown-fields. A field that is null is one that is not there.",
        },
        "security": [{ "bearer": [] }, { "key": [] }, {}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "bearer": { "type": "http", "scheme": "bearer" },
                "key": { "type": "apiKey", "in": "header", "name": "x-api-key" },
            },
        },
    })
}

fn operation(route: &Operation) -> Value {
    let of = |name: &str| json!({ "$ref": format!("#/components/schemas/{name}") });
    let is_text = matches!(route.answer, "Metrics" | "Page");
    let mut content = json!({});
    match route.answer {
        "Metrics" => content["application/openmetrics-text"] = json!({ "schema": { "type": "string" } }),
        "Page" => content["text/html"] = json!({ "schema": { "type": "string" } }),
        name => content["application/json"] = json!({ "schema": of(name) }),
    }
    let streams = ["/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages"];
    if streams.contains(&route.path) && !is_text {
        content["text/event-stream"] = json!({ "schema": { "type": "string" } });
    }
    if matches!(route.path, "/api/chat" | "/api/generate") {
        content["application/x-ndjson"] = json!({ "schema": of(route.answer) });
    }
    let mut responses = json!({ "200": { "description": route.about, "content": content } });
    let error = match route.path {
        path if path.starts_with("/v1/messages") => "AnthropicError",
        path if path.starts_with("/api/") => "OllamaError",
        _ => "Error",
    };
    let errors = ERRORS.into_iter().chain([("503", "There is too much to do, or the server ends")]);
    for (status, about) in errors {
        let content = json!({ "application/json": { "schema": of(error) } });
        responses[status] = json!({ "description": about, "content": content });
    }
    let mut operation = json!({ "summary": route.about, "responses": responses });
    if let Some(body) = route.body {
        let content = json!({ "application/json": { "schema": of(body.name()) } });
        operation["requestBody"] = json!({ "required": true, "content": content });
    }
    let mut parameters = Vec::new();
    for name in ["id", "name"].into_iter().filter(|name| route.path.contains(&format!("{{{name}}}"))) {
        let schema = json!({ "type": "string", "minLength": 1 });
        parameters.push(json!({ "name": name, "in": "path", "required": true, "schema": schema }));
    }
    if route.path.ends_with("input_items") {
        for (name, schema) in [
            ("limit", json!({ "type": "integer", "minimum": 1, "maximum": 100, "default": 20 })),
            ("order", json!({ "enum": ["asc", "desc"], "default": "desc" })),
            ("after", json!({ "type": "string" })),
        ] {
            parameters.push(json!({ "name": name, "in": "query", "schema": schema }));
        }
    }
    if !parameters.is_empty() {
        operation["parameters"] = Value::Array(parameters);
    }
    operation
}

#[cfg(test)]
mod page;
#[cfg(test)]
mod tests;
