//! A model's tokenizer as constraints need it.

use crate::error::Error as Failure;
use kernmill_constrain::Lexicon;
use kernmill_runtime::TokenizerHandle;
use std::sync::Arc;

/// The vocabulary of a model as constraints need it. `width` is the number of the model's logits, `ends` are
/// its end tokens.
///
/// ```
/// use kernmill::lexicon;
/// use kernmill_constrain::{Constraint, Rule};
/// use kernmill_runtime::{Sampler, SamplerParams};
/// use kernmill_serve::token_mask;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let json = include_bytes!("../../model-specs/nano/tokenizer.json");
/// let tokenizer = kernmill_runtime::tokenizer::Tokenizer::from_json(json, 3072)?;
/// let lexicon = lexicon(Some(&tokenizer.into()), 3072, &[])?;
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
/// When there is no tokenizer, it cannot be read, or has too many tokens.
pub fn lexicon(tokenizer: Option<&TokenizerHandle>, width: usize, ends: &[u32]) -> crate::Result<Lexicon> {
    let tokenizer = needed(tokenizer)?;
    tokenizer.get()?;
    let vocabulary = Arc::new(tokenizer.clone());
    Lexicon::new(vocabulary, width, ends).map_err(|error| Failure::bad_input(error.to_string()))
}

/// The tokenizer, without which no text is held to a form.
fn needed<T>(tokenizer: Option<T>) -> crate::Result<T> {
    tokenizer.ok_or_else(|| {
        let what =
            "a text can be held to a form only with a tokenizer, and the model has none: leave the form out";
        Failure::bad_input(what.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::lexicon;
    use kernmill_constrain::{Constraint, Rule};
    use kernmill_runtime::tokenizer::Tokenizer;
    use kernmill_runtime::{Sampler, SamplerParams, TokenizerHandle};
    use kernmill_serve::token_mask;
    use serde_json::{Value, json};

    const WIDTH: usize = 3072;

    #[test]
    fn random_logits_of_nano_give_json_of_a_schema() {
        let json = include_bytes!("../../model-specs/nano/tokenizer.json");
        let tokenizer = TokenizerHandle::from(Tokenizer::from_json(json, WIDTH as u32).unwrap());
        let lexicon = lexicon(Some(&tokenizer), WIDTH, &[]).unwrap();
        let schema = json!({
            "type": "object",
            "properties": {
                "name": { "type": "string", "maxLength": 12 },
                "sizes": { "type": "array", "items": { "type": "integer", "minimum": 0, "maximum": 99 },
                    "maxItems": 3 },
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
