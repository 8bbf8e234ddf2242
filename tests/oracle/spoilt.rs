//! Keys of config.json that say something else: the import refuses them by name, or its spec changes.

use crate::harness::imports;
use kernmill_checkpoint::Checkpoint;
use kernmill_compiler::front::import::{from_checkpoint, read_config};
use serde_json::{Value, json};

/// Keys that change nothing of what a text model computes: tokens, training, the way it is run, images, heads
/// of other tasks, and the types of tensors, which the checkpoint's headers say.
const WITHOUT_EFFECT: [&str; 43] = [
    "attention_dropout",
    "attention_probs_dropout_prob",
    "boi_token_index",
    "bos_token_id",
    "classifier_activation",
    "classifier_bias",
    "classifier_dropout",
    "classifier_pooling",
    "cls_token_id",
    "decoder_bias",
    "deterministic_flash_attn",
    "dtype",
    "embd_pdrop",
    "embedding_dropout",
    "eoi_token_index",
    "eos_token_id",
    "hidden_dropout_prob",
    "image_token_index",
    "initializer_cutoff_factor",
    "initializer_range",
    "mlp_dropout",
    "mm_tokens_per_image",
    "multimodal_projector_bias",
    "output_router_logits",
    "pad_token_id",
    "pretraining_tp",
    "projector_hidden_act",
    "resid_pdrop",
    "residual_dropout",
    "router_aux_loss_coef",
    "router_jitter_noise",
    "sep_token_id",
    "sparse_pred_ignore_index",
    "sparse_prediction",
    "spatial_merge_size",
    "transformers_version",
    "use_cache",
    "vision_config",
    "vision_feature_layer",
    // A name stands in `architectures`, and this one beside it.
    "model_type",
    // The class has a number of layers to predict, which are not in the file.
    "num_nextn_predict_layers",
    // Where all layers are listed, the rule for them says nothing.
    "_sliding_window_pattern",
    // Where there are both tensors, each serves as what it is called.
    "tie_word_embeddings",
];

/// Keys that a model does not read as it is: pairs of its name and the key, and why.
const NOT_READ: [(&str, &str, &str); 17] = [
    ("ernie-moe", "moe_layer_end_index", "an end behind the last layer is no other end"),
    ("gemma3-images", "full_attention", "both layers slide"),
    ("gemma3-images", "rope_theta", "both layers slide"),
    ("gemma3-images", "rope_type", "both layers slide"),
    ("gptoss-plain", "max_position_embeddings", "YaRN's context follows from its factor"),
    ("ministral3", "max_position_embeddings", "the context is the original one"),
    ("ministral3", "llama_4_scaling_beta", "nothing grows within the original context"),
    ("phi3", "original_max_position_embeddings", "there is no LongRoPE"),
    ("phi4-mini", "original_max_position_embeddings", "the section of RoPE has one of its own"),
    ("phi4-mini", "partial_rotary_factor", "the section of RoPE has one of its own"),
    ("phi4-mini", "short_factor", "the context is longer than the original one"),
    ("olmo3", "rope_theta", "the kinds of layers have their own"),
    ("phi4-mini", "type", "`rope_type` says the same"),
    ("qwen2-moe", "intermediate_size", "all layers have experts"),
    ("qwen2-windows", "max_window_layers", "all layers are listed"),
    ("qwen3-moe", "intermediate_size", "all layers have experts"),
    ("smollm3", "no_rope_layer_interval", "all layers are listed"),
];

/// Keys of windows, of models that have none, or one as long as their context.
const WINDOWS: [&str; 3] = ["sliding_window", "use_sliding_window", "max_window_layers"];

/// Another value of the same kind.
fn spoilt(value: &Value) -> Value {
    match value {
        Value::Null => json!(7),
        Value::Bool(flag) => json!(!flag),
        Value::Number(number) if number.is_u64() => json!(number.as_u64().unwrap() * 2 + 1),
        Value::Number(number) => json!(number.as_f64().unwrap() * 0.37 + 0.01),
        Value::String(_) => json!("spoilt"),
        Value::Array(items) => match items.split_first() {
            Some((first, rest)) => json!([&[spoilt(first)], rest].concat()),
            None => json!([0]),
        },
        Value::Object(_) => json!("spoilt"),
    }
}

/// Paths of all keys.
fn paths(value: &Value, at: &[String]) -> Vec<Vec<String>> {
    let Value::Object(map) = value else { return Vec::new() };
    let own = |key: &String| [at, std::slice::from_ref(key)].concat();
    let within = map.iter().filter(|(key, _)| *key != "vision_config");
    let deeper = within.flat_map(|(key, value)| paths(value, &own(key)));
    map.keys().map(own).chain(deeper).collect()
}

#[test]
fn every_key_is_refused_by_name_or_changes_the_spec() {
    let (mut spoiled, mut silent) = (0, Vec::new());
    let mut directories: Vec<_> = std::fs::read_dir(imports()).unwrap().map(|e| e.unwrap().path()).collect();
    directories.sort();
    for directory in directories {
        let name = directory.file_name().unwrap().to_str().unwrap();
        let config: Value = serde_json::from_str(&read_config(&directory).unwrap()).unwrap();
        let checkpoint = Checkpoint::open(&directory).unwrap();
        let import = |config: &Value| from_checkpoint("m", &config.to_string(), &checkpoint);
        let right = import(&config).unwrap_or_else(|error| panic!("{name}: {error}"));
        for path in paths(&config, &[]) {
            let key = path.last().unwrap();
            let no_windows = name.starts_with("qwen") && name != "qwen2-windows";
            if no_windows && WINDOWS.contains(&key.as_str()) {
                continue;
            }
            if WITHOUT_EFFECT.contains(&key.as_str())
                || NOT_READ.iter().any(|row| row.0 == name && row.1 == key)
            {
                continue;
            }
            let mut changed = config.clone();
            let place = path.iter().fold(&mut changed, |at, key| &mut at[key]);
            *place = spoilt(place);
            spoiled += 1;
            match import(&changed) {
                Ok(text) if text == right => {
                    silent.push(format!("{name}: {path:?} = {place}", place = at(&changed, &path)))
                }
                Ok(_) => {}
                Err(error) if names(&error.to_string(), key) => {}
                Err(error) => silent.push(format!("{name}: {path:?} does not name it: {error}")),
            }
        }
    }
    assert!(spoiled >= 300 && silent.is_empty(), "{spoiled} keys: {silent:#?}");
}

fn at<'v>(value: &'v Value, path: &[String]) -> &'v Value {
    path.iter().fold(value, |at, key| &at[key])
}

/// Whether an error is about a key: by its name, or by that of the tensor or dim that follows from it.
fn names(error: &str, key: &str) -> bool {
    let follows: &[&str] = match key {
        "hidden_size" => &["hidden"],
        "hidden_act" | "hidden_activation" => &["activation"],
        "num_attention_heads" | "num_key_value_heads" => &["heads"],
        "num_experts_per_tok" | "moe_k" => &["top-"],
        "num_hidden_layers" => &["layers"],
        "layer_types" => &["layer type"],
        "partial_rotary_factor" => &["rotary_dim"],
        "architectures" => &["architecture"],
        "rope_type" | "type" => &["RoPE"],
        _ => &[],
    };
    error.contains(key) || follows.iter().any(|word| error.contains(word))
}
