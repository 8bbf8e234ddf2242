//! The files of the embedded model that compiling it takes.

/// The name of the embedded model, as messages show it.
pub(crate) const NAME: &str = "nano (embedded)";
/// The weights of the embedded model (safetensors).
pub(crate) const WEIGHTS: &[u8] = include_bytes!("../../../model-specs/nano/model.safetensors");
/// The tokenizer of the embedded model (`tokenizer.json`).
pub(crate) const TOKENIZER: &[u8] = include_bytes!("../../../model-specs/nano/tokenizer.json");
