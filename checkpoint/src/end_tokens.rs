//! Tokens by which published models end a turn or a text: their names, and how a model's own files state
//! them.

use serde_json::Value;

/// Names of end tokens. Whatever its files say, a model whose vocabulary has one of these ends by it.
///
/// `<|end|>` is not among them: GPT-OSS puts it after every message, and goes on with the next one.
pub const NAMES: [&str; 16] = [
    "<|return|>",
    "<|call|>",
    "<|endoftext|>",
    "</s>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end_of_text|>",
    "<|im_end|>",
    "<eos>",
    "<end_of_turn>",
    "<\u{ff5c}end\u{2581}of\u{2581}sentence\u{ff5c}>",
    "<|end_of_sentence|>",
    "<|endofturn|>",
    "<|END_OF_TURN_TOKEN|>",
    "<EOT>",
    "[EOS]",
];

/// Keys of a GGUF file that name an end token: of a text, of a turn, and of a message.
pub const GGUF_KEYS: [&str; 3] =
    ["tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"];

/// The key of a `config.json` or `generation_config.json` that names end tokens.
const CONFIG_KEY: &str = "eos_token_id";

/// End tokens that a `config.json` or `generation_config.json` names: a number, or a list of numbers.
/// Negative ones stand for none.
///
/// # Errors
/// When the text is not a JSON object, or names something else than tokens.
///
/// ```
/// use kernmill_checkpoint::end_tokens::in_config;
/// assert_eq!(in_config(r#"{"eos_token_id": 2}"#), Ok(vec![2]));
/// assert_eq!(in_config(r#"{"eos_token_id": [128001, 128009]}"#), Ok(vec![128001, 128009]));
/// assert!(in_config(r#"{"eos_token_id": "</s>"}"#).is_err());
/// ```
pub fn in_config(json: &str) -> Result<Vec<u32>, String> {
    let config: Value = serde_json::from_str(json).map_err(|error| error.to_string())?;
    let Some(config) = config.as_object() else {
        return Err("it is not a JSON object".to_owned());
    };
    config.get(CONFIG_KEY).map_or(Ok(Vec::new()), |stated| ids(stated, CONFIG_KEY))
}

/// The token ids that a config states under `key`: none, one, or a list of them.
///
/// # Errors
/// When something else is stated.
pub(crate) fn ids(stated: &Value, key: &str) -> Result<Vec<u32>, String> {
    let token = |id| token(id, key);
    match stated {
        Value::Null => Ok(Vec::new()),
        Value::Array(ids) => {
            let ids: Result<Vec<Option<u32>>, String> = ids.iter().map(token).collect();
            Ok(ids?.into_iter().flatten().collect())
        }
        id => Ok(token(id)?.into_iter().collect()),
    }
}

fn token(id: &Value, key: &str) -> Result<Option<u32>, String> {
    match id.as_i64() {
        Some(id) if id < 0 => Ok(None),
        Some(id) if u32::try_from(id).is_ok() => Ok(Some(id as u32)),
        _ => {
            let shown = id.to_string();
            let shown = kernmill_os::text::shortened(&shown);
            Err(format!("{key} is {shown}, expected a token id or a list of them"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configs_name_none_one_or_several() {
        assert_eq!(in_config("{}"), Ok(Vec::new()));
        assert_eq!(in_config(r#"{"eos_token_id": null}"#), Ok(Vec::new()));
        assert_eq!(in_config(r#"{"eos_token_id": -1}"#), Ok(Vec::new()));
        assert_eq!(in_config(r#"{"eos_token_id": [7, -1, 0]}"#), Ok(vec![7, 0]));
    }

    #[test]
    fn what_is_no_token_is_named() {
        for (json, says) in [
            (r#"{"eos_token_id": 1.5}"#, "eos_token_id is 1.5, expected a token id"),
            (r#"{"eos_token_id": [1, "x"]}"#, "eos_token_id is \"x\", expected"),
            (r#"{"eos_token_id": 4294967296}"#, "eos_token_id is 4294967296"),
            ("[2]", "not a JSON object"),
            ("{", "EOF"),
        ] {
            let error = in_config(json).unwrap_err();
            assert!(error.contains(says), "{json}: {error}");
        }
    }
}
