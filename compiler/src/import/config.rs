//! Typed access to a `config.json`, and the parts that architectures share.

use super::{ImportError, Result};
use serde_json::{Map, Value};

/// Largest whole number taken from a file.
const MAX_WHOLE: u64 = 1 << 31;

/// A `config.json`.
pub struct Config {
    map: Map<String, Value>,
    /// What it is, for errors: empty, or such as `rope_scaling.`.
    prefix: String,
}

pub(super) fn bad<T>(what: impl Into<String>) -> Result<T> {
    Err(ImportError::Bad { what: what.into() })
}

pub(super) fn unsupported<T>(what: impl Into<String>) -> Result<T> {
    Err(ImportError::Unsupported { what: what.into() })
}

/// Long-context scaling as the spec writes it.
pub(super) struct RopeConfig {
    pub(super) theta: f64,
    /// The text of `scaling = ...`, if any.
    pub(super) scaling: Option<String>,
}

impl Config {
    pub(super) fn parse(text: &str) -> Result<Config> {
        match serde_json::from_str(text) {
            Ok(Value::Object(map)) => Ok(Config { map, prefix: String::new() }),
            Ok(_) => bad("expected a JSON object"),
            Err(e) => bad(format!("not JSON: {e}")),
        }
    }

    pub(super) fn from_map(map: Map<String, Value>) -> Config {
        Config { map, prefix: String::new() }
    }

    pub(super) fn architecture(&self) -> Result<&str> {
        match self.get("architectures") {
            Some(Value::Array(names)) => match names.as_slice() {
                [Value::String(name)] => Ok(name),
                _ => bad("`architectures`: expected an array of one name"),
            },
            _ => bad("`architectures` is missing: expected an array of one name"),
        }
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
            let Some(number) = value.as_u64().filter(|n| (1..=MAX_WHOLE).contains(n)) else {
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

    pub(super) fn require_whole(&self, keys: &[&str]) -> Result<u64> {
        match self.whole(keys)? {
            Some(number) => Ok(number),
            None => bad(format!("`{}{}` is missing: expected a whole number", self.prefix, keys[0])),
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

    pub(super) fn section(&self, key: &str) -> Result<Option<Config>> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::Object(map)) => Ok(Some(Config { map: map.clone(), prefix: format!("{key}.") })),
            Some(other) => bad(format!("`{key}` is {}: expected an object", brief(other))),
        }
    }

    /// Format of the tensors that are not quantised.
    pub(super) fn plain_format(&self) -> Result<&'static str> {
        let dtype = match self.text("torch_dtype")? {
            Some(dtype) => Some(dtype),
            None => self.text("dtype")?,
        };
        match dtype {
            None | Some("bfloat16") => Ok("bf16"),
            Some("float16") => Ok("f16"),
            Some("float32") => Ok("f32"),
            Some(other) => unsupported(format!("dtype `{other}`; supported are: bfloat16, float16, float32")),
        }
    }

    /// Base and scaling of RoPE, in the older spelling (`rope_theta`, `rope_scaling`) or the newer (`rope_parameters`).
    pub(super) fn rope(&self) -> Result<RopeConfig> {
        let parameters = self.section("rope_parameters")?;
        let scaling = self.section("rope_scaling")?;
        if let (Some(new), Some(old)) = (&parameters, &scaling)
            && new.map != old.map
        {
            return bad(
                "both `rope_parameters` and `rope_scaling` are there, and differ: expected one of them",
            );
        }
        let theta = match &parameters {
            Some(section) => section.positive("rope_theta")?,
            None => None,
        };
        let theta = match theta {
            Some(theta) => theta,
            None => self.require_positive("rope_theta")?,
        };
        let scaling = match parameters.or(scaling) {
            Some(section) => self.rope_scaling(&section)?,
            None => None,
        };
        Ok(RopeConfig { theta, scaling })
    }

    fn rope_scaling(&self, section: &Config) -> Result<Option<String>> {
        if section.map.values().any(Value::is_object) {
            return unsupported("RoPE parameters per layer type");
        }
        if section.positive("partial_rotary_factor")?.is_some_and(|f| f != 1.0) {
            return unsupported("RoPE of a part of each head (`partial_rotary_factor`)");
        }
        let kind = match section.text("rope_type")? {
            Some(kind) => Some(kind),
            None => section.text("type")?,
        };
        match kind {
            None | Some("default") => Ok(None),
            Some("yarn") => self.yarn(section).map(Some),
            Some("llama3") => {
                let number = |key| section.require_positive(key);
                Ok(Some(format!(
                    "{{ kind = \"llama3\", factor = {:?}, low_freq_factor = {:?}, high_freq_factor = {:?}, \
                     original_context = {} }}",
                    number("factor")?,
                    number("low_freq_factor")?,
                    number("high_freq_factor")?,
                    self.original_context(section)?,
                )))
            }
            Some(other) => {
                unsupported(format!("RoPE scaling `{other}`; supported are: default, yarn, llama3"))
            }
        }
    }

    fn yarn(&self, section: &Config) -> Result<String> {
        let factor = section.require_positive("factor")?;
        for key in ["mscale", "mscale_all_dim"] {
            if section.has(key) {
                return unsupported(format!("YaRN with `{key}`"));
            }
        }
        if let Some(given) = section.positive("attention_factor")? {
            let derived = 0.1 * factor.ln() + 1.0;
            if (given - derived).abs() > 1e-6 {
                return unsupported(format!(
                    "YaRN's `attention_factor` {given}; supported is 0.1 * ln(factor) + 1, here {derived}"
                ));
            }
        }
        Ok(format!(
            "{{ kind = \"yarn\", factor = {factor:?}, beta_fast = {:?}, beta_slow = {:?}, original_context = {}, \
             truncate = {} }}",
            section.positive("beta_fast")?.unwrap_or(32.0),
            section.positive("beta_slow")?.unwrap_or(1.0),
            self.original_context(section)?,
            section.flag("truncate", true)?,
        ))
    }

    fn original_context(&self, section: &Config) -> Result<u64> {
        let key = "original_max_position_embeddings";
        match section.whole(&[key])?.or(self.whole(&[key])?).or(self.whole(&["initial_context_length"])?) {
            Some(context) => Ok(context),
            None => self.require_whole(&["max_position_embeddings"]),
        }
    }
}

/// A value as errors quote it.
fn brief(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}
