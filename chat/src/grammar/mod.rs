//! Grammars that hold a whole turn of a model to its format.

mod harmony;
mod pairs;
mod text;

use crate::calls::{CallFormat, TextParser, ThoughtMarks};
use crate::conversation::{BuiltinTool, Conversation, Effort, Tool};
use kernmill_constrain::{Composed, Error, Rule, Vocabulary};
use serde_json::{Value, json};

/// The turns that a model may make, in no model's format.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TurnGrammar {
    /// Functions that are declared, with the schemas of their arguments.
    pub tools: Vec<Tool>,
    /// Tools of the model's own that it may use.
    pub builtin: Vec<BuiltinTool>,
    /// How long the model reasons; with [`Effort::None`] it does not.
    pub effort: Effort,
    /// The form of the answer, if it has one.
    pub answer: Option<Rule>,
    /// Whether tools are called.
    pub choice: ToolChoice,
    /// Names of the tools that may be called; `None` for all of them.
    pub allowed: Option<Vec<String>>,
    /// Whether the turn ends behind its first call.
    pub one_call: bool,
    /// Where thoughts are in the texts of a model with a template. Harmony has channels for them.
    pub thoughts: Thoughts,
    /// The marks around these thoughts.
    pub thought_marks: ThoughtMarks,
}

/// Where a text has thoughts between their marks, such as `<think>` and `</think>`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Thoughts {
    /// Nowhere.
    #[default]
    None,
    /// At its beginning, if the model likes.
    Optional,
    /// The prompt has begun them: the text goes on inside of them.
    Begun,
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

impl ToolChoice {
    /// Whether the turn must be a call.
    pub fn is_required(&self) -> bool {
        matches!(self, ToolChoice::Required | ToolChoice::Function(_))
    }

    /// Whether the function of a name may be called.
    pub fn allows(&self, name: &str) -> bool {
        match self {
            ToolChoice::Auto | ToolChoice::Required => true,
            ToolChoice::None => false,
            ToolChoice::Function(named) => named == name,
        }
    }
}

impl TurnGrammar {
    /// The turn that follows a conversation, with as many calls as the model likes.
    pub fn of(conversation: &Conversation, choice: ToolChoice) -> TurnGrammar {
        TurnGrammar {
            tools: conversation.tools.clone(),
            builtin: conversation.builtin.clone(),
            effort: conversation.effort,
            answer: conversation.format.as_ref().map(|format| Rule::JsonSchema(format.schema.clone())),
            choice,
            ..TurnGrammar::default()
        }
    }

    /// The rule of the turn in Harmony.
    ///
    /// # Errors
    /// When a schema is too large, a function has a name that no grammar can quote, or no tool can be called
    /// where one must be.
    pub fn harmony(&self) -> Result<Rule, Error> {
        harmony::rule(self)
    }

    /// The rule of the turn as a text of a model with a template, which writes calls in the format `calls`,
    /// if that is known. `None` where the turn may be any text.
    ///
    /// What a rule lets through is read by [`TurnGrammar::reader`] as what it was meant to be.
    ///
    /// # Errors
    /// When a schema is too large, a function has a name that no grammar can quote, or no tool can be called
    /// where one must be.
    pub fn text(
        &self,
        calls: Option<&'static CallFormat>,
        vocabulary: &dyn Vocabulary,
    ) -> Result<Option<Rule>, Error> {
        text::rule(self, calls, vocabulary)
    }

    /// The parser of the turn's text, for a model with a template. Only functions that may be called are.
    pub fn reader(&self, calls: Option<&'static CallFormat>, vocabulary: &dyn Vocabulary) -> TextParser {
        let tools = self.callable().cloned().collect();
        let is_thinking = self.thoughts == Thoughts::Begun;
        let parser = TextParser::new(vocabulary, calls, tools, self.thought_marks, is_thinking);
        if self.answer.is_some() { parser.with_form() } else { parser }
    }

    /// Functions that may be called.
    fn callable(&self) -> impl Iterator<Item = &Tool> {
        self.tools.iter().filter(|tool| self.choice.allows(&tool.name) && self.is_allowed(&tool.name))
    }

    fn is_allowed(&self, name: &str) -> bool {
        self.allowed.as_ref().is_none_or(|names| names.iter().any(|allowed| allowed == name))
    }
}

/// Checks that a grammar can quote a function's name.
///
/// # Errors
/// When it has other characters than letters, digits and `_-.`.
fn check_name(tool: &Tool) -> Result<(), Error> {
    let is_plain = tool.name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c));
    if tool.name.is_empty() || !is_plain {
        let reason = "its name has other characters than letters, digits and `_-.`".to_owned();
        return Err(Error::Rule { what: what(tool), reason });
    }
    Ok(())
}

fn what(tool: &Tool) -> String {
    format!("the function `{}`", tool.name.chars().take(80).collect::<String>())
}

/// Adds the rule of a function's arguments, which are an object.
///
/// # Errors
/// When the function's schema is too large.
fn arguments(grammar: &mut Composed, rule: &str, tool: &Tool) -> Result<(), Error> {
    let mut schema = match &tool.parameters {
        None => json!({ "properties": {}, "additionalProperties": false }),
        Some(schema) => schema.clone(),
    };
    if let Value::Object(members) = &mut schema {
        members.insert("type".to_owned(), "object".into());
    }
    grammar.schema(rule, &format!("the schema of {}", what(tool)), &schema, tool.strict)
}

fn wrong_choice(reason: &str) -> Error {
    Error::Rule { what: "the choice of tools".to_owned(), reason: reason.to_owned() }
}
