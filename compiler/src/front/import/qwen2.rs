//! `Qwen2ForCausalLM` (Qwen 2 and 2.5): biases of q, k and v, and windows in the later layers if
//! `use_sliding_window` says so.

use super::config::{ModelConfig, unsupported};
use super::dense::{self, Dense, Windows, sliding_layers};
use super::rope::rope;
use super::stored::StoredTensors;
use super::{Architecture, Result};
use serde_json::json;

pub(super) fn architecture() -> Architecture {
    Architecture {
        class: "Qwen2ForCausalLM",
        aliases: &[],
        model_type: "qwen2",
        keys: &["sliding_window", "use_sliding_window", "max_window_layers"],
        defaults: json!({
            "vocab_size": 151936, "hidden_size": 4096, "intermediate_size": 22016, "num_hidden_layers": 32,
            "num_attention_heads": 32, "num_key_value_heads": 32, "hidden_act": "silu",
                "max_position_embeddings": 32768,
            "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "sliding_window": 4096, "max_window_layers": 28,
        }),
        spec,
    }
}

fn spec(name: &str, config: &ModelConfig, stored: &StoredTensors<'_>) -> Result<String> {
    let dense = described(config, stored)?;
    dense::write(name, config, &dense::tensors(config, stored, &dense)?, &dense)
}

fn described(config: &ModelConfig, stored: &StoredTensors<'_>) -> Result<Dense> {
    Ok(Dense {
        class: "Qwen2ForCausalLM",
        qkv_bias: true,
        head_norms: false,
        o_bias: false,
        mlp_bias: false,
        windows: windows(config)?,
        f32_inputs: dense::f32_inputs(config, stored)?,
    })
}

/// Windows in the layers behind `max_window_layers`, or in those that `layer_types` names, if
/// `use_sliding_window` says so.
pub(super) fn windows(config: &ModelConfig) -> Result<Windows> {
    let layers = config.require_whole(&["num_hidden_layers"])?;
    let tokens = match config.flag("use_sliding_window", false)? {
        true => config.whole(&["sliding_window"])?,
        false => None,
    };
    let types = sliding_layers(config, layers)?;
    let Some(tokens) = tokens else {
        if types.is_some_and(|slides| slides.contains(&true)) {
            return unsupported("`layer_types` with sliding_attention, but `use_sliding_window` is not true");
        }
        return Ok(Windows::None);
    };
    let slides = match types {
        Some(slides) => slides,
        None => {
            // The first ones attend to all tokens; 0 of them is a number, too.
            let full = config.count("max_window_layers")?.unwrap_or(0);
            (0..layers).map(|layer| layer >= full).collect()
        }
    };
    Ok(Windows::new(slides, tokens, rope(config)?.max_context(config)?))
}
