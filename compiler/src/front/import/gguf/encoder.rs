//! Encoders of GGUF files: architecture `bert`, which holds BERT, RoBERTa and XLM-RoBERTa. The converter has
//! cut off the positions of the padding.

use super::super::config::ModelConfig;
use super::super::encoder::{EncoderFile, EncoderModel, EncoderTensor};
use super::file::GgufImport;
use super::keys;
use kernmill_checkpoint::Result;
use serde_json::{Value, json};

/// `general.architecture`.
pub(super) const NAME: &str = "bert";
const POSITIONS: &str = "position_embd.weight";
const TYPES: &str = "token_types.weight";

/// Keys that are read.
const READ: [&str; 11] = [
    "attention.causal",
    "attention.head_count",
    "attention.head_count_kv",
    "attention.layer_norm_epsilon",
    "block_count",
    // As many as there are rows of positions.
    "context_length",
    "embedding_length",
    "feed_forward_length",
    "pooling_type",
    "vocab_size",
    // How the file is laid out.
    "tensor_data_layout",
];

impl GgufImport<'_> {
    /// Counts the layers of an encoder and reads its heads.
    ///
    /// # Errors
    /// If keys say that it continues texts, or that heads share keys, or that it makes scores.
    pub(super) fn encoder_heads(&mut self) -> Result<u64> {
        let causal = self.key("attention.causal");
        if self.gguf.has(&causal) && self.gguf.number(&causal) != Some(0.0) {
            let found = self.gguf.shown(&causal);
            return self.gguf.unsupported(format!("key `{causal}` is {found}; supported is: false"));
        }
        self.count_layers()?;
        let heads = self.require("attention.head_count")?;
        if let Some(other) = self.whole("attention.head_count_kv")?.filter(|&n| n > 0 && n != heads) {
            let key = self.key("attention.head_count_kv");
            return self.gguf.unsupported(format!("key `{key}` is {other}; supported is: {heads}, as heads"));
        }
        if self.whole("pooling_type")? == Some(4) {
            let key = self.key("pooling_type");
            return self.gguf.unsupported(format!(
                "key `{key}` is 4, for scores by a head of their own; supported are: 0 to 3, for vectors"
            ));
        }
        Ok(heads)
    }

    /// The spec of the encoder called `name`. The file does not state the activation, which is that of BERT.
    pub(super) fn encoder_spec(mut self, name: &str) -> Result<String> {
        keys::check(self.gguf, self.arch, |key| READ.contains(&key))?;
        let heads = self.encoder_heads()?;
        let rows = |tensor: &str| match self.gguf.info(tensor) {
            Some(info) => Ok(if info.shape.len() < 2 { 1 } else { info.shape[0] as u64 }),
            None => self.gguf.bad(format!("tensor `{tensor}` is missing")),
        };
        let config = json!({
            "vocab_size": self.vocab()?,
            "hidden_size": self.require("embedding_length")?,
            "num_hidden_layers": self.layers,
            "num_attention_heads": heads,
            "intermediate_size": self.require("feed_forward_length")?,
            "max_position_embeddings": rows(POSITIONS)?,
            "type_vocab_size": rows(TYPES)?,
            "layer_norm_eps": self.gguf.require_positive(&self.key("attention.layer_norm_epsilon"))?,
        });
        let Value::Object(config) = config else { unreachable!("a config is an object") };
        let encoder = EncoderModel { class: "BertModel", first_position: 0 };
        self.told(
            encoder.spec(name, &ModelConfig::from_map(config), &self),
            &[("embedding_length", "hidden_size"), ("attention.head_count", "num_attention_heads")],
        )
    }
}

impl EncoderFile for GgufImport<'_> {
    fn encoder_tensor(&self, of: &EncoderTensor<'_>, keys: &str) -> String {
        match of.place.is_empty() {
            false => self.of_layers(of.gguf, of.shape, keys),
            true => self.stored(of.gguf, vec![of.gguf.to_owned()], of.shape, keys),
        }
    }

    fn heads(&self, _: &[&str]) -> Vec<String> {
        Vec::new()
    }
}
