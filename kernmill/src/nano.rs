//! The embedded model: a GPT-OSS in miniature, for a first run without any files.

/// Its name, in messages.
#[cfg(feature = "compiler")]
pub const NAME: &str = "nano (embedded)";
/// Its spec.
pub const SPEC: &str = include_str!("../../model-specs/nano/nano.toml");
/// Its weights.
#[cfg(feature = "compiler")]
pub const WEIGHTS: &[u8] = include_bytes!("../../model-specs/nano/model.safetensors");
/// Its tokenizer.
#[cfg(feature = "compiler")]
pub const TOKENIZER: &[u8] = include_bytes!("../../model-specs/nano/tokenizer.json");
/// What it continues unless told otherwise.
pub const PROMPT: &str = "# References and Borrowing\n\nA reference is";

/// What a plan with this spec continues unless told otherwise, if it is one of the embedded model.
pub fn example(spec: &str) -> Option<&'static str> {
    (spec == SPEC).then_some(PROMPT)
}
