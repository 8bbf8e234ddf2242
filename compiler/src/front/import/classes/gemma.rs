//! Gemma's classes: norms around attention and MLP, whose weight is 1 + w, and embeddings that are scaled.

use super::super::config::unsupported;
use super::super::decoder::{DecoderModel, HeadNorms, NormPlaces};
use super::super::error::Result;
use super::super::rope::Ropes;
use super::super::tensors::OtherNames;
use super::class::{DescribedModel, ModelClass};
use serde_json::json;

const NAMES: OtherNames = &[("mlp_norm", "pre_feedforward_layernorm")];
const KEYS: &[&str] = &[
    "hidden_activation",
    "attention_bias",
    "query_pre_attn_scalar",
    "sliding_window",
    "sliding_window_pattern",
    "_sliding_window_pattern",
    "final_logit_softcapping",
    "attn_logit_softcapping",
    "rope_local_base_freq",
    "cache_implementation",
];

pub(super) static CLASSES: &[ModelClass] = &[
    ModelClass {
        name: "Gemma2ForCausalLM",
        aliases: &[],
        model_type: "gemma2",
        keys: KEYS,
        defaults: || {
            json!({
                "vocab_size": 256000, "hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26,
                "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256,
                "hidden_activation": "gelu_pytorch_tanh", "max_position_embeddings": 8192, "rms_norm_eps": 1e-6,
                "rope_theta": 10000.0, "tie_word_embeddings": true, "query_pre_attn_scalar": 256,
                "sliding_window": 4096, "final_logit_softcapping": 30.0, "attn_logit_softcapping": 50.0,
            })
        },
        names: NAMES,
        decoder: gemma2,
    },
    ModelClass {
        name: "Gemma3ForCausalLM",
        aliases: &["gemma3"],
        model_type: "gemma3_text",
        keys: KEYS,
        defaults: || {
            json!({
                "vocab_size": 262208, "hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26,
                "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256,
                "hidden_activation": "gelu_pytorch_tanh", "max_position_embeddings": 131072, "rms_norm_eps": 1e-6,
                "rope_theta": 1e6, "rope_local_base_freq": 10000.0, "tie_word_embeddings": true,
                "query_pre_attn_scalar": 256, "sliding_window": 4096, "sliding_window_pattern": 6,
            })
        },
        names: NAMES,
        decoder: gemma3,
    },
];

/// Caps on scores and logits, and windows in every other layer.
fn gemma2(model: &DescribedModel<'_>) -> Result<DecoderModel> {
    gemma(model, model.plain()?, |layer| layer.is_multiple_of(2))
}

/// Norms of heads, windows in five of six layers, which have a RoPE of their own.
fn gemma3(model: &DescribedModel<'_>) -> Result<DecoderModel> {
    let pattern = model.config.require_whole(&["sliding_window_pattern"])?;
    let slides = model.slides(|layer| !(layer + 1).is_multiple_of(pattern))?;
    let decoder = model.with_ropes(Ropes::by_kind(model.config, &slides)?)?;
    let decoder = gemma(model, decoder, |layer| slides[layer as usize])?;
    Ok(DecoderModel { head_norms: HeadNorms::Heads, ..decoder })
}

fn gemma(
    model: &DescribedModel<'_>,
    decoder: DecoderModel,
    slides: impl Fn(u64) -> bool,
) -> Result<DecoderModel> {
    let config = model.config;
    if config.flag("use_bidirectional_attention", false)? {
        return unsupported("`use_bidirectional_attention`: attention to tokens that follow");
    }
    let bias = config.flag("attention_bias", false)?;
    let cap = config.positive("final_logit_softcapping")?;
    Ok(DecoderModel {
        qkv_bias: bias,
        o_bias: bias,
        norms: NormPlaces::Around,
        plus_one: model.stored.is_some(),
        windows: model.windows(&decoder, slides)?,
        scale: Some(config.require_positive("query_pre_attn_scalar")?.powf(-0.5)),
        softcap: config.positive("attn_logit_softcapping")?,
        // The class rounds the root to the type of the embeddings; in f32 it is this.
        embed_scale: Some(f64::from((config.require_whole(&["hidden_size"])? as f32).sqrt())),
        logits: cap.map(|cap| format!("{cap:?} * tanh(logits / {cap:?})")),
        ..decoder
    })
}
