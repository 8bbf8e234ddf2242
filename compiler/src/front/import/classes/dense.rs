//! Dense decoders: Llama, and those that differ from it in biases, norms, windows and RoPE.

use super::super::config::{ModelConfig, bad, unsupported};
use super::super::decoder::{DecoderModel, HeadNorms, NormPlaces, Windows, sliding_layers};
use super::super::error::Result;
use super::super::rope::Ropes;
use super::class::{DescribedModel, ModelClass};
use serde_json::json;

/// Keys about windows.
const WINDOWS: &[&str] = &["sliding_window", "use_sliding_window", "max_window_layers"];

pub(super) static CLASSES: &[ModelClass] = &[
    ModelClass {
        name: "LlamaForCausalLM",
        aliases: &["LLaMAForCausalLM"],
        model_type: "llama",
        // The class has no windows, and reads none of the keys about them.
        keys: &["attention_bias", "mlp_bias", "sliding_window", "use_sliding_window", "max_window_layers"],
        defaults: || {
            json!({
                "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
                "num_attention_heads": 32, "max_position_embeddings": 2048, "rms_norm_eps": 1e-6,
                "rope_theta": 10000.0,
            })
        },
        names: &[],
        decoder: llama,
    },
    ModelClass {
        name: "MistralForCausalLM",
        aliases: &[],
        model_type: "mistral",
        keys: &["sliding_window"],
        defaults: || {
            json!({
                "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
                "num_attention_heads": 32, "num_key_value_heads": 8, "max_position_embeddings": 131072,
                "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "sliding_window": 4096,
            })
        },
        names: &[],
        decoder: mistral,
    },
    ModelClass {
        name: "Ministral3ForCausalLM",
        aliases: &[],
        model_type: "ministral3",
        keys: &["sliding_window"],
        defaults: || {
            json!({
                "vocab_size": 131072, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 34,
                "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
                "max_position_embeddings": 262144, "rms_norm_eps": 1e-5,
                "rope_parameters": {
                    "rope_type": "yarn", "rope_theta": 1e6, "factor": 16.0, "beta_fast": 32.0, "beta_slow": 1.0,
                    "original_max_position_embeddings": 16384, "mscale": 1.0, "mscale_all_dim": 1.0,
                    "llama_4_scaling_beta": 0.1,
                },
            })
        },
        names: &[],
        decoder: mistral,
    },
    ModelClass {
        name: "Qwen2ForCausalLM",
        aliases: &[],
        model_type: "qwen2",
        keys: WINDOWS,
        defaults: || {
            json!({
                "vocab_size": 151936, "hidden_size": 4096, "intermediate_size": 22016, "num_hidden_layers": 32,
                "num_attention_heads": 32, "num_key_value_heads": 32, "max_position_embeddings": 32768,
                "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "sliding_window": 4096, "max_window_layers": 28,
            })
        },
        names: &[],
        decoder: qwen2,
    },
    ModelClass {
        name: "Qwen3ForCausalLM",
        aliases: &["Qwen3Model"],
        model_type: "qwen3",
        keys: &["attention_bias", "sliding_window", "use_sliding_window", "max_window_layers"],
        defaults: || {
            json!({
                "vocab_size": 151936, "hidden_size": 4096, "intermediate_size": 22016, "num_hidden_layers": 32,
                "num_attention_heads": 32, "num_key_value_heads": 32, "head_dim": 128,
                "max_position_embeddings": 32768, "rms_norm_eps": 1e-6, "rope_theta": 10000.0,
                "sliding_window": 4096, "max_window_layers": 28,
            })
        },
        names: &[],
        decoder: qwen3,
    },
    ModelClass {
        name: "SmolLM3ForCausalLM",
        aliases: &[],
        model_type: "smollm3",
        keys: &[
            "attention_bias",
            "mlp_bias",
            "no_rope_layers",
            "no_rope_layer_interval",
            "sliding_window",
            "use_sliding_window",
            "max_window_layers",
        ],
        defaults: || {
            json!({
                "vocab_size": 128256, "hidden_size": 2048, "intermediate_size": 11008, "num_hidden_layers": 36,
                "num_attention_heads": 16, "num_key_value_heads": 4, "max_position_embeddings": 32768,
                "rms_norm_eps": 1e-6, "rope_theta": 2e6, "tie_word_embeddings": true,
                "no_rope_layer_interval": 4,
            })
        },
        names: &[],
        decoder: smollm3,
    },
    ModelClass {
        name: "Olmo2ForCausalLM",
        aliases: &[],
        model_type: "olmo2",
        keys: &["attention_bias"],
        defaults: || {
            json!({
                "vocab_size": 50304, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
                "num_attention_heads": 32, "max_position_embeddings": 2048, "rms_norm_eps": 1e-5,
                "rope_theta": 10000.0,
            })
        },
        names: &[],
        decoder: olmo2,
    },
    ModelClass {
        name: "Olmo3ForCausalLM",
        aliases: &[],
        model_type: "olmo3",
        keys: &["attention_bias", "sliding_window"],
        defaults: || {
            json!({
                "vocab_size": 50304, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
                "num_attention_heads": 32, "max_position_embeddings": 2048, "rms_norm_eps": 1e-5,
                "rope_theta": 500000.0, "sliding_window": 4096,
            })
        },
        names: &[],
        decoder: olmo3,
    },
    ModelClass {
        name: "GraniteForCausalLM",
        aliases: &[],
        model_type: "granite",
        keys: &[
            "attention_bias",
            "mlp_bias",
            "embedding_multiplier",
            "residual_multiplier",
            "attention_multiplier",
            "logits_scaling",
        ],
        defaults: || {
            json!({
                "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
                "num_attention_heads": 32, "max_position_embeddings": 2048, "rms_norm_eps": 1e-6,
                "rope_theta": 10000.0,
            })
        },
        names: &[],
        decoder: granite,
    },
    ModelClass {
        name: "SeedOssForCausalLM",
        aliases: &[],
        model_type: "seed_oss",
        keys: &["attention_bias", "attention_out_bias", "mlp_bias", "residual_dropout"],
        defaults: || {
            json!({
                "vocab_size": 155136, "hidden_size": 4096, "intermediate_size": 27648, "num_hidden_layers": 64,
                "num_attention_heads": 80, "num_key_value_heads": 8, "head_dim": 128,
                "max_position_embeddings": 524288, "rms_norm_eps": 1e-6, "rope_theta": 10000.0,
            })
        },
        names: &[],
        decoder: seed_oss,
    },
    ModelClass {
        name: "Phi3ForCausalLM",
        aliases: &[],
        model_type: "phi3",
        keys: &["sliding_window", "attention_bias"],
        defaults: || {
            json!({
                "vocab_size": 32064, "hidden_size": 3072, "intermediate_size": 8192, "num_hidden_layers": 32,
                "num_attention_heads": 32, "max_position_embeddings": 4096,
                "original_max_position_embeddings": 4096, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
            })
        },
        names: &[],
        decoder: phi3,
    },
    ModelClass {
        name: "Glm4ForCausalLM",
        aliases: &[],
        model_type: "glm4",
        keys: &["attention_bias"],
        defaults: || {
            json!({
                "vocab_size": 151552, "hidden_size": 4096, "intermediate_size": 13696, "num_hidden_layers": 40,
                "num_attention_heads": 32, "num_key_value_heads": 2, "head_dim": 128,
                "max_position_embeddings": 131072, "rms_norm_eps": 1.5625e-7, "rope_theta": 10000.0,
                "partial_rotary_factor": 0.5, "attention_bias": true,
            })
        },
        names: &[("attn_post_norm", "post_self_attn_layernorm"), ("mlp_post_norm", "post_mlp_layernorm")],
        decoder: glm4,
    },
];

