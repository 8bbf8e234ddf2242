//! Mixtures of experts.

use super::super::config::{ModelConfig, bad, unsupported};
use super::super::decoder::{DecoderModel, ExpertTensors, HeadNorms, Mixture, Windows};
use super::super::error::Result;
use super::super::stored::StoredTensors;
use super::class::{DescribedModel, ModelClass};
use super::dense::{qwen_windows, with_factors};
use serde_json::json;

/// Factor in the activation of GPT-OSS's experts, unless `swiglu_alpha` says another.
const SIGMOID_FACTOR: f64 = 1.702;

/// The sum of the weights of chosen experts is above this, however small they are.
const SMALLEST_SUM: f64 = 1e-9;

pub(super) static CLASSES: &[ModelClass] = &[
    ModelClass {
        name: "GptOssForCausalLM",
        aliases: &[],
        model_type: "gpt_oss",
        keys: &[
            "attention_bias",
            "num_local_experts",
            "num_experts",
            "num_experts_per_tok",
            "experts_per_token",
            "sliding_window",
            "swiglu_limit",
            "swiglu_alpha",
            "initial_context_length",
            "quantization_config",
        ],
        defaults: || {
            json!({
                "vocab_size": 201088, "hidden_size": 2880, "intermediate_size": 2880, "num_hidden_layers": 36,
                "head_dim": 64, "num_attention_heads": 64, "num_key_value_heads": 8, "num_local_experts": 128,
                "num_experts_per_tok": 4, "sliding_window": 128, "max_position_embeddings": 131072,
                "rms_norm_eps": 1e-5, "rope_theta": 150000.0,
                "rope_parameters": {
                    "rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": false,
                    "original_max_position_embeddings": 4096,
                },
            })
        },
        names: &[
            ("router", "mlp.router"),
            ("experts_gate_up", "mlp.experts.gate_up_proj!"),
            ("experts_down", "mlp.experts.down_proj!"),
        ],
        decoder: gpt_oss,
    },
    ModelClass {
        name: "MixtralForCausalLM",
        aliases: &[],
        model_type: "mixtral",
        keys: &["sliding_window", "num_local_experts", "num_experts_per_tok"],
        defaults: || {
            json!({
                "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
                "num_attention_heads": 32, "num_key_value_heads": 8, "max_position_embeddings": 131072,
                "rms_norm_eps": 1e-5, "rope_theta": 1e6, "num_local_experts": 8, "num_experts_per_tok": 2,
            })
        },
        names: &[
            ("router", "block_sparse_moe.gate"),
            ("experts_gate", "block_sparse_moe.experts.{expert}.w1"),
            ("experts_up", "block_sparse_moe.experts.{expert}.w3"),
            ("experts_down", "block_sparse_moe.experts.{expert}.w2"),
        ],
        decoder: mixtral,
    },
    ModelClass {
        name: "Qwen2MoeForCausalLM",
        aliases: &[],
        model_type: "qwen2_moe",
        keys: &[
            "qkv_bias",
            "num_experts",
            "num_local_experts",
            "num_experts_per_tok",
            "moe_intermediate_size",
            "shared_expert_intermediate_size",
            "norm_topk_prob",
            "decoder_sparse_step",
            "mlp_only_layers",
            "sliding_window",
            "use_sliding_window",
            "max_window_layers",
        ],
        defaults: || {
            json!({
                "vocab_size": 151936, "hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 24,
                "num_attention_heads": 16, "num_key_value_heads": 16, "max_position_embeddings": 32768,
                "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "num_experts": 60, "num_experts_per_tok": 4,
                "moe_intermediate_size": 1408, "shared_expert_intermediate_size": 5632,
                "sliding_window": 4096, "max_window_layers": 28, "qkv_bias": true,
            })
        },
        names: &[],
        decoder: qwen2_moe,
    },
    ModelClass {
        name: "Qwen3MoeForCausalLM",
        aliases: &[],
        model_type: "qwen3_moe",
        keys: &[
            "attention_bias",
            "num_experts",
            "num_local_experts",
            "num_experts_per_tok",
            "moe_intermediate_size",
            "norm_topk_prob",
            "decoder_sparse_step",
            "mlp_only_layers",
            "sliding_window",
            "use_sliding_window",
            "max_window_layers",
        ],
        defaults: || {
            json!({
                "vocab_size": 151936, "hidden_size": 2048, "intermediate_size": 6144, "num_hidden_layers": 24,
                "num_attention_heads": 32, "num_key_value_heads": 4, "max_position_embeddings": 32768,
                "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "num_experts": 128, "num_experts_per_tok": 8,
                "moe_intermediate_size": 768, "sliding_window": 4096,
            })
        },
        names: &[],
        decoder: qwen3_moe,
    },
    ModelClass {
        name: "OlmoeForCausalLM",
        aliases: &[],
        model_type: "olmoe",
        keys: &[
            "attention_bias",
            "num_experts",
            "num_local_experts",
            "num_experts_per_tok",
            "norm_topk_prob",
        ],
        defaults: || {
            json!({
                "vocab_size": 50304, "hidden_size": 2048, "intermediate_size": 2048, "num_hidden_layers": 16,
                "num_attention_heads": 16, "max_position_embeddings": 4096, "rms_norm_eps": 1e-5,
                "rope_theta": 10000.0, "num_experts": 64, "num_experts_per_tok": 8,
            })
        },
        names: &[],
        decoder: olmoe,
    },
    ModelClass {
        name: "GraniteMoeForCausalLM",
        aliases: &[],
        model_type: "granitemoe",
        keys: &[
            "attention_bias",
            "num_local_experts",
            "num_experts_per_tok",
            "embedding_multiplier",
            "residual_multiplier",
            "attention_multiplier",
            "logits_scaling",
        ],
        defaults: || {
            json!({
                "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
                "num_attention_heads": 32, "max_position_embeddings": 2048, "rms_norm_eps": 1e-6,
                "rope_theta": 10000.0, "num_local_experts": 8, "num_experts_per_tok": 2,
            })
        },
        names: &[
            ("router", "block_sparse_moe.router.layer"),
            ("experts_gate_up", "block_sparse_moe.input_linear"),
            ("experts_down", "block_sparse_moe.output_linear"),
        ],
        decoder: granite_moe,
    },
    ModelClass {
        name: "Glm4MoeForCausalLM",
        aliases: &[],
        model_type: "glm4_moe",
        keys: &[
            "attention_bias",
            "use_qk_norm",
            "n_routed_experts",
            "n_shared_experts",
            "num_experts_per_tok",
            "moe_intermediate_size",
            "norm_topk_prob",
            "routed_scaling_factor",
            "n_group",
            "topk_group",
            "first_k_dense_replace",
            "num_nextn_predict_layers",
        ],
        defaults: || {
            json!({
                "vocab_size": 151552, "hidden_size": 4096, "intermediate_size": 10944, "num_hidden_layers": 46,
                "num_attention_heads": 96, "num_key_value_heads": 8, "max_position_embeddings": 131072,
                "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "partial_rotary_factor": 0.5,
                "n_routed_experts": 128, "n_shared_experts": 1, "num_experts_per_tok": 8,
                "moe_intermediate_size": 1408, "first_k_dense_replace": 1,
            })
        },
        names: &[
            ("shared_gate", "mlp.shared_experts.gate_proj"),
            ("shared_up", "mlp.shared_experts.up_proj"),
            ("shared_down", "mlp.shared_experts.down_proj"),
        ],
        decoder: glm4_moe,
    },
    ModelClass {
        name: "Ernie4_5_MoeForCausalLM",
        aliases: &["Ernie4_5_MoEForCausalLM"],
        model_type: "ernie4_5_moe",
        keys: &[
            "use_bias",
            "moe_num_experts",
            "moe_k",
            "moe_intermediate_size",
            "moe_num_shared_experts",
            "moe_layer_start_index",
            "moe_layer_end_index",
            "moe_layer_interval",
            "moe_norm_min",
        ],
        defaults: || {
            json!({
                "vocab_size": 103424, "hidden_size": 2560, "intermediate_size": 12288, "num_hidden_layers": 28,
                "num_attention_heads": 20, "num_key_value_heads": 4, "max_position_embeddings": 131072,
                "rms_norm_eps": 1e-5, "rope_theta": 500000.0, "tie_word_embeddings": true,
                "moe_num_experts": 64, "moe_k": 6, "moe_intermediate_size": 1536, "moe_num_shared_experts": 2,
                "moe_layer_start_index": 1, "moe_layer_interval": 1,
            })
        },
        names: &[
            ("choice_bias", "mlp.moe_statics.e_score_correction_bias!"),
            ("shared_gate", "mlp.shared_experts.gate_proj"),
            ("shared_up", "mlp.shared_experts.up_proj"),
            ("shared_down", "mlp.shared_experts.down_proj"),
        ],
        decoder: ernie_moe,
    },
];

