//! Which keys of a `config.json` are understood. A key that is not may change what the model computes, so it
//! is an error.

use super::config::{ModelConfig, brief, unsupported};
use super::error::Result;
use super::others;
use kernmill_checkpoint::quantised::{METHODS, Method, SECTIONS};
use kernmill_os::text::shortened;
use serde_json::Value;

/// Keys that every importer of a decoder reads.
pub(super) const READ: &[&str] = &[
    "architectures",
    "model_type",
    "torch_dtype",
    "dtype",
    "tie_word_embeddings",
    "vocab_size",
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "hidden_act",
    "max_position_embeddings",
    "original_max_position_embeddings",
    "rms_norm_eps",
    "rope_theta",
    "rope_scaling",
    "rope_parameters",
    "partial_rotary_factor",
    "layer_types",
];

/// Keys that do not change the logits of a model that is run on text. `*` at the end stands for any rest.
const HARMLESS: &[&str] = &[
    // Where the file comes from.
    "_name_or_path",
    "name_or_path",
    "_commit_hash",
    "transformers_version",
    "transformers.js_config",
    "auto_map",
    "unsloth_*",
    "_unsloth*",
    "axolotl*",
    "is_llama_config",
    "license",
    // How it is run.
    "_attn_*",
    "attn_implementation",
    "_experts_implementation*",
    "_flash*",
    "use_sdpa",
    "use_flash_attn*",
    "use_flash_attention*",
    "flash_attention",
    "use_cache",
    "gradient_checkpointing",
    "pretraining_tp",
    "tensor_parallel*",
    "base_model_tp_plan",
    "chunk_size_feed_forward",
    "output_attentions",
    "output_hidden_states",
    "output_router_logits",
    "output_scores",
    "return_dict*",
    "use_return_dict",
    "torchscript",
    "tf_legacy_loss",
    "use_bfloat16",
    // Training.
    "initializer_range",
    "initializer_factor",
    "init_std",
    "router_aux_loss_coef",
    "router_jitter_noise",
    "attention_dropout",
    "attention_probs_dropout_prob",
    "attn_dropout",
    "attn_pdrop",
    "embd_pdrop",
    "resid_pdrop",
    "resid_dropout",
    "hidden_dropout",
    "hidden_dropout_prob",
    "embedding_dropout",
    "dropout",
    "classifier_dropout",
    "neftune_noise_alpha",
    "z_loss*",
    // Tokens and tokenizer.
    "bos_token_id",
    "eos_token_id",
    "pad_token_id",
    "unk_token_id",
    "sep_token_id",
    "cls_token_id",
    "mask_token_id",
    "decoder_start_token_id",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "bos_token",
    "eos_token",
    "pad_token",
    "tokenizer_class",
    "model_max_length",
    "max_sequence_length",
    "seq_length",
    "max_seq_len",
    // Generation, which kernmill takes from its own options.
    "max_length",
    "min_length",
    "max_new_tokens",
    "do_sample",
    "temperature",
    "top_k",
    "top_p",
    "typical_p",
    "repetition_penalty",
    "length_penalty",
    "diversity_penalty",
    "num_beams",
    "num_beam_groups",
    "num_return_sequences",
    "no_repeat_ngram_size",
    "encoder_no_repeat_ngram_size",
    "bad_words_ids",
    "suppress_tokens",
    "begin_suppress_tokens",
    // Heads of other tasks.
    "id2label",
    "label2id",
    "num_labels",
    "problem_type",
    "finetuning_task",
    "task_specific_params",
    "prefix",
    "summary_*",
];

/// Keys of a model that reads images as well, outside of its model of text.
const OUTER: &[&str] = &[
    "text_config",
    "vision_config",
    "image_token_index",
    "image_token_id",
    "boi_token_index",
    "eoi_token_index",
    "mm_tokens_per_image",
    "projector_hidden_act",
    "multimodal_projector_bias",
    "spatial_merge_size",
    "vision_feature_layer",
];

/// Classes of models that read images as well, and hold a model of text in `text_config`.
const OUTER_CLASSES: [&str; 2] = ["Gemma3ForConditionalGeneration", "Mistral3ForConditionalGeneration"];

