//! `/openapi.json`: all routes, and the fields of their requests with their limits.
//!
//! Requests are read field by field, so that errors name what is wrong; no types of theirs could have the
//! schemas derived. The tests hold these to the reading instead: every field is known to it, of no other
//! type, and within no other limits.

mod ollama;
mod requests;
mod responses;
mod schema;

use requests::requests;
use responses::responses;
use serde_json::{Map, Value, json};

/// A route.
struct Route {
    path: &'static str,
    method: &'static str,
    about: &'static str,
    /// Schema of the request's body, if there is one.
    body: Option<&'static str>,
    /// Schema of the response.
    answer: &'static str,
}

const fn post(
    path: &'static str,
    body: Option<&'static str>,
    answer: &'static str,
    about: &'static str,
) -> Route {
    Route { path, method: "post", about, body, answer }
}

const fn get(path: &'static str, answer: &'static str, about: &'static str) -> Route {
    Route { path, method: "get", about, body: None, answer }
}

const fn delete(path: &'static str, about: &'static str) -> Route {
    Route { path, method: "delete", about, body: None, answer: "Deleted" }
}

const ROUTES: [Route; 42] = [
    post("/v1/chat/completions", Some("ChatRequest"), "ChatCompletion", "Answers a conversation"),
    post("/v1/completions", Some("CompletionRequest"), "Completion", "Goes on with texts"),
    post("/v1/responses", Some("ResponsesRequest"), "Response", "Answers a conversation of items"),
    post(
        "/v1/responses/input_tokens",
        Some("ResponsesRequest"),
        "InputTokens",
        "Counts the tokens of a request",
    ),
    post("/v1/responses/compact", Some("ResponsesRequest"), "Compaction", "Summarises a conversation"),
    get("/v1/responses/{id}", "Response", "A stored response"),
    delete("/v1/responses/{id}", "Forgets a stored response"),
    get("/v1/responses/{id}/input_items", "Items", "The items of a stored response's request"),
    post("/v1/responses/{id}/cancel", None, "Response", "Says how a response is cancelled"),
    post("/v1/messages", Some("MessagesRequest"), "Message", "Answers messages of Anthropic's API"),
    post(
        "/v1/messages/count_tokens",
        Some("CountTokensRequest"),
        "CountedTokens",
        "Counts the tokens of messages",
    ),
    post("/api/chat", Some("OllamaChatRequest"), "OllamaChat", "Answers a conversation of Ollama's API"),
    post("/api/generate", Some("OllamaGenerateRequest"), "OllamaText", "Answers a text, or goes on with it"),
    post("/api/show", Some("OllamaShowRequest"), "OllamaModel", "What a model is and can do"),
    get("/api/tags", "OllamaModels", "The model, its adapters and their other names, as Ollama lists them"),
    get("/api/ps", "OllamaModels", "The same, as models that are in memory"),
    get("/api/version", "OllamaVersion", "The version of Ollama whose API is served"),
    get("/v1/models", "Models", "The model, its adapters and their other names"),
    get("/v1/models/{name}", "Model", "A model or adapter"),
    post("/tokenize", Some("TokenizeRequest"), "Tokens", "Ids of a text or conversation"),
    post("/detokenize", Some("DetokenizeRequest"), "Text", "The text of ids"),
    get("/tokenizer_info", "TokenizerInfo", "What a client that counts tokens needs"),
    post("/v1/load_lora_adapter", Some("LoadAdapterRequest"), "AdapterStatus", "Loads an adapter"),
    post("/v1/unload_lora_adapter", Some("UnloadAdapterRequest"), "AdapterStatus", "Forgets an adapter"),
    get("/v1/sessions", "Sessions", "The sessions of the key"),
    post("/v1/sessions", Some("SessionRequest"), "Session", "Saves a session"),
    get("/v1/sessions/{name}", "Session", "A session with its token ids"),
    delete("/v1/sessions/{name}", "Deletes a session"),
    post("/v1/sessions/{name}/restore", None, "Session", "Brings a session into the prefix cache"),
    post("/v1/embeddings", None, "Error", "Is not served: the model makes texts"),
    get("/health", "Status", "Whether the engine works"),
    get("/v1/health", "Status", "Whether the engine works"),
    get("/ping", "Status", "Whether the engine works"),
    get("/ready", "Status", "Whether requests are taken up"),
    get("/metrics", "Metrics", "Figures for Prometheus"),
    get("/v1/loads", "Loads", "What waits and runs"),
    get("/version", "Version", "The version"),
    get("/openapi.json", "OpenApi", "This document"),
    get("/", "Page", "A page to talk with the model"),
    post("/drain", None, "Draining", "Ends the taking up of requests"),
    // Clients ask for the head alone, to see whether there is a server.
    Route {
        path: "/health",
        method: "head",
        about: "Whether the engine works",
        body: None,
        answer: "Status",
    },
    Route { path: "/", method: "head", about: "Whether there is a page", body: None, answer: "Page" },
];

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

/// The document.
pub fn document() -> Value {
    let mut paths: Map<String, Value> = Map::new();
    for route in &ROUTES {
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method] = operation(route);
    }
    let mut schemas = requests();
    schemas.extend(responses());
    schemas.extend(ollama::schemas());
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "kernmill",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Fields that are not listed are taken, mean nothing, and are named in the header x-kernmill-unknown-fields. A field that is null is one that is not there.",
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

fn operation(route: &Route) -> Value {
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
        let content = json!({ "application/json": { "schema": of(body) } });
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
mod tests;
