//! Rules for texts, from options of a program.

use kernmill::lexicon;
use kernmill::{Error, Result};
use kernmill_constrain::{Constraint, Rule};
use kernmill_os::files::read_named_text;
use kernmill_runtime::TokenizerHandle;
use std::path::{Path, PathBuf};

/// Bytes of the largest file of a schema or grammar. `kernmill-constrain` has the limits of what is in it.
const FILE_BYTES: u64 = 1 << 20;

/// The rule for a text, as options of a program give it.
#[derive(Clone, Debug, Default)]
pub struct RuleSource {
    /// The text is a JSON object.
    pub json_object: bool,
    /// File with the text's JSON schema.
    pub json_schema: Option<PathBuf>,
    /// File with the text's grammar, in Lark's syntax.
    pub grammar: Option<PathBuf>,
    /// The regular expression that matches the text.
    pub regex: Option<String>,
}

impl RuleSource {
    /// The constraint of a model's texts; `None` if nothing is given, or else that of the first thing given.
    /// `width` is the number of the model's logits, `ends` are the tokens that may end a text.
    ///
    /// # Errors
    /// When a file cannot be read, the rule has a mistake or is too much work, or the model has no tokenizer.
    pub fn constraint(
        &self,
        tokenizer: Option<&TokenizerHandle>,
        width: usize,
        ends: &[u32],
    ) -> Result<Option<Constraint>> {
        let Some((rule, place)) = self.rule()? else { return Ok(None) };
        let lexicon = lexicon(tokenizer, width, ends)?;
        let constraint = Constraint::new(&lexicon, &rule);
        let constraint = constraint.map_err(|error| match place {
            Some(path) => Error::input(path, error),
            None => Error::bad_input(error.to_string()),
        })?;
        Ok(Some(constraint))
    }

    /// The rule, and the file that it is from.
    fn rule(&self) -> Result<Option<(Rule, Option<&Path>)>> {
        let read = |path: &Path| read_named_text(path, FILE_BYTES).map_err(Error::read(path));
        if self.json_object {
            return Ok(Some((Rule::JsonObject, None)));
        }
        if let Some(path) = &self.json_schema {
            let schema = serde_json::from_str(&read(path)?);
            let schema =
                schema.map_err(|error| Error::input(path, format!("it is no JSON schema: {error}")))?;
            return Ok(Some((Rule::JsonSchema(schema), Some(path))));
        }
        if let Some(path) = &self.grammar {
            return Ok(Some((Rule::Lark(read(path)?), Some(path))));
        }
        Ok(self.regex.clone().map(|pattern| (Rule::Regex(pattern), None)))
    }
}
