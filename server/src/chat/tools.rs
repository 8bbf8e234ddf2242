//! Functions of OpenAI's APIs that a model may call, and whether it shall.

use super::custom;
use crate::error::ApiError;
use crate::fields::Fields;
use crate::fields::shape::{Field, Shape, field, flag, free, is, name, object, text, words};
use crate::limits;
use kernmill_chat::ToolChoice;
use kernmill_chat::{Conversation, Tool};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Letters of a function's name at most, in the APIs of OpenAI and Ollama.
pub const NAME: usize = 64;

/// A function's fields: a name of at most so many letters, and the schema of its arguments under this name.
pub const fn function(parameters: &'static str, most: usize) -> [Field; 4] {
    [name(most), text("description"), free(parameters), flag("strict")]
}

/// A function of OpenAI's APIs.
pub const FUNCTION: Shape = object(&const { function("parameters", NAME) }).needs(&["name"]);

/// A custom tool. The chat API has the grammar in an object of its own.
pub const CUSTOM: Shape = object(&[
    name(NAME),
    text("description"),
    field(
        "format",
        Shape::Any(&[
            object(&[is("type", "text")]).needs(&["type"]),
            object(&[is("type", "grammar")]).needs(&["type", "syntax", "definition"]).with(&[&GRAMMAR]),
            object(&[
                is("type", "grammar"),
                field("grammar", object(&[]).needs(&["syntax", "definition"]).with(&[&GRAMMAR])),
            ])
            .needs(&["type", "grammar"]),
        ]),
    ),
])
.needs(&["name"]);

const GRAMMAR: Shape = object(&[words("syntax", "\"lark\" or \"regex\""), text("definition")]);

/// A tool of the chat API.
pub const TOOL: Shape = Shape::Any(&[
    object(&[is("type", "function"), field("function", FUNCTION)]).needs(&["function"]),
    object(&[is("type", "custom"), field("custom", CUSTOM)]).needs(&["type", "custom"]),
]);

const NAMED: Shape = object(&[name(NAME), text("namespace")]).needs(&["name"]);

/// Tools that are named.
const SOME: Shape = Shape::List(
    &object(&[text("type"), field("function", NAMED), field("custom", NAMED)]).with(&[&NAMED]),
    0,
    limits::TOOLS,
);

const ALLOWED: Shape =
    object(&[words("mode", "\"auto\" or \"required\""), field("tools", SOME)]).needs(&["tools"]);

/// Whether tools are called, and which.
pub const CHOICE: Shape = Shape::Any(&[
    Shape::Words("auto, none, required or any", &[]),
    object(&[field("function", NAMED)]).needs(&["function"]),
    object(&[field("custom", NAMED)]).needs(&["custom"]),
    NAMED,
    object(&[
        words("type", "function, custom, allowed_tools, auto, none or required"),
        field("allowed_tools", ALLOWED),
    ])
    .needs(&["type"])
    .with(&[&ALLOWED]),
]);

/// Tools of the chat API.
pub struct Tools {
    /// The tools as functions.
    pub tools: Vec<Tool>,
    /// Names of the custom ones.
    pub customs: BTreeSet<String>,
    /// Whether they came in the older field `functions`.
    pub is_older: bool,
}

/// Reads the tools of the chat API.
///
/// # Errors
/// When a tool is wrong, or both fields have some.
pub fn tools(fields: &mut Fields) -> Result<Tools, ApiError> {
    let (mut tools, mut customs) = (Vec::new(), BTreeSet::new());
    for (at, tool) in fields.list("tools")?.unwrap_or_default().into_iter().enumerate() {
        let mut tool = fields.within(&format!("tools[{at}]"), tool)?;
        let kind = tool.text("type")?.unwrap_or_else(|| "function".to_owned());
        let mut inner = |field: &str| tool.object(field)?.ok_or_else(|| tool.missing(field));
        match kind.as_str() {
            "function" => tools.push(function_tool(&mut inner("function")?, "parameters")?),
            "custom" => {
                let (tool, _) = custom_tool(&mut inner("custom")?)?;
                customs.insert(tool.name.clone());
                tools.push(tool);
            }
            _ => return Err(tool.wrong("type", &Value::String(kind), "\"function\" or \"custom\"")),
        }
    }
    let older = fields.list("functions")?.unwrap_or_default();
    let is_older = !older.is_empty();
    if is_older && !tools.is_empty() {
        let message = "`functions` is the older name of `tools`: give one of them";
        return Err(ApiError::field("functions", message));
    }
    for (at, function) in older.into_iter().enumerate() {
        let mut function = fields.within(&format!("functions[{at}]"), function)?;
        tools.push(function_tool(&mut function, "parameters")?);
    }
    check_names(&tools, &fields.name(if is_older { "functions" } else { "tools" }))?;
    Ok(Tools { tools, customs, is_older })
}

/// A function: its name, what it does, and the schema of its arguments, which is in the field `schema`.
///
/// # Errors
/// When one of these is wrong.
pub fn function_tool(function: &mut Fields, schema: &str) -> Result<Tool, ApiError> {
    let name = function.needed_name("name")?;
    let description = function.text("description")?.unwrap_or_default();
    let parameters = match function.take(schema) {
        Some(Value::Object(schema)) if schema.is_empty() => None,
        Some(schema @ Value::Object(_)) => Some(schema),
        None => None,
        Some(other) => return Err(function.wrong(schema, &other, "a JSON schema of an object")),
    };
    let strict = function.flag("strict")?.unwrap_or(false);
    Ok(Tool { name, description, parameters, strict })
}

