//! Encoders of GGUF files: architecture `modern-bert`. The converter writes no list of layers: the first of
//! every three sees all tokens, unless the file has another number.

use super::super::config::ModelConfig;
use super::super::modern_bert::ModernBert;
use super::file::GgufImport;
use super::keys;
use kernmill_checkpoint::Result;
use kernmill_os::text::shortened;
use serde_json::{Value, json};

/// `general.architecture`.
pub(super) const NAME: &str = "modern-bert";

/// Keys of the epsilon of norms. The converter has written the second for some files.
const EPSILON: [&str; 2] = ["attention.layer_norm_epsilon", "attention.layer_norm_rms_epsilon"];

/// Keys that are read, besides those of the epsilon.
const READ: [&str; 19] = [
    "attention.causal",
    "attention.head_count",
    "attention.head_count_kv",
    "attention.sliding_window",
    "attention.sliding_window_pattern",
    "block_count",
    "context_length",
    "embedding_length",
    "feed_forward_length",
    "hidden_activation",
    "pooling_type",
    "rope.freq_base",
    "rope.freq_base_swa",
    "rope.scaling.type",
    "vocab_size",
    // Keys of a classifier; a file with its tensors is refused.
    "classifier.output_labels",
    "classifier.pooling_type",
    // How the model was trained, and how the file is laid out.
    "rope.scaling.finetuned",
    "tensor_data_layout",
];

/// Keys with their names in a `config.json`.
const NAMES: [(&str, &str); 7] = [
    ("context_length", "max_position_embeddings"),
    ("embedding_length", "hidden_size"),
    ("attention.head_count", "num_attention_heads"),
    ("attention.sliding_window", "local_attention"),
    ("attention.sliding_window_pattern", "layer_types"),
    ("rope.freq_base", "global_rope_theta"),
    ("rope.freq_base_swa", "local_rope_theta"),
];

impl GgufImport<'_> {
    /// The spec of the ModernBERT called `name`. The file's tensors say which biases there are.
    pub(super) fn modern_bert_spec(mut self, name: &str) -> Result<String> {
        keys::check(self.gguf, self.arch, |key| READ.contains(&key) || EPSILON.contains(&key))?;
        let heads = self.encoder_heads()?;
        let scaling = self.key("rope.scaling.type");
        if let Some(other) = self.gguf.text(&scaling)?.filter(|&kind| kind != "none") {
            let found = shortened(other);
            return self.gguf.unsupported(format!("key `{scaling}` is {found}; supported is: none"));
        }
        let epsilon = EPSILON.map(|key| self.key(key));
        let epsilon = epsilon.iter().find(|key| self.gguf.has(key)).unwrap_or(&epsilon[0]);
        let theta = |key: &str| self.gguf.require_positive(&self.key(key));
        let has = |tensor: &str| self.gguf.info(tensor).is_some();
        let window = self.whole("attention.sliding_window")?.filter(|&window| window > 0);
        let config = json!({
            "vocab_size": self.vocab()?,
            "hidden_size": self.require("embedding_length")?,
            "num_hidden_layers": self.layers,
            "num_attention_heads": heads,
            "intermediate_size": self.require("feed_forward_length")?,
            "max_position_embeddings": self.require("context_length")?,
            "hidden_activation": shortened(self.gguf.text(&self.key("hidden_activation"))?.unwrap_or("gelu")),
            "norm_eps": self.gguf.require_positive(epsilon)?,
            "norm_bias": has("output_norm.bias"),
            "attention_bias": has("blk.0.attn_qkv.bias"),
            "mlp_bias": has("blk.0.ffn_up.bias"),
            "local_attention": window.unwrap_or(1),
            "global_attn_every_n_layers": 1,
            "layer_types": self.kinds_of_layers(window.is_some())?,
            "global_rope_theta": theta("rope.freq_base")?,
            "local_rope_theta": if window.is_some() { theta("rope.freq_base_swa")? } else { 1.0 },
        });
        let Value::Object(config) = config else { unreachable!("a config is an object") };
        let config = ModelConfig::from_map(config);
        let spec = ModernBert::of(&config).and_then(|encoder| encoder.spec(name, &config, &self));
        self.told(spec, &NAMES)
    }

    /// `layer_types`, by a list of those that slide or by every how manieth does not.
    fn kinds_of_layers(&self, slide: bool) -> Result<Vec<&'static str>> {
        let key = self.key("attention.sliding_window_pattern");
        let slides: Vec<u64> = match (self.gguf.number(&key), self.gguf.has(&key)) {
            _ if !slide => vec![0; self.layers as usize],
            (None, true) => self.gguf.wholes(&key)?.unwrap_or_default(),
            (every, _) => {
                (0..self.layers).map(|layer| layer % every.unwrap_or(3.0).max(1.0) as u64).collect()
            }
        };
        if slides.len() as u64 != self.layers {
            let (entries, layers) = (slides.len(), self.layers);
            return self.gguf.bad(format!("key `{key}` has {entries} entries for {layers} layers"));
        }
        let kind = |&slides: &u64| if slides == 0 { "full_attention" } else { "sliding_attention" };
        Ok(slides.iter().map(kind).collect())
    }
}
