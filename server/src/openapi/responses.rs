//! Schemas of responses: what clients may count on.

use super::schema::{about, object, of};
use serde_json::{Map, Value, json};

fn string() -> Value {
    json!({ "type": "string" })
}

fn count() -> Value {
    json!({ "type": "integer", "minimum": 0 })
}

fn number() -> Value {
    json!({ "type": "number" })
}

fn maybe(schema: Value) -> Value {
    json!({ "anyOf": [schema, { "type": "null" }] })
}

fn word(word: &str) -> Value {
    json!({ "const": word })
}

fn list(items: Value) -> Value {
    json!({ "type": "array", "items": items })
}

fn anything() -> Value {
    json!({ "type": "object" })
}

/// Schemas of responses by their names.
pub fn responses() -> Map<String, Value> {
    let usage = object(
        &["prompt_tokens", "completion_tokens", "total_tokens"],
        [
            ("prompt_tokens", count()),
            ("completion_tokens", count()),
            ("total_tokens", count()),
            ("prompt_tokens_details", object(&["cached_tokens"], [("cached_tokens", count())])),
            ("completion_tokens_details", object(&["reasoning_tokens"], [("reasoning_tokens", count())])),
        ],
    );
    let head = |kind: &str, choices: Value| {
        object(
            &["id", "object", "created", "model", "system_fingerprint", "choices", "usage"],
            [
                ("id", string()),
                ("object", word(kind)),
                ("created", count()),
                ("model", string()),
                ("system_fingerprint", string()),
                ("choices", list(choices)),
                ("usage", usage.clone()),
                ("kernmill", about(anything(), "Seed, times and speed of the answer")),
            ],
        )
    };
    let ends = json!({ "enum": ["stop", "length", "tool_calls"] });
    let message = object(
        &["role", "content", "refusal"],
        [
            ("role", word("assistant")),
            ("content", maybe(string())),
            ("refusal", json!({ "type": "null" })),
            ("reasoning", string()),
            ("reasoning_content", string()),
            ("tool_calls", list(anything())),
        ],
    );
    let status = object(&["status"], [("status", string())]);
    let items = list(object(&["type"], [("type", string())]));
    let schemas = [
        (
            "ChatCompletion",
            head(
                "chat.completion",
                object(
                    &["index", "message", "finish_reason"],
                    [
                        ("index", count()),
                        ("message", message),
                        ("logprobs", maybe(anything())),
                        ("finish_reason", ends.clone()),
                    ],
                ),
            ),
        ),
        (
            "Completion",
            head(
                "text_completion",
                object(
                    &["index", "text", "finish_reason"],
                    [
                        ("index", count()),
                        ("text", string()),
                        ("logprobs", maybe(anything())),
                        ("finish_reason", ends),
                    ],
                ),
            ),
        ),
        (
            "Response",
            object(
                &["id", "object", "created_at", "status", "output", "usage", "model"],
                [
                    ("id", string()),
                    ("object", word("response")),
                    ("created_at", count()),
                    ("status", json!({ "enum": ["completed", "incomplete"] })),
                    ("output", items.clone()),
                    ("usage", anything()),
                    ("model", string()),
                ],
            ),
        ),
        (
            "InputTokens",
            object(
                &["object", "input_tokens"],
                [("object", word("response.input_tokens")), ("input_tokens", count())],
            ),
        ),
        (
            "Compaction",
            object(
                &["id", "object", "created_at", "output", "usage"],
                [
                    ("id", string()),
                    ("object", word("response.compaction")),
                    ("created_at", count()),
                    ("output", items.clone()),
                    ("usage", anything()),
                ],
            ),
        ),
        (
            "Items",
            object(
                &["object", "data", "first_id", "last_id", "has_more"],
                [
                    ("object", word("list")),
                    ("data", items),
                    ("first_id", maybe(string())),
                    ("last_id", maybe(string())),
                    ("has_more", json!({ "type": "boolean" })),
                ],
            ),
        ),
        (
            "Message",
            object(
                &["id", "type", "role", "content", "model", "stop_reason", "usage"],
                [
                    ("id", string()),
                    ("type", word("message")),
                    ("role", word("assistant")),
                    ("content", list(anything())),
                    ("model", string()),
                    ("stop_reason", string()),
                    ("usage", anything()),
                ],
            ),
        ),
        ("CountedTokens", object(&["input_tokens"], [("input_tokens", count())])),
        ("Models", object(&["object", "data"], [("object", word("list")), ("data", list(of("Model")))])),
        (
            "Model",
            object(
                &["id", "object", "created", "owned_by", "root", "parent", "max_model_len"],
                [
                    ("id", string()),
                    ("object", word("model")),
                    ("created", count()),
                    ("owned_by", string()),
                    ("root", string()),
                    ("parent", maybe(string())),
                    ("max_model_len", count()),
                ],
            ),
        ),
        (
            "Tokens",
            object(
                &["count", "max_model_len", "tokens"],
                [
                    ("count", count()),
                    ("max_model_len", count()),
                    ("tokens", list(count())),
                    ("token_strs", maybe(list(string()))),
                ],
            ),
        ),
        ("Text", object(&["prompt"], [("prompt", string())])),
        (
            "TokenizerInfo",
            object(
                &["vocab_size", "model_max_length", "chat_format"],
                [("vocab_size", count()), ("model_max_length", count()), ("chat_format", string())],
            ),
        ),
        ("AdapterStatus", object(&["status", "lora_name"], [("status", string()), ("lora_name", string())])),
        (
            "Session",
            object(
                &["object", "name", "model", "tokens", "bytes", "created"],
                [
                    ("object", word("session")),
                    ("name", string()),
                    ("model", string()),
                    ("tokens", count()),
                    ("bytes", count()),
                    ("created", count()),
                    ("saved_tokens", count()),
                    ("restored_tokens", count()),
                    ("token_ids", list(count())),
                ],
            ),
        ),
        ("Sessions", object(&["object", "data"], [("object", word("list")), ("data", list(of("Session")))])),
        (
            "Deleted",
            object(&["object", "deleted"], [("object", string()), ("deleted", json!({ "const": true }))]),
        ),
        ("Status", status),
        (
            "Loads",
            object(
                &["waiting", "running", "kv", "generated_tokens", "uptime_seconds"],
                [
                    ("waiting", anything()),
                    ("running", anything()),
                    ("kv", anything()),
                    ("generated_tokens", count()),
                    ("uptime_seconds", number()),
                ],
            ),
        ),
        ("Version", object(&["version"], [("version", string())])),
        ("OpenApi", object(&["openapi", "paths"], [("openapi", string()), ("paths", anything())])),
        (
            "Draining",
            object(
                &["status", "seconds", "at"],
                [("status", string()), ("seconds", number()), ("at", count())],
            ),
        ),
        (
            "Error",
            object(
                &["error"],
                [
                    (
                        "error",
                        object(
                            &["message", "type", "param", "code"],
                            [
                                ("message", string()),
                                ("type", string()),
                                ("param", maybe(string())),
                                ("code", maybe(string())),
                            ],
                        ),
                    ),
                    ("request_id", string()),
                ],
            ),
        ),
        (
            "AnthropicError",
            object(
                &["type", "error"],
                [
                    ("type", word("error")),
                    ("error", object(&["type", "message"], [("type", string()), ("message", string())])),
                    ("request_id", string()),
                ],
            ),
        ),
    ];
    schemas.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect()
}
