//! Matrices that safetensors checkpoints have quantised: a few stored tensors that are one matrix together.
//! `config.json` says how ([`Method`]). Such a matrix is a tensor of the checkpoint like another, under the
//! name that it has where it is not quantised.
//!
//! Its rows are made where they are read. They are blocks of a weight format if one holds every number of the
//! matrix, and f32 if none does ([`Converted`]).

mod gather;
mod keep;
mod matrix;
mod method;
#[cfg(test)]
mod tests;

use crate::error::{CheckpointError, Result};
use crate::tensors::{Checkpoint, TensorView};
use gather::gather;
pub use keep::Converted;
use kernmill_os::files::read_regular;
use kernmill_plan::limit;
pub(crate) use matrix::Quantised;
pub use method::{METHODS, Method, MlxKind, SECTIONS};
use serde_json::Value;
use std::path::Path;

/// File name of a model's configuration.
const CONFIG_FILE: &str = "config.json";

impl Checkpoint {
    /// This checkpoint with the matrices that the text of its `config.json` says are quantised; `path` is
    /// that file's. A text that says nothing of it changes nothing.
    ///
    /// # Errors
    /// If something of it is not read, or the tensors are not what the text says.
    pub fn with_config(mut self, path: &Path, text: &[u8]) -> Result<Checkpoint> {
        let Ok(Value::Object(config)) = serde_json::from_slice(text) else { return Ok(self) };
        let unsupported = |what| CheckpointError::Unsupported { path: path.to_owned(), what };
        if let Some(method) = Method::of(&config).map_err(unsupported)? {
            self.converted = gather(&mut self, &method)?;
        }
        Ok(self)
    }

    /// This checkpoint with what the `config.json` in `dir` says, if there is one.
    pub(crate) fn with_config_in(self, dir: &Path) -> Result<Checkpoint> {
        let path = dir.join(CONFIG_FILE);
        // Opening the model reads the file again and says what is wrong with it.
        match read_regular(&path, limit::CONFIG_BYTES) {
            Ok(text) => self.with_config(&path, &text),
            Err(_) => Ok(self),
        }
    }

    /// The quantised matrices that no format holds as they are.
    pub fn converted(&self) -> &[Converted] {
        &self.converted
    }
}

impl TensorView<'_> {
    /// Whether a row is spread over all of the tensor's bytes.
    pub fn is_across(&self) -> bool {
        self.quantised.is_some_and(|(matrix, _)| matrix.is_across())
    }

    /// Whether the tensor is stored quantised, in several tensors.
    pub fn is_quantised(&self) -> bool {
        self.quantised.is_some()
    }

    /// Whether another tensor has the same elements, stored in the same way.
    pub fn is_same(&self, other: &TensorView<'_>) -> bool {
        let factors = match (self.quantised, other.quantised) {
            (None, None) => true,
            (Some((matrix, shards)), Some((other, _))) => matrix.has_factors_of(shards, other),
            _ => false,
        };
        let described = |of: &TensorView<'_>| (of.dtype, of.encoding);
        factors && described(self) == described(other) && self.shape == other.shape && self.data == other.data
    }

    /// Appends the bytes of row `row`, of `row_bytes` bytes as the encoding has them.
    ///
    /// # Panics
    /// If the tensor has no such row.
    pub fn append_row(&self, row: usize, row_bytes: usize, out: &mut Vec<u8>) {
        match self.quantised {
            None => out.extend_from_slice(&self.data[row * row_bytes..(row + 1) * row_bytes]),
            Some((matrix, shards)) => {
                matrix.append_row(shards, (self.data, self.width), self.encoding, row, out);
            }
        }
    }
}