/// Attention with sinks, windows in every other layer, and experts with biases and an activation of their
/// own.
fn gpt_oss(model: &DescribedModel<'_>) -> Result<DecoderModel> {
    let config = model.config;
    if !matches!(config.text("hidden_act")?, None | Some("silu" | "swish")) {
        return unsupported("`hidden_act` other than silu in a GptOssForCausalLM");
    }
    let limit = config.positive("swiglu_limit")?.unwrap_or(7.0) as f32;
    let alpha = config.positive("swiglu_alpha")?.unwrap_or(SIGMOID_FACTOR) as f32;
    let gate = format!("min(gate, {limit})");
    let bias = config.flag("attention_bias", true)?;
    let mixture = Mixture {
        biases: true,
        stored: match model.stored {
            Some(stored) => gpt_oss_experts(config, stored)?,
            None => ExpertTensors::Grouped,
        },
        ..mixture(config, "num_local_experts", "num_experts_per_tok", "intermediate_size")?
    };
    let decoder = model.plain()?;
    Ok(DecoderModel {
        qkv_bias: bias,
        o_bias: bias,
        sinks: true,
        windows: model.windows(&decoder, |layer| layer.is_multiple_of(2))?,
        activation: format!("(clamp(up, -{limit}, {limit}) + 1) * ({gate} * sigmoid({alpha} * {gate}))"),
        mixture: Some(mixture),
        ..decoder
    })
}

