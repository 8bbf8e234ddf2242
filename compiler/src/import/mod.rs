//! Writes a spec from a published model's `config.json` or GGUF file.
//!
//! Nothing about a model is known here but its architecture's names and conventions: every number comes from the file.

mod config;
mod gguf;
mod gpt_oss;
mod llama;
#[cfg(test)]
mod tests;
mod writer;

use crate::spec::{self, Spec};
use config::Config;
pub use gguf::from_gguf;
use thiserror::Error;

/// Architectures that can be imported.
pub const ARCHITECTURES: [(&str, Importer); 2] =
    [("GptOssForCausalLM", gpt_oss::spec), ("LlamaForCausalLM", llama::spec)];

/// Writes the spec of the model called `name`.
pub type Importer = fn(name: &str, config: &Config) -> Result<String>;

/// Why a `config.json` cannot be imported.
#[derive(Debug, Error)]
pub enum ImportError {
    /// The file is not what it should be.
    #[error("config.json: {what}")]
    Bad {
        /// What is wrong and what was expected.
        what: String,
    },
    /// The file is right but the model has something that kernmill lacks.
    #[error("config.json: not supported: {what}")]
    Unsupported {
        /// What, and what would be supported.
        what: String,
    },
    /// The dims do not make a model.
    #[error("config.json describes a model that does not fit together: {0:?}")]
    Inconsistent(spec::SpecError),
}

/// Result of imports.
pub type Result<T> = std::result::Result<T, ImportError>;

/// The spec, as TOML text, of the model called `name` that `config` (the text of a `config.json`) describes.
///
/// # Errors
/// If the text is not a `config.json`, or the model is not supported, or its numbers contradict each other.
pub fn from_config(name: &str, config: &str) -> Result<String> {
    let config = Config::parse(config)?;
    let architecture = config.architecture()?;
    let Some((_, importer)) = ARCHITECTURES.iter().find(|(known, _)| *known == architecture) else {
        let known = ARCHITECTURES.map(|(name, _)| name).join(", ");
        let what = format!("architecture `{architecture}`; supported are: {known}");
        return Err(ImportError::Unsupported { what });
    };
    let text = importer(name, &config)?;
    Spec::parse("spec", &text).and_then(|spec| spec::lower(&spec)).map_err(ImportError::Inconsistent)?;
    Ok(text)
}
