//! What holds a whole turn of a model to its format.

mod harmony;

use crate::conversation::{BuiltinTool, Conversation, Effort, Tool};
use kernmill_constrain::{Error, Rule};

/// What a turn of a model may be, in no model's format.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TurnGrammar {
    /// Functions that may be called, with the schemas of their arguments.
    pub tools: Vec<Tool>,
    /// Tools of the model's own that may be called.
    pub builtin: Vec<BuiltinTool>,
    /// How long the model reasons; with [`Effort::None`] it does not.
    pub effort: Effort,
    /// The form of the answer, if it has one.
    pub answer: Option<Rule>,
    /// Whether tools are called.
    pub choice: ToolChoice,
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
    /// The turn that follows a conversation.
    pub fn of(conversation: &Conversation, choice: ToolChoice) -> TurnGrammar {
        TurnGrammar {
            tools: conversation.tools.clone(),
            builtin: conversation.builtin.clone(),
            effort: conversation.effort,
            answer: conversation.format.as_ref().map(|format| Rule::JsonSchema(format.schema.clone())),
            choice,
        }
    }

    /// The rule of the turn in Harmony.
    ///
    /// # Errors
    /// When a schema is too large, a function has a name that Harmony cannot write, or no tool can be called
    /// where one must be.
    pub fn harmony(&self) -> Result<Rule, Error> {
        harmony::rule(self)
    }
}

/// Whether a function's name has letters, digits and `_-.` alone, so that a grammar can quote it.
fn is_plain_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c))
}

fn wrong_choice(reason: &str) -> Error {
    Error::Rule { what: "the choice of tools".to_owned(), reason: reason.to_owned() }
}
