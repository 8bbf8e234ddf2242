//! Writes a spec from a GGUF file's metadata and tensors.
//!
//! The metadata is put into the words of a `config.json`, so that both ways share what is known of an
//! architecture; the tensors are the file's own.

mod dense;
mod keys;
mod rope;

use super::config::ModelConfig;
use super::writer::{TIED, Tensors, tensor};
use super::{ImportError, gpt_oss, others};
use crate::front::spec::{self, Spec};
use kernmill_checkpoint::Result;
use kernmill_checkpoint::gguf::Gguf;
use serde_json::{Value, json};

const EMBEDDINGS: &str = "token_embd.weight";
/// Missing where the embeddings serve as the unembedding too.
const UNEMBEDDING: &str = "output.weight";
const MAX_LAYERS: u64 = 1024;
/// The limit that the published model code fixes for the experts' activation.
const GPT_OSS_LIMIT: f64 = 7.0;

/// The spec, as TOML text, of the model called `name` that `gguf` holds.
///
/// # Errors
/// If the architecture is not supported, or the metadata lacks something or contradicts itself.
pub fn from_gguf(name: &str, gguf: &Gguf) -> Result<String> {
    let arch = gguf.architecture()?;
    let file = GgufImport { gguf, arch, layers: 0 };
    let text = match arch {
        "gpt-oss" => file.gpt_oss(name),
        "llama" => file.dense("LlamaForCausalLM", name),
        "qwen2" => file.dense("Qwen2ForCausalLM", name),
        "qwen3" => file.dense("Qwen3ForCausalLM", name),
        other => return gguf.unsupported(others::refusal(other, "gpt-oss, llama, qwen2, qwen3")),
    }?;
    match Spec::parse("spec", &text).and_then(|spec| spec::lower(&spec)) {
        Ok(_) => Ok(text),
        Err(error) => gguf.bad(format!("its metadata describes a model that does not fit together: {error}")),
    }
}

/// A file being imported.
struct GgufImport<'a> {
    gguf: &'a Gguf,
    arch: &'a str,
    layers: u64,
}

