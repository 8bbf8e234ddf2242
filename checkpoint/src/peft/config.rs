//! `adapter_config.json`: what PEFT says of an adapter, and what of it kernmill refuses.

use super::error::PeftError;
use super::pattern::{NamePattern, PatternShare, is_suffix};
use kernmill_os::text::shortened;
use kernmill_plan::limit;
use serde::Deserialize;
use serde::de::{MapAccess, Visitor};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::path::Path;

/// Name of the file with an adapter's settings.
pub const CONFIG_FILE: &str = "adapter_config.json";

/// The settings that decide what an adapter computes.
#[derive(Debug)]
pub(super) struct PeftConfig {
    /// The model it was trained on, as its maker called it.
    pub(super) base: Option<String>,
    /// Whether it has magnitudes (DoRA).
    pub(super) dora: bool,
    rank: u64,
    alpha: f64,
    rslora: bool,
    ranks: Vec<(NamePattern, u64)>,
    alphas: Vec<(NamePattern, f64)>,
    modules: Modules,
    excluded: Modules,
    parameters: Vec<String>,
    layers: Option<Layers>,
}

/// A set of modules.
#[derive(Debug)]
enum Modules {
    /// Whatever the file has: all linear layers, or PEFT's choice for the architecture.
    Unsaid,
    Names(Vec<String>),
    Matching(NamePattern),
}

/// `layers_to_transform`.
#[derive(Debug)]
struct Layers {
    indices: Vec<u64>,
    patterns: Vec<NamePattern>,
}

/// Whether the config asks for an adapter at a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Targeted {
    Yes,
    No,
    /// The config does not say.
    Perhaps,
}

/// The file, as it is written.
#[derive(Deserialize)]
struct Raw {
    peft_type: Option<String>,
    base_model_name_or_path: Option<String>,
    r: Option<i64>,
    lora_alpha: Option<f64>,
    #[serde(default)]
    use_rslora: Option<bool>,
    #[serde(default)]
    use_dora: Option<bool>,
    #[serde(default)]
    fan_in_fan_out: Option<bool>,
    bias: Option<String>,
    #[serde(default)]
    rank_pattern: Option<Ordered<i64>>,
    #[serde(default)]
    alpha_pattern: Option<Ordered<f64>>,
    #[serde(default)]
    target_modules: Option<OneOrMany<String>>,
    #[serde(default)]
    exclude_modules: Option<OneOrMany<String>>,
    #[serde(default)]
    target_parameters: Option<Vec<String>>,
    #[serde(default)]
    layers_to_transform: Option<OneOrMany<i64>>,
    #[serde(default)]
    layers_pattern: Option<OneOrMany<String>>,
    #[serde(default)]
    init_lora_weights: Option<Value>,
    /// Everything else.
    #[serde(flatten)]
    others: BTreeMap<String, Value>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany<T> {
    One(T),
    Many(Vec<T>),
}

/// A JSON object in the order of the file: of patterns the first that matches counts.
struct Ordered<T>(Vec<(String, T)>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Ordered<T> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Ordered<T>, D::Error> {
        struct Entries<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Entries<T> {
            type Value = Ordered<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Ordered<T>, M::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Ordered(entries))
            }
        }
        deserializer.deserialize_map(Entries(PhantomData))
    }
}

/// Advice for an adapter that MLX wrote.
pub(super) const OF_MLX: &str = "an MLX adapter, whose matrices are the other way round: of adapters only \
    PEFT's are read, expected the directory that its save_pretrained wrote";

/// Settings of variants that compute something else, and what each does.
const VARIANTS: [(&str, &str); 11] = [
    (
        "modules_to_save",
        "whole trained copies of modules; only LoRA and DoRA matrices can be added to a base",
    ),
    ("lora_bias", "biases in the adapter's matrices"),
    ("alora_invocation_tokens", "activated LoRA, which starts at certain tokens"),
    ("layer_replication", "a model with some layers repeated"),
    ("trainable_token_indices", "trained rows of the embedding table"),
    ("use_qalora", "QALoRA, which pools the activations"),
    ("use_bdlora", "block-diagonal adapters"),
    ("arrow_config", "routing among adapters"),
    ("kasa_config", "KaSA, which changes the base weights"),
    ("monteclora_config", "MonteCLoRA's sampled adapters"),
    ("loftq_config", "LoftQ, which changes the base weights"),
];

/// Ways of initialising that leave the base weights as they are.
const HARMLESS_INITS: [&str; 4] = ["gaussian", "eva", "orthogonal", "mica"];

/// Settings that say how an adapter was trained or stored, and nothing about what it computes.
const OF_TRAINING: [&str; 8] = [
    "auto_mapping",
    "corda_config",
    "ensure_weight_tying",
    "eva_config",
    "inference_mode",
    "lora_ga_config",
    "megatron_config",
    "velora_config",
];

