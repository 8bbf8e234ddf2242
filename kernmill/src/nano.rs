//! The embedded model: a GPT-OSS in miniature, for a first run without any files.

/// The name of the embedded model, as messages show it.
#[cfg(feature = "compiler")]
pub const NAME: &str = "nano (embedded)";
/// The spec of the embedded model (TOML).
pub const SPEC: &str = include_str!("../../model-specs/nano/nano.toml");
/// The weights of the embedded model (safetensors).
#[cfg(feature = "compiler")]
pub const WEIGHTS: &[u8] = include_bytes!("../../model-specs/nano/model.safetensors");
/// The tokenizer of the embedded model (`tokenizer.json`).
#[cfg(feature = "compiler")]
pub const TOKENIZER: &[u8] = include_bytes!("../../model-specs/nano/tokenizer.json");
/// A prompt that the embedded model continues well.
pub const PROMPT: &str = "# References and Borrowing\n\nA reference is";

/// A prompt for the model of a plan with this spec, if that is the embedded model.
pub fn example(spec: &str) -> Option<&'static str> {
    (spec == SPEC).then_some(PROMPT)
}
