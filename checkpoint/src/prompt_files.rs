//! Prompts of sentence-transformers: texts that a model for vectors has before others, by their purpose.

use crate::error::{CheckpointError, Result};
use kernmill_os::files::read_regular_text;
use kernmill_plan::chat::{NAME_BYTES, NamedTemplate, PROMPTS, TextPrompts};
use kernmill_plan::limit;
use serde_json::Value;
use std::path::Path;

/// The file that names them.
pub(crate) const PROMPT_FILE: &str = "config_sentence_transformers.json";

/// The prompts in a model's directory; none where there is no such file.
pub(crate) fn in_directory(dir: &Path) -> Result<TextPrompts> {
    let path = dir.join(PROMPT_FILE);
    match path.exists() {
        true => read(&json(&path)?)
            .map_err(|what| CheckpointError::Corrupt { path: path.clone(), what: what.to_owned() }),
        false => Ok(TextPrompts::default()),
    }
}

fn read(config: &Value) -> std::result::Result<TextPrompts, &'static str> {
    let config = config.as_object().ok_or("expected an object")?;
    let mut named = Vec::new();
    match config.get("prompts") {
        None | Some(Value::Null) => {}
        Some(Value::Object(prompts)) => {
            for (name, text) in prompts {
                let text = text.as_str().ok_or("expected a text of each of the `prompts`")?.to_owned();
                named.push(NamedTemplate { name: name.clone(), text });
            }
        }
        Some(_) => return Err("expected an object of texts as `prompts`"),
    }
    if named.len() > PROMPTS || named.iter().any(|prompt| prompt.name.len() > NAME_BYTES) {
        return Err("expected at most 64 `prompts`, with names of at most 256 bytes");
    }
    let default = match config.get("default_prompt_name") {
        None | Some(Value::Null) => None,
        Some(Value::String(name)) if named.iter().any(|prompt| prompt.name == *name) => Some(name.clone()),
        Some(_) => return Err("expected one of the `prompts` as `default_prompt_name`"),
    };
    Ok(TextPrompts { named, default })
}

/// A file as JSON.
pub(crate) fn json(path: &Path) -> Result<Value> {
    let text = read_regular_text(path, limit::TEMPLATE_BYTES)
        .map_err(|source| CheckpointError::Io { path: path.to_owned(), source })?;
    serde_json::from_str(&text).map_err(|error| CheckpointError::Corrupt {
        path: path.to_owned(),
        what: format!("no JSON: {error}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn prompts_are_those_of_the_file() {
        let config = json!({
            "__version__": { "transformers": "5.0" }, "similarity_fn_name": "cosine",
            "prompts": { "query": "Query: ", "document": "" }, "default_prompt_name": "query",
        });
        let prompts = read(&config).unwrap();
        assert_eq!((prompts.text(None), prompts.text(Some("document"))), (Ok("Query: "), Ok("")));
        let none = read(&json!({ "prompts": { "query": "Query: " }, "default_prompt_name": null })).unwrap();
        assert_eq!((none.text(None), none.text(Some("query"))), (Ok(""), Ok("Query: ")));
        let unknown = none.text(Some("qery")).unwrap_err();
        assert_eq!(unknown, "there is no prompt `qery`, the model has: query");
        assert_eq!(read(&json!({})).unwrap(), TextPrompts::default());
        let many: serde_json::Map<_, _> = (0..=PROMPTS).map(|n| (n.to_string(), json!(""))).collect();
        for (wrong, says) in [
            (json!([]), "expected an object"),
            (json!({ "prompts": 7 }), "an object of texts"),
            (json!({ "prompts": { "query": 7 } }), "a text of each"),
            (json!({ "prompts": many }), "at most 64"),
            (json!({ "prompts": {}, "default_prompt_name": "query" }), "as `default_prompt_name`"),
        ] {
            let error = read(&wrong).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }
}