/// How the experts are stored: as the tensors' names say, or as `quantization_config` does where there are no
/// tensors.
fn gpt_oss_experts(config: &ModelConfig, stored: &StoredTensors<'_>) -> Result<ExpertTensors> {
    let method = match config.section("quantization_config")? {
        Some(section) => section.text("quant_method")?.map(str::to_owned),
        None => None,
    };
    match stored.has("model.layers.0.mlp.experts.gate_up_proj_blocks") {
        Some(true) => return Ok(ExpertTensors::Mxfp4),
        Some(false) if stored.has("model.layers.0.mlp.experts.gate_up_proj") == Some(true) => {
            return Ok(ExpertTensors::Transposed);
        }
        _ => {}
    }
    match method.as_deref() {
        Some("mxfp4") => Ok(ExpertTensors::Mxfp4),
        Some(other) => unsupported(format!("quantization `{other}`; supported is: mxfp4")),
        None => Ok(ExpertTensors::Transposed),
    }
}

/// Experts by the keys that hold their number, the number of those that a token takes, and their size.
fn mixture(config: &ModelConfig, experts: &str, top_k: &str, inner: &str) -> Result<Mixture> {
    Ok(Mixture {
        experts: config.whole_or_alias(experts)?,
        top_k: config.whole_or_alias(top_k)?,
        inner: config.require_whole(&[inner])?,
        ..Mixture::default()
    })
}

/// Weights that are shares among all experts, where `norm_topk_prob` does not make them sum to 1: softmax
/// among the chosen ones is the same where it does.
fn by_softmax(config: &ModelConfig) -> Result<String> {
    Ok(match config.flag("norm_topk_prob", false)? {
        true => String::new(),
        false => ", scores = \"softmax\"".to_owned(),
    })
}

/// Layers that have an MLP in place of experts, by `keys`, which must leave some with experts.
fn dense_layers(model: &DescribedModel<'_>, keys: &str, dense: impl Fn(u64) -> bool) -> Result<Vec<bool>> {
    let layers: Vec<bool> = (0..model.layers()?).map(dense).collect();
    match layers.contains(&false) {
        true => Ok(layers),
        false => bad(format!("{keys} leave no layer with experts")),
    }
}

