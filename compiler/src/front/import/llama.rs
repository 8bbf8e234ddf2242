//! `LlamaForCausalLM`: attention to all tokens, biases as the config says.

use super::config::{ModelConfig, unsupported};
use super::dense::{self, Dense, Windows};
use super::stored::StoredTensors;
use super::{Architecture, Result};
use serde_json::json;

pub(super) fn architecture() -> Architecture {
    Architecture {
        class: "LlamaForCausalLM",
        aliases: &["LLaMAForCausalLM"],
        model_type: "llama",
        // The class has no windows, and reads none of the keys about them.
        keys: &["attention_bias", "mlp_bias", "sliding_window", "use_sliding_window", "max_window_layers"],
        defaults: json!({
            "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
            "num_attention_heads": 32, "hidden_act": "silu", "max_position_embeddings": 2048, "rms_norm_eps": 1e-6,
            "rope_theta": 10000.0,
        }),
        spec,
    }
}

fn spec(name: &str, config: &ModelConfig, stored: &StoredTensors<'_>) -> Result<String> {
    no_windows(config, "LlamaForCausalLM")?;
    let dense = described(config, stored)?;
    dense::write(name, config, &dense::tensors(config, stored, &dense)?, &dense)
}

/// An error if `layer_types` promises windows that the class does not have.
pub(super) fn no_windows(config: &ModelConfig, class: &str) -> Result<()> {
    match config.texts("layer_types")?.and_then(|types| types.into_iter().find(|&t| t != "full_attention")) {
        Some(other) => unsupported(format!(
            "layer type `{other}` in a {class}, whose code does not read `layer_types`; supported is: full_attention"
        )),
        None => Ok(()),
    }
}

fn described(config: &ModelConfig, stored: &StoredTensors<'_>) -> Result<Dense> {
    let attention_bias = config.flag("attention_bias", false)?;
    Ok(Dense {
        class: "LlamaForCausalLM",
        qkv_bias: attention_bias,
        head_norms: false,
        o_bias: attention_bias,
        mlp_bias: config.flag("mlp_bias", false)?,
        windows: Windows::None,
        f32_inputs: dense::f32_inputs(config, stored)?,
    })
}
