//! The classes that are imported: what each is called, which keys it has, and its decoder.

mod dense;
mod gemma;
mod mixtures;

use super::config::{ModelConfig, unsupported};
use super::decoder::{DecoderModel, Windows, activation, sliding_layers};
use super::error::Result;
use super::rope::Ropes;
use super::stored::StoredTensors;
use super::tensors::OtherNames;
use serde_json::Value;

/// A class of models.
pub(super) struct ModelClass {
    /// Name of the published class.
    pub(super) name: &'static str,
    /// Other names that files give it.
    pub(super) aliases: &'static [&'static str],
    /// `model_type` of the class.
    pub(super) model_type: &'static str,
    /// Keys that it reads, or does not, besides those that all classes have.
    pub(super) keys: &'static [&'static str],
    /// Defaults of keys that are missing: an object.
    pub(super) defaults: fn() -> Value,
    /// Modules that it calls otherwise.
    pub(super) names: OtherNames,
    /// The decoder that a config describes.
    pub(super) decoder: fn(&DescribedModel<'_>) -> Result<DecoderModel>,
}

/// A model that a class describes.
pub(super) struct DescribedModel<'a> {
    pub(super) class: &'static str,
    pub(super) config: &'a ModelConfig,
    /// The published checkpoint, unless the file is a GGUF file.
    pub(super) stored: Option<&'a StoredTensors<'a>>,
}

impl DescribedModel<'_> {
    /// A decoder as Llama is.
    fn plain(&self) -> Result<DecoderModel> {
        self.with_ropes(Ropes::of(self.config)?)
    }

    /// A decoder as Llama is, with these RoPEs.
    fn with_ropes(&self, ropes: Ropes) -> Result<DecoderModel> {
        let activation = activation(self.config)?;
        Ok(DecoderModel { class: self.class, ropes, activation, ..DecoderModel::default() })
    }

    fn layers(&self) -> Result<u64> {
        self.config.require_whole(&["num_hidden_layers"])
    }

    /// An error if `layer_types` promises windows that the class does not have.
    fn no_windows(&self) -> Result<()> {
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
    fn windows(&self, decoder: &DecoderModel, otherwise: impl Fn(u64) -> bool) -> Result<Windows> {
        let Some(tokens) = self.config.whole(&["sliding_window"])? else { return Ok(Windows::None) };
        Ok(Windows::new(self.slides(otherwise)?, tokens, decoder.ropes.max_context(self.config)?))
    }

    /// Which layers slide, by `layer_types`, or else by their number.
    fn slides(&self, otherwise: impl Fn(u64) -> bool) -> Result<Vec<bool>> {
        match sliding_layers(self.config)? {
            Some(slides) => Ok(slides),
            None => Ok((0..self.layers()?).map(otherwise).collect()),
        }
    }
}

/// All classes.
pub(super) fn classes() -> impl Iterator<Item = &'static ModelClass> {
    mixtures::CLASSES.iter().chain(dense::CLASSES).chain(gemma::CLASSES)
}
