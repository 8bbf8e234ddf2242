//! Rules that a text must follow.

use crate::error::Error;
use crate::json::{any_object, with_lenient_options, with_options};
use crate::limits::{TURN_BYTES, check_schema, check_text};
use llguidance::api::{GrammarWithLexer, TopLevelGrammar};
use serde_json::Value;
use std::fmt::Write;

/// The rule that a text must follow.
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
    /// A text of several parts, such as a whole turn of a model.
    Composed(Composed),
}

/// A grammar put together of rules in Lark's syntax, schemas and forms. Its first rule is `start`.
///
/// Rules refer to each other by name, and to a special token of the vocabulary by its text, such as
/// `<|call|>`.
///
/// ```
/// use kernmill_constrain::{Composed, Rule};
///
/// let mut turn = Composed::default();
/// turn.form("answer", "the answer", &Rule::Regex("yes|no".to_owned()))?;
/// turn.rule("start", "\"So: \" answer");
/// let rule = Rule::Composed(turn);
/// # Ok::<(), kernmill_constrain::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Composed {
    /// All rules in Lark's syntax.
    text: String,
    /// Forms that the rules refer to as `@name`.
    forms: Vec<(String, Rule)>,
    /// Bytes of all schemas together.
    schema_bytes: usize,
}

impl Rule {
    /// The rule's name in messages.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Rule::JsonSchema(_) => "the JSON schema",
            Rule::JsonObject => "a JSON object",
            Rule::Regex(_) => "the regular expression",
            Rule::Lark(_) => "the grammar",
            Rule::Composed(_) => "the turn",
        }
    }

    /// The rule as a grammar, after a check of its size.
    pub(crate) fn grammar(&self) -> Result<TopLevelGrammar, Error> {
        match self {
            Rule::Composed(composed) => composed.grammar(),
            form => form.single().map(TopLevelGrammar::from_grammar),
        }
    }

    /// The grammar of a text that is one form.
    fn single(&self) -> Result<GrammarWithLexer, Error> {
        Ok(match self {
            Rule::JsonSchema(schema) => {
                check_schema(self.name(), schema)?;
                GrammarWithLexer::from_json_schema(with_options(schema))
            }
            Rule::JsonObject => GrammarWithLexer::from_json_schema(any_object()),
            Rule::Regex(text) => {
                check_text(self.name(), text)?;
                GrammarWithLexer::from_regex(text)
            }
            Rule::Lark(text) => {
                check_text(self.name(), text)?;
                GrammarWithLexer::from_lark(text.clone())
            }
            Rule::Composed(_) => return Err(nested()),
        })
    }
}

fn nested() -> Error {
    let reason = "it has parts itself, expected a schema, an expression or a grammar".to_owned();
    Error::Rule { what: "a part of the turn".to_owned(), reason }
}

impl Composed {
    /// Adds a rule, or a terminal if its name has capitals. `body` is written as Lark has it.
    pub fn rule(&mut self, name: &str, body: &str) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.text, "{name}: {body}");
    }

    /// Adds a rule for JSON of a schema. `what` names the schema in errors. Unless it is `strict`, parts that
    /// no grammar can hold a text to are passed over.
    ///
    /// # Errors
    /// When the schema is too large, or all schemas are together.
    pub fn schema(&mut self, name: &str, what: &str, schema: &Value, strict: bool) -> Result<(), Error> {
        self.schema_bytes += check_schema(what, schema)?;
        if self.schema_bytes > TURN_BYTES {
            let (what, found) = ("the schemas of the turn together".to_owned(), self.schema_bytes);
            return Err(Error::TooLarge { what, found, unit: "bytes", limit: TURN_BYTES });
        }
        let schema = if strict { with_options(schema) } else { with_lenient_options(schema) };
        self.rule(name, &format!("%json {schema}"));
        Ok(())
    }

    /// Adds a rule for a text of a form, which is any rule but a composed one. `what` names it in errors.
    ///
    /// # Errors
    /// When the form is too large or composed.
    pub fn form(&mut self, name: &str, what: &str, form: &Rule) -> Result<(), Error> {
        match form {
            Rule::JsonSchema(schema) => self.schema(name, &format!("the schema of {what}"), schema, true),
            Rule::JsonObject => {
                self.rule(name, &format!("%json {}", any_object()));
                Ok(())
            }
            Rule::Regex(text) | Rule::Lark(text) => {
                check_text(form.name(), text)?;
                // Names of grammars are apart from those of rules.
                self.rule(name, &format!("@form_{name}"));
                self.forms.push((format!("form_{name}"), form.clone()));
                Ok(())
            }
            Rule::Composed(_) => Err(nested()),
        }
    }

    /// The grammar as the parser takes it.
    fn grammar(&self) -> Result<TopLevelGrammar, Error> {
        let mut grammar = TopLevelGrammar::from_lark(self.text.clone());
        for (name, form) in &self.forms {
            grammar.grammars.push(GrammarWithLexer { name: Some(name.clone()), ..form.single()? });
        }
        Ok(grammar)
    }
}
