//! Typed access to a `config.json`, and the parts that architectures share.

use super::error::{ImportError, Result};
use serde_json::{Map, Value};

/// Largest whole number taken from a file.
const MAX_WHOLE: u64 = 1 << 31;

/// A `config.json`.
#[derive(Clone)]
pub struct ModelConfig {
    map: Map<String, Value>,
    /// The place, for errors: empty, or such as `rope_scaling.`.
    prefix: String,
}

pub(super) fn bad<T>(what: impl Into<String>) -> Result<T> {
    Err(ImportError::Bad { what: what.into() })
}

pub(super) fn unsupported<T>(what: impl Into<String>) -> Result<T> {
    Err(ImportError::Unsupported { what: what.into() })
}

/// Keys whose `null` means something else than a missing key: no window, as many KV heads as heads, a head's
/// share of the hidden size.
const NULLABLE: [&str; 3] = ["sliding_window", "num_key_value_heads", "head_dim"];
/// Keys with another name for the same.
const ALIASES: [(&str, &str); 2] =
    [("num_local_experts", "num_experts"), ("num_experts_per_tok", "experts_per_token")];

/// The other name of a key, if it has one.
fn other_name(key: &str) -> Option<&'static str> {
    ALIASES.iter().find_map(|&(a, b)| match key {
        key if key == a => Some(b),
        key if key == b => Some(a),
        _ => None,
    })
}

impl ModelConfig {
    pub(super) fn parse(text: &str) -> Result<ModelConfig> {
        match serde_json::from_str(text) {
            Ok(Value::Object(map)) => Ok(ModelConfig { map, prefix: String::new() }),
            Ok(_) => bad("expected a JSON object"),
            Err(e) => bad(format!("not JSON: {e}")),
        }
    }

    pub(super) fn from_map(map: Map<String, Value>) -> ModelConfig {
        ModelConfig { map, prefix: String::new() }
    }

    /// The model's class, or its `model_type` where no class is named.
    pub(super) fn architecture(&self) -> Result<&str> {
        match (self.get("architectures"), self.text("model_type")?) {
            (Some(Value::Array(names)), _) => match names.as_slice() {
                [Value::String(name)] => Ok(name),
                _ => bad("`architectures`: expected an array of one name"),
            },
            (Some(_), _) => bad("`architectures`: expected an array of one name"),
            (None, Some(model_type)) => Ok(model_type),
            (None, None) if self.has("swiglu_limit") && self.has("initial_context_length") => unsupported(
                "the file is of OpenAI's `original` layout: use the config.json and the tensors beside that directory",
            ),
            (None, None) => bad("`architectures` is missing: expected an array of one name"),
        }
    }

    /// The part that describes a model of text, and whether that is within another model, which reads images
    /// as well.
    pub(super) fn text_model(&self) -> Result<(ModelConfig, bool)> {
        let Some(mut inner) = self.section("text_config")? else { return Ok((self.clone(), false)) };
        inner.prefix.clear();
        for key in ["tie_word_embeddings", "torch_dtype", "dtype", "quantization_config"] {
            if let Some(value) = self.get(key) {
                inner.map.insert(key.into(), value.clone());
            }
        }
        Ok((inner, true))
    }

    /// This configuration with what its class takes for keys that are missing.
    pub(super) fn with_defaults(mut self, defaults: &Value) -> ModelConfig {
        let scaled =
            ["rope_parameters", "rope_scaling"].into_iter().filter_map(|key| self.get(key)?.as_object());
        let has_theta = scaled.clone().any(|section| section.get("rope_theta").is_some_and(|v| !v.is_null()));
        let has_scaling = scaled.clone().any(|section| !section.is_empty());
        for (key, value) in defaults.as_object().into_iter().flatten() {
            let other = other_name(key).unwrap_or(key);
            let there = match key.as_str() {
                "rope_theta" => has_theta || self.has(key),
                "rope_parameters" => has_scaling,
                _ if NULLABLE.contains(&key.as_str()) => self.map.contains_key(key),
                _ => self.has(key) || self.has(other),
            };
            if !there {
                self.map.insert(key.clone(), value.clone());
            }
        }
        self
    }