impl PeftConfig {
    /// Reads `text`, the contents of the file at `path`.
    pub(super) fn parse(path: &Path, text: &str) -> Result<PeftConfig, PeftError> {
        let (bytes, most) = (text.len() as u64, limit::ADAPTER_CONFIG_BYTES);
        if bytes > most {
            let what = format!("it has {bytes} bytes, expected at most {most}");
            return Err(PeftError::malformed(path, what));
        }
        let raw: Raw = serde_json::from_str(text)
            .map_err(|error| PeftError::malformed(path, format!("not an adapter's config: {error}")))?;
        match raw.peft_type.as_deref() {
            Some("LORA") => {}
            Some(other) => {
                let other = shortened(other);
                let what = format!("`peft_type` is {other}, expected LORA (with or without DoRA)");
                return Err(PeftError::unsupported(path, what));
            }
            None if ["fine_tune_type", "lora_parameters"].iter().any(|key| raw.others.contains_key(*key)) => {
                return Err(PeftError::unsupported(path, OF_MLX));
            }
            None => return Err(PeftError::malformed(path, "`peft_type` is missing, expected LORA")),
        }
        if let Some(what) = refusal(&raw) {
            return Err(PeftError::unsupported(path, what));
        }
        PeftConfig::of(raw).map_err(|what| PeftError::malformed(path, what))
    }

    fn of(raw: Raw) -> Result<PeftConfig, String> {
        let (Some(r), Some(alpha)) = (raw.r, raw.lora_alpha) else {
            return Err("`r` and `lora_alpha` must be given".to_owned());
        };
        let share = PatternShare::of(expressions(&raw))?;
        let mut ranks = Vec::new();
        for (key, rank) in raw.rank_pattern.map_or(Vec::new(), |ordered| ordered.0) {
            ranks.push((
                in_key("rank_pattern", NamePattern::suffix(&key, share))?,
                positive("rank_pattern", rank)?,
            ));
        }
        let mut alphas = Vec::new();
        for (key, alpha) in raw.alpha_pattern.map_or(Vec::new(), |ordered| ordered.0) {
            alphas.push((in_key("alpha_pattern", NamePattern::suffix(&key, share))?, alpha));
        }
        let parameters = raw.target_parameters.unwrap_or_default();
        let modules = match modules("target_modules", raw.target_modules, share)? {
            // Only parameters are targeted.
            Modules::Unsaid if !parameters.is_empty() => Modules::Names(Vec::new()),
            modules => modules,
        };
        let excluded = match modules_or_none("exclude_modules", raw.exclude_modules, share)? {
            Some(modules) => modules,
            None => Modules::Names(Vec::new()),
        };
        Ok(PeftConfig {
            base: raw.base_model_name_or_path.filter(|name| !name.is_empty()),
            dora: raw.use_dora == Some(true),
            rank: positive("r", r)?,
            alpha,
            rslora: raw.use_rslora == Some(true),
            ranks,
            alphas,
            modules,
            excluded,
            parameters,
            layers: layers(raw.layers_to_transform, raw.layers_pattern, share)?,
        })
    }

    /// Rank of a matrix, by the name that PEFT gives it.
    pub(super) fn rank(&self, name: &str) -> Result<u64, String> {
        Ok(first(&self.ranks, name)?.unwrap_or(self.rank))
    }

    /// The factor of B A x, for a matrix of `rank` that PEFT calls `name`.
    pub(super) fn scaling(&self, name: &str, rank: usize) -> Result<f32, String> {
        let alpha = first(&self.alphas, name)?.unwrap_or(self.alpha);
        let rank = rank as f64;
        Ok((alpha / if self.rslora { rank.sqrt() } else { rank }) as f32)
    }

    /// Whether `target_modules` asks for the module.
    pub(super) fn wants_module(&self, module: &str) -> Result<Targeted, String> {
        let wanted = match &self.modules {
            Modules::Unsaid => return Ok(Targeted::Perhaps),
            Modules::Matching(pattern) => pattern.matches(module)?,
            Modules::Names(names) if names.iter().any(|name| name == module) => true,
            Modules::Names(names) => is_suffix(names, module) && self.is_layer(module)?,
        };
        let excluded = match &self.excluded {
            Modules::Matching(pattern) => pattern.matches(module)?,
            Modules::Names(names) => is_suffix(names, module),
            Modules::Unsaid => false,
        };
        Ok(if wanted && !excluded { Targeted::Yes } else { Targeted::No })
    }

    /// Whether `target_parameters` asks for the parameter.
    pub(super) fn wants_parameter(&self, parameter: &str) -> bool {
        is_suffix(&self.parameters, parameter)
    }

    fn is_layer(&self, module: &str) -> Result<bool, String> {
        let Some(layers) = &self.layers else { return Ok(true) };
        for pattern in &layers.patterns {
            if let Some(index) = pattern.index(module)? {
                return Ok(layers.indices.contains(&index));
            }
        }
        Ok(false)
    }
}

/// The value of the first pattern that matches.
fn first<T: Copy>(patterns: &[(NamePattern, T)], name: &str) -> Result<Option<T>, String> {
    for (pattern, value) in patterns {
        if pattern.matches(name)? {
            return Ok(Some(*value));
        }
    }
    Ok(None)
}

