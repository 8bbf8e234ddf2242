//! Element types in a checkpoint. The importer asks the tensors' own headers wherever it has them, and
//! config.json elsewhere.

use super::config::{ModelConfig, bad};
use super::decoder::DecoderModel;
use super::encoder::{EncoderFile, EncoderTensor};
use super::error::{ImportError, Result};
use super::tensors::{FileNames, ModelTensors, OtherNames, Part};
use super::writer::{TIED, tensor};
use crate::weights::{EMBEDDING, UNEMBEDDING};
use kernmill_checkpoint::{Checkpoint, Dtype};

/// Layers at most, as in specs.
const MAX_LAYERS: u64 = 1024;

/// How a checkpoint names the tensors of a model of text.
#[derive(Clone, Copy, PartialEq)]
enum Naming {
    /// As its class does.
    Own,
    /// Without `model.`, as those of a model that was saved without its unembedding.
    Bare,
    /// A part of another model, as `language_model.model.norm.weight`.
    Inside,
    /// A part of another model, as `model.language_model.norm.weight`.
    InsideModel,
}

impl Naming {
    /// The checkpoint's name of the tensor that its class calls `name`.
    fn of(self, name: &str) -> String {
        match (self, name.strip_prefix("model.")) {
            (Naming::Own, _) | (Naming::Bare | Naming::InsideModel, None) => name.to_owned(),
            (Naming::Bare, Some(rest)) => rest.to_owned(),
            (Naming::Inside, _) => format!("language_model.{name}"),
            (Naming::InsideModel, Some(rest)) => format!("model.language_model.{rest}"),
        }
    }
}

/// How the names begin of tensors for images.
const IMAGES: [&str; 4] =
    ["vision_tower.", "multi_modal_projector.", "model.vision_tower.", "model.multi_modal_projector."];

/// Names and element types of the tensors of a model that is imported.
pub(super) struct StoredTensors<'a> {
    checkpoint: Option<&'a Checkpoint>,
    layers: u64,
    /// Modules that the class calls otherwise than others do.
    names: OtherNames,
    naming: Naming,
    /// How the names of an encoder's tensors begin.
    prefix: String,
    embeddings: (String, String),
    /// The element type of a tensor that no header describes.
    stated: &'static str,
}

impl<'a> StoredTensors<'a> {
    /// The tensors of `checkpoint`, or those that `config` promises, within another model if `inner`.
    pub(super) fn new(
        config: &ModelConfig,
        names: OtherNames,
        inner: bool,
        checkpoint: Option<&'a Checkpoint>,
    ) -> Result<StoredTensors<'a>> {
        let namings: &[Naming] = match inner {
            true => &[Naming::Inside, Naming::InsideModel],
            false => &[Naming::Own, Naming::Bare],
        };
        let has = |naming: &&Naming| {
            checkpoint.is_some_and(|stored| stored.tensor(&naming.of(EMBEDDING)).is_some())
        };
        let naming = *namings.iter().find(has).unwrap_or(&namings[0]);
        let mut stored = StoredTensors { names, naming, ..StoredTensors::unnamed(config, checkpoint)? };
        stored.embeddings = stored.embedding_names(config)?;
        Ok(stored)
    }

    /// The tensors of an encoder. The names of all may begin with that of the model within its class, as the
    /// one that ends with `words` does.
    pub(super) fn of_encoder(
        config: &ModelConfig,
        words: &str,
        checkpoint: Option<&'a Checkpoint>,
    ) -> Result<StoredTensors<'a>> {
        let mut names = checkpoint.into_iter().flat_map(Checkpoint::names);
        let prefix = names.find_map(|name| name.strip_suffix(words)).unwrap_or_default().to_owned();
        Ok(StoredTensors { prefix, ..StoredTensors::unnamed(config, checkpoint)? })
    }

    /// The tensors of `checkpoint` or those that `config` promises, by the names of their classes.
    fn unnamed(config: &ModelConfig, checkpoint: Option<&'a Checkpoint>) -> Result<StoredTensors<'a>> {
        let layers = config.require_whole(&["num_hidden_layers"])?;
        if layers > MAX_LAYERS {
            return bad(format!("`num_hidden_layers` is {layers}: expected at most {MAX_LAYERS}"));
        }
        let stated = match (config.stated_format(), checkpoint) {
            (Ok(format), _) => format,
            (Err(ImportError::Unsupported { .. }), Some(_)) => "bf16",
            (Err(error), _) => return Err(error),
        };
        let embeddings = (String::new(), String::new());
        let prefix = String::new();
        Ok(StoredTensors { checkpoint, layers, names: &[], naming: Naming::Own, prefix, embeddings, stated })
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
            // All experts of a layer are alike.
            let name = from.replace("{layer}", &layer.to_string()).replace("{expert}", "0");
            let view = checkpoint.tensor(&name)?;
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

    /// The name of a module of the layers.
    fn name(&self, module: &str) -> String {
        let name = format!("model.layers.{{layer}}.{}", FileNames::Published.of(module, self.names));
        self.naming.of(&name)
    }

    fn tensor(&self, from: &str, shape: &str, keys: &str) -> String {
        tensor(from, shape, keys, &self.formats(from))
    }

    /// Names of the tensors of the embeddings and the unembedding.
    ///
    /// Tied embeddings are one tensor under either name, or two: then each serves as what it is called, which
    /// is the same if they are equal, and what transformers does if they differ.
    fn embedding_names(&self, config: &ModelConfig) -> Result<(String, String)> {
        let tied = config.flag("tie_word_embeddings", false)?;
        let [table, head] = [EMBEDDING, UNEMBEDDING].map(|name| self.naming.of(name));
        match (tied, self.has(&table), self.has(&head)) {
            // Vectors need none. Where the spec is to make texts, binding tells that it is missing.
            (false, Some(true), Some(false)) if self.naming == Naming::Bare => Ok((table, head)),
            (false, Some(true), Some(false)) => bad(format!(
                "the checkpoint has no `{head}`, and `tie_word_embeddings` is not true: expected \
                     the tensor, or `tie_word_embeddings: true` if the embeddings serve as the unembedding"
            )),
            (false, ..) | (true, Some(true), Some(true)) => Ok((table, head)),
            (true, Some(false), Some(true)) => Ok((head.clone(), head)),
            (true, ..) => Ok((table.clone(), table)),
        }
    }
}

impl EncoderFile for StoredTensors<'_> {
    fn encoder_tensor(&self, of: &EncoderTensor<'_>, keys: &str) -> String {
        self.tensor(&format!("{}{}{}", self.prefix, of.place, of.published), of.shape, keys)
    }

    fn heads(&self, of: &[&str]) -> Vec<String> {
        let names = || self.checkpoint.into_iter().flat_map(Checkpoint::names);
        let is_there = |start: &String| names().any(|name| name.starts_with(start.as_str()));
        // A head is a part of the model, or stands beside it.
        let places = |head: &&str| [format!("{}{head}", self.prefix), (*head).to_owned()];
        of.iter().filter_map(|head| places(head).into_iter().find(is_there)).collect()
    }
}

