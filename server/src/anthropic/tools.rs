//! Tools of Anthropic's API that a model may call, and whether it shall.

use crate::chat::tools::{check_choice, check_names, function, function_tool};
use crate::error::ApiError;
use crate::fields::Fields;
use crate::fields::shape::{Shape, field, flag, object, text, words};
use kernmill_chat::ToolChoice;
use kernmill_chat::{Conversation, Tool};
use serde_json::{Map, Value, json};

/// Letters of a function's name at most.
pub const NAME: usize = 128;

/// A tool.
pub const TOOL: Shape = object(&const { function("input_schema", NAME) })
    .needs(&["name"])
    .with(&[&object(&[text("type"), field("cache_control", Shape::Anything)])]);

/// Whether tools are called, and which.
pub const CHOICE: Shape =
    object(&[words("type", "auto, any, tool or none"), text("name"), flag("disable_parallel_tool_use")])
        .needs(&["type"]);

/// Beginnings of the types of tools that Anthropic runs itself. Clients list them by habit; the model is
/// not told of them, and the answer names them among the fields that mean nothing here.
const HOSTED: [&str; 6] =
    ["web_search_", "web_fetch_", "code_execution_", "tool_search_tool_", "advisor_", "mcp_toolset"];

/// Tools that clients run and whose arguments only Anthropic's API describes: what their types begin with,
/// what they do, the commands that they know, and their arguments.
const CLIENT: [(&str, &str, &[&str], &[&str]); 3] = [
    ("bash_", "Runs a command in a shell that stays open.", &[], &["command", "restart"]),
    (
        "text_editor_",
        "Shows and edits files.",
        &["view", "create", "str_replace", "insert"],
        &["path", "view_range", "file_text", "old_str", "new_str", "insert_line", "insert_text"],
    ),
    (
        "memory_",
        "Shows and edits files of the memory, below /memories.",
        &["view", "create", "str_replace", "insert", "delete", "rename"],
        &[
            "path",
            "view_range",
            "file_text",
            "old_str",
            "new_str",
            "insert_line",
            "insert_text",
            "old_path",
            "new_path",
        ],
    ),
];

/// Functions that the model may call.
///
/// # Errors
/// When a tool is wrong, or is of a type that this server knows nothing of.
pub fn tools(fields: &mut Fields) -> Result<Vec<Tool>, ApiError> {
    let list = fields.list("tools")?.unwrap_or_default();
    let mut tools = Vec::new();
    for (at, tool) in list.into_iter().enumerate() {
        let mut tool = fields.within(&format!("tools[{at}]"), tool)?;
        let kind = tool.look("type");
        let kind = kind.as_ref().map_or(Some("custom"), Value::as_str).unwrap_or_default();
        if HOSTED.iter().any(|hosted| kind.starts_with(hosted)) {
            continue;
        }
        tool.pass_over(&["type", "cache_control"]);
        if kind == "custom" {
            tools.push(function_tool(&mut tool, "input_schema")?);
        } else if let Some(known) = CLIENT.iter().find(|known| kind.starts_with(known.0)) {
            let tool = function_tool(&mut tool, "input_schema")?;
            tools.push(Tool {
                parameters: Some(parameters(known.2, known.3)),
                description: known.1.to_owned(),
                ..tool
            });
        } else {
            let expected = "custom, bash_*, text_editor_* or memory_*: describe other tools as functions";
            return Err(tool.wrong("type", &json!(kind), expected));
        }
    }
    check_names(&tools, &fields.name("tools"))?;
    Ok(tools)
}

/// Schema of the arguments of a tool that clients run.
fn parameters(commands: &[&str], arguments: &[&str]) -> Value {
    let mut properties = Map::new();
    let mut put = |name: &str, schema: Value| drop(properties.insert(name.to_owned(), schema));
    if !commands.is_empty() {
        put("command", json!({ "type": "string", "enum": commands }));
    }
    for name in arguments {
        put(
            name,
            match *name {
                "restart" => {
                    json!({ "type": "boolean", "description": "Begins a new shell; needs no command" })
                }
                "insert_line" => {
                    json!({ "type": "integer", "description": "Line after which a text goes in" })
                }
                "view_range" => {
                    json!({ "type": "array", "items": { "type": "integer" }, "description": "First and last line" })
                }
                _ => json!({ "type": "string" }),
            },
        );
    }
    let required: &[&str] = if commands.is_empty() { &[] } else { &["command"] };
    json!({ "type": "object", "properties": properties, "required": required })
}

/// Whether tools are called, and whether once at most.
///
/// # Errors
/// When the field is not one of the choices, or names a function that is not declared.
pub fn tool_choice(fields: &mut Fields, conversation: &Conversation) -> Result<(ToolChoice, bool), ApiError> {
    let Some(mut given) = fields.object("tool_choice")? else { return Ok((ToolChoice::Auto, false)) };
    let kind = given.needed_text("type")?;
    let choice = match kind.as_str() {
        "auto" => ToolChoice::Auto,
        "none" => ToolChoice::None,
        "any" => ToolChoice::Required,
        "tool" => ToolChoice::Function(given.needed_text("name")?),
        _ => return Err(given.unlisted("type", &kind)),
    };
    check_choice(&choice, conversation, "tool_choice")?;
    Ok((choice, given.flag("disable_parallel_tool_use")? == Some(true)))
}