/// Keys with a value that changes nothing.
const NEUTRAL: [(&str, f64); 9] = [
    ("attention_multiplier", 1.0),
    ("embedding_multiplier", 1.0),
    ("residual_multiplier", 1.0),
    ("logits_scaling", 1.0),
    ("logit_scale", 1.0),
    ("lm_head_multiplier", 1.0),
    ("rotary_pct", 1.0),
    ("rope_percent", 1.0),
    ("rope_ratio", 1.0),
];

/// Keys of `rope_scaling` and `rope_parameters`; `finetuned` is a note.
const ROPE: [&str; 19] = [
    "rope_type",
    "type",
    "rope_theta",
    "factor",
    "partial_rotary_factor",
    "original_max_position_embeddings",
    "max_position_embeddings",
    "beta_fast",
    "beta_slow",
    "mscale",
    "mscale_all_dim",
    "attention_factor",
    "truncate",
    "low_freq_factor",
    "high_freq_factor",
    "finetuned",
    "short_factor",
    "long_factor",
    "llama_4_scaling_beta",
];

/// Whether `key` is `pattern`, or begins as a pattern that ends with `*`.
fn matches(pattern: &str, key: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => key.starts_with(start),
        None => pattern == key,
    }
}

/// Whether a value switches nothing on: null, false, an empty string, list or object.
fn is_off(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

fn is_neutral(key: &str, value: &Value) -> bool {
    NEUTRAL.iter().any(|(known, neutral)| *known == key && value.as_f64() == Some(*neutral))
}

/// An error unless every key of `config` is read by its importer, which reads `own` besides what all of its
/// kind `read`, or does not matter. `has_tensors` says whether there is a checkpoint.
pub(super) fn check(config: &ModelConfig, read: &[&str], own: &[&str], has_tensors: bool) -> Result<()> {
    let known = |key: &str| {
        let patterns = read.iter().chain(HARMLESS).chain(own).chain(&SECTIONS);
        patterns.copied().any(|pattern| matches(pattern, key))
    };
    quantised(config, own, has_tensors)?;
    for (key, value) in config.entries() {
        if !known(key) && !is_off(value) && !is_neutral(key, value) {
            return unknown(config, key, value);
        }
    }
    Ok(())
}

/// An error if the matrices are quantised in a way that is not read, or are not there to say how.
fn quantised(config: &ModelConfig, own: &[&str], has_tensors: bool) -> Result<()> {
    for key in SECTIONS {
        if !own.contains(&key)
            && let Some(section) = config.section(key)?
            && section.entries().next().is_some()
        {
            let method = section.text("quant_method").ok().flatten().unwrap_or("of another kind");
            return match Method::of(config.object()) {
                Ok(Some(_)) if has_tensors => Ok(()),
                Ok(Some(_)) => unsupported(format!(
                    "quantised matrices (`{key}`: {}) without their tensors, which say in which formats they \
                     are; give the model's directory",
                    shortened(method)
                )),
                Ok(None) => unsupported(format!(
                    "quantised matrices (`{key}`: {}); read are {METHODS}: use one of these, the model that they \
                     were made from, or a GGUF file of it",
                    shortened(method)
                )),
                Err(what) => unsupported(what),
            };
        }
    }
    Ok(())
}

/// An error unless every key beside a model of text is about images, or is known.
pub(super) fn check_outer(config: &ModelConfig) -> Result<()> {
    let stated = config.architecture()?;
    if !OUTER_CLASSES.contains(&stated) {
        return unsupported(others::refusal(stated));
    }
    let is_known = |key: &str| {
        [OUTER, READ, HARMLESS, &SECTIONS].iter().any(|list| list.iter().any(|p| matches(p, key)))
    };
    match config.entries().find(|(key, value)| !is_known(key) && !is_off(value)) {
        Some((key, value)) => unknown(config, key, value),
        None => Ok(()),
    }
}

/// An error unless every key of a section of RoPE parameters is known or switches nothing on.
pub(super) fn check_rope(section: &ModelConfig) -> Result<()> {
    match section.entries().find(|(key, value)| !ROPE.contains(&key.as_str()) && !is_off(value)) {
        Some((key, value)) => unknown(section, key, value),
        None => Ok(()),
    }
}

fn unknown(config: &ModelConfig, key: &str, value: &Value) -> Result<()> {
    unsupported(format!(
        "unknown key `{}` with value {}, which may change what the model computes; if it does not, remove it \
         from config.json",
        config.name(key),
        brief(value)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_text(text: &str) -> Result<()> {
        check(&ModelConfig::parse(text)?, READ, &["sliding_window"], true)
    }

    #[test]
    fn keys_that_trainers_and_tools_add_pass() {
        check_text(
            r#"{"architectures": ["X"], "_name_or_path": "a/b", "unsloth_fixed": true, "unsloth_version": "2025.1",
            "transformers_version": "4.57.0", "torch_dtype": "float16", "use_cache": false, "eos_token_id": [1, 2],
            "pretraining_tp": 1, "auto_map": {"AutoModel": "x.Y"}, "sliding_window": 4096, "is_llama_config": true,
            "rope_interleaved": false, "transformers.js_config": {"kv": 1}, "attention_dropout": 0.1, "id2label": {"0": "a"}}"#,
        )
        .unwrap();
    }

    #[test]
    fn unknown_keys_that_are_off_or_neutral_pass() {
        check_text(
            r#"{"x_norm": null, "alibi": false, "no_rope_layers": [], "window_note": "", "extra": {},
            "logit_scale": 1.0, "residual_multiplier": 1}"#,
        )
        .unwrap();
    }

    #[test]
    fn every_other_key_is_refused_by_name() {
        for (key, value) in [
            ("attention_multiplier", "0.0078125"),
            ("embedding_multiplier", "12.0"),
            ("residual_multiplier", "0.22"),
            ("logits_scaling", "8"),
            ("logit_scale", "0.0625"),
            ("final_logit_softcapping", "30.0"),
            ("attn_logit_softcapping", "50.0"),
            ("query_pre_attn_scalar", "256"),
            ("use_qk_norm", "true"),
            ("qk_layernorm", "true"),
            ("no_rope_layers", "[1, 1, 0]"),
            ("alibi", "true"),
            ("rope_interleaved", "true"),
            ("use_mrope", "true"),
            ("clip_qkv", "8.0"),
            ("num_local_experts", "8"),
            ("vision_config", "{\"hidden_size\": 1}"),
            ("a_key_of_tomorrow", "\"on\""),
        ] {
            let error = check_text(&format!("{{\"{key}\": {value}}}")).unwrap_err().to_string();
            let says = format!("unknown key `{key}` with value");
            assert!(error.contains(&says) && error.contains("remove it from config.json"), "{error}");
        }
    }

    #[test]
    fn quantised_matrices_are_named() {
        for (text, says) in [
            (
                r#"{"quantization_config": {"quant_method": "bitsandbytes"}}"#,
                "`quantization_config`: bitsandbytes",
            ),
            (
                r#"{"quantization_config": {"quant_method": "aqlm", "bits": 4}}"#,
                "`quantization_config`: aqlm",
            ),
            (r#"{"quantization": {"kind": "int4"}}"#, "`quantization`: of another kind"),
        ] {
            let error = check_text(text).unwrap_err().to_string();
            assert!(error.contains(says) && error.contains("GGUF file of it"), "{error}");
        }
        for text in [
            r#"{"quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 64}}"#,
            r#"{"quantization_config": {"quant_method": "fp8"}}"#,
            r#"{"quantization": {"group_size": 64, "bits": 4}}"#,
        ] {
            check_text(text).unwrap();
            let config = ModelConfig::parse(text).unwrap();
            let error = check(&config, READ, &[], false).unwrap_err().to_string();
            assert!(error.contains("give the model's directory"), "{error}");
        }
        let error =
            check_text(r#"{"quantization_config": {"quant_method": "gptq", "bits": 3, "group_size": 64}}"#);
        assert!(error.unwrap_err().to_string().contains("`quantization_config.bits` is 3: expected 4 or 8"));
        check_text(r#"{"quantization_config": {}, "compression_config": null}"#).unwrap();
    }

    #[test]
    fn unknown_keys_of_rope_sections_are_refused() {
        let section = |text: &str| check_rope(&ModelConfig::parse(text).unwrap());
        section(r#"{"rope_type": "yarn", "factor": 4.0, "finetuned": true, "alpha": null}"#).unwrap();
        for key in ["mrope_interleaved", "alpha", "mrope_section"] {
            let error =
                section(&format!("{{\"type\": \"default\", \"{key}\": [1]}}")).unwrap_err().to_string();
            assert!(error.contains(&format!("unknown key `{key}`")), "{error}");
        }
    }
}
