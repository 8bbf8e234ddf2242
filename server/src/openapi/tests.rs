use crate::limits;
use crate::routes::operations;
use crate::scripted::{Scripted, send, state};
use crate::state::ServerConfig;
use serde_json::{Map, Value, json};
use std::sync::Arc;

fn server() -> Arc<crate::state::ServerState> {
    let config = ServerConfig { grammars: true, ..ServerConfig::default() };
    state(Scripted::stops(&["Yes."]), config)
}

/// A server whose model makes what the route is for.
fn server_of(path: &str) -> Arc<crate::state::ServerState> {
    match path.contains("embed") || path == "/rerank" || path == "/score" {
        true => state(Scripted::vectors(), ServerConfig::default()),
        false => server(),
    }
}

fn document() -> Value {
    super::document(operations())
}

#[test]
fn every_schema_is_in_the_document() {
    let document = document();
    let text = document.to_string();
    let schemas = document["components"]["schemas"].as_object().unwrap();
    for name in text.split("#/components/schemas/").skip(1).map(|rest| rest.split('"').next().unwrap()) {
        assert!(schemas.contains_key(name), "there is no schema {name}");
    }
}

#[tokio::test]
async fn what_is_in_the_document_is_served() {
    let state = server();
    let document = document();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys() {
            let path = path.replace("{id}", "resp_1").replace("{name}", "none");
            let (status, _, text) = send(&state, &method.to_uppercase(), &path, "", &json!({})).await;
            let is_missing = text.contains("there is nothing at");
            assert!(status < 500 && status != 405 && !is_missing, "{method} {path}: {status} {text}");
        }
    }
}

/// The least body of each request that is served.
fn bodies() -> [(&'static str, &'static str, Value); 15] {
    let messages = json!([{ "role": "user", "content": "Hi" }]);
    [
        ("/v1/chat/completions", "ChatRequest", json!({ "messages": messages })),
        ("/v1/completions", "CompletionRequest", json!({ "prompt": "Hi" })),
        ("/v1/responses", "ResponsesRequest", json!({ "input": "Hi" })),
        ("/v1/messages", "MessagesRequest", json!({ "messages": messages, "max_tokens": 5 })),
        ("/v1/messages/count_tokens", "CountTokensRequest", json!({ "messages": messages })),
        ("/api/chat", "OllamaChatRequest", json!({ "messages": messages })),
        ("/api/generate", "OllamaGenerateRequest", json!({ "prompt": "Hi" })),
        ("/api/show", "OllamaShowRequest", json!({})),
        ("/tokenize", "TokenizeRequest", json!({ "prompt": "Hi" })),
        ("/detokenize", "DetokenizeRequest", json!({ "tokens": [1] })),
        ("/v1/embeddings", "EmbeddingsRequest", json!({ "input": "Hi" })),
        ("/rerank", "RerankRequest", json!({ "query": "Hi", "documents": ["Hi"] })),
        ("/score", "ScoreRequest", json!({ "text_1": "Hi", "text_2": "Hi" })),
        ("/api/embed", "OllamaEmbedRequest", json!({ "input": "Hi" })),
        ("/api/embeddings", "OllamaEmbeddingsRequest", json!({ "prompt": "Hi" })),
    ]
}

/// A value that a schema has, if it is not `null` alone.
fn value_of(schemas: &Map<String, Value>, schema: &Value) -> Value {
    if let Some(name) = schema["$ref"].as_str() {
        return value_of(schemas, &schemas[name.rsplit('/').next().unwrap()]);
    }
    if let Some(values) = schema["enum"].as_array().or(schema["examples"].as_array()) {
        return values[0].clone();
    }
    if let Some(any) = schema["anyOf"].as_array() {
        return value_of(schemas, &any[0]);
    }
    let kind = schema["type"].as_array().map_or(&schema["type"], |kinds| &kinds[0]);
    match kind.as_str() {
        Some("string") => json!("a"),
        Some("boolean") => json!(false),
        Some("integer") => {
            schema.get("minimum").filter(|least| least.as_i64() > Some(0)).cloned().unwrap_or(json!(1))
        }
        Some("number") => json!(1),
        Some("array") => {
            let least = schema["minItems"].as_u64().unwrap_or(0) as usize;
            Value::Array(vec![value_of(schemas, &schema["items"]); least])
        }
        Some("object") => {
            let required = schema["required"].as_array().cloned().unwrap_or_default();
            let field = |name: &Value| {
                let name = name.as_str().unwrap();
                (name.to_owned(), value_of(schemas, &schema["properties"][name]))
            };
            Value::Object(required.iter().map(field).collect())
        }
        _ => Value::Null,
    }
}

#[tokio::test]
async fn every_field_is_known_to_the_server() {
    let document = document();
    let schemas = document["components"]["schemas"].as_object().unwrap();
    for (path, name, least) in bodies() {
        let state = server_of(path);
        for (field, schema) in schemas[name]["properties"].as_object().unwrap() {
            let mut body = least.clone();
            if body[field].is_null() {
                body[field] = value_of(schemas, schema);
            }
            // One form at a time; what these ask for is tested elsewhere.
            const APART: [&str; 6] =
                ["tool_choice", "model", "lora_path", "previous_response_id", "top_logprobs", "prompt_name"];
            if APART.contains(&field.as_str()) {
                body[field] = Value::Null;
            }
            if field == "messages" && body["prompt"].is_string() {
                continue;
            }
            let (status, headers, text) = send(&state, "POST", path, "", &body).await;
            assert_eq!(status, 200, "{path} {body}: {text}");
            assert_eq!(headers.get("x-kernmill-unknown-fields"), None, "{path} {field}");
        }
        let mut body = least;
        body["no_such_field"] = json!(1);
        let (status, headers, _) = send(&state, "POST", path, "", &body).await;
        let is_told = headers.get("x-kernmill-unknown-fields").is_some();
        assert!(status == 200 && (is_told || path.contains("tokenize")), "{path}");
    }
}

