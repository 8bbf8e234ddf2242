//! Dense models that transformers saved, as GGUF files of the architecture that converters give them.

use super::writer::{BF16, F16, F32, Writer};
use super::{gguf, logits, model, tokens_in};
use crate::harness::{Model, imports};
use kernmill_compiler::front::import::from_gguf;
use kernmill_compiler::passes::quant::Preset;
use safetensors::{Dtype, SafeTensors};
use serde_json::Value as Json;
use std::path::PathBuf;

const LAYERS: usize = 2;
/// Names of a layer's tensors, published and in GGUF files.
const NAMES: [(&str, &str); 11] = [
    ("input_layernorm", "attn_norm"),
    ("self_attn.q_proj", "attn_q"),
    ("self_attn.k_proj", "attn_k"),
    ("self_attn.v_proj", "attn_v"),
    ("self_attn.o_proj", "attn_output"),
    ("self_attn.q_norm", "attn_q_norm"),
    ("self_attn.k_norm", "attn_k_norm"),
    ("post_attention_layernorm", "ffn_norm"),
    ("mlp.gate_proj", "ffn_gate"),
    ("mlp.up_proj", "ffn_up"),
    ("mlp.down_proj", "ffn_down"),
];

fn directory(name: &str) -> PathBuf {
    imports().join(name)
}

/// The file of a saved model; every tensor keeps its type.
fn convert(name: &str, arch: &str) -> Writer {
    let config: Json =
        serde_json::from_slice(&std::fs::read(directory(name).join("config.json")).unwrap()).unwrap();
    let bytes = std::fs::read(directory(name).join("model.safetensors")).unwrap();
    let checkpoint = SafeTensors::deserialize(&bytes).unwrap();
    let mut writer = Writer::default();
    writer.set("general.architecture", arch);
    for (key, stated) in [
        ("block_count", "num_hidden_layers"),
        ("context_length", "max_position_embeddings"),
        ("embedding_length", "hidden_size"),
        ("feed_forward_length", "intermediate_size"),
        ("attention.head_count", "num_attention_heads"),
        ("attention.head_count_kv", "num_key_value_heads"),
    ] {
        writer.set(&format!("{arch}.{key}"), config[stated].as_u64().unwrap() as u32);
    }
    if let Some(head_dim) = config["head_dim"].as_u64() {
        writer.set(&format!("{arch}.attention.key_length"), head_dim as u32);
    }
    let theta = config["rope_parameters"]["rope_theta"].as_f64().unwrap() as f32;
    writer.set(&format!("{arch}.rope.freq_base"), theta);
    writer.set(&format!("{arch}.attention.layer_norm_rms_epsilon"), 1e-6f32);
    let heads = |key: &str| config[key].as_u64().unwrap() as usize;
    let mut add = |from: &str, to: &str, heads: Option<usize>| {
        let Ok(view) = checkpoint.tensor(from) else { return };
        let kind = match view.dtype() {
            Dtype::F32 => F32,
            Dtype::F16 => F16,
            Dtype::BF16 => BF16,
            other => panic!("{from}: {other:?}"),
        };
        let rows = view.shape()[0];
        let row = view.data().len() / rows;
        let order = (0..rows).map(|at| match heads {
            // Rows i and i + half of a head come side by side.
            Some(heads) => {
                let (head, within) = (rows / heads, at % (rows / heads));
                at - within + within / 2 + within % 2 * (head / 2)
            }
            None => at,
        });
        let data = order.flat_map(|at| view.data()[at * row..][..row].to_vec()).collect();
        let dims: Vec<u64> = view.shape().iter().rev().map(|&dim| dim as u64).collect();
        writer.add(to, &dims, kind, data);
    };
    for (from, to) in
        [("model.embed_tokens", "token_embd"), ("model.norm", "output_norm"), ("lm_head", "output")]
    {
        add(&format!("{from}.weight"), &format!("{to}.weight"), None);
    }
    for layer in 0..LAYERS {
        for (from, to) in NAMES {
            let paired = match to {
                "attn_q" => Some(heads("num_attention_heads")),
                "attn_k" => Some(heads("num_key_value_heads")),
                _ => None,
            };
            for part in ["weight", "bias"] {
                let from = format!("model.layers.{layer}.{from}.{part}");
                add(&from, &format!("blk.{layer}.{to}.{part}"), paired.filter(|_| arch == "llama"));
            }
        }
    }
    writer
}

#[track_caller]
fn same_logits(name: &str, writer: &Writer) {
    let tokens = tokens_in(&directory(name));
    let (expected, actual) = (Model::open(&directory(name)), model(writer));
    for preset in [Preset::Exact, Preset::Faithful] {
        let (expected, actual) = (logits(&expected, preset, &tokens), logits(&actual, preset, &tokens));
        assert!(expected == actual, "{name}, {}: logits differ", preset.name());
    }
}

#[test]
fn qwen2_files_have_biases_and_rows_in_their_order() {
    let qwen2 = convert("qwen2-plain", "qwen2");
    assert!(from_gguf("m", &gguf(qwen2.bytes())).unwrap().contains("Qwen2ForCausalLM"));
    same_logits("qwen2-plain", &qwen2);
    // The same weights as a llama file, whose biases are paired like their rows.
    same_logits("qwen2-plain", &convert("qwen2-plain", "llama"));
    let mut factors = convert("qwen2-plain", "qwen2");
    factors.add("rope_freqs.weight", &[8], F32, vec![0; 32]);
    let error = from_gguf("m", &gguf(factors.bytes())).unwrap_err().to_string();
    assert!(error.contains("tensor `rope_freqs.weight` in a qwen2 model"), "{error}");
}

#[test]
fn qwen3_files_have_norms_of_heads() {
    let qwen3 = convert("qwen3-plain", "qwen3");
    assert!(from_gguf("m", &gguf(qwen3.bytes())).unwrap().contains("Qwen3ForCausalLM"));
    same_logits("qwen3-plain", &qwen3);
}

/// Newer writers name the kind, older ones state a factor alone, the first under another name.
#[test]
fn a_linear_scaling_of_rope_is_read_in_every_spelling() {
    for (kind, key) in
        [(Some("linear"), "rope.scaling.factor"), (None, "rope.scaling.factor"), (None, "rope.scale_linear")]
    {
        let mut writer = convert("llama-linear", "llama");
        if let Some(kind) = kind {
            writer.set("llama.rope.scaling.type", kind);
        }
        writer.set(&format!("llama.{key}"), 4f32);
        same_logits("llama-linear", &writer);
    }
    let mut plain = convert("llama-linear", "llama");
    let text = from_gguf("m", &gguf(plain.bytes())).unwrap();
    plain.set("llama.rope.scaling.type", "linear");
    plain.set("llama.rope.scaling.factor", 1f32);
    assert_eq!(from_gguf("m", &gguf(plain.bytes())).unwrap(), text);
}
