//! Tools of OpenAI's Responses that a model may call.

use crate::chat::tools::{CUSTOM, FUNCTION, check_names, custom_tool, function_tool, spaced};
use crate::error::ApiError;
use crate::fields::shape::{Shape, is, list, object, text};
use crate::fields::{Fields, check_name};
use crate::limits;
use kernmill_chat::Tool;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Letters of a function's name at most, with its namespace.
pub const NAME: usize = 128;

const TOLD: [Shape; 2] = [
    object(&[is("type", "function")]).needs(&["name"]).with(&[&FUNCTION]),
    object(&[is("type", "custom")]).needs(&["name"]).with(&[&CUSTOM]),
];

/// A tool.
pub const TOOL: Shape = Shape::Any(&[
    TOLD[0],
    TOLD[1],
    object(&[
        is("type", "namespace"),
        text("name"),
        text("description"),
        list("tools", &Shape::Any(&TOLD), limits::TOOLS),
    ])
    .needs(&["type", "name"]),
    Shape::Json(|| {
        json!({
            "type": "object",
            "required": ["type"],
            "properties": { "type": { "type": "string" } },
            "description": "One that OpenAI runs: is left out",
        })
    }),
]);

/// Beginnings of the types of tools that OpenAI runs itself. Clients list them by habit; the model is not
/// told of them, and the answer names them among the fields that mean nothing here.
const HOSTED: [&str; 5] =
    ["web_search", "file_search", "code_interpreter", "image_generation", "tool_search"];

/// Functions that a request declares.
#[derive(Default)]
pub struct Declared {
    /// The functions, under the names that the model is told.
    pub tools: Vec<Tool>,
    /// Names of the functions that stand for custom tools.
    pub customs: BTreeSet<String>,
    /// The tools as a response shows them.
    pub shown: Vec<Value>,
    /// Functions in namespaces by the names that the model is told: their namespaces and names.
    pub spaces: BTreeMap<String, [String; 2]>,
}

impl Declared {
    /// Reads the tools of a request.
    ///
    /// # Errors
    /// When a tool is wrong, or of a kind that clients run and that this server does not know.
    pub fn take(fields: &mut Fields) -> Result<Declared, ApiError> {
        let list = fields.list("tools")?.unwrap_or_default();
        let mut declared = Declared::default();
        for (at, tool) in list.into_iter().enumerate() {
            let whole = tool.clone();
            let mut tool = fields.within(&format!("tools[{at}]"), tool)?;
            let kind = tool.look("type").ok_or_else(|| tool.missing("type"))?;
            let kind = kind.as_str().unwrap_or_default();
            if HOSTED.iter().any(|hosted| kind.starts_with(hosted)) {
                continue;
            }
            tool.pass_over(&["type"]);
            match kind {
                "function" => declared.function(&mut tool)?,
                "custom" => {
                    let (made, format) = custom_tool(&mut tool)?;
                    declared.shown.push(json!({
                        "type": "custom",
                        "name": made.name,
                        "description": whole["description"],
                        "format": format,
                    }));
                    declared.customs.insert(made.name.clone());
                    declared.tools.push(made);
                }
                "namespace" => {
                    declared.namespace(&mut tool)?;
                    declared.shown.push(whole);
                }
                _ => {
                    let help = match kind {
                        "mcp" => {
                            "the server connects to nobody; have the client run the tools, and offer them"
                        }
                        _ => "offer what the client runs",
                    };
                    let field = tool.name("type");
                    let message = format!(
                        "`{field}` is {}, expected function or custom: {help} as functions",
                        json!(kind)
                    );
                    return Err(ApiError::field(field, message));
                }
            }
        }
        check_names(&declared.tools, &fields.name("tools"))?;
        match declared.tools.len() {
            count if count > limits::TOOLS => {
                let message = format!("`tools` has {count} functions, expected at most {}", limits::TOOLS);
                Err(ApiError::field("tools", message))
            }
            _ => Ok(declared),
        }
    }

    fn function(&mut self, tool: &mut Fields) -> Result<(), ApiError> {
        let strict = tool.look("strict").and_then(|strict| strict.as_bool());
        let tool = function_tool(tool, "parameters")?;
        self.shown.push(json!({
            "type": "function",
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.parameters.clone().unwrap_or_else(|| json!({})),
            "strict": strict.unwrap_or(true),
        }));
        self.tools.push(tool);
        Ok(())
    }

    /// The functions of a namespace: those of a server that the client is connected to.
    fn namespace(&mut self, space: &mut Fields) -> Result<(), ApiError> {
        let own = space.needed_text("name")?;
        space.pass_over(&["description"]);
        let list = space.list("tools")?.unwrap_or_default();
        for (at, tool) in list.into_iter().enumerate() {
            let mut tool = space.within(&format!("tools[{at}]"), tool)?;
            let tool_name = tool.name("name");
            let kind = tool.text("type")?;
            let tool = match kind.as_deref() {
                None | Some("function") => function_tool(&mut tool, "parameters")?,
                Some("custom") => custom_tool(&mut tool)?.0,
                Some(kind) => return Err(tool.wrong("type", &json!(kind), "function or custom")),
            };
            let told = spaced(Some(&own), &tool.name);
            check_name(&tool_name, &told, NAME)?;
            if kind.as_deref() == Some("custom") {
                self.customs.insert(told.clone());
            }
            self.spaces.insert(told.clone(), [own.clone(), tool.name.clone()]);
            self.tools.push(Tool { name: told, ..tool });
        }
        Ok(())
    }
}
