//! Adapters.

use kernmill_compiler::front::import::from_config;
use kernmill_compiler::front::spec::{Spec, lower};
use kernmill_compiler::passes::quant::Preset;
use kernmill_compiler::pipeline::{CompilerOptions, compile};
use kernmill_os::region::WeightRegion;
use kernmill_plan::adapter::MAX_RANK;
use kernmill_plan::target::Level;
use kernmill_runtime::adapter::{AdapterLoader, Loading};
use std::path::Path;
use std::str::from_utf8;
use std::sync::{Arc, OnceLock};

/// An adapter: its config, a zero byte, and its tensors.
pub fn adapter(data: &[u8]) {
    let Some(end) = data.iter().position(|byte| *byte == 0) else { return };
    let Ok(config) = from_utf8(&data[..end]) else { return };
    let tensors = data[end + 1..].to_vec();
    let loaded = adapter_loader().open_bytes(Path::new("fuzz"), config, tensors, 1.0);
    match loaded.and_then(Loading::run) {
        Ok(adapter) => assert!((1..=MAX_RANK).contains(&adapter.packed().rank())),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// The model that the corpus's adapters are for.
const CONFIG: &str = r#"{
  "architectures": ["GptOssForCausalLM"], "model_type": "gpt_oss", "vocab_size": 96, "eos_token_id": 95,
  "hidden_size": 64, "num_hidden_layers": 2, "layer_types": ["sliding_attention", "full_attention"],
  "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32, "attention_bias": true, "sliding_window": 16,
  "intermediate_size": 64, "num_local_experts": 4, "num_experts_per_tok": 2, "experts_per_token": 2,
  "hidden_act": "silu", "swiglu_limit": 7.0, "rms_norm_eps": 1e-05, "tie_word_embeddings": false,
  "max_position_embeddings": 256, "initial_context_length": 64, "rope_theta": 150000.0,
  "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": false,
    "original_max_position_embeddings": 64},
  "torch_dtype": "bfloat16", "quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert":
    ["model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"]}
}"#;

/// A loader for a small model with experts.
fn adapter_loader() -> &'static AdapterLoader {
    static LOADER: OnceLock<AdapterLoader> = OnceLock::new();
    LOADER.get_or_init(|| {
        let spec = from_config("small", CONFIG).expect("a config");
        let graph = Spec::parse("small.toml", &spec).and_then(|spec| lower(&spec)).expect("a spec");
        let options = CompilerOptions {
            preset: Preset::Exact,
            adapters: true,
            chunk: 16,
            ..CompilerOptions::new(Level::V3)
        };
        let program = compile(&graph, &options).expect("a supported model").program;
        let weights = WeightRegion::anonymous(program.weight_bytes as usize).expect("memory");
        let adapters = Arc::new(program.model.adapters.expect("sites"));
        AdapterLoader::new(adapters, weights.freeze().expect("memory"), "small".into())
    })
}
