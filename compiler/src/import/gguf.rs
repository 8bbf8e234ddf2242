//! Writes a spec from a GGUF file's metadata and tensors.
//!
//! The metadata is put into the words of a `config.json`, so that both ways share what is known of an architecture; the tensors are
//! the file's own.

use super::config::Config;
use super::writer::{TIED, Tensors, tensor};
use super::{ImportError, gpt_oss, llama};
use crate::checkpoint::Result;
use crate::gguf::{Gguf, TensorType};
use crate::graph::rope::inv_freq;
use crate::graph::{Rope, RopeScaling};
use crate::spec::{self, Spec};
use serde_json::{Value, json};

const EMBEDDINGS: &str = "token_embd.weight";
const MAX_LAYERS: u64 = 1024;
/// What the published model code fixes for the experts' activation.
const GPT_OSS_LIMIT: f64 = 7.0;
/// Factors of the RoPE frequencies, as llama files state Llama 3's scaling.
const ROPE_FACTORS: &str = "rope_freqs.weight";
/// Constants of Llama 3's scaling in every published model that has it.
const LLAMA3_LOW: f64 = 1.0;
const LLAMA3_HIGH: f64 = 4.0;
const LLAMA3_CONTEXT: f64 = 8192.0;
/// Factors that differ by this share or less are the same but for rounding.
const ROPE_TOLERANCE: f64 = 1e-4;
/// Keys under the architecture's name that change the computation and that kernmill lacks.
const REFUSED: [&str; 10] = [
    "attention.scale",
    "attention.value_residual_mix_lora_rank",
    "attention.clamp_kqv",
    "attention.max_alibi_bias",
    "attn_logit_softcapping",
    "final_logit_softcapping",
    "logit_scale",
    "residual_scale",
    "embedding_scale",
    "rope.scaling.yarn_log_multiplier",
];

/// The spec, as TOML text, of the model called `name` that `gguf` holds.
///
/// # Errors
/// If the architecture is not supported, or the metadata lacks something or contradicts itself.
pub fn from_gguf(name: &str, gguf: &Gguf) -> Result<String> {
    let arch = gguf.architecture()?;
    let file = File { gguf, arch, layers: 0 };
    let text = match arch {
        "gpt-oss" => file.gpt_oss(name),
        "llama" => file.llama(name),
        other => gguf.unsupported(format!("architecture `{other}`; supported are: gpt-oss, llama")),
    }?;
    match Spec::parse("spec", &text).and_then(|spec| spec::lower(&spec)) {
        Ok(_) => Ok(text),
        Err(error) => {
            gguf.corrupt(format!("its metadata describes a model that does not fit together: {error}"))
        }
    }
}

/// A file being imported.
struct File<'a> {
    gguf: &'a Gguf,
    arch: &'a str,
    layers: u64,
}

