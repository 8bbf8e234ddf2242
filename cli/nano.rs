//! The embedded model: a GPT-OSS in miniature, for a first run without any files.

/// Its name, in messages.
pub const NAME: &str = "nano (embedded)";
/// Its spec.
pub const SPEC: &str = include_str!("../model-specs/nano/nano.toml");
/// Its weights.
pub const WEIGHTS: &[u8] = include_bytes!("../model-specs/nano/model.safetensors");
/// Its tokenizer.
pub const TOKENIZER: &[u8] = include_bytes!("../model-specs/nano/tokenizer.json");
/// What every text of its training started with.
pub const START: &str = "<|endoftext|>";
/// What it continues unless told otherwise.
pub const PROMPT: &str = "# References and Borrowing\n\nA reference is";
