//! Element types in a checkpoint. The importer asks the tensors' own headers wherever it has them, and
//! config.json elsewhere.

use super::config::{ModelConfig, bad};
use super::error::{ImportError, Result};
use super::writer::{TIED, tensor};
use crate::weights::{EMBEDDING, UNEMBEDDING};
use kernmill_checkpoint::{Checkpoint, Dtype};

/// Layers at most, as in specs.
const MAX_LAYERS: u64 = 1024;

/// Names and element types of the tensors of a model that is imported.
pub(super) struct StoredTensors<'a> {
    checkpoint: Option<&'a Checkpoint>,
    layers: u64,
    /// The element type of a tensor that no header describes.
    stated: &'static str,
}

impl<'a> StoredTensors<'a> {
    /// The tensors of `checkpoint`, or those that `config` promises.
    pub(super) fn new(config: &ModelConfig, checkpoint: Option<&'a Checkpoint>) -> Result<StoredTensors<'a>> {
        let layers = config.require_whole(&["num_hidden_layers"])?;
        if layers > MAX_LAYERS {
            return bad(format!("`num_hidden_layers` is {layers}: expected at most {MAX_LAYERS}"));
        }
        let stated = match (config.stated_format(), checkpoint) {
            (Ok(format), _) => format,
            (Err(ImportError::Unsupported { .. }), Some(_)) => "bf16",
            (Err(error), _) => return Err(error),
        };
        Ok(StoredTensors { checkpoint, layers, stated })
    }

    /// Whether the checkpoint has a tensor; `None` if nobody knows.
    pub(super) fn has(&self, name: &str) -> Option<bool> {
        self.checkpoint.map(|checkpoint| checkpoint.tensor(name).is_some())
    }

    /// The format of checkpoint tensor `from`, in which `{layer}` stands for every layer: f32 if the layers
    /// differ, which holds all others without loss. Binding tells of tensors that are missing or of another
    /// type.
    fn format(&self, from: &str) -> &'static str {
        let Some(checkpoint) = self.checkpoint else { return self.stated };
        let layers = if from.contains("{layer}") { self.layers } else { 1 };
        let formats = (0..layers).filter_map(|layer| {
            match checkpoint.tensor(&from.replace("{layer}", &layer.to_string()))?.dtype {
                Dtype::F32 => Some("f32"),
                Dtype::F16 => Some("f16"),
                Dtype::BF16 => Some("bf16"),
                _ => None,
            }
        });
        formats.reduce(|a, b| if a == b { a } else { "f32" }).unwrap_or(self.stated)
    }

    /// A tensor as the spec writes it.
    pub(super) fn tensor(&self, from: &str, shape: &str) -> String {
        tensor(from, shape, self.format(from))
    }

    /// Embeddings and unembedding as the spec writes them, and the comment on them.
    ///
    /// Tied embeddings are one tensor under either name, or two: then each serves as what it is called, which
    /// is the same if they are equal, and what transformers does if they differ.
    pub(super) fn embeddings(&self, config: &ModelConfig) -> Result<(String, String, &'static str)> {
        let tied = config.flag("tie_word_embeddings", false)?;
        let (has_in, has_out) = (self.has(EMBEDDING), self.has(UNEMBEDDING));
        let (table, head) = match (tied, has_in, has_out) {
            (false, Some(true), Some(false)) => {
                return bad(format!(
                    "the checkpoint has no `{UNEMBEDDING}`, and `tie_word_embeddings` is not true: expected \
                     the tensor, or `tie_word_embeddings: true` if the embeddings serve as the unembedding"
                ));
            }
            (false, ..) | (true, Some(true), Some(true)) => (EMBEDDING, UNEMBEDDING),
            (true, Some(false), Some(true)) => (UNEMBEDDING, UNEMBEDDING),
            (true, ..) => (EMBEDDING, EMBEDDING),
        };
        let comment = if table == head { TIED } else { "" };
        Ok((self.tensor(table, "vocab hidden"), self.tensor(head, "vocab hidden"), comment))
    }
}
