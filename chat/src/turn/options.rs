//! Wishes about a turn, and reasons to refuse it.

use crate::format::Refused;
use crate::grammar::ToolChoice;
use kernmill_constrain::Rule;

/// Wishes about a turn, besides the conversation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TurnOptions {
    /// Whether tools are called.
    pub choice: ToolChoice,
    /// Names of the functions that may be called; `None` for all that are declared.
    pub allowed: Option<Vec<String>>,
    /// Whether the turn ends behind its first call.
    pub one_call: bool,
    /// Form of the answer, in place of that of the conversation.
    pub form: Option<Rule>,
    /// Strings that end the answer. They do not end reasoning, and are not part of the answer.
    pub stop: Vec<String>,
    /// Whether the turn goes on in the conversation's last item, an answer that is not finished. The pieces
    /// are those of what comes behind it.
    pub continues: bool,
}

/// Why there is no turn. Every message is one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TurnError {
    /// The format refuses the conversation.
    #[error(transparent)]
    Conversation(#[from] Refused),
    /// The choice of tools cannot be followed.
    #[error("{0}")]
    Choice(String),
    /// The form of the answer cannot be followed.
    #[error("{0}")]
    Form(String),
    /// The schema of a strict function cannot be followed.
    #[error("{0}")]
    Function(String),
}