impl File<'_> {
    fn gpt_oss(mut self, name: &str) -> Result<String> {
        let mut config = self.common()?;
        let (rope_scaling, _) = self.rope_scaling(false)?;
        let bias = self.gguf.info("blk.0.attn_q.bias").is_some();
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

    fn llama(mut self, name: &str) -> Result<String> {
        let mut config = self.common()?;
        if self.whole("expert_count")?.is_some_and(|n| n > 0) {
            return self.gguf.unsupported("experts in a llama model");
        }
        if self.whole("attention.sliding_window")?.is_some_and(|n| n > 0) {
            return self.gguf.unsupported("a sliding window in a llama model");
        }
        let (rope_scaling, scaled) = self.rope_scaling(true)?;
        let rope_scaling = match self.gguf.info(ROPE_FACTORS) {
            Some(_) if scaled => {
                return self.gguf.unsupported(format!("`{ROPE_FACTORS}` beside a RoPE scaling"));
            }
            Some(_) => self.llama3_scaling()?,
            None => rope_scaling,
        };
        let (attention_bias, mlp_bias) =
            (self.gguf.info("blk.0.attn_q.bias").is_some(), self.gguf.info("blk.0.ffn_gate.bias").is_some());
        let own = json!({
            "attention_bias": attention_bias,
            "mlp_bias": mlp_bias,
            "intermediate_size": self.require("feed_forward_length")?,
            "rope_scaling": rope_scaling,
        });
        extend(&mut config, own);
        let mut layer = vec![("attn_norm", self.layer("attn_norm.weight", "hidden"))];
        for (name, bias_name, stored, shape, bias) in [
            ("q", "q_bias", "attn_q", "q_dim hidden", attention_bias),
            ("k", "k_bias", "attn_k", "kv_dim hidden", attention_bias),
            ("v", "v_bias", "attn_v", "kv_dim hidden", attention_bias),
            ("o", "o_bias", "attn_output", "hidden q_dim", attention_bias),
            ("gate", "gate_bias", "ffn_gate", "mlp_hidden hidden", mlp_bias),
            ("up", "up_bias", "ffn_up", "mlp_hidden hidden", mlp_bias),
            ("down", "down_bias", "ffn_down", "hidden mlp_hidden", mlp_bias),
        ] {
            layer.push((name, self.layer(&format!("{stored}.weight"), shape)));
            if bias {
                let rows = shape.split(' ').next().unwrap_or_default();
                layer.push((bias_name, self.layer(&format!("{stored}.bias"), rows)));
            }
        }
        layer.push(("mlp_norm", self.layer("ffn_norm.weight", "hidden")));
        self.finish(llama::write, name, config, layer)
    }

    /// What both architectures have, in a `config.json`'s words.
    fn common(&mut self) -> Result<Value> {
        if let Some(key) = REFUSED.into_iter().find(|key| self.gguf.has(&self.key(key))) {
            return self.gguf.unsupported(format!("key `{}`", self.key(key)));
        }
        self.layers = self.require("block_count")?;
        if self.layers > MAX_LAYERS {
            let (key, layers) = (self.key("block_count"), self.layers);
            return self.gguf.corrupt(format!("key `{key}` is {layers}: expected at most {MAX_LAYERS}"));
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
        let Some(embeddings) = self.gguf.info(EMBEDDINGS) else {
            return self.gguf.corrupt(format!("tensor `{EMBEDDINGS}` is missing"));
        };
        let heads = self.require("attention.head_count")?;
        let kv_heads = self.whole("attention.head_count_kv")?.filter(|&n| n > 0).unwrap_or(heads);
        let theta = self.gguf.positive(&self.key("rope.freq_base"))?.unwrap_or(10000.0);
        Ok(json!({
            "num_hidden_layers": self.layers,
            "max_position_embeddings": self.require("context_length")?,
            "vocab_size": embeddings.shape[0],
            "hidden_size": self.require("embedding_length")?,
            "num_attention_heads": heads,
            "num_key_value_heads": kv_heads,
            "head_dim": head_dim,
            "rms_norm_eps": self.gguf.require_positive(&self.key("attention.layer_norm_rms_epsilon"))?,
            "rope_theta": theta,
        }))
    }

    /// Which layers slide: every other one, the first included, if the file does not say.
    fn layer_types(&self) -> Result<Vec<&'static str>> {
        let key = self.key("attention.sliding_window_pattern");
        let slides = match self.gguf.has(&key) {
            true => self.gguf.wholes(&key)?.unwrap_or_default(),
            false => (0..self.layers).map(|layer| (layer + 1) % 2).collect(),
        };
        if slides.len() as u64 != self.layers {
            return self.gguf.corrupt(format!(
                "key `{key}` has {} entries for {} layers",
                slides.len(),
                self.layers
            ));
        }
        let kind = |&slides: &u64| if slides == 0 { "full_attention" } else { "sliding_attention" };
        Ok(slides.iter().map(kind).collect())
    }

    /// `rope_scaling` of a `config.json`, and whether there is one.
    fn rope_scaling(&self, truncate: bool) -> Result<(Value, bool)> {
        let kind = self.gguf.text(&self.key("rope.scaling.type"))?;
        match kind {
            None if self.gguf.has(&self.key("rope.scale_linear")) => {
                return self.gguf.unsupported(format!("key `{}`", self.key("rope.scale_linear")));
            }
            None | Some("none") => return Ok((Value::Null, false)),
            Some("yarn") => {}
            Some(other) => {
                let key = self.key("rope.scaling.type");
                return self.gguf.unsupported(format!("key `{key}` is `{other}`; supported are: none, yarn"));
            }
        }
        for key in
            ["rope.scaling.attn_factor", "rope.scaling.yarn_attn_factor", "rope.scaling.yarn_ext_factor"]
        {
            let key = self.key(key);
            if let Some(factor) = self.gguf.positive(&key)?.filter(|&f| f != 1.0) {
                return self.gguf.unsupported(format!("key `{key}` is {factor}; supported is: 1"));
            }
        }
        let number = |key: &str| self.gguf.positive(&self.key(key));
        let scaling = json!({
            "rope_type": "yarn",
            "factor": self.gguf.require_positive(&self.key("rope.scaling.factor"))?,
            "original_max_position_embeddings": self.require("rope.scaling.original_context_length")?,
            "beta_fast": number("rope.scaling.yarn_beta_fast")?.unwrap_or(32.0),
            "beta_slow": number("rope.scaling.yarn_beta_slow")?.unwrap_or(1.0),
            "truncate": truncate,
        });
        Ok((scaling, true))
    }

    /// Llama 3's scaling, of which the file states only the resulting factors.
    fn llama3_scaling(&self) -> Result<Value> {
        let (gguf, head_dim) = (self.gguf, self.gguf.head_dim()?);
        let info = gguf.info(ROPE_FACTORS).filter(|t| t.kind.name == "F32" && t.shape == [head_dim / 2]);
        let Some(info) = info else {
            return gguf.corrupt(format!("tensor `{ROPE_FACTORS}` is not F32 of shape [{}]", head_dim / 2));
        };
        let stored: Vec<f64> =
            gguf.data(info).as_chunks().0.iter().map(|&b| f64::from(f32::from_le_bytes(b))).collect();
        let factor = stored.iter().copied().fold(1.0, f64::max);
        let theta = gguf.positive(&self.key("rope.freq_base"))?.unwrap_or(10000.0);
        let frequencies = |scaling| inv_freq(&Rope { head_dim, theta, scaling }).0;
        let plain = frequencies(RopeScaling::Plain);
        let scaled = frequencies(RopeScaling::Llama3 {
            factor,
            low_freq_factor: LLAMA3_LOW,
            high_freq_factor: LLAMA3_HIGH,
            original_context: LLAMA3_CONTEXT,
        });
        let expected =
            plain.iter().zip(&scaled).map(|(&plain, &scaled)| f64::from(plain) / f64::from(scaled));
        if !stored.iter().zip(expected).all(|(s, e)| (s - e).abs() <= ROPE_TOLERANCE * e) {
            return gguf.unsupported(format!("`{ROPE_FACTORS}` that is not Llama 3's scaling"));
        }
        Ok(json!({
            "rope_type": "llama3",
            "factor": factor,
            "low_freq_factor": LLAMA3_LOW,
            "high_freq_factor": LLAMA3_HIGH,
            "original_max_position_embeddings": LLAMA3_CONTEXT as u64,
        }))
    }

    fn finish(
        self,
        write: fn(&str, &Config, &Tensors) -> super::Result<String>,
        name: &str,
        config: Value,
        layer: Vec<(&'static str, String)>,
    ) -> Result<String> {
        let tied = self.gguf.info("output.weight").is_none();
        let head = if tied { EMBEDDINGS } else { "output.weight" };
        let tensors = Tensors {
            global_comment: if tied { TIED } else { "" },
            global: vec![
                ("embed", self.tensor(EMBEDDINGS, "vocab hidden")),
                ("final_norm", self.tensor("output_norm.weight", "hidden")),
                ("lm_head", self.tensor(head, "vocab hidden")),
            ],
            layer_comment: "Tensors of the GGUF file; those in mxfp4 have their scales within.",
            layer,
        };
        let Value::Object(map) = config else { unreachable!("a config is an object") };
        match write(name, &Config::from_map(map), &tensors) {
            Ok(text) => Ok(text),
            Err(ImportError::Unsupported { what }) => self.gguf.unsupported(what),
            Err(ImportError::Bad { what }) => self.gguf.corrupt(what),
            Err(error @ ImportError::Inconsistent(_)) => self.gguf.corrupt(error.to_string()),
        }
    }

    /// A tensor of every layer, as the spec writes it.
    fn layer(&self, name: &str, shape: &str) -> String {
        let types = (0..self.layers).map(|layer| format!("blk.{layer}.{name}"));
        self.stored(&format!("blk.{{layer}}.{name}"), types.collect(), shape)
    }

    /// A tensor outside of the layers.
    fn tensor(&self, name: &str, shape: &str) -> String {
        self.stored(name, vec![name.to_owned()], shape)
    }

    /// `from` in the format that all of `names` have; f32 if they differ or are in blocks that specs do not know. Binding tells of
    /// those that are missing.
    fn stored(&self, from: &str, names: Vec<String>, shape: &str) -> String {
        let mut types: Vec<&TensorType> =
            names.iter().filter_map(|name| self.gguf.tensor_type(name)).collect();
        types.dedup();
        match types[..] {
            // Vectors are not in blocks; of tables every row is read as f32.
            [kind] if kind.is_mxfp4() && shape.contains(' ') && from != EMBEDDINGS => {
                tensor(from, shape, "mxfp4").replace(", shape", &format!(", scales = \"{from}\", shape"))
            }
            [kind] if kind.name == "BF16" => tensor(from, shape, "bf16"),
            [kind] if kind.name == "F16" => tensor(from, shape, "f16"),
            _ => tensor(from, shape, "f32"),
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
