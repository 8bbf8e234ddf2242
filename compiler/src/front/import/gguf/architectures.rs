//! The architectures of GGUF files that are imported: their published classes, and the names of their keys
//! and tensors there.

use super::super::tensors::OtherNames;
use super::file::{GgufImport, extend};
use kernmill_checkpoint::Result;
use serde_json::{Value, json};

/// The limit that the published model code fixes for the activation of GPT-OSS's experts.
const GPT_OSS_LIMIT: f64 = 7.0;
/// Base of the RoPE of Gemma 3's sliding layers.
const GEMMA3_LOCAL_BASE: f64 = 10000.0;
/// Layers of Gemma's 27B models, whose scale of attention is not by the size of their heads.
const GEMMA2_27B: u64 = 46;
const GEMMA3_27B: u64 = 62;

/// An architecture of GGUF files.
pub(super) struct Architecture {
    /// `general.architecture`.
    pub(super) name: &'static str,
    /// The published class.
    pub(super) class: &'static str,
    /// Keys with a number, and what `config.json` calls them. 0 stands for a missing one.
    pub(super) keys: &'static [(&'static str, &'static str)],
    /// Keys that are read otherwise, or may be there.
    pub(super) others: &'static [&'static str],
    /// Modules that its files call otherwise.
    pub(super) names: OtherNames,
    /// Further keys of a `config.json`: an object.
    pub(super) own: fn(&GgufImport<'_>) -> Result<Value>,
}

const MLP: (&str, &str) = ("feed_forward_length", "intermediate_size");
const WINDOW: &[&str] = &["attention.sliding_window", "attention.sliding_window_pattern"];

