//! Checkpoints that store the same model in other ways, as trainers, mergers and converters leave them: the
//! logits stay the same.

use super::Sandbox;
use super::safetensors_file::{Entry, SafetensorsFile};
use half::{bf16, f16};
use serde_json::{Value, json};
use std::fs;

const CONFIG: &str = "config.json";
const MODEL: &str = "model.safetensors";
const TABLE: &str = "model.embed_tokens.weight";
const HEAD: &str = "lm_head.weight";

/// Logits of preset `exact`, in which weights are as stored. The spec comes from the files.
fn exact(sandbox: &Sandbox, out: &str) -> Vec<u8> {
    let logits = ["logits", ".", "--preset", "exact", "--tokens", "ids.json", "-q", "--out", out];
    sandbox.run(&logits).text();
    fs::read(sandbox.path(out)).unwrap()
}

/// The value of a little-endian bf16.
fn float(bytes: &[u8]) -> f32 {
    bf16::from_le_bytes(bytes.try_into().unwrap()).to_f32()
}

fn values(entry: &Entry) -> Vec<f32> {
    assert_eq!(entry.dtype, "BF16", "{}", entry.name);
    entry.bytes.chunks(2).map(float).collect()
}

/// `values` as elements of `dtype`, which holds each of them.
fn elements(values: &[f32], dtype: &str) -> Vec<u8> {
    let bytes = |x: f32| match dtype {
        "F32" => x.to_le_bytes().to_vec(),
        "F16" => {
            assert!(f16::from_f32(x).to_f32() == x, "{x} is no f16");
            f16::from_f32(x).to_le_bytes().to_vec()
        }
        _ => {
            assert!(bf16::from_f32(x).to_f32() == x, "{x} is no bf16");
            bf16::from_f32(x).to_le_bytes().to_vec()
        }
    };
    values.iter().flat_map(|&x| bytes(x)).collect()
}

#[test]
fn tensors_may_have_other_types_than_the_config_states() {
    // The fixture, a file of it, what its config states instead of bf16, and the tensors that become f32.
    let cases: [(&str, &str, Value, &[&str]); 6] = [
        ("gptoss-base", MODEL, json!("float16"), &["sinks", "router"]),
        ("gptoss-base", MODEL, Value::Null, &["q_proj.bias", "down_proj_bias", "embed_tokens"]),
        ("gptoss-base", MODEL, json!("auto"), &["layers.1.self_attn", "layers.0.input_layernorm"]),
        ("gptoss-sharded", "model-00002-of-00002.safetensors", json!("float32"), &["weight"]),
        ("llama-tied", MODEL, json!("float64"), &["layers.0."]),
        ("llama-plain", MODEL, json!("float8_e4m3fn"), &["k_proj", "down_proj", "model.norm"]),
    ];
    for (fixture, file, stated, widened) in cases {
        let sandbox = Sandbox::of(fixture);
        let expected = exact(&sandbox, "before.safetensors");
        sandbox.set(CONFIG, "torch_dtype", stated.clone());
        let mut tensors = SafetensorsFile::read(&sandbox.path(file));
        let mut changed = 0;
        for entry in &mut tensors.entries {
            if entry.dtype == "BF16" && widened.iter().any(|part| entry.name.contains(part)) {
                entry.bytes = elements(&values(entry), "F32");
                entry.dtype = "F32".to_owned();
                changed += 1;
            }
        }
        assert!(changed > 1, "{fixture}: {widened:?}");
        tensors.write();
        assert!(exact(&sandbox, "after.safetensors") == expected, "{fixture}, {stated}, {widened:?}");
    }
}

/// The unembedding of tied embeddings, however it is stored.
#[test]
fn tied_embeddings_give_the_same_logits_however_they_are_stored() {
    for fixture in ["llama-tied", "gptoss-base"] {
        let sandbox = Sandbox::of(fixture);
        let mut file = SafetensorsFile::read(&sandbox.path(MODEL));
        file.entries.retain(|entry| entry.name != HEAD);
        file.write();
        sandbox.set(CONFIG, "tie_word_embeddings", json!(true));
        let expected = exact(&sandbox, "one.safetensors");
        // Under the other's name only.
        file.entry(TABLE).name = HEAD.to_owned();
        file.write();
        assert!(exact(&sandbox, "head.safetensors") == expected, "{fixture}");
        // Both names are there, and one tensor has another type.
        let mut table = file.entry(HEAD).clone();
        table.name = TABLE.to_owned();
        table.bytes = elements(&values(&table), "F32");
        table.dtype = "F32".to_owned();
        file.entries.push(table);
        file.write();
        assert!(exact(&sandbox, "both.safetensors") == expected, "{fixture}");
    }
}