/// A custom tool as a function, and its format as it is shown.
///
/// # Errors
/// When a field is wrong, or calls cannot be held to the format.
pub fn custom_tool(tool: &mut Fields) -> Result<(Tool, Value), ApiError> {
    let name = tool.needed_name("name")?;
    let description = tool.text("description")?.unwrap_or_default();
    let shown = tool.look("format").unwrap_or_else(|| json!({ "type": "text" }));
    let format = tool.object("format")?;
    Ok((custom::function(name, description, format)?, shown))
}

/// Checks that no two functions have the same name.
///
/// # Errors
/// When two have.
pub fn check_names(tools: &[Tool], param: &str) -> Result<(), ApiError> {
    let is_twice = |(at, tool): &(usize, &Tool)| tools[..*at].iter().any(|other| other.name == tool.name);
    match tools.iter().enumerate().find(is_twice) {
        None => Ok(()),
        Some((_, tool)) => {
            let message = format!("`{param}` has two functions with the name `{}`", tool.name);
            Err(ApiError::field(param, message))
        }
    }
}

/// Names of the functions that may be called, where they are not all that are declared.
pub type Allowed = Option<Vec<String>>;

/// Reads whether tools are called, from the field `field`, and which of them.
///
/// # Errors
/// When the field is not one of the choices, or names a function that is not declared.
pub fn tool_choice(
    fields: &mut Fields,
    field: &str,
    conversation: &Conversation,
) -> Result<(ToolChoice, Allowed), ApiError> {
    let mut allowed = None;
    let choice = match fields.take(field) {
        None => return Ok((ToolChoice::Auto, None)),
        Some(choice @ Value::Object(_)) => {
            let mut choice = fields.within(field, choice)?;
            of_object(&mut choice, conversation, &mut allowed)?
        }
        Some(given) => match given.as_str().and_then(mode) {
            Some(choice) => choice,
            None => {
                return Err(fields.wrong(field, &given, "\"auto\", \"none\", \"required\" or a function"));
            }
        },
    };
    check_choice(&choice, conversation, field)?;
    if choice == ToolChoice::Required && allowed.as_ref().is_some_and(Vec::is_empty) {
        let message = format!("`{field}` asks for a call, and allows no function");
        return Err(ApiError::field(field, message));
    }
    Ok((choice, allowed))
}

/// A choice in a word.
fn mode(word: &str) -> Option<ToolChoice> {
    match word {
        "auto" => Some(ToolChoice::Auto),
        "none" => Some(ToolChoice::None),
        "required" | "any" => Some(ToolChoice::Required),
        _ => None,
    }
}

fn of_object(
    choice: &mut Fields,
    conversation: &Conversation,
    only: &mut Allowed,
) -> Result<ToolChoice, ApiError> {
    let kind = choice.text("type")?;
    match kind.as_deref() {
        None | Some("function" | "custom" | "tool") => {
            let named = named(choice)?.ok_or_else(|| choice.missing("name"))?;
            Ok(ToolChoice::Function(named))
        }
        Some("allowed_tools") => {
            // The chat API has an object of the same name inside.
            let mut allowed = choice.object("allowed_tools")?.unwrap_or_else(|| choice.clone());
            let word = allowed.text("mode")?.unwrap_or_else(|| "auto".to_owned());
            let list = allowed.list("tools")?.ok_or_else(|| allowed.missing("tools"))?;
            let mut names = Vec::new();
            for (at, tool) in list.into_iter().enumerate() {
                let mut tool = allowed.within(&format!("tools[{at}]"), tool)?;
                let kind = tool.text("type")?;
                if let Some(name) = named(&mut tool)? {
                    if !conversation.tools.iter().any(|tool| tool.name == name) {
                        let expected = "the name of a function that `tools` declares";
                        return Err(tool.wrong("name", &Value::String(name), expected));
                    }
                    names.push(name);
                } else if kind.is_none_or(|kind| matches!(kind.as_str(), "function" | "custom")) {
                    return Err(tool.missing("name"));
                }
            }
            *only = Some(names);
            mode(&word).ok_or_else(|| allowed.unlisted("mode", &word))
        }
        Some(word) => mode(word).ok_or_else(|| choice.unlisted("type", word)),
    }
}

/// The name of a tool, which is in `function`, in `custom` or right here.
fn named(fields: &mut Fields) -> Result<Option<String>, ApiError> {
    let inner = fields.object("function")?.or(fields.object("custom")?);
    let mut function = inner.unwrap_or_else(|| fields.clone());
    let space = function.text("namespace")?;
    Ok(function.text("name")?.map(|name| spaced(space.as_deref(), &name)))
}

/// The name of a function in a namespace, as the model sees it.
pub fn spaced(space: Option<&str>, name: &str) -> String {
    match space {
        None => name.to_owned(),
        Some(space) if space.ends_with(['_', '.', '-']) => format!("{space}{name}"),
        Some(space) => format!("{space}.{name}"),
    }
}

/// Checks that the tools of a choice are declared, which the field `field` made.
///
/// # Errors
/// When they are not.
pub fn check_choice(choice: &ToolChoice, conversation: &Conversation, field: &str) -> Result<(), ApiError> {
    let what = match choice {
        ToolChoice::Function(name) if !conversation.tools.iter().any(|tool| tool.name == *name) => {
            format!("`{field}` is the function `{name}`, which `tools` does not declare")
        }
        ToolChoice::Required if conversation.tools.is_empty() => {
            format!("`{field}` asks for a call, and `tools` declares no function")
        }
        _ => return Ok(()),
    };
    Err(ApiError::field(field, what))
}