pub(super) static ARCHITECTURES: [Architecture; 19] = [
    Architecture {
        name: "gpt-oss",
        class: "GptOssForCausalLM",
        keys: &[
            MLP,
            ("expert_feed_forward_length", "intermediate_size"),
            ("expert_count", "num_local_experts"),
            ("expert_used_count", "num_experts_per_tok"),
        ],
        others: WINDOW,
        names: &[("mlp_norm", "post_attention_norm")],
        own: |file| {
            let (scaling, _) = file.rope_scaling(false)?;
            file.refuse_rope_factors()?;
            let own = json!({ "swiglu_limit": GPT_OSS_LIMIT, "rope_scaling": scaling });
            Ok(both(own, file.windows(2)?))
        },
    },
    Architecture {
        name: "llama",
        class: "LlamaForCausalLM",
        keys: &[MLP, ("expert_count", "num_local_experts"), ("expert_used_count", "num_experts_per_tok")],
        others: &[],
        names: &[],
        own: |file| Ok(json!({ "rope_scaling": file.rope_scaling_or_factors()? })),
    },
    Architecture {
        name: "mistral3",
        class: "Ministral3ForCausalLM",
        keys: &[MLP],
        others: &["attention.temperature_scale", "rope.scaling.yarn_log_multiplier"],
        names: &[],
        own: ministral3,
    },
    Architecture {
        name: "qwen2",
        class: "Qwen2ForCausalLM",
        keys: &[MLP],
        others: &[],
        names: &[],
        own: scaled,
    },
    Architecture {
        name: "qwen3",
        class: "Qwen3ForCausalLM",
        keys: &[MLP],
        others: &[],
        names: &[],
        own: scaled,
    },
    Architecture {
        name: "qwen2moe",
        class: "Qwen2MoeForCausalLM",
        keys: &[
            MLP,
            ("expert_count", "num_experts"),
            ("expert_used_count", "num_experts_per_tok"),
            ("expert_feed_forward_length", "moe_intermediate_size"),
            ("expert_shared_feed_forward_length", "shared_expert_intermediate_size"),
        ],
        others: &[],
        names: &[],
        own: scaled,
    },
    Architecture {
        name: "qwen3moe",
        class: "Qwen3MoeForCausalLM",
        keys: &[
            MLP,
            ("expert_count", "num_experts"),
            ("expert_used_count", "num_experts_per_tok"),
            ("expert_feed_forward_length", "moe_intermediate_size"),
        ],
        others: &[],
        names: &[],
        // The architecture has no key for it: its experts' weights always sum to 1.
        own: |file| Ok(both(scaled(file)?, json!({ "norm_topk_prob": true }))),
    },
    Architecture {
        name: "gemma2",
        class: "Gemma2ForCausalLM",
        keys: &[
            MLP,
            ("attn_logit_softcapping", "attn_logit_softcapping"),
            ("final_logit_softcapping", "final_logit_softcapping"),
        ],
        others: WINDOW,
        names: &[],
        own: |file| Ok(both(gemma(file, GEMMA2_27B)?, file.windows(2)?)),
    },
    Architecture {
        name: "gemma3",
        class: "Gemma3ForCausalLM",
        keys: &[
            MLP,
            ("final_logit_softcapping", "final_logit_softcapping"),
            ("rope.freq_base_swa", "rope_local_base_freq"),
        ],
        others: WINDOW,
        names: &[],
        own: |file| {
            let mut own = both(gemma(file, GEMMA3_27B)?, json!({ "sliding_window_pattern": 6 }));
            if file.gguf.number(&file.key("rope.freq_base_swa")).is_none() {
                own = both(own, json!({ "rope_local_base_freq": GEMMA3_LOCAL_BASE }));
            }
            Ok(both(own, file.windows(6)?))
        },
    },
    Architecture {
        name: "phi3",
        class: "Phi3ForCausalLM",
        keys: &[MLP],
        // Published files state wrong windows, which llama.cpp does not read either.
        others: WINDOW,
        names: &[],
        own: |file| Ok(json!({ "rope_scaling": file.long_rope()? })),
    },
    Architecture {
        name: "smollm3",
        class: "SmolLM3ForCausalLM",
        keys: &[MLP],
        others: &[],
        names: &[],
        own: |file| Ok(both(scaled(file)?, json!({ "no_rope_layer_interval": 4 }))),
    },
    Architecture {
        name: "olmo2",
        class: "Olmo2ForCausalLM",
        keys: &[MLP, ("rope.freq_base_swa", "rope_local_base_freq")],
        others: WINDOW,
        names: &[],
        own: |file| Ok(both(scaled(file)?, file.windows(4)?)),
    },
    Architecture {
        name: "olmoe",
        class: "OlmoeForCausalLM",
        keys: &[MLP, ("expert_count", "num_experts"), ("expert_used_count", "num_experts_per_tok")],
        others: &[],
        names: &[],
        own: scaled,
    },
    Architecture {
        name: "granite",
        class: "GraniteForCausalLM",
        keys: GRANITE,
        others: &[],
        names: &[],
        own: granite,
    },
    Architecture {
        name: "granitemoe",
        class: "GraniteMoeForCausalLM",
        keys: GRANITE,
        others: &[],
        names: &[],
        own: granite,
    },
    Architecture {
        name: "seed_oss",
        class: "SeedOssForCausalLM",
        keys: &[MLP],
        others: &[],
        names: &[("mlp_norm", "post_attention_norm")],
        own: scaled,
    },
    Architecture {
        name: "ernie4_5-moe",
        class: "Ernie4_5_MoeForCausalLM",
        keys: &[
            MLP,
            ("expert_count", "moe_num_experts"),
            ("expert_used_count", "moe_k"),
            ("expert_feed_forward_length", "moe_intermediate_size"),
            ("expert_shared_count", "moe_num_shared_experts"),
            ("leading_dense_block_count", "moe_layer_start_index"),
            ("interleave_moe_layer_step", "moe_layer_interval"),
        ],
        // The size of the shared experts follows from their number.
        others: &["expert_shared_feed_forward_length"],
        names: &[],
        own: scaled,
    },
    Architecture {
        name: "glm4",
        class: "Glm4ForCausalLM",
        keys: &[MLP],
        others: &[],
        names: &[],
        own: scaled,
    },
    Architecture {
        name: "glm4moe",
        class: "Glm4MoeForCausalLM",
        keys: &[
            MLP,
            ("expert_count", "n_routed_experts"),
            ("expert_used_count", "num_experts_per_tok"),
            ("expert_feed_forward_length", "moe_intermediate_size"),
            ("expert_shared_count", "n_shared_experts"),
            ("expert_weights_scale", "routed_scaling_factor"),
            ("expert_group_count", "n_group"),
            ("expert_group_used_count", "topk_group"),
            ("leading_dense_block_count", "first_k_dense_replace"),
        ],
        others: &["nextn_predict_layers", "expert_gating_func", "expert_weights_norm"],
        names: &[("mlp_norm", "post_attention_norm")],
        own: |file| {
            let norms = file.gguf.number(&file.key("expert_weights_norm")) != Some(0.0);
            let has_norms = file.gguf.info("blk.0.attn_q_norm.weight").is_some();
            if file.gguf.number(&file.key("expert_gating_func")).is_some_and(|kind| kind != 2.0) {
                return file.gguf.unsupported("`expert_gating_func` other than 2, the sigmoid");
            }
            Ok(both(scaled(file)?, json!({ "norm_topk_prob": norms, "use_qk_norm": has_norms })))
        },
    },
];

