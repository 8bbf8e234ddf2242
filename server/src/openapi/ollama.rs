//! Schemas of Ollama's API.

use super::requests::{function, name, sampling, stops};
use super::schema::{about, any, anything, flag, list, maybe, number, object, of, one_of, text, whole, with};
use crate::chat::tools::NAME;
use crate::limits;
use crate::ollama::OF_THE_MACHINE;
use serde_json::{Map, Value, json};

/// Most tokens that a request may ask for; the context may hold fewer.
const TOKENS: u64 = u32::MAX as u64;

/// A field that is served only where it says nothing.
fn nothing(values: Value) -> Value {
    about(json!({ "enum": values }), "Is not served")
}

/// A list that is served only where it is empty.
fn empty() -> Value {
    about(json!({ "type": ["array", "null"], "maxItems": 0 }), "Is not served")
}

/// Options: sampling by Ollama's names, and what is taken and changes nothing.
fn options() -> Value {
    let predict = json!({ "type": ["integer", "null"], "minimum": -2, "maximum": TOKENS });
    let fields = maybe(
        &[],
        [
            ("num_predict", about(predict, "-2, -1 and 0 are no limit")),
            ("repeat_penalty", number(0.01, 100.0)),
            ("stop", stops()),
        ],
    );
    // These are no options, or have other names.
    const OWN: [&str; 4] = ["cache_salt", "lora_path", "repetition_penalty", "service_tier"];
    let sampling = sampling().into_iter();
    let sampling: Vec<(&str, Value)> = sampling.filter(|(name, _)| !OWN.contains(name)).collect();
    let passed = |name: &&'static str| (*name, about(anything(), "Is taken, and changes nothing"));
    let passed: Vec<(&str, Value)> = OF_THE_MACHINE.iter().map(passed).collect();
    with(with(fields, &sampling), &passed)
}

/// Fields that both routes have.
fn common() -> Vec<(&'static str, Value)> {
    let form = any(vec![one_of(&["json", ""]), json!({ "type": "object" })]);
    let think =
        json!({ "enum": [true, false, "none", "minimal", "low", "medium", "high", "xhigh", "max", null] });
    vec![
        ("model", json!({ "type": "string" })),
        ("format", about(form, "`json`, or a JSON schema")),
        ("options", of("OllamaOptions")),
        ("stream", about(flag(), "True without it")),
        ("think", think),
        ("logprobs", flag()),
        ("top_logprobs", about(whole(0, limits::TOP_LOGPROBS), "Needs logprobs")),
        ("keep_alive", about(anything(), "Is taken, and changes nothing: the model stays")),
        ("service_tier", text()),
    ]
}

fn message() -> Value {
    let function =
        object(&["name"], [("name", name(NAME)), ("arguments", json!({ "type": ["object", "null"] }))]);
    let call = object(&["function"], [("id", text()), ("function", function)]);
    object(
        &["role"],
        [
            ("role", json!({ "enum": ["system", "developer", "user", "assistant", "tool"] })),
            ("content", text()),
            ("thinking", text()),
            ("images", empty()),
            ("tool_calls", list(call, limits::TOOLS)),
            ("tool_name", about(text(), "The function that a tool's message has the result of")),
            ("name", text()),
            ("tool_call_id", text()),
        ],
    )
}

/// The figures at the end of an answer, and in the last line of a stream.
fn figures() -> Vec<(&'static str, Value)> {
    let counts = [
        "total_duration",
        "load_duration",
        "prompt_eval_count",
        "prompt_eval_duration",
        "eval_count",
        "eval_duration",
    ];
    let count = |name| (name, json!({ "type": "integer", "minimum": 0 }));
    let ends = ("done_reason", json!({ "enum": ["stop", "length", "load"] }));
    counts.into_iter().map(count).chain([ends]).collect()
}

/// An answer whose text is in the field `said`.
fn answer(said: &'static str, schema: Value) -> Value {
    let string = || json!({ "type": "string" });
    let fields = object(
        &["model", "created_at", "done", said],
        [
            ("model", string()),
            ("created_at", string()),
            ("done", json!({ "type": "boolean" })),
            ("logprobs", json!({ "type": "array" })),
            (said, schema),
        ],
    );
    with(fields, &figures())
}

/// Schemas of requests and responses by their names.
pub fn schemas() -> Map<String, Value> {
    let string = || json!({ "type": "string" });
    let said = || [("thinking", string()), ("tool_calls", json!({ "type": "array" }))];
    let tool = object(
        &["function"],
        [("type", json!({ "const": "function" })), ("function", function("parameters", NAME))],
    );
    let chat = object(
        &["model"],
        [("messages", list(of("OllamaMessage"), limits::MESSAGES)), ("tools", list(tool, limits::TOOLS))],
    );
    let generate = object(
        &["model"],
        [
            ("prompt", text()),
            ("system", text()),
            ("raw", about(flag(), "The prompt goes to the model as it stands")),
            ("suffix", nothing(json!(["", null]))),
            ("template", nothing(json!(["", null]))),
            ("context", empty()),
            ("images", empty()),
        ],
    );
    let message = with(
        object(&["role", "content"], [("role", json!({ "const": "assistant" })), ("content", string())]),
        &said(),
    );
    let models = object(&["models"], [("models", json!({ "type": "array", "items": { "type": "object" } }))]);
    let shown = object(
        &["details", "model_info", "capabilities"],
        [
            ("details", json!({ "type": "object" })),
            ("model_info", json!({ "type": "object" })),
            ("capabilities", json!({ "type": "array", "items": { "type": "string" } })),
        ],
    );
    let schemas = [
        ("OllamaOptions", options()),
        ("OllamaMessage", self::message()),
        ("OllamaChatRequest", with(chat, &common())),
        ("OllamaGenerateRequest", with(generate, &common())),
        ("OllamaShowRequest", object(&[], [("model", text()), ("name", text()), ("verbose", flag())])),
        ("OllamaChat", answer("message", message)),
        ("OllamaText", with(answer("response", string()), &said())),
        ("OllamaModels", models),
        ("OllamaModel", shown),
        ("OllamaVersion", object(&["version"], [("version", string()), ("kernmill", string())])),
        ("OllamaError", object(&["error"], [("error", string()), ("request_id", string())])),
    ];
    schemas.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect()
}
