//! Reads what others publish: safetensors checkpoints, GGUF files, tokenizer files. Nothing here knows of
//! graphs or kernels.
//!
//! Every reader treats its file as foreign: lengths and offsets are checked before they are used, text is
//! bounded, and what is wrong is said in one line that names the file ([`CheckpointError`]).

pub mod blocks;
mod chat_files;
mod encoding;
pub mod end_tokens;
mod error;
pub mod file_kind;
pub mod gguf;
mod layout;
mod mapped;
mod open;
pub mod peft;
mod prompt_files;
pub mod quantised;
pub mod tensor_file;
mod tensors;
#[cfg(test)]
mod tests;
pub mod tokenizer_files;
mod vector_files;

pub use encoding::{Encoding, FP4_BLOCK_BYTES};
pub use error::{CheckpointError, Result};
pub use layout::{is_buffer, other_layout};
pub use open::{INDEX_FILE, SINGLE_FILE, SPEC_FILE};
pub use safetensors::Dtype;
pub use tensors::{Checkpoint, TensorView};
