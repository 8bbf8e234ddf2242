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

    /// The formats of checkpoint tensor `from`, in which `{layer}` stands for every layer: one of all layers,
    /// or one of each. Types of single elements that differ between layers are f32, which holds all of them
    /// without loss. Binding tells of tensors that are missing or of another type.
    fn formats(&self, from: &str) -> Vec<&'static str> {
        let Some(checkpoint) = self.checkpoint else { return vec![self.stated] };
        let layers = if from.contains("{layer}") { self.layers } else { 1 };
        let format = |layer: u64| {
            let view = checkpoint.tensor(&from.replace("{layer}", &layer.to_string()))?;
            match (view.encoding.format(), view.dtype) {
                (Some(format), _) => Some((format.name(), true)),
                (None, Dtype::F32) => Some(("f32", false)),
                (None, Dtype::F16) => Some(("f16", false)),
                (None, Dtype::BF16) => Some(("bf16", false)),
                _ => None,
            }
        };
        let each: Vec<Option<(&str, bool)>> = (0..layers).map(format).collect();
        let known: Vec<(&str, bool)> = each.iter().copied().flatten().collect();
        let name_of = |format: Option<(&'static str, bool)>| match format {
            Some((name, true)) => name,
            Some((name, false)) if known.iter().all(|other| other.1 || other.0 == name) => name,
            _ => "f32",
        };
        match known.as_slice() {
            [] => vec![self.stated],
            [first, rest @ ..] if rest.iter().all(|other| other == first) => vec![first.0],
            known if known.iter().any(|format| format.1) => each.into_iter().map(name_of).collect(),
            _ => vec!["f32"],
        }
    }

    /// Whether the checkpoint has the tensor in blocks.
    pub(super) fn is_in_blocks(&self, name: &str) -> bool {
        let tensor = self.checkpoint.and_then(|checkpoint| checkpoint.tensor(name));
        tensor.is_some_and(|tensor| tensor.encoding.format().is_some())
    }

    /// The last layer's number.
    pub(super) fn last_layer(&self) -> u64 {
        self.layers.saturating_sub(1)
    }

    /// A tensor as the spec writes it.
    pub(super) fn tensor(&self, from: &str, shape: &str) -> String {
        tensor(from, shape, &self.formats(from))
    }

    /// Embeddings and unembedding as the spec writes them, and the comment on them.
    ///
    /// Tied embeddings are one tensor under either name, or two: then each serves as what it is called, which
    /// is the same if they are equal, and what transformers does if they differ.
    pub(super) fn embeddings(&self, config: &ModelConfig) -> Result<(String, String, &'static str)> {
        let (table, head) = self.embedding_names(config)?;
        let comment = if table == head { TIED } else { "" };
        Ok((self.tensor(table, "vocab hidden"), self.tensor(head, "vocab hidden"), comment))
    }

    /// Names of the tensors of the embeddings and the unembedding.
    pub(super) fn embedding_names(&self, config: &ModelConfig) -> Result<(&'static str, &'static str)> {
        let tied = config.flag("tie_word_embeddings", false)?;
        let (has_in, has_out) = (self.has(EMBEDDING), self.has(UNEMBEDDING));
        match (tied, has_in, has_out) {
            (false, Some(true), Some(false)) => bad(format!(
                "the checkpoint has no `{UNEMBEDDING}`, and `tie_word_embeddings` is not true: expected \
                     the tensor, or `tie_word_embeddings: true` if the embeddings serve as the unembedding"
            )),
            (false, ..) | (true, Some(true), Some(true)) => Ok((EMBEDDING, UNEMBEDDING)),
            (true, Some(false), Some(true)) => Ok((UNEMBEDDING, UNEMBEDDING)),
            (true, ..) => Ok((EMBEDDING, EMBEDDING)),
        }
    }
}
