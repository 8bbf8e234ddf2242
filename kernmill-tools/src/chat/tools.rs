//! Functions that a model may call, out of a file.

use kernmill::{Error, Result};
use kernmill_chat::Tool;
use kernmill_os::files::read_named;
use kernmill_plan::limit;
use serde::Deserialize;
use serde_json::Value;
use std::path::Path;

/// A function as OpenAI's APIs write it: within `function`, or flat.
#[derive(Deserialize)]
#[serde(untagged)]
enum ToolEntry {
    Nested { function: ToolFunction },
    Flat(ToolFunction),
}

#[derive(Deserialize)]
struct ToolFunction {
    name: String,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    parameters: Option<Value>,
    #[serde(default)]
    strict: bool,
}

/// Reads a file of functions: a list in JSON, in the form of OpenAI's `tools`.
///
/// # Errors
/// When the file cannot be read, or is no such list; when two functions have one name.
pub(super) fn read_tools(path: &Path) -> Result<Vec<Tool>> {
    let bytes = read_named(path, limit::PROMPT_BYTES as u64).map_err(Error::read(path))?;
    parse(&bytes).map_err(|what| Error::input(path, what))
}

fn parse(bytes: &[u8]) -> std::result::Result<Vec<Tool>, String> {
    const FORM: &str =
        "expected a list of functions, [{\"name\": .., \"description\": .., \"parameters\": {..}}]";
    let list: Vec<Value> = serde_json::from_slice(bytes).map_err(|error| format!("{error}: {FORM}"))?;
    let mut tools: Vec<Tool> = Vec::new();
    for (at, value) in list.into_iter().enumerate() {
        let entry =
            serde_json::from_value(value).map_err(|_| format!("entry {at} is no function: {FORM}"))?;
        let (ToolEntry::Nested { function } | ToolEntry::Flat(function)) = entry;
        if tools.iter().any(|tool| tool.name == function.name) {
            return Err(format!("entry {at}: there is a function {} before it", function.name));
        }
        if function.parameters.as_ref().is_some_and(|parameters| !parameters.is_object()) {
            let name = function.name;
            return Err(format!(
                "entry {at}: the parameters of {name} are no object, expected a JSON schema"
            ));
        }
        tools.push(Tool {
            name: function.name,
            description: function.description.unwrap_or_default(),
            parameters: function.parameters,
            strict: function.strict,
        });
    }
    Ok(tools)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read_and_others_refused() {
        let text = br#"[{"type": "function", "function": {"name": "now", "description": "The time."}},
            {"type": "function", "name": "add", "parameters": {"type": "object"}}]"#;
        let tools = parse(text).unwrap();
        assert_eq!((&*tools[0].name, &*tools[0].description, &*tools[1].name), ("now", "The time.", "add"));
        assert!(tools[0].parameters.is_none() && tools[1].parameters.is_some());
        for (text, says) in [
            ("{}", "expected a list of functions"),
            (r#"[{"names": 1}]"#, "entry 0 is no function"),
            (r#"[{"name": "f"}, {"name": "f"}]"#, "entry 1: there is a function f before it"),
            (r#"[{"name": "f", "parameters": 7}]"#, "the parameters of f are no object"),
        ] {
            let error = parse(text.as_bytes()).unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
