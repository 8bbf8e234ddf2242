//! Writes a spec from a published model's `config.json` or GGUF file.
//!
//! Nothing about a model is known here but its architecture's names and conventions: every number comes from
//! the file, or is what the architecture's published class takes where the file has none. Element types come
//! from the checkpoint's headers, where there is one.

mod config;
mod dense;
mod directory;
mod error;
mod gguf;
mod gpt_oss;
mod known;
mod llama;
mod mistral;
mod others;
mod published;
mod qwen2;
mod qwen3;
mod rope;
mod stored;
#[cfg(test)]
mod tests;
mod writer;

use crate::front::spec::{self, Spec};
use config::ModelConfig;
pub use directory::{CONFIG_FILE, instead_of_config, read_config};
pub use error::{ImportError, Result};
pub use gguf::from_gguf;
use kernmill_checkpoint::Checkpoint;
pub use published::published_config;
use stored::StoredTensors;

/// An architecture that can be imported.
struct Architecture {
    /// Name of its published class.
    class: &'static str,
    /// Other names that files give the class.
    aliases: &'static [&'static str],
    /// `model_type` of the class.
    model_type: &'static str,
    /// Keys that its importer reads, or its class does not, besides what all architectures have.
    keys: &'static [&'static str],
    /// The class's defaults for missing keys: an object.
    defaults: serde_json::Value,
    /// Writes the spec of the model called `name`.
    spec: fn(name: &str, config: &ModelConfig, stored: &StoredTensors<'_>) -> Result<String>,
}

fn architectures() -> [Architecture; 5] {
    [
        gpt_oss::architecture(),
        llama::architecture(),
        mistral::architecture(),
        qwen2::architecture(),
        qwen3::architecture(),
    ]
}

/// The spec, as TOML text, of the model called `name` that `config` (the text of a `config.json`) describes.
/// Its tensors have the element type that the config states.
///
/// # Errors
/// If the text is not a `config.json`, or the model is not supported, or its numbers contradict each other.
pub fn from_config(name: &str, config: &str) -> Result<String> {
    import(name, config, None)
}

/// The spec, as TOML text, of a model whose tensors are in `checkpoint`: each has the element type that its
/// header states.
///
/// # Errors
/// As [`from_config`].
pub fn from_checkpoint(name: &str, config: &str, checkpoint: &Checkpoint) -> Result<String> {
    import(name, config, Some(checkpoint))
}

fn import(name: &str, config: &str, checkpoint: Option<&Checkpoint>) -> Result<String> {
    let config = ModelConfig::parse(config)?;
    let stated = config.architecture()?;
    let known = architectures();
    let is = |a: &&Architecture| a.class == stated || a.model_type == stated || a.aliases.contains(&stated);
    let Some(architecture) = known.iter().find(is) else {
        let supported = known.each_ref().map(|a| a.class).join(", ");
        return Err(ImportError::Unsupported { what: others::refusal(stated, &supported) });
    };
    known::check(&config, architecture.keys, checkpoint.is_some())?;
    let config = config.with_defaults(&architecture.defaults);
    let stored = StoredTensors::new(&config, checkpoint)?;
    let text = (architecture.spec)(name, &config, &stored)?;
    Spec::parse("spec", &text).and_then(|spec| spec::lower(&spec)).map_err(ImportError::Inconsistent)?;
    Ok(text)
}
