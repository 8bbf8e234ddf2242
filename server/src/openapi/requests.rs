//! Schemas of requests.

use super::schema::{
    about, any, anything, flag, list, maybe, number, object, of, one_of, some, text, whole, with,
};
use crate::chat::request::PASSED_OVER;
use crate::chat::tools::NAME;
use crate::limits;
use crate::sampling::REFUSED;
use serde_json::{Map, Value, json};

/// Most tokens that a request may ask for; the context may hold fewer.
const TOKENS: u64 = u32::MAX as u64;

/// Efforts of reasoning.
const EFFORTS: [&str; 7] = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];

/// A name that a function has, of at most so many letters.
pub fn name(most: usize) -> Value {
    json!({ "type": "string", "pattern": format!("^[A-Za-z0-9_.-]{{1,{most}}}$") })
}

/// Fields of OpenAI's routes that other servers have for the form of an answer, and the tokens that end it.
fn forms() -> Vec<(&'static str, Value)> {
    let schema = json!({ "type": ["object", "string", "null"] });
    let choice = json!({
        "type": ["array", "null"],
        "items": { "type": "string" },
        "minItems": 1,
        "maxItems": limits::MESSAGES,
    });
    let grammar = json!({ "type": ["string", "null"], "examples": ["start: \"yes\" | \"no\""] });
    let permitted = |schema| about(schema, "Needs the option --allow-grammars");
    let (regex, grammar) =
        (permitted(text()), about(grammar, "Lark's syntax; needs the option --allow-grammars"));
    let outputs = [
        ("json", schema.clone()),
        ("regex", regex.clone()),
        ("choice", choice.clone()),
        ("grammar", grammar.clone()),
        ("json_object", flag()),
    ];
    let id = json!({ "type": "integer", "minimum": 0 });
    let mut fields = vec![
        ("structured_outputs", about(maybe(&[], outputs), "One of them")),
        ("guided_json", schema.clone()),
        ("guided_regex", regex.clone()),
        ("guided_choice", choice),
        ("guided_grammar", grammar.clone()),
        ("json_schema", schema),
        ("regex", regex),
        ("grammar", grammar.clone()),
        ("ebnf", grammar),
        ("stop_token_ids", list(id, limits::BIASES)),
    ];
    fields.extend(REFUSED.map(|(name, help)| {
        (name, about(json!({ "enum": [false, null] }), &format!("Is not served: {help}")))
    }));
    fields
}

/// A form of the answer, with a schema of its own or of one inside.
fn format() -> Value {
    let inner = maybe(&["schema"], schema_format());
    let fields = [
        ("type", json!({ "enum": ["text", "json_object", "json_schema"] })),
        ("json_schema", inner),
        ("value", json!({ "type": ["object", "null"] })),
    ];
    with(maybe(&["type"], fields), &schema_format())
}

/// Fields of sampling, of adapters and of the prefix cache, which all APIs have.
pub fn sampling() -> Vec<(&'static str, Value)> {
    let biases = json!({
        "type": ["object", "null"],
        "maxProperties": limits::BIASES,
        "additionalProperties": { "type": "number", "minimum": -100, "maximum": 100 },
    });
    let top_p = json!({ "type": ["number", "null"], "exclusiveMinimum": 0, "maximum": 1 });
    let salt = json!({ "type": ["string", "null"], "minLength": 1 });
    vec![
        ("temperature", number(0.0, 100.0)),
        ("top_p", top_p),
        ("top_k", about(json!({ "type": ["integer", "null"], "minimum": -1 }), "-1 and 0 are all tokens")),
        ("min_p", number(0.0, 1.0)),
        ("repetition_penalty", number(0.01, 100.0)),
        ("presence_penalty", number(-2.0, 2.0)),
        ("frequency_penalty", number(-2.0, 2.0)),
        ("logit_bias", about(biases, "By token id; -100 forbids a token")),
        ("seed", json!({ "type": ["integer", "null"] })),
        ("service_tier", text()),
        ("lora_path", about(text(), "Name of an adapter, where model has the model's own name")),
        ("cache_salt", about(salt, "Cached prompts are shared by requests with the same salt alone")),
    ]
}

