//! Classes of encoders: BERT; RoBERTa, whose positions begin behind that of the padding; and ModernBERT.

use super::super::config::ModelConfig;
use super::super::encoder::{EncoderFile, EncoderModel};
use super::super::error::Result;
use super::super::modern_bert::ModernBert;
use serde_json::{Value, json};

/// A class of encoders.
pub(in crate::front::import) struct EncoderClass {
    /// Name of the published class.
    pub(in crate::front::import) name: &'static str,
    /// Names of classes that are the same with a head, which is left out.
    with_head: &'static [&'static str],
    /// `model_type` of the class.
    model_type: &'static str,
    /// The table of words, by which checkpoints are told apart that name all with another beginning.
    pub(in crate::front::import) words: &'static str,
    /// Keys that it reads besides [`EncoderClass::COMMON`], and those of its heads.
    pub(in crate::front::import) keys: &'static [&'static str],
    /// Defaults of keys that are missing: an object.
    pub(in crate::front::import) defaults: fn() -> Value,
    /// The spec of a model by its name, its config, and the file of its tensors.
    pub(in crate::front::import) spec: fn(&str, &ModelConfig, &dyn EncoderFile) -> Result<String>,
}

pub(in crate::front::import) static ENCODERS: [EncoderClass; 4] = [
    EncoderClass {
        name: "BertModel",
        with_head: &["BertForMaskedLM", "BertForPreTraining"],
        model_type: "bert",
        spec: |name, config, file| {
            EncoderModel { class: "BertModel", first_position: 0 }.spec(name, config, file)
        },
        ..LIKE_BERT
    },
    EncoderClass {
        name: "RobertaModel",
        with_head: &["RobertaForMaskedLM"],
        model_type: "roberta",
        defaults: || like_bert(50265),
        spec: |name, config, file| behind_padding("RobertaModel", config)?.spec(name, config, file),
        ..LIKE_BERT
    },
    EncoderClass {
        name: "XLMRobertaModel",
        with_head: &["XLMRobertaForMaskedLM"],
        model_type: "xlm-roberta",
        spec: |name, config, file| behind_padding("XLMRobertaModel", config)?.spec(name, config, file),
        ..LIKE_BERT
    },
    EncoderClass {
        name: "ModernBertModel",
        with_head: &["ModernBertForMaskedLM"],
        model_type: "modernbert",
        words: "embeddings.tok_embeddings.weight",
        keys: &[
            "hidden_activation",
            "max_position_embeddings",
            "norm_eps",
            "norm_bias",
            "attention_bias",
            "mlp_bias",
            "local_attention",
            "layer_types",
            "global_attn_every_n_layers",
            "rope_parameters",
            "global_rope_theta",
            "local_rope_theta",
            // The heads are left out.
            "tie_word_embeddings",
            "decoder_bias",
            "classifier_*",
            "sparse_*",
            // How it is trained and run.
            "initializer_cutoff_factor",
            "mlp_dropout",
            "deterministic_flash_attn",
            "reference_compile",
            "repad_logits_with_grad",
            // Published files have these of another class.
            "layer_norm_eps",
            "position_embedding_type",
        ],
        defaults: || {
            json!({
                "vocab_size": 50368, "hidden_size": 768, "num_hidden_layers": 22, "num_attention_heads": 12,
                "intermediate_size": 1152, "max_position_embeddings": 8192, "hidden_activation": "gelu",
                "norm_eps": 1e-5, "local_attention": 128, "global_attn_every_n_layers": 3,
            })
        },
        spec: |name, config, file| ModernBert::of(config)?.spec(name, config, file),
    },
];

/// All that BERT's classes have in common.
const LIKE_BERT: EncoderClass = EncoderClass {
    name: "",
    with_head: &[],
    model_type: "",
    words: "embeddings.word_embeddings.weight",
    keys: &[
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
    ],
    defaults: || like_bert(30522),
    spec: |_, _, _| unreachable!("each class has its own"),
};

impl EncoderClass {
    /// Keys that every encoder reads.
    pub(in crate::front::import) const COMMON: &[&str] = &[
        "architectures",
        "model_type",
        "torch_dtype",
        "dtype",
        "vocab_size",
        "hidden_size",
        "intermediate_size",
        "num_hidden_layers",
        "num_attention_heads",
    ];

    /// The class that a file names so.
    pub(in crate::front::import) fn of(stated: &str) -> Option<&'static EncoderClass> {
        let names = |class: &&EncoderClass| {
            class.name == stated || class.model_type == stated || class.with_head.contains(&stated)
        };
        ENCODERS.iter().find(names)
    }
}

fn like_bert(vocab: u64) -> Value {
    json!({
        "vocab_size": vocab, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
        "intermediate_size": 3072, "max_position_embeddings": 512, "type_vocab_size": 2,
        "layer_norm_eps": 1e-12, "pad_token_id": 1,
    })
}

/// An encoder like BERT, whose positions begin behind that of the padding, which its token names.
fn behind_padding(class: &'static str, config: &ModelConfig) -> Result<EncoderModel> {
    Ok(EncoderModel { class, first_position: config.count("pad_token_id")?.unwrap_or(0) + 1 })
}
