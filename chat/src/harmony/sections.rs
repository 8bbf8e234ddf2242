//! Texts of the system and the developer message.

use super::typescript::type_of;
use crate::conversation::{BuiltinTool, Date, Effort, ResponseFormat, Tool};
use serde_json::{Value, json};

/// The contents of the system message.
#[derive(Clone, Debug, PartialEq)]
pub struct SystemText<'a> {
    /// The model's identity.
    pub identity: &'a str,
    /// Until when the model knows what happened.
    pub knowledge_cutoff: &'a str,
    /// The day that the model is told.
    pub date: Option<Date>,
    /// How long the model reasons. There is no word for none: this asks for little.
    pub effort: Effort,
    /// Tools of the model's own.
    pub builtin: &'a [BuiltinTool],
    /// Whether functions are declared. The developer message has the list of them.
    pub has_functions: bool,
}

impl SystemText<'_> {
    /// Content of the message.
    pub fn text(&self) -> String {
        let mut top = format!("{}\nKnowledge cutoff: {}", self.identity, self.knowledge_cutoff);
        if let Some(date) = self.date.map(|date| date.format("%F")) {
            top += &format!("\nCurrent date: {date}");
        }
        let effort = if self.effort == Effort::None { Effort::Low } else { self.effort };
        let mut sections = vec![top, format!("Reasoning: {}", effort.name())];
        if !self.builtin.is_empty() {
            // The order is that of the names, whatever the caller's.
            let has = |tool: &BuiltinTool| self.builtin.contains(tool);
            let spaces = [BuiltinTool::Browser, BuiltinTool::Python].into_iter().filter(has).map(builtin);
            sections.push(tools_section(spaces.collect()));
        }
        let channels =
            "# Valid channels: analysis, commentary, final. Channel must be included for every message.";
        sections.push(channels.to_owned());
        let mut text = sections.join("\n\n");
        if self.has_functions {
            text += "\nCalls to these tools must go to the commentary channel: 'functions'.";
        }
        text
    }
}

/// Content of a developer message; `None` if there is nothing to say.
pub fn developer_text(
    instructions: Option<&str>,
    tools: &[Tool],
    format: Option<&ResponseFormat>,
) -> Option<String> {
    let mut sections = Vec::new();
    if let Some(instructions) = instructions {
        sections.push(format!("# Instructions\n\n{instructions}"));
    }
    if !tools.is_empty() {
        let functions = Namespace { name: "functions", description: "", tools: tools.to_vec() };
        sections.push(tools_section(vec![functions]));
    }
    if let Some(format) = format {
        let mut section = format!("# Response Formats\n\n## {}\n\n", format.name);
        for line in format.description.iter().flat_map(|text| text.lines()) {
            section += &format!("// {line}\n");
        }
        sections.push(section + &format.schema.to_string());
    }
    (!sections.is_empty()).then(|| sections.join("\n\n"))
}

/// Functions under one name.
struct Namespace {
    name: &'static str,
    description: &'static str,
    tools: Vec<Tool>,
}

fn tools_section(spaces: Vec<Namespace>) -> String {
    let mut sections = vec!["# Tools".to_owned()];
    for Namespace { name, description, tools } in spaces {
        let mut lines = vec![format!("## {name}\n")];
        let comment = if tools.is_empty() { "" } else { "// " };
        lines.extend(description.lines().map(|line| format!("{comment}{line}")));
        if !tools.is_empty() {
            lines.push(format!("namespace {name} {{\n"));
            for tool in &tools {
                lines.extend(tool.description.lines().map(|line| format!("// {line}")));
                lines.push(match &tool.parameters {
                    Some(schema) => format!("type {} = (_: {}) => any;\n", tool.name, type_of(schema, "")),
                    None => format!("type {} = () => any;\n", tool.name),
                });
            }
            lines.push(format!("}} // namespace {name}"));
        }
        sections.push(lines.join("\n"));
    }
    sections.join("\n\n")
}

/// A builtin tool as the models were trained with it: every word is part of the format.
fn builtin(tool: BuiltinTool) -> Namespace {
    match tool {
        BuiltinTool::Browser => Namespace {
            name: "browser",
            description: "Tool for browsing.\n\
                The `cursor` appears in brackets before each browsing display: `[{cursor}]`.\n\
                Cite information from the tool using the following format:\n\
                `【{cursor}†L{line_start}(-L{line_end})?】`, for example: `【6†L9-L11】` or `【8†L3】`.\n\
                Do not quote more than 10 words directly from the tool output.\n\
                sources=web (default: web)",
            tools: vec![
                function(
                    "search",
                    "Searches for information related to `query` and displays `topn` results.",
                    json!({
                        "query": {"type": "string"},
                        "topn": {"type": "number", "default": 10},
                        "source": {"type": "string"},
                    }),
                    &["query"],
                ),
                function(
                    "open",
                    "Opens the link `id` from the page indicated by `cursor` starting at line number `loc`, \
                        showing `num_lines` lines.\n\
                        Valid link ids are displayed with the formatting: `【{id}†.*】`.\n\
                        If `cursor` is not provided, the most recent page is implied.\n\
                        If `id` is a string, it is treated as a fully qualified URL associated with \
                        `source`.\n\
                        If `loc` is not provided, the viewport will be positioned at the beginning of the \
                        document or centered on the most relevant passage, if available.\n\
                        Use this function without `id` to scroll to a new location of an opened page.",
                    json!({
                        "id": {"type": ["number", "string"], "default": -1},
                        "cursor": {"type": "number", "default": -1},
                        "loc": {"type": "number", "default": -1},
                        "num_lines": {"type": "number", "default": -1},
                        "view_source": {"type": "boolean", "default": false},
                        "source": {"type": "string"},
                    }),
                    &[],
                ),
                function(
                    "find",
                    "Finds exact matches of `pattern` in the current page, or the page given by `cursor`.",
                    json!({
                        "pattern": {"type": "string"},
                        "cursor": {"type": "number", "default": -1},
                    }),
                    &["pattern"],
                ),
            ],
        },
        BuiltinTool::Python => Namespace {
            name: "python",
            description: "Use this tool to execute Python code in your chain of thought. The code will not be \
                shown to the user. This tool should be used for internal reasoning, but not for code that is \
                intended to be visible to the user (e.g. when creating plots, tables, or files).\n\n\
                When you send a message containing Python code to python, it will be executed in a stateful \
                Jupyter notebook environment. python will respond with the output of the execution or time out \
                after 120.0 seconds. The drive at '/mnt/data' can be used to save and persist user files. \
                Internet access for this session is UNKNOWN. Depends on the cluster.",
            tools: Vec::new(),
        },
    }
}

fn function(name: &str, description: &str, properties: Value, required: &[&str]) -> Tool {
    let parameters = json!({"type": "object", "properties": properties, "required": required});
    Tool {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters: Some(parameters),
        strict: false,
    }
}