/// Strings that end a text.
pub fn stops() -> Value {
    let stop = json!({ "type": "string", "minLength": 1, "maxLength": limits::STOP_BYTES });
    let several = json!({ "type": "array", "items": stop, "maxItems": limits::STOPS });
    about(any(vec![stop, several, json!({ "type": "null" })]), "Lengths are in bytes")
}

/// A text, or parts of text.
fn content() -> Value {
    any(vec![json!({ "type": "string" }), json!({ "type": "array", "items": of("TextPart") })])
}

fn own() -> Value {
    let form = |text| about(text, "A form of the text; needs the option --allow-grammars");
    maybe(
        &[],
        [("regex", form(text())), ("lark", form(text())), ("grammar", form(text())), ("drafts", flag())],
    )
}

fn effort() -> Value {
    one_of(&EFFORTS)
}

fn passed_over(names: &[&'static str]) -> Vec<(&'static str, Value)> {
    names.iter().map(|name| (*name, about(anything(), "Is taken, and changes nothing"))).collect()
}

fn message() -> Value {
    let call = object(
        &["id", "function"],
        [
            ("id", json!({ "type": "string" })),
            ("type", json!({ "const": "function" })),
            (
                "function",
                object(
                    &["name"],
                    [("name", name(NAME)), ("arguments", any(vec![text(), json!({ "type": "object" })]))],
                ),
            ),
        ],
    );
    let input = json!({ "type": "string" });
    let custom = object(
        &["id", "custom"],
        [
            ("id", json!({ "type": "string" })),
            ("type", json!({ "const": "custom" })),
            ("custom", object(&["name", "input"], [("name", name(NAME)), ("input", input)])),
        ],
    );
    let call = any(vec![call, custom]);
    let older = maybe(
        &["name"],
        [("name", name(NAME)), ("arguments", any(vec![text(), json!({ "type": "object" })]))],
    );
    let role = json!({ "enum": ["system", "developer", "user", "assistant", "tool", "function"] });
    object(
        &["role"],
        [
            ("role", role),
            ("content", any(vec![content(), json!({ "type": "null" })])),
            ("name", text()),
            ("reasoning_content", text()),
            ("reasoning", text()),
            ("thinking", text()),
            ("refusal", text()),
            ("tool_calls", list(call, limits::TOOLS)),
            ("function_call", about(older, "The older form of tool_calls")),
            ("tool_call_id", about(text(), "Of a tool's message: the id of a call before it")),
        ],
    )
}

/// A function's fields: a name of at most so many letters, and the schema of its arguments under this name.
pub fn function(parameters: &str, most: usize) -> Value {
    let schema = json!({ "type": ["object", "null"] });
    object(
        &["name"],
        [("name", name(most)), ("description", text()), (parameters, schema), ("strict", flag())],
    )
}

/// A custom tool's fields, with the fields of a grammar in their format or in an object of it.
fn custom(is_flat: bool) -> Value {
    let grammar = [("syntax", one_of(&["lark", "regex"])), ("definition", json!({ "type": "string" }))];
    let kind = ("type", json!({ "const": "grammar" }));
    let grammar = if is_flat {
        with(object(&["type", "syntax", "definition"], grammar), &[kind])
    } else {
        object(&["type", "grammar"], [kind, ("grammar", object(&["syntax", "definition"], grammar))])
    };
    let plain = object(&["type"], [("type", json!({ "const": "text" }))]);
    let format = any(vec![plain, grammar, json!({ "type": "null" })]);
    object(&["name"], [("name", name(NAME)), ("description", text()), ("format", format)])
}

fn schema_format() -> [(&'static str, Value); 4] {
    [("name", text()), ("description", text()), ("schema", json!({ "type": "object" })), ("strict", flag())]
}

/// Fields of a choice among some of the functions.
fn allowed() -> [(&'static str, Value); 2] {
    [("mode", one_of(&["auto", "required"])), ("tools", list(json!({ "type": "object" }), limits::TOOLS))]
}

fn chat() -> Value {
    let tool = object(
        &["function"],
        [("type", json!({ "const": "function" })), ("function", function("parameters", NAME))],
    );
    let kind = ("type", json!({ "const": "custom" }));
    let tool = any(vec![tool, object(&["type", "custom"], [kind, ("custom", custom(false))])]);
    let choice = any(vec![
        one_of(&["auto", "none", "required", "any"]),
        object(&["function"], [("function", object(&["name"], [("name", name(NAME))]))]),
        object(&["custom"], [("custom", object(&["name"], [("name", name(NAME))]))]),
        object(&["name"], [("name", name(NAME))]),
        object(
            &["type"],
            [
                ("type", one_of(&["auto", "none", "required", "allowed_tools"])),
                ("allowed_tools", maybe(&["tools"], allowed())),
            ],
        ),
    ]);
    let older = any(vec![one_of(&["auto", "none"]), object(&["name"], [("name", name(NAME))])]);
    let modalities = json!({ "type": ["array", "null"], "items": { "enum": ["text"] } });
    let kwargs = maybe(&[], [("reasoning_effort", effort()), ("enable_thinking", flag())]);
    let prediction =
        maybe(&["type", "content"], [("type", json!({ "enum": ["content"] })), ("content", content())]);
    let fields = object(
        &["model", "messages"],
        [
            ("model", json!({ "type": "string" })),
            ("messages", some(of("ChatMessage"), limits::MESSAGES)),
            ("tools", list(tool, limits::TOOLS)),
            ("tool_choice", choice),
            ("parallel_tool_calls", about(flag(), "Without them, a turn has one call at most")),
            (
                "functions",
                about(list(function("parameters", NAME), limits::TOOLS), "The older name of tools"),
            ),
            ("function_call", about(older, "The older name of tool_choice")),
            ("continue_final_message", about(flag(), "Goes on in the last message, which is the model's")),
            (
                "add_generation_prompt",
                about(json!({ "enum": [true, false, null] }), "Not so with continue_final_message"),
            ),
            ("modalities", modalities),
            ("response_format", format()),
            ("reasoning_effort", effort()),
            ("reasoning", maybe(&[], [("effort", effort())])),
            ("chat_template_kwargs", kwargs),
            ("max_completion_tokens", whole(1, TOKENS)),
            ("max_tokens", whole(1, TOKENS)),
            ("n", whole(1, limits::ANSWERS)),
            ("logprobs", flag()),
            ("top_logprobs", about(whole(0, limits::TOP_LOGPROBS), "Needs logprobs")),
            ("stream", flag()),
            ("stream_options", maybe(&[], [("include_usage", flag())])),
            ("stop", stops()),
            ("prediction", about(prediction, "Text that much of the answer repeats")),
            ("kernmill", own()),
        ],
    );
    let mut more = [sampling(), forms(), passed_over(&PASSED_OVER)].concat();
    let nothing = |what: &str| about(json!({ "enum": [false, null] }), what);
    more.extend(["ignore_eos", "echo"].map(|name| (name, nothing("Is not served: /v1/completions has it"))));
    more.push(("chat_template", about(json!({ "type": "null" }), "Is not served")));
    more.push(("documents", about(json!({ "enum": [[], null] }), "Is not served")));
    with(fields, &more)
}

fn completion() -> Value {
    let id = json!({ "type": "integer", "minimum": 0 });
    let text_prompt = json!({ "type": "string", "minLength": 1 });
    let ids = json!({ "type": "array", "items": id, "minItems": 1 });
    let prompt = any(vec![
        text_prompt.clone(),
        ids.clone(),
        some(text_prompt, limits::PROMPTS),
        some(ids, limits::PROMPTS),
    ]);
    let fields = object(
        &["model", "prompt"],
        [
            ("model", json!({ "type": "string" })),
            ("prompt", prompt),
            ("echo", flag()),
            ("max_tokens", about(whole(0, TOKENS), "16 without it; 0 needs echo")),
            ("logprobs", any(vec![json!({ "type": "boolean" }), whole(0, limits::TOP_LOGPROBS)])),
            ("n", whole(1, limits::ANSWERS)),
            ("best_of", about(whole(1, limits::ANSWERS), "The same as n")),
            ("suffix", about(json!({ "enum": ["", null] }), "Is not served")),
            ("stream", flag()),
            ("stream_options", maybe(&[], [("include_usage", flag())])),
            ("stop", stops()),
            ("ignore_eos", flag()),
            ("response_format", format()),
            ("kernmill", own()),
        ],
    );
    with(fields, &[sampling(), forms(), passed_over(&PASSED_OVER)].concat())
}

fn responses() -> Value {
    let tool = any(vec![
        with(function("parameters", NAME), &[("type", json!({ "const": "function" }))]),
        with(custom(true), &[("type", json!({ "const": "custom" }))]),
        object(
            &["type", "name"],
            [
                ("type", json!({ "const": "namespace" })),
                ("name", text()),
                ("tools", list(json!({}), limits::TOOLS)),
            ],
        ),
        about(
            object(&["type"], [("type", json!({ "type": "string" }))]),
            "One that OpenAI runs: is left out",
        ),
    ]);
    let input = any(vec![json!({ "type": "string" }), some(of("InputItem"), limits::MESSAGES)]);
    let include = list(json!({ "type": "string" }), limits::MESSAGES);
    let nothing = |what: &str| about(json!({ "type": "null" }), what);
    let fields = object(
        &["model", "input"],
        [
            ("model", json!({ "type": "string" })),
            ("input", input),
            ("instructions", text()),
            ("previous_response_id", text()),
            ("tools", list(tool, limits::TOOLS)),
            (
                "tool_choice",
                any(vec![one_of(&["auto", "none", "required", "any"]), json!({ "type": "object" })]),
            ),
            ("text", maybe(&[], [("verbosity", text()), ("format", format())])),
            ("reasoning", maybe(&[], [("effort", effort())])),
            ("max_output_tokens", whole(1, TOKENS)),
            ("metadata", json!({ "type": ["object", "null"] })),
            ("include", about(include, "reasoning.encrypted_content is known")),
            ("stream", flag()),
            ("store", flag()),
            ("background", about(json!({ "enum": [false, null] }), "Is not served")),
            ("top_logprobs", json!({ "enum": [0, null] })),
            ("conversation", nothing("Is not served")),
            ("prompt", nothing("Is not served")),
            ("parallel_tool_calls", flag()),
            ("prompt_cache_key", text()),
            ("safety_identifier", text()),
            ("user", text()),
            ("kernmill", own()),
        ],
    );
    let passed = [
        "truncation",
        "max_tool_calls",
        "stream_options",
        "prompt_cache_retention",
        "client_metadata",
        "context_management",
        "moderation",
    ];
    with(fields, &[sampling(), forms(), passed_over(&passed)].concat())
}

fn input_item() -> Value {
    let kinds = [
        "message",
        "reasoning",
        "function_call",
        "function_call_output",
        "custom_tool_call",
        "custom_tool_call_output",
        "item_reference",
        "compaction",
    ];
    let parts =
        list(object(&["text"], [("type", text()), ("text", json!({ "type": "string" }))]), limits::MESSAGES);
    object(
        &[],
        [
            ("type", one_of(&kinds)),
            ("id", anything()),
            ("status", anything()),
            ("role", one_of(&["user", "assistant", "system", "developer"])),
            ("phase", text()),
            ("content", any(vec![content(), json!({ "type": "null" })])),
            ("summary", parts),
            ("encrypted_content", about(text(), "By this server, since its start, for the same key")),
            ("call_id", text()),
            ("name", any(vec![name(128), json!({ "type": "null" })])),
            ("namespace", text()),
            ("arguments", text()),
            ("input", about(text(), "Of a custom tool")),
            ("output", any(vec![content(), json!({ "type": "null" })])),
        ],
    )
}

fn messages(required: &[&str]) -> Value {
    let tool = with(function("input_schema", 128), &[("type", text())]);
    let message = object(
        &["role", "content"],
        [
            ("role", json!({ "enum": ["user", "assistant", "system"] })),
            (
                "content",
                any(vec![
                    json!({ "type": "string" }),
                    json!({ "type": "array", "items": { "type": "object" } }),
                ]),
            ),
        ],
    );
    let kinds = json!({ "enum": ["auto", "none", "any", "tool"] });
    let choice = maybe(&["type"], [("type", kinds), ("name", text()), ("disable_parallel_tool_use", flag())]);
    let thinking = maybe(
        &["type"],
        [
            ("type", json!({ "enum": ["disabled", "adaptive", "enabled"] })),
            ("budget_tokens", whole(1, TOKENS)),
        ],
    );
    let mut fields = object(
        &[],
        [
            ("model", json!({ "type": "string" })),
            ("messages", some(message, limits::MESSAGES)),
            ("max_tokens", json!({ "type": "integer", "minimum": 1, "maximum": TOKENS })),
            ("system", any(vec![content(), json!({ "type": "null" })])),
            ("tools", list(tool, limits::TOOLS)),
            ("tool_choice", choice),
            ("thinking", thinking),
            ("output_config", maybe(&[], [("effort", effort()), ("format", format())])),
            ("output_format", about(format(), "The older place of output_config.format")),
            ("thread", about(json!({ "type": "null" }), "Is not served: send all messages")),
            ("stop_sequences", stops()),
            ("stream", flag()),
        ],
    );
    fields["required"] = json!(required);
    with(with(fields, &sampling()), &passed_over(&["metadata", "betas", "cache_control", "inference_geo"]))
}

/// Schemas of requests by their names.
pub fn requests() -> Map<String, Value> {
    let text_part = object(
        &["text"],
        [("type", one_of(&["text", "input_text", "output_text"])), ("text", json!({ "type": "string" }))],
    );
    let ids = json!({ "type": "array", "items": { "type": "integer", "minimum": 0 } });
    let mut tokenize = chat();
    tokenize["required"] = json!([]);
    let tokenize = with(
        tokenize,
        &[
            ("prompt", about(text(), "A text, in place of messages")),
            ("add_special_tokens", flag()),
            ("return_token_strs", flag()),
        ],
    );
    let session_name = json!({ "type": "string", "pattern": "^[A-Za-z0-9_-][A-Za-z0-9_.-]{0,63}$" });
    let session_prompt = any(vec![json!({ "type": ["string", "null"] }), ids.clone()]);
    let mut session = with(chat(), &[("name", session_name), ("prompt", session_prompt)]);
    session["required"] = json!(["name", "model"]);
    let adapter = || json!({ "type": "string", "pattern": "^[A-Za-z0-9_.-]{1,64}$" });
    let path = json!({ "type": "string" });
    let schemas = [
        ("TextPart", text_part),
        ("ChatMessage", message()),
        ("ChatRequest", chat()),
        ("CompletionRequest", completion()),
        ("InputItem", input_item()),
        ("ResponsesRequest", responses()),
        ("MessagesRequest", messages(&["model", "messages", "max_tokens"])),
        ("CountTokensRequest", messages(&["model", "messages"])),
        ("TokenizeRequest", tokenize),
        ("DetokenizeRequest", object(&["tokens"], [("tokens", ids)])),
        (
            "LoadAdapterRequest",
            object(&["lora_name", "lora_path"], [("lora_name", adapter()), ("lora_path", path)]),
        ),
        ("UnloadAdapterRequest", object(&["lora_name"], [("lora_name", adapter())])),
        ("SessionRequest", session),
    ];
    schemas.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect()
}