/// The kind of file decides about the experts' tensors.
fn stored_as(model: &DescribedModel<'_>, published: ExpertTensors) -> ExpertTensors {
    if model.stored.is_some() { published } else { ExpertTensors::Grouped }
}

fn mixtral(model: &DescribedModel<'_>) -> Result<DecoderModel> {
    model.no_windows()?;
    let decoder = model.plain()?;
    let windows = match model.config.whole(&["sliding_window"])? {
        Some(tokens) => Windows::new(vec![true], tokens, decoder.ropes.max_context(model.config)?),
        None => Windows::None,
    };
    let mixture = Mixture {
        stored: stored_as(model, ExpertTensors::Each),
        ..mixture(model.config, "num_local_experts", "num_experts_per_tok", "intermediate_size")?
    };
    Ok(DecoderModel { windows, mixture: Some(mixture), ..decoder })
}

/// An MLP in place of experts in the layers that `mlp_only_layers` and `decoder_sparse_step` name.
fn qwen_experts(model: &DescribedModel<'_>) -> Result<Mixture> {
    let config = model.config;
    let only = config.indices("mlp_only_layers")?;
    let step = config.whole(&["decoder_sparse_step"])?.unwrap_or(1);
    let dense = |layer: u64| only.contains(&layer) || !(layer + 1).is_multiple_of(step);
    Ok(Mixture {
        route: by_softmax(config)?,
        dense: dense_layers(model, "`mlp_only_layers` and `decoder_sparse_step`", dense)?,
        stored: stored_as(model, ExpertTensors::Each),
        ..mixture(config, "num_experts", "num_experts_per_tok", "moe_intermediate_size")?
    })
}

fn qwen2_moe(model: &DescribedModel<'_>) -> Result<DecoderModel> {
    let config = model.config;
    let decoder = model.plain()?;
    let shared = config.require_whole(&["shared_expert_intermediate_size"])?;
    Ok(DecoderModel {
        qkv_bias: config.flag("qkv_bias", true)?,
        windows: qwen_windows(model, &decoder)?,
        mixture: Some(Mixture { shared: Some((shared, true)), ..qwen_experts(model)? }),
        ..decoder
    })
}

fn qwen3_moe(model: &DescribedModel<'_>) -> Result<DecoderModel> {
    let bias = model.config.flag("attention_bias", false)?;
    let decoder = model.plain()?;
    Ok(DecoderModel {
        qkv_bias: bias,
        o_bias: bias,
        head_norms: HeadNorms::Heads,
        windows: qwen_windows(model, &decoder)?,
        mixture: Some(qwen_experts(model)?),
        ..decoder
    })
}

/// Norms of q and k over all heads.
fn olmoe(model: &DescribedModel<'_>) -> Result<DecoderModel> {
    let bias = model.config.flag("attention_bias", false)?;
    let mixture = Mixture {
        route: by_softmax(model.config)?,
        stored: stored_as(model, ExpertTensors::Each),
        ..mixture(model.config, "num_experts", "num_experts_per_tok", "intermediate_size")?
    };
    Ok(DecoderModel {
        qkv_bias: bias,
        o_bias: bias,
        head_norms: HeadNorms::Rows,
        mixture: Some(mixture),
        ..model.plain()?
    })
}

/// Granite's factors.
fn granite_moe(model: &DescribedModel<'_>) -> Result<DecoderModel> {
    let bias = model.config.flag("attention_bias", false)?;
    let mixture = Mixture {
        stored: stored_as(model, ExpertTensors::Halves),
        ..mixture(model.config, "num_local_experts", "num_experts_per_tok", "intermediate_size")?
    };
    let decoder = DecoderModel { qkv_bias: bias, o_bias: bias, mixture: Some(mixture), ..model.plain()? };
    with_factors(model.config, decoder)
}