/// Attention to all tokens, biases as the config says.
fn llama(model: &DescribedModel<'_>) -> Result<DecoderModel> {
    model.no_windows()?;
    biased(model)
}

/// A decoder with biases by the usual keys.
fn biased(model: &DescribedModel<'_>) -> Result<DecoderModel> {
    let attention = model.config.flag("attention_bias", false)?;
    let mlp_bias = model.config.flag("mlp_bias", false)?;
    Ok(DecoderModel { qkv_bias: attention, o_bias: attention, mlp_bias, ..model.plain()? })
}

/// No biases, and one window for all layers, or none.
fn mistral(model: &DescribedModel<'_>) -> Result<DecoderModel> {
    model.no_windows()?;
    let decoder = model.plain()?;
    let windows = match model.config.whole(&["sliding_window"])? {
        Some(tokens) => Windows::new(vec![true], tokens, decoder.ropes.max_context(model.config)?),
        None => Windows::None,
    };
    Ok(DecoderModel { windows, ..decoder })
}

/// Biases of q, k and v, and windows in the later layers if `use_sliding_window` says so.
fn qwen2(model: &DescribedModel<'_>) -> Result<DecoderModel> {
    let decoder = model.plain()?;
    Ok(DecoderModel { qkv_bias: true, windows: qwen_windows(model, &decoder)?, ..decoder })
}

/// Norms of each head of q and k before RoPE, and windows as in Qwen 2.
fn qwen3(model: &DescribedModel<'_>) -> Result<DecoderModel> {
    let decoder = biased(model)?;
    Ok(DecoderModel { head_norms: HeadNorms::Heads, windows: qwen_windows(model, &decoder)?, ..decoder })
}