    /// This configuration with one section of RoPE parameters in place of those by kinds of layers.
    pub(super) fn with_rope(&self, section: &ModelConfig) -> ModelConfig {
        let mut map = self.map.clone();
        map.remove("rope_scaling");
        map.remove("rope_theta");
        map.insert("rope_parameters".into(), Value::Object(section.map.clone()));
        ModelConfig { map, prefix: self.prefix.clone() }
    }

    /// All of it.
    pub(super) fn object(&self) -> &Map<String, Value> {
        &self.map
    }

    /// All keys with their values.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.map.iter()
    }

    /// A key as errors name it.
    pub(super) fn name(&self, key: &str) -> String {
        format!("{}{key}", self.prefix)
    }

    /// The value of `key`; `null` counts as absent.
    fn get(&self, key: &str) -> Option<&Value> {
        self.map.get(key).filter(|v| !v.is_null())
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// A whole number from 1 under the first of `keys` that is there; those that are must agree.
    pub(super) fn whole(&self, keys: &[&str]) -> Result<Option<u64>> {
        let mut found: Option<(&str, u64)> = None;
        for &key in keys {
            let Some(value) = self.get(key) else { continue };
            // Some files have 4096.0.
            let float = value.as_f64().filter(|x| x.fract() == 0.0 && (0.0..=MAX_WHOLE as f64).contains(x));
            let number = value.as_u64().or(float.map(|x| x as u64));
            let Some(number) = number.filter(|n| (1..=MAX_WHOLE).contains(n)) else {
                return bad(format!(
                    "`{}{key}` is {}: expected a whole number from 1 to {MAX_WHOLE}",
                    self.prefix,
                    brief(value)
                ));
            };
            match found {
                Some((other, n)) if n != number => {
                    return bad(format!("`{other}` is {n} but `{key}` is {number}: expected the same"));
                }
                _ => found = Some((key, number)),
            }
        }
        Ok(found.map(|(_, number)| number))
    }

    /// A whole number from 1 under `key`, or under its other name.
    pub(super) fn whole_or_alias(&self, key: &str) -> Result<u64> {
        let keys: Vec<&str> = [key].into_iter().chain(other_name(key)).collect();
        self.require_whole(&keys)
    }

    /// A whole number that may be below 0.
    pub(super) fn whole_number(&self, key: &str) -> Result<Option<i64>> {
        match self.get(key) {
            None => Ok(None),
            Some(value) => match value.as_i64() {
                Some(number) => Ok(Some(number)),
                None => bad(format!("`{}{key}` is {}: expected a whole number", self.prefix, brief(value))),
            },
        }
    }

    pub(super) fn require_whole(&self, keys: &[&str]) -> Result<u64> {
        match self.whole(keys)? {
            Some(number) => Ok(number),
            None => bad(format!("`{}{}` is missing: expected a whole number", self.prefix, keys[0])),
        }
    }

    /// A whole number from 0.
    pub(super) fn count(&self, key: &str) -> Result<Option<u64>> {
        match self.get(key) {
            Some(value) if value.as_u64() == Some(0) => Ok(Some(0)),
            _ => self.whole(&[key]),
        }
    }

    /// A finite number above 0.
    pub(super) fn positive(&self, key: &str) -> Result<Option<f64>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        match value.as_f64() {
            Some(x) if x > 0.0 && x <= f64::from(f32::MAX) => Ok(Some(x)),
            _ => bad(format!("`{}{key}` is {}: expected a number above 0", self.prefix, brief(value))),
        }
    }

    pub(super) fn require_positive(&self, key: &str) -> Result<f64> {
        match self.positive(key)? {
            Some(number) => Ok(number),
            None => bad(format!("`{}{key}` is missing: expected a number above 0", self.prefix)),
        }
    }

    pub(super) fn flag(&self, key: &str, default: bool) -> Result<bool> {
        match self.get(key) {
            None => Ok(default),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(other) => bad(format!("`{}{key}` is {}: expected true or false", self.prefix, brief(other))),
        }
    }

    pub(super) fn text(&self, key: &str) -> Result<Option<&str>> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => bad(format!("`{}{key}` is {}: expected a string", self.prefix, brief(other))),
        }
    }

    pub(super) fn texts(&self, key: &str) -> Result<Option<Vec<&str>>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let texts = value.as_array().and_then(|items| items.iter().map(Value::as_str).collect());
        match texts {
            Some(texts) => Ok(Some(texts)),
            None => bad(format!("`{}{key}` is {}: expected an array of strings", self.prefix, brief(value))),
        }
    }

    /// Finite numbers above 0.
    pub(super) fn numbers(&self, key: &str) -> Result<Option<Vec<f64>>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let number = |item: &Value| item.as_f64().filter(|&x| x > 0.0 && x <= f64::from(f32::MAX));
        match value.as_array().and_then(|items| items.iter().map(number).collect()) {
            Some(numbers) => Ok(Some(numbers)),
            None => bad(format!(
                "`{}{key}` is {}: expected an array of numbers above 0",
                self.prefix,
                brief(value)
            )),
        }
    }

    /// An array of numbers that stand for yes and no, or of flags.
    pub(super) fn flags(&self, key: &str) -> Result<Option<Vec<bool>>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let flag = |item: &Value| match item {
            Value::Bool(flag) => Some(*flag),
            _ => item.as_u64().filter(|&n| n <= 1).map(|n| n == 1),
        };
        match value.as_array().and_then(|items| items.iter().map(flag).collect()) {
            Some(flags) => Ok(Some(flags)),
            None => bad(format!("`{}{key}` is {}: expected an array of 0 and 1", self.prefix, brief(value))),
        }
    }

    /// Indices of layers, from 0.
    pub(super) fn indices(&self, key: &str) -> Result<Vec<u64>> {
        let Some(value) = self.get(key) else { return Ok(Vec::new()) };
        match value.as_array().and_then(|items| items.iter().map(Value::as_u64).collect()) {
            Some(indices) => Ok(indices),
            None => bad(format!("`{}{key}` is {}: expected an array of layers", self.prefix, brief(value))),
        }
    }

    pub(super) fn section(&self, key: &str) -> Result<Option<ModelConfig>> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::Object(map)) => Ok(Some(ModelConfig { map: map.clone(), prefix: format!("{key}.") })),
            Some(other) => bad(format!("`{key}` is {}: expected an object", brief(other))),
        }
    }

    /// The format that the file states for tensors that are not quantised: `torch_dtype`, or `dtype`.
    pub(super) fn stated_format(&self) -> Result<&'static str> {
        let dtype = match self.text("torch_dtype")? {
            Some(dtype) => Some(dtype),
            None => self.text("dtype")?,
        };
        match dtype.map(|dtype| dtype.trim_start_matches("torch.")) {
            None | Some("bfloat16" | "auto") => Ok("bf16"),
            Some("float16" | "half") => Ok("f16"),
            Some("float32" | "float") => Ok("f32"),
            Some(other) => unsupported(format!("dtype `{other}`; supported are: bfloat16, float16, float32")),
        }
    }
}

/// Elements of a head: stated, or a head's share of the hidden size.
pub(super) fn head_dim(config: &ModelConfig) -> Result<u64> {
    let number = |key: &str| config.require_whole(&[key]);
    let (hidden, heads) = (number("hidden_size")?, number("num_attention_heads")?);
    match config.whole(&["head_dim"])? {
        Some(head_dim) => Ok(head_dim),
        None if hidden.is_multiple_of(heads) => Ok(hidden / heads),
        None => bad(format!("`hidden_size` {hidden} does not divide among `num_attention_heads` {heads}")),
    }
}

/// A value as errors quote it.
pub(super) fn brief(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}
