//! What a text must be.

use crate::error::Error;
use crate::json::{any_object, with_options};
use crate::limits::{check_schema, check_text};
use crate::turn::{Form, Turn};
use llguidance::api::TopLevelGrammar;
use serde_json::Value;

/// What a text must be.
#[derive(Clone, Debug, PartialEq)]
pub enum Rule {
    /// JSON that a schema describes. Members come in the schema's order.
    JsonSchema(Value),
    /// Any JSON object.
    JsonObject,
    /// A text that a regular expression matches from beginning to end, in the syntax of the crate `regex`.
    Regex(String),
    /// A text of a grammar in Lark's syntax. Its first rule is `start`.
    Lark(String),
    /// A whole turn of the model in Harmony.
    Harmony(Turn),
}

impl From<Form> for Rule {
    fn from(form: Form) -> Rule {
        match form {
            Form::JsonSchema(schema) => Rule::JsonSchema(schema),
            Form::Regex(text) => Rule::Regex(text),
            Form::Lark(text) => Rule::Lark(text),
        }
    }
}

impl Rule {
    /// What the rule is called in messages.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Rule::JsonSchema(_) => "the JSON schema",
            Rule::JsonObject => "a JSON object",
            Rule::Regex(_) => "the regular expression",
            Rule::Lark(_) => "the grammar",
            Rule::Harmony(_) => "the turn",
        }
    }

    /// The rule as a grammar, after a check of its size.
    pub(crate) fn grammar(&self) -> Result<TopLevelGrammar, Error> {
        match self {
            Rule::JsonSchema(schema) => {
                check_schema(self.name(), schema)?;
                Ok(TopLevelGrammar::from_json_schema(with_options(schema)))
            }
            Rule::JsonObject => Ok(TopLevelGrammar::from_json_schema(any_object())),
            Rule::Regex(text) => {
                check_text(self.name(), text)?;
                Ok(TopLevelGrammar::from_regex(text))
            }
            Rule::Lark(text) => {
                check_text(self.name(), text)?;
                Ok(TopLevelGrammar::from_lark(text.clone()))
            }
            Rule::Harmony(turn) => {
                let mut grammar = TopLevelGrammar::from_lark(turn.grammar()?);
                grammar.grammars.extend(turn.answer_grammar()?);
                Ok(grammar)
            }
        }
    }
}