impl ModelTensors for StoredTensors<'_> {
    fn global(&self, decoder: &DecoderModel) -> Result<(&'static str, Vec<(&'static str, String)>)> {
        let (table, head) = &self.embeddings;
        let comment = if table == head { TIED } else { "" };
        let plus = if decoder.plus_one { ", plus = 1" } else { "" };
        let norm = self.naming.of("model.norm.weight");
        let tensors = vec![
            ("embed", self.tensor(table, "vocab hidden", "")),
            ("final_norm", self.tensor(&norm, "hidden", plus)),
            ("lm_head", self.tensor(head, "vocab hidden", "")),
        ];
        Ok((comment, tensors))
    }

    fn left_out(&self, decoder: &DecoderModel) -> Vec<String> {
        let images = IMAGES
            .iter()
            .map(|start| (*start).to_owned())
            .filter(|_| matches!(self.naming, Naming::Inside | Naming::InsideModel));
        let further = (self.layers..self.layers + decoder.further_layers)
            .map(|layer| self.naming.of(&format!("model.layers.{layer}.")));
        let is_there = |start: &String| {
            self.checkpoint.is_none_or(|stored| stored.names().any(|name| name.starts_with(start.as_str())))
        };
        images.chain(further).filter(is_there).collect()
    }

    fn layer_comment(&self, decoder: &DecoderModel) -> &'static str {
        match decoder.sinks {
            true => {
                "The checkpoint interleaves the experts' rows: gate in the even ones, up in the odd ones."
            }
            false => "",
        }
    }

    fn texts(&self, parts: &[Part]) -> Vec<(&'static str, String)> {
        let text = |part: &Part| {
            let name = self.name(&part.module);
            let text = match part.in_mxfp4 {
                true => {
                    let keys = format!(", scales = \"{name}_scales\"{}", part.keys);
                    tensor(&format!("{name}_blocks"), &part.shape, &keys, &["mxfp4"])
                }
                false => self.tensor(&name, &part.shape, &part.keys),
            };
            (part.name, text)
        };
        parts.iter().map(text).collect()
    }

    fn is_in_blocks(&self, module: &str) -> bool {
        let name = match module {
            "logits" => self.embeddings.1.clone(),
            module => self.name(module).replace("{layer}", &self.layers.saturating_sub(1).to_string()),
        };
        let tensor = self.checkpoint.and_then(|checkpoint| checkpoint.tensor(&name));
        tensor.is_some_and(|tensor| tensor.encoding.format().is_some())
    }
}