/// Windows in the layers behind `max_window_layers`, or in those that `layer_types` names, if
/// `use_sliding_window` says so.
pub(super) fn qwen_windows(model: &DescribedModel<'_>, decoder: &DecoderModel) -> Result<Windows> {
    let config = model.config;
    // The first layers attend to all tokens; 0 of them is a number, too.
    let full = config.count("max_window_layers")?.unwrap_or(0);
    if config.flag("use_sliding_window", false)? {
        return model.windows(decoder, |layer| layer >= full);
    }
    if sliding_layers(config)?.is_some_and(|slides| slides.contains(&true)) {
        return unsupported("`layer_types` with sliding_attention, but `use_sliding_window` is not true");
    }
    Ok(Windows::None)
}

/// No RoPE in every fourth layer, or in those that `no_rope_layers` names by 0.
fn smollm3(model: &DescribedModel<'_>) -> Result<DecoderModel> {
    let (config, layers) = (model.config, model.layers()?);
    let interval = config.require_whole(&["no_rope_layer_interval"])?;
    let has_rope = match config.flags("no_rope_layers")? {
        Some(flags) if flags.len() as u64 == layers => flags,
        Some(flags) => {
            return bad(format!("`no_rope_layers` has {} entries for {layers} layers", flags.len()));
        }
        None => (1..=layers).map(|layer| !layer.is_multiple_of(interval)).collect(),
    };
    let decoder = biased(model)?;
    let windows = match config.flag("use_sliding_window", false)? {
        true => model.windows(&decoder, |layer| !has_rope[layer as usize])?,
        false => Windows::None,
    };
    Ok(DecoderModel { windows, ropes: decoder.ropes.only_in(&has_rope), ..decoder })
}

/// Norms behind attention and MLP and none before, and norms of q and k over all heads.
fn olmo2(model: &DescribedModel<'_>) -> Result<DecoderModel> {
    Ok(DecoderModel { norms: NormPlaces::After, head_norms: HeadNorms::Rows, ..biased(model)? })
}

/// As Olmo 2, with windows in three of four layers, which have no scaling of RoPE.
fn olmo3(model: &DescribedModel<'_>) -> Result<DecoderModel> {
    let slides = model.slides(|layer| !(layer + 1).is_multiple_of(4))?;
    let attention = model.config.flag("attention_bias", false)?;
    let decoder = model.with_ropes(Ropes::by_kind(model.config, &slides)?)?;
    Ok(DecoderModel {
        qkv_bias: attention,
        o_bias: attention,
        norms: NormPlaces::After,
        head_norms: HeadNorms::Rows,
        windows: model.windows(&decoder, |layer| slides[layer as usize])?,
        ..decoder
    })
}

/// Factors on embeddings, attention, what is added to the residual stream, and logits.
fn granite(model: &DescribedModel<'_>) -> Result<DecoderModel> {
    with_factors(model.config, biased(model)?)
}

/// The decoder with Granite's four factors.
pub(super) fn with_factors(config: &ModelConfig, decoder: DecoderModel) -> Result<DecoderModel> {
    let factor = |key: &str| Ok(config.positive(key)?.filter(|&factor| factor != 1.0));
    let logits = factor("logits_scaling")?.map(|scale| format!("logits / {scale:?}"));
    Ok(DecoderModel {
        embed_scale: factor("embedding_multiplier")?,
        residual_scale: factor("residual_multiplier")?,
        // A missing factor is 1 here, not the root of the head's size.
        scale: Some(config.positive("attention_multiplier")?.unwrap_or(1.0)),
        logits,
        ..decoder
    })
}

/// Biases of q, k and v; one of o by a key of its own.
fn seed_oss(model: &DescribedModel<'_>) -> Result<DecoderModel> {
    let config = model.config;
    Ok(DecoderModel {
        qkv_bias: config.flag("attention_bias", true)?,
        o_bias: config.flag("attention_out_bias", false)?,
        mlp_bias: config.flag("mlp_bias", false)?,
        ..model.plain()?
    })
}

/// One tensor for q, k and v, and one for gate and up.
fn phi3(model: &DescribedModel<'_>) -> Result<DecoderModel> {
    if model.config.flag("attention_bias", false)? {
        return unsupported("`attention_bias` in a Phi3ForCausalLM, whose code has no biases");
    }
    Ok(DecoderModel { joined_qkv: true, joined_gate_up: true, ..mistral(model)? })
}

/// Norms around attention and MLP, one tensor for gate and up, and RoPE of neighbouring elements in half of
/// each head.
fn glm4(model: &DescribedModel<'_>) -> Result<DecoderModel> {
    let decoder = model.plain()?;
    Ok(DecoderModel {
        qkv_bias: model.config.flag("attention_bias", true)?,
        norms: NormPlaces::Around,
        joined_gate_up: true,
        ropes: decoder.ropes.of_neighbours(),
        ..decoder
    })
}
