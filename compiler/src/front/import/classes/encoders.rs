//! Classes of encoders: BERT, and RoBERTa, whose positions begin behind that of the padding.

use super::super::config::ModelConfig;
use super::super::encoder::EncoderModel;
use super::super::error::Result;
use serde_json::{Value, json};

/// A class of encoders.
pub(in crate::front::import) struct EncoderClass {
    /// Name of the published class.
    pub(in crate::front::import) name: &'static str,
    /// Names of classes that are the same with a head, which is left out.
    with_head: &'static [&'static str],
    /// `model_type` of the class.
    model_type: &'static str,
    /// Whether positions begin behind that of the padding, which its token names.
    behind_padding: bool,
}

pub(in crate::front::import) static ENCODERS: [EncoderClass; 3] = [
    EncoderClass {
        name: "BertModel",
        with_head: &["BertForMaskedLM", "BertForPreTraining"],
        model_type: "bert",
        behind_padding: false,
    },
    EncoderClass {
        name: "RobertaModel",
        with_head: &["RobertaForMaskedLM"],
        model_type: "roberta",
        behind_padding: true,
    },
    EncoderClass {
        name: "XLMRobertaModel",
        with_head: &["XLMRobertaForMaskedLM"],
        model_type: "xlm-roberta",
        behind_padding: true,
    },
];

/// Keys that encoders read.
pub(in crate::front::import) const ENCODER_KEYS: &[&str] = &[
    "architectures",
    "model_type",
    "torch_dtype",
    "dtype",
    "vocab_size",
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "hidden_act",
    "max_position_embeddings",
    "type_vocab_size",
    "layer_norm_eps",
    "position_embedding_type",
    "is_decoder",
    "add_cross_attention",
    // Without an unembedding, nothing is tied.
    "tie_word_embeddings",
    // The pooler is left out, and the last two keys are for training.
    "pooler_*",
    "directionality",
    "output_past",
];

impl EncoderClass {
    /// The class that a file names so.
    pub(in crate::front::import) fn of(stated: &str) -> Option<&'static EncoderClass> {
        let names = |class: &&EncoderClass| {
            class.name == stated || class.model_type == stated || class.with_head.contains(&stated)
        };
        ENCODERS.iter().find(names)
    }

    /// Defaults of keys that are missing.
    pub(in crate::front::import) fn defaults(&self) -> Value {
        let vocab = if self.model_type == "roberta" { 50265 } else { 30522 };
        json!({
            "vocab_size": vocab, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
            "intermediate_size": 3072, "max_position_embeddings": 512, "type_vocab_size": 2,
            "layer_norm_eps": 1e-12, "pad_token_id": 1,
        })
    }

    /// The encoder that a config describes.
    pub(in crate::front::import) fn encoder(&self, config: &ModelConfig) -> Result<EncoderModel> {
        let first_position = match self.behind_padding {
            true => config.count("pad_token_id")?.unwrap_or(0) + 1,
            false => 0,
        };
        Ok(EncoderModel { class: self.name, first_position })
    }
}
