//! Writes a spec from a published model's `config.json` or GGUF file.
//!
//! Nothing about a model is known here but its architecture's names and conventions: every number comes from
//! the file, or is what the architecture's published class takes where the file has none. Element types come
//! from the checkpoint's headers, where there is one.

mod classes;
mod config;
mod decoder;
mod directory;
mod encoder;
mod error;
mod gguf;
mod known;
mod modern_bert;
mod nodes;
mod others;
mod rope;
mod stored;
mod tensors;
#[cfg(test)]
mod tests;
mod writer;

use crate::front::spec::{self, Spec};
use classes::{DescribedModel, EncoderClass, classes};
use config::ModelConfig;
pub use directory::{CONFIG_FILE, instead_of_config, read_config};
pub use error::{ImportError, Result};
pub use gguf::from_gguf;
use kernmill_checkpoint::Checkpoint;
use stored::StoredTensors;
pub(crate) use tensors::module_in_gguf;

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
    let (outer, (config, inner)) = (&config, config.text_model()?);
    if inner {
        known::check_outer(outer)?;
    }
    let stated = config.architecture()?;
    let text = match EncoderClass::of(stated).filter(|_| !inner) {
        Some(class) => encoder(class, name, &config, checkpoint)?,
        None => decoder(name, &config, inner, checkpoint)?,
    };
    Spec::parse("spec", &text).and_then(|spec| spec::lower(&spec)).map_err(ImportError::Inconsistent)?;
    Ok(text)
}

fn encoder(
    class: &EncoderClass,
    name: &str,
    config: &ModelConfig,
    checkpoint: Option<&Checkpoint>,
) -> Result<String> {
    known::check(config, EncoderClass::COMMON, class.keys, checkpoint.is_some())?;
    let config = config.clone().with_defaults(&(class.defaults)());
    let stored = StoredTensors::of_encoder(&config, class.words, checkpoint)?;
    (class.spec)(name, &config, &stored)
}

fn decoder(name: &str, config: &ModelConfig, inner: bool, checkpoint: Option<&Checkpoint>) -> Result<String> {
    let stated = config.architecture()?;
    let Some(class) = classes()
        .find(|class| class.name == stated || class.model_type == stated || class.aliases.contains(&stated))
    else {
        return Err(ImportError::Unsupported { what: others::refusal(stated) });
    };
    known::check(config, known::READ, class.keys, checkpoint.is_some())?;
    let config = config.clone().with_defaults(&(class.defaults)());
    let stored = StoredTensors::new(&config, class.names, inner, checkpoint)?;
    let described = DescribedModel { class: class.name, config: &config, stored: Some(&stored) };
    (class.decoder)(&described)?.spec(name, &config, &stored)
}
