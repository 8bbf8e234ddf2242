//! `MistralForCausalLM`: no biases, and one window for all layers, or none.

use super::config::ModelConfig;
use super::dense::{self, Dense, Windows};
use super::llama::no_windows;
use super::rope::rope;
use super::stored::StoredTensors;
use super::{Architecture, Result};
use serde_json::json;

pub(super) fn architecture() -> Architecture {
    Architecture {
        class: "MistralForCausalLM",
        aliases: &[],
        model_type: "mistral",
        keys: &["sliding_window"],
        defaults: json!({
            "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
            "num_attention_heads": 32, "num_key_value_heads": 8, "hidden_act": "silu",
                "max_position_embeddings": 131072,
            "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "sliding_window": 4096,
        }),
        spec,
    }
}

fn spec(name: &str, config: &ModelConfig, stored: &StoredTensors<'_>) -> Result<String> {
    no_windows(config, "MistralForCausalLM")?;
    let max_context = rope(config)?.max_context(config)?;
    let windows = match config.whole(&["sliding_window"])? {
        Some(tokens) => Windows::new(vec![true], tokens, max_context),
        None => Windows::None,
    };
    let dense = Dense {
        class: "MistralForCausalLM",
        qkv_bias: false,
        head_norms: false,
        o_bias: false,
        mlp_bias: false,
        windows,
        f32_inputs: dense::f32_inputs(config, stored)?,
    };
    dense::write(name, config, &dense::tensors(config, stored, &dense)?, &dense)
}
