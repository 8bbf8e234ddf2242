//! Texts that are encoded: only those that the context may hold.

use crate::backend::BackendInfo;
use crate::error::ApiError;
use crate::fields::Fields;
use crate::scope::RequestScope;
use kernmill_chat::{Conversation, Item};
use kernmill_runtime::Tokenizer;
use kernmill_runtime::tokenizer::TokenizerError;
use serde_json::Value;

/// Ids of a prompt that stands in the field `param`; `special` adds what the tokenizer puts before a text.
/// One that cannot fit the context is refused by its length, before the work.
///
/// # Errors
/// When the text is too long or cannot be encoded.
pub fn encode(facts: &BackendInfo, param: &str, text: &str, special: bool) -> Result<Vec<u32>, ApiError> {
    let ids = tokenizer(facts)?.encode_within(text, special, facts.context as usize);
    ids.map_err(|error| wrong(facts, param, &error))
}

/// Checks that a conversation may fit the context, by the length of what was said. Items that a model's
/// format may leave out, such as reasoning, or write another way, such as calls, do not count.
///
/// # Errors
/// When it cannot fit. `param` is the field that it comes from.
pub fn check(facts: &BackendInfo, param: &str, conversation: &Conversation) -> Result<(), ApiError> {
    let bytes = conversation.items.iter().map(said).map(|text| text.trim().len()).sum();
    let fits = tokenizer(facts)?.check_length(bytes, facts.context as usize);
    fits.map_err(|error| wrong(facts, param, &error))
}

/// Text of an item that every format writes as it stands, but for space around it.
fn said(item: &Item) -> &str {
    match item {
        Item::Instructions(text) | Item::User { text, .. } => text,
        // Templates cut off reasoning that stands within an answer.
        Item::Answer(text) => text.rsplit("</think>").next().unwrap_or_default(),
        Item::Output(output) => &output.text,
        Item::Reasoning(_) | Item::Preamble(_) | Item::Call(_) => "",
    }
}

/// Prompts: one or several, as texts behind `before` or ids, behind what was said before them.
///
/// # Errors
/// When the field has something else, or there are more than `most`.
pub fn prompts(
    scope: &RequestScope<'_>,
    fields: &mut Fields,
    name: &str,
    most: usize,
    before: &str,
) -> Result<Vec<Vec<u32>>, ApiError> {
    let (facts, said) = (scope.facts, scope.said);
    let expected = "a string, a list of strings, token ids, or a list of lists of token ids";
    let value = fields.take(name).ok_or_else(|| fields.missing(name))?;
    let wrong = |value: &Value| fields.wrong(name, value, expected);
    let read = |value: &Value| -> Result<Vec<u32>, ApiError> {
        let ids: Vec<u32> = match value {
            // Tokens that a tokenizer puts before a text belong before the first turn alone.
            Value::String(text) => encode(facts, name, &[before, text].concat(), said.is_empty())?,
            Value::Array(ids) => {
                let id =
                    |id: &Value| id.as_u64().filter(|id| *id < u64::from(facts.vocab)).map(|id| id as u32);
                let message = || {
                    let last = facts.vocab - 1;
                    ApiError::field(
                        name,
                        format!("`{name}` has a member that is no token id from 0 to {last}"),
                    )
                };
                ids.iter().map(|value| id(value).ok_or_else(message)).collect::<Result<_, _>>()?
            }
            other => return Err(wrong(other)),
        };
        let ids = [said, &ids].concat();
        if ids.is_empty() {
            return Err(ApiError::field(name, format!("`{name}` has no tokens, expected at least one")));
        }
        Ok(ids)
    };
    let list = match &value {
        Value::Array(list) if list.first().is_some_and(|first| first.is_string() || first.is_array()) => list,
        single => return Ok(vec![read(single)?]),
    };
    if list.len() > most {
        let message = format!("`{name}` has {} members, expected at most {most}", list.len());
        return Err(ApiError::field(name, message));
    }
    list.iter().map(read).collect()
}

/// The tokenizer of a model, which was read at the start.
///
/// # Errors
/// When the model has none.
pub fn tokenizer(facts: &BackendInfo) -> Result<&Tokenizer, ApiError> {
    facts.tokenizer().map_err(ApiError::internal)
}

fn wrong(facts: &BackendInfo, param: &str, error: &TokenizerError) -> ApiError {
    match error {
        TokenizerError::TooLong { .. } => ApiError::too_long(param, &error.to_string(), facts.context),
        other => ApiError::field(param, other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use crate::scripted::{Scripted, send, state};
    use crate::state::ServerConfig;
    use serde_json::json;

    #[tokio::test]
    async fn a_text_that_cannot_fit_is_refused_by_its_length() {
        let server = state(Scripted::stops(&["Yes."]), ServerConfig::default());
        let text = "a".repeat(200_000);
        let messages = json!([{ "role": "user", "content": text }]);
        for (path, body) in [
            ("/v1/completions", json!({ "prompt": text })),
            ("/v1/completions", json!({ "prompt": ["Hi", text] })),
            ("/v1/chat/completions", json!({ "messages": messages })),
            ("/v1/responses", json!({ "input": text })),
            ("/v1/responses", json!({ "input": "Hi", "instructions": text })),
            ("/v1/messages", json!({ "messages": messages, "max_tokens": 5 })),
            ("/api/chat", json!({ "messages": messages })),
            ("/api/generate", json!({ "prompt": text })),
            ("/api/generate", json!({ "prompt": text, "raw": true })),
            ("/tokenize", json!({ "prompt": text })),
            ("/tokenize", json!({ "prompt": text, "add_special_tokens": false })),
            ("/tokenize", json!({ "messages": messages })),
        ] {
            let (status, _, answer) = send(&server, "POST", path, "", &body).await;
            assert_eq!(status, 400, "{path}: {answer}");
            assert!(
                answer.contains("the context holds 1024 tokens, the prompt has more"),
                "{path}: {answer}"
            );
        }
        // Space that a format takes away does not count.
        let spaced = format!("Hi{}", " ".repeat(200_000));
        let body = json!({ "messages": [{ "role": "user", "content": spaced }] });
        let (_, _, answer) = send(&server, "POST", "/v1/chat/completions", "", &body).await;
        assert!(!answer.contains("the prompt has more:"), "{answer}");
    }
}
