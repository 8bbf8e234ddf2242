//! Texts of the system and the developer message. Functions stand there as types of TypeScript, in the form
//! that the models were trained with.

use crate::conversation::{BuiltinTool, Date, Effort, ResponseFormat, Tool};
use serde_json::{Value, json};
use std::fmt::Write;

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

/// The type of a schema. `indent` stands before every line but the first.
pub(super) fn type_of(schema: &Value, indent: &str) -> String {
    if let Some(variants) = schema.get("oneOf").and_then(Value::as_array) {
        return alternatives(variants, indent);
    }
    let name = match schema.get("type") {
        Some(Value::String(name)) => name,
        Some(Value::Array(names)) => {
            let named: Vec<&str> = names.iter().filter_map(Value::as_str).map(scalar).collect();
            return if named.is_empty() { "any".to_owned() } else { named.join(" | ") };
        }
        _ => return "any".to_owned(),
    };
    match name.as_str() {
        "object" => object(schema, indent),
        "string" => {
            let values = schema.get("enum").and_then(Value::as_array).into_iter().flatten();
            let values: Vec<String> = values.filter_map(Value::as_str).map(quoted).collect();
            if values.is_empty() { "string".to_owned() } else { values.join(" | ") }
        }
        "number" | "integer" => "number".to_owned(),
        "boolean" => "boolean".to_owned(),
        "array" => match schema.get("items") {
            Some(items) => type_of(items, indent) + "[]",
            None => "Array<any>".to_owned(),
        },
        _ => "any".to_owned(),
    }
}

/// A name in a list of types.
fn scalar(name: &str) -> &str {
    if name == "integer" { "number" } else { name }
}

fn quoted(text: &str) -> String {
    format!("\"{text}\"")
}

fn text<'a>(schema: &'a Value, key: &str) -> Option<&'a str> {
    schema.get(key).and_then(Value::as_str)
}

fn is_enum(schema: &Value) -> bool {
    schema.get("enum").and_then(Value::as_array).is_some_and(|values| !values.is_empty())
}

/// The type, and null if it may be that.
fn nullable(schema: &Value, indent: &str) -> String {
    let found = type_of(schema, indent);
    let is_nullable = schema.get("nullable").and_then(Value::as_bool).unwrap_or(false);
    if is_nullable && !found.contains("null") { found + " | null" } else { found }
}

/// The comment of a default value.
fn default(schema: &Value) -> Option<String> {
    let value = schema.get("default")?;
    Some(match value {
        Value::String(value) if is_enum(schema) => format!("default: {value}"),
        Value::String(value) => format!("default: \"{value}\""),
        value => format!("default: {value}"),
    })
}

/// Variants, each on a line of its own, with what is said of them.
fn alternatives(variants: &[Value], indent: &str) -> String {
    let mut out = String::new();
    for variant in variants {
        let _ = write!(out, "\n{indent} | {}", nullable(variant, &format!("{indent}   ")));
        // A default is in quotes here whether or not the values are listed.
        let default = variant.get("default").map(|value| match value {
            Value::String(value) => format!("default: \"{value}\""),
            value => format!("default: {value}"),
        });
        out += &trailing([text(variant, "description").map(str::to_owned), default]);
    }
    out
}

/// A comment at the end of a line.
fn trailing(parts: [Option<String>; 2]) -> String {
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() { String::new() } else { format!(" // {}", parts.join(" ")) }
}

fn object(schema: &Value, indent: &str) -> String {
    let mut out = String::new();
    if let Some(description) = text(schema, "description") {
        let _ = writeln!(out, "{indent}// {description}");
    }
    out += "{\n";
    let required: Vec<&str> = match schema.get("required") {
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    for (key, value) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let mark = if required.contains(&key.as_str()) { "" } else { "?" };
        property(&mut out, &format!("{key}{mark}"), value, indent);
    }
    out + indent + "}"
}

/// A member of an object, with its comments before it.
fn property(out: &mut String, key: &str, schema: &Value, indent: &str) {
    if let Some(title) = text(schema, "title") {
        let _ = write!(out, "{indent}// {title}\n{indent}//\n");
    }
    let has_variants = schema.get("oneOf").is_some();
    if let Some(description) = text(schema, "description").filter(|_| !has_variants) {
        let _ = writeln!(out, "{indent}// {description}");
    }
    let examples = schema.get("examples").and_then(Value::as_array).filter(|list| !list.is_empty());
    if let Some(examples) = examples {
        let _ = writeln!(out, "{indent}// Examples:");
        for example in examples.iter().filter_map(Value::as_str) {
            let _ = writeln!(out, "{indent}// - \"{example}\"");
        }
    }
    if let Some(variants) = schema.get("oneOf").and_then(Value::as_array) {
        return variant_property(out, key, schema, variants, indent);
    }
    let _ = write!(out, "{indent}{key}: {},", nullable(schema, &format!("{indent}    ")));
    *out += &trailing([default(schema).filter(|_| !has_variants), None]);
    out.push('\n');
}

/// A member that is one of several types: each is on a line of its own.
fn variant_property(out: &mut String, key: &str, schema: &Value, variants: &[Value], indent: &str) {
    let description = text(schema, "description");
    let first = variants.first().and_then(|variant| text(variant, "description"));
    // A description that the first variant has as well is not repeated above it.
    let above = description.filter(|said| first != Some(said));
    for line in [above.map(str::to_owned), default(schema)].into_iter().flatten() {
        let _ = writeln!(out, "{indent}// {line}");
    }
    let _ = writeln!(out, "{indent}{key}:");
    for (n, variant) in variants.iter().enumerate() {
        let _ = write!(out, "{indent} | {}", nullable(variant, &format!("{indent}   ")));
        let said = text(variant, "description")
            .filter(|said| Some(*said) != description && !(n == 0 && above.is_some()));
        *out += &trailing([said.map(str::to_owned), default(variant)]);
        out.push('\n');
    }
    let _ = writeln!(out, "{indent},");
}
