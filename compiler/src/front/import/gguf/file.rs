//! A GGUF file that is imported: its keys, in the words of a `config.json`.

use super::super::tensors::OtherNames;
use kernmill_checkpoint::Result;
use kernmill_checkpoint::gguf::Gguf;
use serde_json::{Value, json};

/// Name of the table of embeddings.
pub(super) const EMBEDDINGS: &str = "token_embd.weight";
const MAX_LAYERS: u64 = 1024;

/// A file being imported.
pub(super) struct GgufImport<'a> {
    pub(super) gguf: &'a Gguf,
    /// Name of the architecture, with which its keys begin.
    pub(super) arch: &'static str,
    pub(super) layers: u64,
    pub(super) names: OtherNames,
}

impl GgufImport<'_> {
    /// Reads the number of layers.
    pub(super) fn count_layers(&mut self) -> Result<()> {
        self.layers = self.require("block_count")?;
        if self.layers > MAX_LAYERS {
            let (key, layers) = (self.key("block_count"), self.layers);
            return self.gguf.bad(format!("key `{key}` is {layers}: expected at most {MAX_LAYERS}"));
        }
        Ok(())
    }

    /// The keys that all decoders have, in a `config.json`'s words.
    pub(super) fn common(&mut self) -> Result<Value> {
        self.count_layers()?;
        // Layers of a head that predicts further tokens are left out.
        self.layers = self.layers.saturating_sub(self.whole("nextn_predict_layers")?.unwrap_or(0)).max(1);
        let head_dim = self.gguf.head_dim()? as u64;
        if let Some(other) = self.whole("attention.value_length")?.filter(|&n| n != head_dim) {
            let key = self.key("attention.value_length");
            return self
                .gguf
                .unsupported(format!("key `{key}` is {other}; supported is the head's {head_dim}"));
        }
        let rotary = self.whole("rope.dimension_count")?.unwrap_or(head_dim);
        if rotary == 0 || rotary > head_dim {
            let key = self.key("rope.dimension_count");
            return self.gguf.bad(format!("key `{key}` is {rotary}: expected 1 to the head's {head_dim}"));
        }
        let vocab = self.vocab()?;
        let heads = self.require("attention.head_count")?;
        let kv_heads = self.whole("attention.head_count_kv")?.filter(|&n| n > 0).unwrap_or(heads);
        let theta = self.gguf.positive(&self.key("rope.freq_base"))?.unwrap_or(10000.0);
        Ok(json!({
            "num_hidden_layers": self.layers,
            "max_position_embeddings": self.require("context_length")?,
            "vocab_size": vocab,
            "hidden_size": self.require("embedding_length")?,
            "num_attention_heads": heads,
            "num_key_value_heads": kv_heads,
            "head_dim": head_dim,
            "partial_rotary_factor": rotary as f64 / head_dim as f64,
            "rms_norm_eps": self.gguf.require_positive(&self.key("attention.layer_norm_rms_epsilon"))?,
            "rope_theta": theta,
        }))
    }

    /// Rows of the embedding table. Layers are counted before their tensors are asked for one by one.
    pub(super) fn vocab(&self) -> Result<u64> {
        if self.gguf.is_vocabulary() {
            return self.gguf.bad("it holds a vocabulary and no weights: expected a whole model's file");
        }
        let Some(embeddings) = self.gguf.info(EMBEDDINGS) else {
            return self.gguf.bad(format!("tensor `{EMBEDDINGS}` is missing"));
        };
        let last = format!("blk.{}.attn_output.weight", self.layers - 1);
        if self.gguf.info(&last).is_none() {
            let (key, layers) = (self.key("block_count"), self.layers);
            return self.gguf.bad(format!("tensor `{last}` is missing, and key `{key}` is {layers}"));
        }
        let (rows, key) = (embeddings.shape[0] as u64, self.key("vocab_size"));
        match self.gguf.whole(&key)? {
            Some(vocab) if vocab != rows => {
                self.gguf.bad(format!("key `{key}` is {vocab}, and `{EMBEDDINGS}` has {rows} rows"))
            }
            _ => Ok(rows),
        }
    }

    /// `sliding_window` and `layer_types` of a file with windows. An array says which layers slide; or all do
    /// but each `pattern`th, by the file's number or else that of the architecture.
    pub(super) fn windows(&self, pattern: u64) -> Result<Value> {
        let Some(window) = self.whole("attention.sliding_window")?.filter(|&n| n > 0) else {
            return Ok(json!({}));
        };
        let key = self.key("attention.sliding_window_pattern");
        let by_pattern = |pattern: u64| (1..=self.layers).map(|layer| layer % pattern.max(1)).collect();
        let slides: Vec<u64> = match (self.gguf.number(&key), self.gguf.has(&key)) {
            (Some(own), _) => by_pattern(own as u64),
            (None, true) => self.gguf.wholes(&key)?.unwrap_or_default(),
            (None, false) => by_pattern(pattern),
        };
        if slides.len() as u64 != self.layers {
            return self.gguf.bad(format!(
                "key `{key}` has {} entries for {} layers",
                slides.len(),
                self.layers
            ));
        }
        let kind = |&slides: &u64| if slides == 0 { "full_attention" } else { "sliding_attention" };
        let types: Vec<&str> = slides.iter().map(kind).collect();
        Ok(json!({ "sliding_window": window, "layer_types": types }))
    }

    pub(super) fn key(&self, name: &str) -> String {
        format!("{}.{name}", self.arch)
    }

    pub(super) fn whole(&self, name: &str) -> Result<Option<u64>> {
        self.gguf.whole(&self.key(name))
    }

    pub(super) fn require(&self, name: &str) -> Result<u64> {
        self.gguf.require_whole(&self.key(name))
    }
}

/// Adds the keys of `more` to `config`.
pub(super) fn extend(config: &mut Value, more: Value) {
    if let (Value::Object(config), Value::Object(more)) = (config, more) {
        config.extend(more);
    }
}
