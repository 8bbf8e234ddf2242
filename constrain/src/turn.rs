//! The grammar of a turn in Harmony.

use crate::error::Error;
use crate::json::{any_object, with_lenient_options, with_options};
use crate::limits::{TURN_BYTES, check_schema, check_text};
use kernmill_chat::{BuiltinTool, Conversation, Effort, Tool};
use llguidance::api::GrammarWithLexer;
use serde_json::{Value, json};
use std::fmt::Write;

/// A turn of a model in Harmony: reasoning and a preamble, if the model likes; then a call of a tool, or the
/// answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Turn {
    /// Functions that may be called, with the schemas of their arguments.
    pub tools: Vec<Tool>,
    /// Tools of the model's own that may be called.
    pub builtin: Vec<BuiltinTool>,
    /// With [`Effort::None`] the prompt ends with the header of an answer: only its content follows.
    pub effort: Effort,
    /// The form of the answer, if it has one.
    pub answer: Option<Form>,
    /// Whether tools are called.
    pub choice: ToolChoice,
}

/// The form of an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Form {
    /// JSON that a schema describes.
    JsonSchema(Value),
    /// A text that a regular expression matches from beginning to end.
    Regex(String),
    /// A text of a grammar in Lark's syntax.
    Lark(String),
}

/// Whether a model calls a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// No tool is called.
    None,
    /// One of the tools is called.
    Required,
    /// The function of this name is called.
    Function(String),
}

impl Turn {
    /// The turn that follows a conversation.
    pub fn of(conversation: &Conversation, choice: ToolChoice) -> Turn {
        Turn {
            tools: conversation.tools.clone(),
            builtin: conversation.builtin.clone(),
            effort: conversation.effort,
            answer: conversation.format.as_ref().map(|format| Form::JsonSchema(format.schema.clone())),
            choice,
        }
    }

    /// A grammar that the turn's refers to as `@answer`, after a check of its size.
    pub(crate) fn answer_grammar(&self) -> Result<Option<GrammarWithLexer>, Error> {
        let (what, text, made) = match &self.answer {
            None | Some(Form::JsonSchema(_)) => return Ok(None),
            Some(Form::Regex(text)) => {
                ("the regular expression", text, GrammarWithLexer::from_regex as fn(&str) -> _)
            }
            Some(Form::Lark(text)) => {
                let made = |text: &str| GrammarWithLexer::from_lark(text.to_owned());
                ("the grammar", text, made as fn(&str) -> _)
            }
        };
        check_text(what, text)?;
        Ok(Some(GrammarWithLexer { name: Some("answer".to_owned()), ..made(text) }))
    }

    /// The grammar, in Lark's syntax.
    pub(crate) fn grammar(&self) -> Result<String, Error> {
        let wrong = |reason: String| Error::Rule { what: "the choice of tools".to_owned(), reason };
        let content = match &self.answer {
            None => "TEXT".to_owned(),
            Some(Form::Regex(_) | Form::Lark(_)) => "@answer".to_owned(),
            Some(Form::JsonSchema(schema)) => {
                check_schema("the schema of the answer", schema)?;
                format!("%json {}", with_options(schema))
            }
        };
        let mut text = "TEXT: /(.|\\n)*/\n".to_owned();
        let must_call = matches!(self.choice, ToolChoice::Required | ToolChoice::Function(_));
        if self.effort == Effort::None {
            if must_call {
                return Err(wrong(
                    "without reasoning the model can only answer, expected `auto` or `none`".into(),
                ));
            }
            let _ = writeln!(text, "start: answer <|return|>\nanswer: {content}");
            return Ok(text);
        }
        let calls = self.calls(&mut text)?;
        if must_call && calls.is_empty() {
            return Err(wrong("a tool shall be called, but no such tool is declared".to_owned()));
        }
        let mut last = calls;
        if !must_call {
            last.push("final".to_owned());
            let is_json = matches!(self.answer, Some(Form::JsonSchema(_)));
            let kind = if is_json { "json_type? " } else { "" };
            let _ = writeln!(text, "final: <|channel|> \"final\" {kind}<|message|> answer <|return|>");
            let _ = writeln!(text, "answer: {content}");
        }
        let next = "<|end|> <|start|> \"assistant\"";
        let _ = writeln!(text, "json_type: \" json\" | \" \" <|constrain|> \"json\"");
        let _ = writeln!(text, "reasoning: <|channel|> \"analysis\" <|message|> TEXT {next}");
        let _ = writeln!(text, "preamble: <|channel|> \"commentary\" <|message|> TEXT {next}");
        let _ = writeln!(text, "last: {}", last.join(" | "));
        text.push_str("start: reasoning? preamble? last\n");
        Ok(text)
    }

    /// Writes a rule for every tool that may be called, and gives their names.
    fn calls(&self, text: &mut String) -> Result<Vec<String>, Error> {
        let mut rules = Vec::new();
        let mut bytes = 0;
        for (index, tool) in self.tools.iter().enumerate() {
            let is_open = match &self.choice {
                ToolChoice::Auto | ToolChoice::Required => true,
                ToolChoice::None => false,
                ToolChoice::Function(name) => *name == tool.name,
            };
            if !is_open {
                continue;
            }
            let what = || format!("the function `{}`", tool.name.chars().take(80).collect::<String>());
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
            if tool.name.is_empty() || !tool.name.chars().all(is_plain) {
                let reason = "its name has other characters than letters, digits and `_-.`".to_owned();
                return Err(Error::Rule { what: what(), reason });
            }
            let nothing = json!({ "type": "object", "properties": {}, "additionalProperties": false });
            let schema = tool.parameters.as_ref().unwrap_or(&nothing);
            bytes += check_schema(&format!("the schema of {}", what()), schema)?;
            if bytes > TURN_BYTES {
                let what = "the schemas of the tools together".to_owned();
                return Err(Error::TooLarge { what, found: bytes, unit: "bytes", limit: TURN_BYTES });
            }
            // The recipient may stand before or after the channel: models write both.
            let to = format!(" to=functions.{}", tool.name);
            let arguments = format!("args_{index}");
            let schema = if tool.strict { with_options(schema) } else { with_lenient_options(schema) };
            let _ = writeln!(text, "{arguments}: %json {schema}");
            let _ = writeln!(
                text,
                "call_{index}: <|channel|> \"commentary{to}\" json_type <|message|> {arguments} <|call|> \
                 | \"{to}\" <|channel|> \"commentary\" json_type <|message|> {arguments} <|call|>"
            );
            rules.push(format!("call_{index}"));
        }
        let is_open = matches!(self.choice, ToolChoice::Auto | ToolChoice::Required);
        for tool in self.builtin.iter().filter(|_| is_open) {
            let (name, to, content) = match tool {
                BuiltinTool::Python => ("python", "to=python", "TEXT".to_owned()),
                BuiltinTool::Browser => (
                    "browser",
                    "to=browser.\" (\"search\" | \"open\" | \"find\") \"",
                    format!("%json {}", any_object()),
                ),
            };
            let _ = writeln!(text, "in_{name}: {content}");
            let _ =
                writeln!(text, "{name}: <|channel|> \"analysis {to} code\" <|message|> in_{name} <|call|>");
            rules.push(name.to_owned());
        }
        Ok(rules)
    }
}
