//! `Qwen3ForCausalLM` (Qwen 3): norms of each head of q and k before RoPE, biases as the config says, and
//! windows as in Qwen 2.

use super::config::ModelConfig;
use super::dense::{self, Dense};
use super::qwen2::windows;
use super::stored::StoredTensors;
use super::{Architecture, Result};
use serde_json::json;

pub(super) fn architecture() -> Architecture {
    Architecture {
        class: "Qwen3ForCausalLM",
        aliases: &[],
        model_type: "qwen3",
        keys: &["attention_bias", "sliding_window", "use_sliding_window", "max_window_layers"],
        defaults: json!({
            "vocab_size": 151936, "hidden_size": 4096, "intermediate_size": 22016, "num_hidden_layers": 32,
            "num_attention_heads": 32, "num_key_value_heads": 32, "head_dim": 128, "hidden_act": "silu",
            "max_position_embeddings": 32768, "rms_norm_eps": 1e-6, "rope_theta": 10000.0,
            "sliding_window": 4096, "max_window_layers": 28,
        }),
        spec,
    }
}

fn spec(name: &str, config: &ModelConfig, stored: &StoredTensors<'_>) -> Result<String> {
    let attention_bias = config.flag("attention_bias", false)?;
    let dense = Dense {
        class: "Qwen3ForCausalLM",
        qkv_bias: attention_bias,
        head_norms: true,
        o_bias: attention_bias,
        mlp_bias: false,
        windows: windows(config)?,
        f32_inputs: dense::f32_inputs(config, stored)?,
    };
    dense::write(name, config, &dense::tensors(config, stored, &dense)?, &dense)
}