/// Two that differ are an embedding and an unembedding, whatever the config says of them.
#[test]
fn tied_embeddings_that_differ_each_serve_as_what_they_are_called() {
    for fixture in ["llama-plain", "gptoss-base"] {
        let sandbox = Sandbox::of(fixture);
        let expected = exact(&sandbox, "untied.safetensors");
        sandbox.set(CONFIG, "tie_word_embeddings", json!(true));
        assert!(exact(&sandbox, "tied.safetensors") == expected, "{fixture}");
    }
}

/// Elements of MXFP4, by their codes.
const MXFP4: [f32; 8] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];

/// The matrices of an expert tensor in MXFP4, `[experts, rows, columns]`.
fn decoded(blocks: &Entry, scales: &Entry) -> Vec<f32> {
    let mut values = Vec::new();
    for (block, scale) in blocks.bytes.chunks(16).zip(&scales.bytes) {
        let scale = 2f32.powi(i32::from(*scale) - 127);
        for code in block.iter().flat_map(|byte| [byte & 15, byte >> 4]) {
            let sign = if code & 8 == 0 { 1.0 } else { -1.0 };
            values.push(sign * MXFP4[usize::from(code & 7)] * scale);
        }
    }
    values
}

/// `[experts, rows, columns]` as `[experts, columns, rows]`.
fn transposed(values: &[f32], rows: usize, columns: usize) -> Vec<f32> {
    let expert = |matrix: &[f32]| -> Vec<f32> {
        (0..columns * rows).map(|at| matrix[at % rows * columns + at / rows]).collect()
    };
    values.chunks(rows * columns).flat_map(expert).collect()
}

/// Experts of a fixture as plain floats of `dtype`, as tools leave them that train or merge.
fn with_plain_experts(sandbox: &Sandbox, dtype: &str) {
    let mut file = SafetensorsFile::read(&sandbox.path(MODEL));
    for layer in 0..2 {
        for matrix in ["gate_up_proj", "down_proj"] {
            let name = format!("model.layers.{layer}.mlp.experts.{matrix}");
            let (blocks, scales) = (format!("{name}_blocks"), format!("{name}_scales"));
            let (blocks, scales) = (file.entry(&blocks).clone(), file.entry(&scales).clone());
            let [experts, rows, count, 16] = blocks.shape[..] else { panic!("{:?}", blocks.shape) };
            let columns = 32 * count;
            let values = transposed(&decoded(&blocks, &scales), rows, columns);
            file.entries.retain(|entry| entry.name != blocks.name && entry.name != scales.name);
            let (dtype, bytes) = (dtype.to_owned(), elements(&values, dtype));
            file.entries.push(Entry { name, dtype, shape: vec![experts, columns, rows], bytes });
        }
    }
    file.write();
}

#[test]
fn experts_in_plain_floats_are_those_that_mxfp4_stands_for() {
    for (dtype, quantization) in [
        ("BF16", None),
        ("F16", Some(json!({"quant_method": "mxfp4"}))),
        ("F32", Some(json!({"quant_method": "mxfp4", "dequantize": true}))),
    ] {
        let sandbox = Sandbox::of("gptoss-base");
        exact(&sandbox, "mxfp4.safetensors");
        with_plain_experts(&sandbox, dtype);
        sandbox.set(CONFIG, "quantization_config", quantization.into());
        exact(&sandbox, "plain.safetensors");
        let difference = sandbox.difference("plain.safetensors", "mxfp4.safetensors");
        assert!(difference <= 1e-4, "{dtype}: logits differ by {difference:e}");
        // In int8 they lose a little.
        sandbox.run(&["logits", ".", "--tokens", "ids.json", "-q", "--out", "faithful.safetensors"]).text();
        let difference = sandbox.difference("faithful.safetensors", "mxfp4.safetensors");
        assert!(difference <= 0.5, "{dtype}: logits differ by {difference:e}");
    }
}