/// Values just outside of what a schema permits.
fn outside(schema: &Value) -> Vec<Value> {
    let mut wrong = Vec::new();
    for (name, by) in [("minimum", -1.0), ("maximum", 1.0), ("exclusiveMinimum", 0.0)] {
        if let Some(end) = schema[name].as_f64() {
            let value = end + by;
            wrong.push(if value.fract() == 0.0 { json!(value as i64) } else { json!(value) });
        }
    }
    let items = |count: usize| match &schema["items"] {
        items if items["type"] == "string" => Value::Array(vec![json!("a"); count]),
        _ => Value::Array(vec![json!({ "role": "user", "content": "Hi" }); count]),
    };
    // One that needs more bytes than a body may have is refused for those.
    let most = schema["maxItems"].as_u64().filter(|most| *most < limits::BODY_BYTES as u64);
    wrong.extend(most.map(|most| items(most as usize + 1)));
    wrong.extend(schema["minItems"].as_u64().filter(|least| *least > 0).map(|_| json!([])));
    if let Some(most) = schema["maxProperties"].as_u64() {
        wrong.push(Value::Object((0..=most).map(|id| (id.to_string(), json!(1))).collect()));
    }
    wrong.extend(schema["minLength"].as_u64().map(|_| json!("")));
    if let Some(kinds) = schema["type"].as_array() {
        let other = if kinds[0] == "string" { json!(7) } else { json!("seven") };
        wrong.push(other);
    }
    for one in schema["anyOf"].as_array().into_iter().flatten() {
        wrong.extend(one["maxItems"].as_u64().map(|most| json!(vec!["a"; most as usize + 1])));
    }
    wrong
}

#[tokio::test]
async fn what_is_outside_of_a_schema_is_refused_with_the_fields_name() {
    let document = document();
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let mut count = 0;
    for (path, name, least) in bodies() {
        let state = server_of(path);
        for (field, schema) in schemas[name]["properties"].as_object().unwrap() {
            // The text of a request to /tokenize takes the place of these.
            if path == "/tokenize" && !matches!(field.as_str(), "prompt" | "add_special_tokens") {
                continue;
            }
            for wrong in outside(schema) {
                let mut body = least.clone();
                body[field] = wrong.clone();
                if path == "/v1/chat/completions" && field == "top_logprobs" {
                    body["logprobs"] = json!(true);
                }
                let (status, _, text) = send(&state, "POST", path, "", &body).await;
                let shown: String = body.to_string().chars().take(200).collect();
                assert_eq!(status, 400, "{path} {shown}: {text}");
                assert!(text.contains(field.as_str()), "{path} {shown}: {text}");
                count += 1;
            }
        }
    }
    assert!(count > 100, "{count}");
    assert!(document.to_string().contains(&format!("\"maxItems\":{}", limits::MESSAGES)));
}

/// Whether a value is one of a schema.
fn fits(schemas: &Map<String, Value>, schema: &Value, value: &Value) -> bool {
    if let Some(name) = schema["$ref"].as_str() {
        return fits(schemas, &schemas[name.rsplit('/').next().unwrap()], value);
    }
    let is_kind = |kind: &Value| match kind.as_str().unwrap() {
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => value.is_null(),
    };
    let kinds = schema.get("type").map(|kind| kind.as_array().cloned().unwrap_or(vec![kind.clone()]));
    let among = schema["enum"].as_array().is_none_or(|all| all.contains(value));
    let any = schema["anyOf"].as_array().is_none_or(|all| all.iter().any(|one| fits(schemas, one, value)));
    let has = |name: &Value| value.get(name.as_str().unwrap()).is_some();
    let whole = schema["required"].as_array().is_none_or(|names| value.is_null() || names.iter().all(has));
    let members = value.as_object().into_iter().flatten().all(|(name, member)| {
        schema["properties"].get(name).is_none_or(|schema| fits(schemas, schema, member))
    });
    let items = value.as_array().into_iter().flatten();
    let listed = schema.get("items").is_none_or(|item| items.into_iter().all(|one| fits(schemas, item, one)));
    kinds.is_none_or(|kinds| kinds.iter().any(is_kind)) && among && any && whole && members && listed
}

#[test]
fn the_requests_of_the_documents_are_those_of_the_schemas() {
    let document = document();
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let text = include_str!("../../../docs/user/serve.md");
    let blocks = text.split("```json\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let curl = text.split("-d '").skip(1).map(|rest| rest.split('\'').next().unwrap());
    let mut seen = Vec::new();
    for example in blocks.chain(curl) {
        let body: Value = serde_json::from_str(example).unwrap();
        let name = if body.get("rules").is_some() {
            continue;
        } else if body.get("name").is_some() {
            "SessionRequest"
        } else if body.get("input").is_some() {
            "ResponsesRequest"
        } else {
            "ChatRequest"
        };
        for field in body.as_object().unwrap().keys() {
            assert!(schemas[name]["properties"].get(field).is_some(), "{name} has no {field}");
        }
        assert!(fits(schemas, &schemas[name], &body), "{name}: {example}");
        let mut wrong = body.clone();
        wrong["model"] = json!(7);
        assert!(!fits(schemas, &schemas[name], &wrong), "{name}");
        seen.push(name);
    }
    assert_eq!(seen, ["ResponsesRequest", "SessionRequest", "ChatRequest"]);
}