/// Experts by their sigmoid and a bias, beside an MLP that every token passes; plain MLPs in the first
/// layers; RoPE in half of each head.
fn glm4_moe(model: &DescribedModel<'_>) -> Result<DecoderModel> {
    let config = model.config;
    let (first, layers) = (config.count("first_k_dense_replace")?.unwrap_or(0), model.layers()?);
    if first > layers {
        return bad(format!("`first_k_dense_replace` is {first}: expected at most {layers}"));
    }
    let experts = mixture(config, "n_routed_experts", "num_experts_per_tok", "moe_intermediate_size")?;
    let shared = config.count("n_shared_experts")?.unwrap_or(0) * experts.inner;
    let scale = config.positive("routed_scaling_factor")?.filter(|&scale| scale != 1.0);
    let mut route = ", scores = \"sigmoid\"".to_owned();
    if config.flag("norm_topk_prob", true)? {
        route.push_str(", normalise = true");
    }
    route.push_str(&scale.map(|scale| format!(", scale = {scale:?}")).unwrap_or_default());
    route.push_str(&groups(config, &experts)?);
    let mixture = Mixture {
        route,
        choice_bias: true,
        shared: (shared > 0).then_some((shared, false)),
        dense: dense_layers(model, "`first_k_dense_replace` and `num_hidden_layers`", |layer| layer < first)?,
        stored: stored_as(model, ExpertTensors::Each),
        ..experts
    };
    Ok(DecoderModel {
        qkv_bias: config.flag("attention_bias", false)?,
        head_norms: if config.flag("use_qk_norm", false)? { HeadNorms::Heads } else { HeadNorms::None },
        mixture: Some(mixture),
        further_layers: config.count("num_nextn_predict_layers")?.unwrap_or(0),
        ..model.plain()?
    })
}

/// Groups of experts, where experts are chosen from the best groups only.
fn groups(config: &ModelConfig, mixture: &Mixture) -> Result<String> {
    let count = config.whole(&["n_group"])?.unwrap_or(1);
    let taken = config.whole(&["topk_group"])?.unwrap_or(1);
    if taken > count {
        return bad(format!("`topk_group` is {taken}: expected at most `n_group`, which is {count}"));
    }
    if !mixture.experts.is_multiple_of(count) || mixture.experts < 2 * count {
        let experts = mixture.experts;
        return bad(format!(
            "`n_group` is {count}: `n_routed_experts`, {experts}, is not so many groups of 2 or more"
        ));
    }
    Ok(match taken == count {
        true => String::new(),
        false => format!(", groups = {count}, top_groups = {taken}"),
    })
}

/// Experts by softmax with a bias for the choice, beside shared ones; RoPE of neighbouring elements.
fn ernie_moe(model: &DescribedModel<'_>) -> Result<DecoderModel> {
    let (config, layers) = (model.config, model.layers()?);
    let bias = config.flag("use_bias", false)?;
    if bias {
        return unsupported("`use_bias` in an Ernie4_5_MoeForCausalLM");
    }
    let start = config.count("moe_layer_start_index")?.unwrap_or(0);
    let end = match config.whole_number("moe_layer_end_index")? {
        None | Some(-1) => layers as i64 - 1,
        Some(end) => end,
    };
    let interval = config.whole(&["moe_layer_interval"])?.unwrap_or(1);
    let dense = |layer: u64| !(layer + 1).is_multiple_of(interval) || layer < start || layer as i64 > end;
    let keys = "`moe_layer_start_index`, `moe_layer_end_index` and `moe_layer_interval`";
    if config.positive("moe_norm_min")?.is_some_and(|least| least > SMALLEST_SUM) {
        return unsupported(format!("`moe_norm_min` above {SMALLEST_SUM:?}, the least sum of weights"));
    }
    let experts = mixture(config, "moe_num_experts", "moe_k", "moe_intermediate_size")?;
    let shared = config.count("moe_num_shared_experts")?.unwrap_or(0) * experts.inner;
    let mixture = Mixture {
        route: ", scores = \"softmax\", normalise = true".into(),
        choice_bias: true,
        shared: (shared > 0).then_some((shared, false)),
        dense: dense_layers(model, keys, dense)?,
        stored: stored_as(model, ExpertTensors::Each),
        ..experts
    };
    let decoder = model.plain()?;
    Ok(DecoderModel { mixture: Some(mixture), ropes: decoder.ropes.of_neighbours(), ..decoder })
}
