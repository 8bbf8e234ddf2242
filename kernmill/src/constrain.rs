//! Constrained output: the crate `kernmill-constrain`, with a model's tokenizer and for the sampler.

use crate::error::Error as Failure;
use kernmill_os::files::read_named_text;
use kernmill_runtime::TokenizerHandle;
use kernmill_runtime::tokenizer::TokenizerError;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use kernmill_constrain::*;
pub use kernmill_serve::token_mask;

/// The vocabulary of a model as constraints need it. `width` is the number of the model's logits, `ends` are
/// its end tokens.
///
/// ```
/// use kernmill::constrain::{Constraint, Rule, lexicon, token_mask};
/// use kernmill::{Sampler, SamplerParams};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let json = include_bytes!("../../model-specs/nano/tokenizer.json");
/// let tokenizer = kernmill::runtime::tokenizer::Tokenizer::from_json(json, 3072)?;
/// let lexicon = lexicon(&tokenizer.into(), 3072, &[])?;
/// let rule = Rule::Regex("yes|no".to_owned());
/// let mut constraint = Constraint::new(&lexicon, &rule)?;
/// let mut sampler = Sampler::new(SamplerParams::default(), 3072)?;
/// let mut position = 0;
/// while !constraint.is_done() {
///     let logits = vec![0.0; 3072]; // those of the model
///     let token = sampler.choose(&logits, position, Some(&token_mask(constraint.mask()?)))?;
///     sampler.accept(token);
///     constraint.accept(token)?;
///     position += 1;
/// }
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// When the tokenizer cannot be read, or has too many tokens.
pub fn lexicon(tokenizer: &TokenizerHandle, width: usize, ends: &[u32]) -> crate::Result<Lexicon> {
    tokenizer.get()?;
    let vocabulary = Arc::new(Owned(tokenizer.clone()));
    Lexicon::new(vocabulary, width, ends).map_err(|error| Failure::BadInput(error.to_string()))
}

/// Bytes of the largest file of a schema or grammar. The limits of what is in it are [`SCHEMA_BYTES`],
/// counted without spaces, and [`GRAMMAR_BYTES`].
const FILE_BYTES: u64 = 1 << 20;

/// What a text must be, as options of a program give it.
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
    /// What holds a model's texts to their form; `None` if nothing is given, or else that of the first thing
    /// given. `width` is the number of the model's logits, `ends` are the tokens that may end a text.
    ///
    /// # Errors
    /// When a file cannot be read, the rule has a mistake or is too much work, or the model has no tokenizer.
    pub fn constraint(
        &self,
        tokenizer: Option<&TokenizerHandle>,
        width: usize,
        ends: &[u32],
    ) -> crate::Result<Option<Constraint>> {
        let Some((rule, place)) = self.rule()? else { return Ok(None) };
        let lexicon = lexicon(needed(tokenizer)?, width, ends)?;
        let constraint = Constraint::new(&lexicon, &rule);
        let constraint = constraint.map_err(|error| match place {
            Some(path) => Failure::input(path, error),
            None => Failure::BadInput(error.to_string()),
        })?;
        Ok(Some(constraint))
    }

    /// The rule, and the file that it is from.
    fn rule(&self) -> crate::Result<Option<(Rule, Option<&Path>)>> {
        let read = |path: &Path| read_named_text(path, FILE_BYTES).map_err(Failure::read(path));
        if self.json_object {
            return Ok(Some((Rule::JsonObject, None)));
        }
        if let Some(path) = &self.json_schema {
            let schema = serde_json::from_str(&read(path)?);
            let schema =
                schema.map_err(|error| Failure::input(path, format!("it is no JSON schema: {error}")))?;
            return Ok(Some((Rule::JsonSchema(schema), Some(path))));
        }
        if let Some(path) = &self.grammar {
            return Ok(Some((Rule::Lark(read(path)?), Some(path))));
        }
        Ok(self.regex.clone().map(|pattern| (Rule::Regex(pattern), None)))
    }
}

/// The tokenizer without which no text is held to a form.
pub(crate) fn needed<T>(tokenizer: Option<T>) -> crate::Result<T> {
    tokenizer.ok_or_else(|| {
        let what =
            "a text can be held to a form only with a tokenizer, and the model has none: leave the form out";
        Failure::BadInput(what.to_owned())
    })
}

/// A tokenizer that has been read.
struct Owned(TokenizerHandle);

impl Vocabulary for Owned {
    fn encode_ordinary(&self, text: &str) -> Result<Vec<u32>, VocabularyError> {
        Vocabulary::encode_ordinary(self.0.get().map_err(wrong)?, text)
    }

    fn encode_marked(&self, text: &str) -> Result<Vec<u32>, VocabularyError> {
        self.0.get().map_err(wrong)?.encode_marked(text)
    }

    fn added_tokens(&self) -> Vec<AddedToken> {
        self.0.get().map(|tokenizer| tokenizer.added_tokens()).unwrap_or_default()
    }

    fn bytes(&self, id: u32) -> Option<Vec<u8>> {
        self.0.get().ok()?.bytes(id)
    }
}

fn wrong(error: TokenizerError) -> VocabularyError {
    VocabularyError(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::{Constraint, Rule, lexicon, token_mask};
    use kernmill_runtime::tokenizer::Tokenizer;
    use kernmill_runtime::{Sampler, SamplerParams, TokenizerHandle};
    use serde_json::{Value, json};

    const WIDTH: usize = 3072;

    #[test]
    fn random_logits_of_nano_give_json_of_a_schema() {
        let json = include_bytes!("../../model-specs/nano/tokenizer.json");
        let tokenizer = TokenizerHandle::from(Tokenizer::from_json(json, WIDTH as u32).unwrap());
        let lexicon = lexicon(&tokenizer, WIDTH, &[]).unwrap();
        let schema = json!({
            "type": "object",
            "properties": {
                "name": { "type": "string", "maxLength": 12 },
                "sizes": { "type": "array", "items": { "type": "integer", "minimum": 0, "maximum": 99 }, "maxItems": 3 },
                "kind": { "enum": ["slice", "vec"] },
            },
            "required": ["name", "sizes", "kind"],
            "additionalProperties": false,
        });
        for seed in 0..200 {
            let mut rng = fastrand::Rng::with_seed(seed);
            let params = SamplerParams { temperature: 1.0, seed: Some(seed), ..SamplerParams::default() };
            let mut sampler = Sampler::new(params, WIDTH).unwrap();
            let mut constraint = Constraint::new(&lexicon, &Rule::JsonSchema(schema.clone())).unwrap();
            let (mut bytes, mut position) = (Vec::new(), 0);
            while !constraint.is_done() {
                let logits: Vec<f32> = (0..WIDTH).map(|_| rng.f32() * 4.0).collect();
                let mask = token_mask(constraint.mask().unwrap());
                let token = sampler.choose(&logits, position, Some(&mask)).unwrap();
                constraint.accept(token).unwrap();
                bytes.extend(tokenizer.get().unwrap().token_bytes(token).unwrap());
                position += 1;
            }
            let value: Value = serde_json::from_slice(&bytes).unwrap();
            assert!(value["name"].as_str().unwrap().chars().count() <= 12, "{value}");
            let sizes = value["sizes"].as_array().unwrap();
            assert!(sizes.len() <= 3 && sizes.iter().all(|size| size.as_u64().unwrap() < 100), "{value}");
            assert!(value["kind"] == "slice" || value["kind"] == "vec", "{value}");
            assert_eq!(value.as_object().unwrap().len(), 3);
        }
    }
}
