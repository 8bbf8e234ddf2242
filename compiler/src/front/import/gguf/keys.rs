//! The keys under an architecture's name: what is read, what has no effect, and what is refused, because it
//! could change the result.

use kernmill_checkpoint::Result;
use kernmill_checkpoint::gguf::Gguf;
use kernmill_os::text::shortened;

/// Keys that are read for every decoder.
pub(super) const READ: [&str; 24] = [
    "attention.head_count",
    "attention.head_count_kv",
    "attention.key_length",
    "attention.layer_norm_rms_epsilon",
    "attention.value_length",
    "block_count",
    "context_length",
    "embedding_length",
    "feed_forward_length",
    // How models for vectors pool their rows.
    "pooling_type",
    "rope.dimension_count",
    "rope.freq_base",
    "rope.scale_linear",
    "rope.scaling.attn_factor",
    "rope.scaling.factor",
    "rope.scaling.original_context_length",
    "rope.scaling.type",
    "rope.scaling.yarn_attn_factor",
    "rope.scaling.yarn_beta_fast",
    "rope.scaling.yarn_beta_slow",
    "rope.scaling.yarn_ext_factor",
    "vocab_size",
    // How the model was trained, and how the first llama files were laid out.
    "rope.scaling.finetuned",
    "tensor_data_layout",
];

/// Keys of computations that kernmill lacks, and the value that switches each off. A flag is 0 or 1.
const NEUTRAL: [(&str, f64); 19] = [
    ("attention.causal", 1.0),
    ("attention.clamp_kqv", 0.0),
    ("attention.max_alibi_bias", 0.0),
    ("attention.scale", 0.0),
    ("attention.sliding_window", 0.0),
    ("attn_logit_softcapping", 0.0),
    ("embedding_scale", 1.0),
    ("expert_count", 0.0),
    ("expert_group_count", 1.0),
    ("expert_group_used_count", 1.0),
    ("expert_shared_count", 0.0),
    ("expert_used_count", 0.0),
    ("final_logit_softcapping", 0.0),
    ("leading_dense_block_count", 0.0),
    ("logit_scale", 1.0),
    ("nextn_predict_layers", 0.0),
    ("residual_scale", 1.0),
    ("rope.scaling.yarn_log_multiplier", 0.0),
    ("use_parallel_residual", 0.0),
];

/// Refuses keys of architecture `arch` that are not understood: those that are not read, and not neutral.
pub(super) fn check(gguf: &Gguf, arch: &str, is_read: impl Fn(&str) -> bool) -> Result<()> {
    let prefix = format!("{arch}.");
    for key in gguf.keys() {
        let Some(name) = key.strip_prefix(&prefix) else { continue };
        if is_read(name) {
            continue;
        }
        let shown = shortened(key);
        match NEUTRAL.iter().find(|(neutral, _)| *neutral == name) {
            Some((_, value)) if gguf.number(key) == Some(*value) => {}
            Some((_, value)) => {
                let found = gguf.shown(key);
                let expected = match found.as_str() {
                    "true" => "false".to_owned(),
                    "false" => "true".to_owned(),
                    _ => value.to_string(),
                };
                return gguf.unsupported(format!("key `{shown}` is {found}; supported is: {expected}"));
            }
            None => {
                let found = gguf.shown(key);
                return gguf.unsupported(format!(
                    "key `{shown}` ({found}) is not known here and may change the result; if it does not, \
                     remove it with gguf-new-metadata --remove-metadata {shown}"
                ));
            }
        }
    }
    Ok(())
}
