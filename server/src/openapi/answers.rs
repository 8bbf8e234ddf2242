//! Schemas of answers: what clients may count on.

use serde_json::{Map, Value, json};

/// The schema of a value. In an object, what stands behind `;` is not always there.
macro_rules! value {
    (string) => { json!({ "type": "string" }) };
    (count) => { json!({ "type": "integer", "minimum": 0 }) };
    (number) => { json!({ "type": "number" }) };
    (flag) => { json!({ "type": "boolean" }) };
    (null) => { json!({ "type": "null" }) };
    (object) => { json!({ "type": "object" }) };
    ($word:literal) => { json!({ "const": $word }) };
    ($name:ident) => { json!({ "$ref": concat!("#/components/schemas/", stringify!($name)) }) };
    ([]) => { json!({ "type": "array" }) };
    ([$of:tt]) => { json!({ "type": "array", "items": value!($of) }) };
    (($of:tt ?)) => { json!({ "anyOf": [value!($of), { "type": "null" }] }) };
    (($($word:literal)|+)) => { json!({ "enum": [$($word),+] }) };
    (($of:tt, $about:literal)) => { about(value!($of), $about) };
    ({ $($always:ident: $of:tt),*; $($more:ident: $maybe:tt),* }) => {
        object(
            vec![$((stringify!($always), value!($of))),*],
            vec![$((stringify!($more), value!($maybe))),*],
        )
    };
}

macro_rules! answers {
    ($($name:ident $fields:tt)*) => {
        /// Schemas of answers by their names.
        pub fn answers() -> Map<String, Value> {
            [$((stringify!($name).to_owned(), value!($fields))),*].into_iter().collect()
        }
    };
}

fn about(mut schema: Value, sentence: &str) -> Value {
    schema["description"] = json!(sentence);
    schema
}

fn object(always: Vec<(&str, Value)>, sometimes: Vec<(&str, Value)>) -> Value {
    let required: Vec<&str> = always.iter().map(|(name, _)| *name).collect();
    let fields = always.iter().chain(&sometimes);
    let fields: Map<String, Value> =
        fields.map(|(name, schema)| ((*name).to_owned(), schema.clone())).collect();
    json!({ "type": "object", "required": required, "properties": fields })
}

answers! {
    Usage { prompt_tokens: count, completion_tokens: count, total_tokens: count;
        prompt_tokens_details: { cached_tokens: count; },
        completion_tokens_details: { reasoning_tokens: count; } }
    ChatCompletion { id: string, object: "chat.completion", created: count, model: string,
        system_fingerprint: string,
        choices: [{ index: count, finish_reason: ("stop" | "length" | "tool_calls"),
            message: { role: "assistant", content: (string?), refusal: null;
                reasoning: string, reasoning_content: string, tool_calls: [object] };
            logprobs: (object?) }],
        usage: Usage; kernmill: (object, "Seed, times and speed of the answer") }
    Completion { id: string, object: "text_completion", created: count, model: string,
        system_fingerprint: string,
        choices: [{ index: count, text: string, finish_reason: ("stop" | "length" | "tool_calls");
            logprobs: (object?) }],
        usage: Usage; kernmill: (object, "Seed, times and speed of the answer") }
    Response { id: string, object: "response", created_at: count, status: ("completed" | "incomplete"),
        output: [{ type: string; }], usage: object, model: string; }
    InputTokens { object: "response.input_tokens", input_tokens: count; }
    Compaction { id: string, object: "response.compaction", created_at: count, output: [{ type: string; }],
        usage: object; }
    Items { object: "list", data: [{ type: string; }], first_id: (string?), last_id: (string?),
        has_more: flag; }
    Message { id: string, type: "message", role: "assistant", content: [object], model: string,
        stop_reason: string, usage: object; }
    CountedTokens { input_tokens: count; }
    Models { object: "list", data: [Model]; }
    Model { id: string, object: "model", created: count, owned_by: string, root: string, parent: (string?),
        max_model_len: count, capabilities: [string]; }
    Embeddings { object: "list", model: string, usage: { prompt_tokens: count, total_tokens: count; },
        data: [{ object: "embedding", index: count,
            embedding: ([number], "Or f32 in base64, where that was asked for"); }]; }
    Rerank { id: string, model: string, usage: { prompt_tokens: count, total_tokens: count; },
        results: [{ index: count, relevance_score: number; document: { text: string; } }], meta: object; }
    Scores { id: string, object: "list", created: count, model: string,
        usage: { prompt_tokens: count, total_tokens: count; },
        data: [{ index: count, object: "score", score: number; }]; }
    Tokens { count: count, max_model_len: count, tokens: [count]; token_strs: ([string]?) }
    Text { prompt: string; }
    TokenizerInfo { vocab_size: count, model_max_length: count, chat_format: string; }
    AdapterStatus { status: string, lora_name: string; }
    Session { object: "session", name: string, model: string, tokens: count, bytes: count, created: count;
        saved_tokens: count, restored_tokens: count, token_ids: [count] }
    Sessions { object: "list", data: [Session]; }
    Deleted { object: string, deleted: true; }
    Status { status: string; }
    Loads { waiting: object, running: object, kv: object, generated_tokens: count, uptime_seconds: number; }
    Version { version: string; }
    OpenApi { openapi: string, paths: object; }
    Draining { status: string, seconds: number, at: count; }
    Error { error: { message: string, type: string, param: (string?), code: (string?); };
        request_id: string }
    AnthropicError { type: "error", error: { type: string, message: string; }; request_id: string }
    OllamaChat { model: string, created_at: string, done: flag,
        message: { role: "assistant", content: string; thinking: string, tool_calls: [] };
        logprobs: [], total_duration: count, load_duration: count, prompt_eval_count: count,
        prompt_eval_duration: count, eval_count: count, eval_duration: count,
        done_reason: ("stop" | "length" | "load") }
    OllamaText { model: string, created_at: string, done: flag, response: string;
        thinking: string, tool_calls: [], logprobs: [], total_duration: count, load_duration: count,
        prompt_eval_count: count, prompt_eval_duration: count, eval_count: count, eval_duration: count,
        done_reason: ("stop" | "length" | "load") }
    OllamaModels { models: [object]; }
    OllamaModel { details: object, model_info: object, capabilities: [string]; }
    OllamaVectors { model: string, embeddings: [[number]], total_duration: count, load_duration: count,
        prompt_eval_count: count; }
    OllamaVector { embedding: [number]; }
    OllamaVersion { version: string, kernmill: string; }
    OllamaError { error: string, request_id: string; }
}