fn positive(key: &str, rank: i64) -> Result<u64, String> {
    match u64::try_from(rank) {
        Ok(rank) if rank > 0 => Ok(rank),
        _ => Err(format!("`{key}` has rank {rank}, expected at least 1")),
    }
}

fn in_key<T>(key: &str, result: Result<T, String>) -> Result<T, String> {
    result.map_err(|what| format!("`{key}`: {what}"))
}

/// Regular expressions of a config that have to be compiled.
fn expressions(raw: &Raw) -> usize {
    fn keys<T>(ordered: Option<&Ordered<T>>) -> usize {
        ordered.map_or(0, |ordered| ordered.0.iter().filter(|(key, _)| !NamePattern::is_plain(key)).count())
    }
    let whole = |value: &Option<OneOrMany<String>>| usize::from(matches!(value, Some(OneOrMany::One(_))));
    let layers = match &raw.layers_pattern {
        Some(OneOrMany::Many(texts)) => texts.len(),
        _ => 1,
    };
    keys(raw.rank_pattern.as_ref())
        + keys(raw.alpha_pattern.as_ref())
        + whole(&raw.target_modules)
        + whole(&raw.exclude_modules)
        + if raw.layers_to_transform.is_some() { layers } else { 0 }
}

fn modules(key: &str, value: Option<OneOrMany<String>>, share: PatternShare) -> Result<Modules, String> {
    Ok(modules_or_none(key, value, share)?.unwrap_or(Modules::Unsaid))
}

fn modules_or_none(
    key: &str,
    value: Option<OneOrMany<String>>,
    share: PatternShare,
) -> Result<Option<Modules>, String> {
    Ok(match value {
        Some(OneOrMany::One(text)) if text.eq_ignore_ascii_case("all-linear") => None,
        Some(OneOrMany::One(text)) => Some(Modules::Matching(in_key(key, NamePattern::whole(&text, share))?)),
        Some(OneOrMany::Many(names)) => Some(Modules::Names(names)),
        None => None,
    })
}

fn layers(
    indices: Option<OneOrMany<i64>>,
    patterns: Option<OneOrMany<String>>,
    share: PatternShare,
) -> Result<Option<Layers>, String> {
    let indices = match indices {
        None => return Ok(None),
        Some(OneOrMany::Many(indices)) if indices.is_empty() => return Ok(None),
        Some(OneOrMany::Many(indices)) => indices,
        Some(OneOrMany::One(index)) => vec![index],
    };
    let texts = match patterns {
        Some(OneOrMany::One(text)) => vec![text],
        Some(OneOrMany::Many(texts)) => texts,
        None => Vec::new(),
    };
    let texts: Vec<String> = texts.into_iter().filter(|text| !text.is_empty()).collect();
    let patterns = match texts.is_empty() {
        true => vec![NamePattern::first_index(share)?],
        false => texts
            .iter()
            .map(|text| in_key("layers_pattern", NamePattern::before_index(text, share)))
            .collect::<Result<_, _>>()?,
    };
    let indices = indices.into_iter().filter_map(|index| u64::try_from(index).ok()).collect();
    Ok(Some(Layers { indices, patterns }))
}

/// The feature that this adapter needs and kernmill lacks.
fn refusal(raw: &Raw) -> Option<String> {
    let on = |value: &Value| match value {
        Value::Null | Value::Bool(false) => false,
        Value::Array(values) => !values.is_empty(),
        Value::Object(values) => !values.is_empty(),
        _ => true,
    };
    for (key, what) in VARIANTS {
        if raw.others.get(key).is_some_and(on) {
            return Some(format!("`{key}` is set: {what}"));
        }
    }
    // A later PEFT's variants are switched on by `true` or an object.
    let unknown = |(key, value): &(&String, &Value)| {
        !OF_TRAINING.contains(&key.as_str())
            && (value.is_object() || **value == Value::Bool(true))
            && on(value)
    };
    if let Some((key, value)) = raw.others.iter().find(unknown) {
        let (key, value) = (shortened(key), value.to_string());
        return Some(format!("`{key}` is {}, which this version does not know", shortened(&value)));
    }
    if let Some(bias) = raw.bias.as_deref().filter(|bias| *bias != "none") {
        let bias = shortened(bias);
        return Some(format!("`bias` is {bias}, trained biases of the base; expected none"));
    }
    if let Some(Value::String(init)) = &raw.init_lora_weights
        && !HARMLESS_INITS.contains(&init.as_str())
    {
        let init = shortened(init);
        return Some(format!(
            "`init_lora_weights` is {init}, which changes the base weights: save the adapter with \
             path_initial_model_for_weight_conversion, which makes a plain LoRA of it"
        ));
    }
    let experts = raw.target_parameters.as_ref().is_some_and(|names| !names.is_empty());
    if experts && raw.use_dora == Some(true) {
        return Some("DoRA with `target_parameters`: only dense matrices can have magnitudes".to_owned());
    }
    if experts && raw.fan_in_fan_out == Some(true) {
        return Some("`fan_in_fan_out` with `target_parameters`".to_owned());
    }
    None
}