const GRANITE: &[(&str, &str)] = &[
    MLP,
    ("expert_count", "num_local_experts"),
    ("expert_used_count", "num_experts_per_tok"),
    ("attention.scale", "attention_multiplier"),
    ("embedding_scale", "embedding_multiplier"),
    ("residual_scale", "residual_multiplier"),
    ("logit_scale", "logits_scaling"),
];

/// The members of both objects.
fn both(mut object: Value, more: Value) -> Value {
    extend(&mut object, more);
    object
}

/// RoPE's scaling by the metadata.
fn scaled(file: &GgufImport<'_>) -> Result<Value> {
    file.refuse_rope_factors()?;
    Ok(json!({ "rope_scaling": file.rope_scaling(true)?.0 }))
}

/// Granite's files switch RoPE off by a key that says nothing about it elsewhere.
fn granite(file: &GgufImport<'_>) -> Result<Value> {
    if file.gguf.number(&file.key("rope.scaling.finetuned")) == Some(0.0) {
        return file.gguf.unsupported(format!("{} without RoPE (`rope.scaling.finetuned`)", file.arch));
    }
    Ok(json!({ "rope_scaling": file.rope_scaling_or_factors()? }))
}

/// Gemma's files do not state the scale of attention, which follows from the heads' size, but for the 27B
/// models.
fn gemma(file: &GgufImport<'_>, large: u64) -> Result<Value> {
    let heads = file.require("attention.head_count")?.max(1);
    let per_head = match file.layers == large {
        true => file.require("embedding_length")? / heads,
        false => file.gguf.head_dim()? as u64,
    };
    Ok(both(
        scaled(file)?,
        json!({ "query_pre_attn_scalar": per_head, "hidden_activation": "gelu_pytorch_tanh" }),
    ))
}

/// YaRN, and queries that grow with their position.
fn ministral3(file: &GgufImport<'_>) -> Result<Value> {
    let mut own = scaled(file)?;
    let number = |key: &str| file.gguf.number(&file.key(key)).filter(|&number| number != 0.0);
    if let (Some(scaling), Some(beta)) =
        (own["rope_scaling"].as_object_mut(), number("attention.temperature_scale"))
    {
        scaling.insert("llama_4_scaling_beta".into(), json!(beta));
    }
    if let (Some(scaling), Some(mscale)) =
        (own["rope_scaling"].as_object_mut(), number("rope.scaling.yarn_log_multiplier"))
    {
        scaling.insert("mscale".into(), json!(mscale));
        scaling.insert("mscale_all_dim".into(), json!(mscale));
    }
    Ok(own)
}
