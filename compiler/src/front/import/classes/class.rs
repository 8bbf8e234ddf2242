//! A class of models, and a model that it describes.

use super::super::config::{ModelConfig, unsupported};
use super::super::decoder::{DecoderModel, Windows, activation, sliding_layers};
use super::super::error::Result;
use super::super::rope::Ropes;
use super::super::stored::StoredTensors;
use super::super::tensors::OtherNames;
use serde_json::Value;

/// A class of models.
pub(in crate::front::import) struct ModelClass {
    /// Name of the published class.
    pub(in crate::front::import) name: &'static str,
    /// Other names that files give it.
    pub(in crate::front::import) aliases: &'static [&'static str],
    /// `model_type` of the class.
    pub(in crate::front::import) model_type: &'static str,
    /// Keys that it reads, or does not, besides those that all classes have.
    pub(in crate::front::import) keys: &'static [&'static str],
    /// Defaults of keys that are missing: an object.
    pub(in crate::front::import) defaults: fn() -> Value,
    /// Modules that it calls otherwise.
    pub(in crate::front::import) names: OtherNames,
    /// The decoder that a config describes.
    pub(in crate::front::import) decoder: fn(&DescribedModel<'_>) -> Result<DecoderModel>,
}

/// A model that a class describes.
pub(in crate::front::import) struct DescribedModel<'a> {
    pub(in crate::front::import) class: &'static str,
    pub(in crate::front::import) config: &'a ModelConfig,
    /// The published checkpoint, unless the file is a GGUF file.
    pub(in crate::front::import) stored: Option<&'a StoredTensors<'a>>,
}

impl DescribedModel<'_> {
    /// A decoder as Llama is.
    pub(super) fn plain(&self) -> Result<DecoderModel> {
        self.with_ropes(Ropes::of(self.config)?)
    }

    /// A decoder as Llama is, with these RoPEs.
    pub(super) fn with_ropes(&self, ropes: Ropes) -> Result<DecoderModel> {
        let activation = activation(self.config)?;
        Ok(DecoderModel { class: self.class, ropes, activation, ..DecoderModel::default() })
    }

    pub(super) fn layers(&self) -> Result<u64> {
        self.config.require_whole(&["num_hidden_layers"])
    }

    /// An error if `layer_types` promises windows that the class does not have.
    pub(super) fn no_windows(&self) -> Result<()> {
        let types = self.config.texts("layer_types")?;
        match types.and_then(|types| types.into_iter().find(|&t| t != "full_attention")) {
            Some(other) => unsupported(format!(
                "layer type `{other}` in a {}, whose code does not read `layer_types`; supported is: full_attention",
                self.class
            )),
            None => Ok(()),
        }
    }

    /// Windows of `sliding_window` in the layers that `layer_types` names, or else in those of `otherwise`.
    pub(super) fn windows(&self, decoder: &DecoderModel, otherwise: impl Fn(u64) -> bool) -> Result<Windows> {
        let Some(tokens) = self.config.whole(&["sliding_window"])? else { return Ok(Windows::None) };
        Ok(Windows::new(self.slides(otherwise)?, tokens, decoder.ropes.max_context(self.config)?))
    }

    /// Which layers slide, by `layer_types`, or else by their number.
    pub(super) fn slides(&self, otherwise: impl Fn(u64) -> bool) -> Result<Vec<bool>> {
        match sliding_layers(self.config)? {
            Some(slides) => Ok(slides),
            None => Ok((0..self.layers()?).map(otherwise).collect()),
        }
    }
}