impl GgufImport<'_> {
    fn gpt_oss(mut self, name: &str) -> Result<String> {
        let mut config = self.common()?;
        let (rope_scaling, _) = self.rope_scaling(false)?;
        self.refuse_rope_factors()?;
        let bias = self.has_bias("attn_q");
        let inner = match self.whole("expert_feed_forward_length")? {
            Some(inner) if inner > 0 => inner,
            _ => self.require("feed_forward_length")?,
        };
        let own = json!({
            "attention_bias": bias,
            "intermediate_size": inner,
            "num_local_experts": self.require("expert_count")?,
            "num_experts_per_tok": self.require("expert_used_count")?,
            "swiglu_limit": GPT_OSS_LIMIT,
            "rope_scaling": rope_scaling,
        });
        extend(&mut config, own);
        if let Some(window) = self.whole("attention.sliding_window")?.filter(|&n| n > 0) {
            extend(&mut config, json!({"sliding_window": window, "layer_types": self.layer_types()?}));
        }
        let mut layer = vec![("attn_norm", self.layer("attn_norm.weight", "hidden"))];
        for (name, bias_name, stored, rows, shape) in [
            ("q", "q_bias", "attn_q", "q_dim", "q_dim hidden"),
            ("k", "k_bias", "attn_k", "kv_dim", "kv_dim hidden"),
            ("v", "v_bias", "attn_v", "kv_dim", "kv_dim hidden"),
            ("o", "o_bias", "attn_output", "hidden", "hidden q_dim"),
        ] {
            layer.push((name, self.layer(&format!("{stored}.weight"), shape)));
            if bias {
                layer.push((bias_name, self.layer(&format!("{stored}.bias"), rows)));
            }
        }
        let up = "experts expert_hidden hidden";
        layer.extend([
            ("sinks", self.layer("attn_sinks.weight", "heads")),
            ("moe_norm", self.layer("post_attention_norm.weight", "hidden")),
            ("router", self.layer("ffn_gate_inp.weight", "experts hidden")),
            ("router_bias", self.layer("ffn_gate_inp.bias", "experts")),
            ("gate", self.layer("ffn_gate_exps.weight", up)),
            ("up", self.layer("ffn_up_exps.weight", up)),
            ("down", self.layer("ffn_down_exps.weight", "experts hidden expert_hidden")),
            ("gate_bias", self.layer("ffn_gate_exps.bias", "experts expert_hidden")),
            ("up_bias", self.layer("ffn_up_exps.bias", "experts expert_hidden")),
            ("down_bias", self.layer("ffn_down_exps.bias", "experts hidden")),
        ]);
        self.finish(gpt_oss::write, name, config, layer)
    }

    /// The keys that all architectures have, in a `config.json`'s words.
    fn common(&mut self) -> Result<Value> {
        keys::check(self.gguf, self.arch)?;
        self.layers = self.require("block_count")?;
        if self.layers > MAX_LAYERS {
            let (key, layers) = (self.key("block_count"), self.layers);
            return self.gguf.bad(format!("key `{key}` is {layers}: expected at most {MAX_LAYERS}"));
        }
        let head_dim = self.gguf.head_dim()? as u64;
        for key in ["attention.value_length", "rope.dimension_count"] {
            if let Some(other) = self.whole(key)?.filter(|&n| n != head_dim) {
                let key = self.key(key);
                return self
                    .gguf
                    .unsupported(format!("key `{key}` is {other}; supported is the head's {head_dim}"));
            }
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
            "rms_norm_eps": self.gguf.require_positive(&self.key("attention.layer_norm_rms_epsilon"))?,
            "rope_theta": theta,
        }))
    }

    /// Rows of the embedding table. Layers are counted before their tensors are asked for one by one.
    fn vocab(&self) -> Result<u64> {
        if self.gguf.is_vocabulary() {
            return self.gguf.bad("it holds a vocabulary and no weights: expected a whole model's file");
        }
        let Some(embeddings) = self.gguf.info(EMBEDDINGS) else {
            return self.gguf.bad(format!("tensor `{EMBEDDINGS}` is missing"));
        };
        let last = format!("blk.{}.attn_norm.weight", self.layers - 1);
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

    /// Which layers slide: every other one, the first included, if the file does not say.
    fn layer_types(&self) -> Result<Vec<&'static str>> {
        let key = self.key("attention.sliding_window_pattern");
        let slides = match self.gguf.has(&key) {
            true => self.gguf.wholes(&key)?.unwrap_or_default(),
            false => (0..self.layers).map(|layer| (layer + 1) % 2).collect(),
        };
        if slides.len() as u64 != self.layers {
            return self.gguf.bad(format!(
                "key `{key}` has {} entries for {} layers",
                slides.len(),
                self.layers
            ));
        }
        let kind = |&slides: &u64| if slides == 0 { "full_attention" } else { "sliding_attention" };
        Ok(slides.iter().map(kind).collect())
    }

    fn finish(
        self,
        write: impl FnOnce(&str, &ModelConfig, &Tensors) -> super::Result<String>,
        name: &str,
        config: Value,
        layer: Vec<(&'static str, String)>,
    ) -> Result<String> {
        let head = self.unembedding();
        let tied = head == EMBEDDINGS;
        let tensors = Tensors {
            global_comment: if tied { TIED } else { "" },
            global: vec![
                ("embed", self.tensor(EMBEDDINGS, "vocab hidden")),
                ("final_norm", self.tensor("output_norm.weight", "hidden")),
                ("lm_head", self.tensor(head, "vocab hidden")),
            ],
            layer_comment: "Tensors of the GGUF file, in the formats that they have there.",
            layer,
        };
        let Value::Object(map) = config else { unreachable!("a config is an object") };
        match write(name, &ModelConfig::from_map(map), &tensors) {
            Ok(text) => Ok(text),
            Err(ImportError::Unsupported { what }) => self.gguf.unsupported(what),
            Err(ImportError::Bad { what }) => self.gguf.bad(what),
            Err(error) => self.gguf.bad(error.to_string()),
        }
    }

    /// The tensor of the unembedding.
    fn unembedding(&self) -> &'static str {
        if self.gguf.info(UNEMBEDDING).is_some() { UNEMBEDDING } else { EMBEDDINGS }
    }

    /// Whether a matrix of the layers has a bias.
    fn has_bias(&self, matrix: &str) -> bool {
        self.gguf.info(&format!("blk.0.{matrix}.bias")).is_some()
    }

    /// A tensor of every layer, as the spec writes it.
    fn layer(&self, name: &str, shape: &str) -> String {
        let names = (0..self.layers).map(|layer| format!("blk.{layer}.{name}"));
        self.stored(&format!("blk.{{layer}}.{name}"), names.collect(), shape)
    }

    /// A tensor outside of the layers.
    fn tensor(&self, name: &str, shape: &str) -> String {
        self.stored(name, vec![name.to_owned()], shape)
    }

    /// `from` in the format that all of `names` have, or in a list of theirs. Binding tells of those that are
    /// missing, and of vectors in blocks.
    fn stored(&self, from: &str, names: Vec<String>, shape: &str) -> String {
        let is_matrix = from.ends_with(".weight") && shape.contains(' ');
        let format = |name: &String| {
            let kind = self.gguf.tensor_type(name)?;
            Some(match (kind.encoding.format().filter(|_| is_matrix), kind.name) {
                (Some(format), _) => format.name(),
                (None, "BF16") => "bf16",
                (None, "F16") => "f16",
                (None, _) => "f32",
            })
        };
        let found: Vec<Option<&str>> = names.iter().map(format).collect();
        let first = found.iter().flatten().next().copied().unwrap_or("f32");
        let formats: Vec<&str> = found.into_iter().map(|format| format.unwrap_or(first)).collect();
        match formats.iter().all(|format| *format == first) {
            true => tensor(from, shape, &[first]),
            false if is_matrix => tensor(from, shape, &formats),
            false => tensor(from, shape, &["f32"]),
        }
    }

    fn key(&self, name: &str) -> String {
        format!("{}.{name}", self.arch)
    }

    fn whole(&self, name: &str) -> Result<Option<u64>> {
        self.gguf.whole(&self.key(name))
    }

    fn require(&self, name: &str) -> Result<u64> {
        self.gguf.require_whole(&self.key(name))
    }
}

/// Adds the keys of `more` to `config`.
fn extend(config: &mut Value, more: Value) {
    if let (Value::Object(config), Value::Object(more)) = (config, more) {
        config.extend(more);
    }
}
