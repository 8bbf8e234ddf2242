use super::*;
use crate::checkpoint::{self, Checkpoint};
use std::path::{Path, PathBuf};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &str) -> String {
    std::fs::read_to_string(repository().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// The published 20B's configuration, in the older spelling.
fn gpt_oss(layers: usize, experts: usize) -> String {
    let types: Vec<&str> =
        ["\"sliding_attention\"", "\"full_attention\""].into_iter().cycle().take(layers).collect();
    format!(
        r#"{{"architectures": ["GptOssForCausalLM"], "attention_bias": true, "experts_per_token": 4, "head_dim": 64,
        "hidden_act": "silu", "hidden_size": 2880, "initial_context_length": 4096, "intermediate_size": 2880,
        "layer_types": [{}], "max_position_embeddings": 131072, "num_attention_heads": 64, "num_experts_per_tok": 4,
        "num_hidden_layers": {layers}, "num_key_value_heads": 8, "num_local_experts": {experts}, "rms_norm_eps": 1e-05,
        "quantization_config": {{"quant_method": "mxfp4"}}, "rope_scaling": {{"beta_fast": 32.0, "beta_slow": 1.0,
        "factor": 32.0, "original_max_position_embeddings": 4096, "rope_type": "yarn", "truncate": false}},
        "rope_theta": 150000, "sliding_window": 128, "swiglu_limit": 7.0, "tie_word_embeddings": false,
        "vocab_size": 201088}}"#,
        types.join(", ")
    )
}

const TINYLLAMA: &str = r#"{"architectures": ["LlamaForCausalLM"], "attention_bias": false, "hidden_act": "silu",
    "hidden_size": 2048, "intermediate_size": 5632, "max_position_embeddings": 2048, "num_attention_heads": 32,
    "num_hidden_layers": 22, "num_key_value_heads": 4, "rms_norm_eps": 1e-05, "rope_scaling": null,
    "rope_theta": 10000.0, "tie_word_embeddings": false, "torch_dtype": "bfloat16", "vocab_size": 32000}"#;

/// `UPDATE_EXPECT=1` rewrites the committed specs.
#[test]
fn committed_specs_are_what_import_writes() {
    let nano = read("model-specs/nano/config.json");
    for (path, name, config) in [
        ("model-specs/gpt-oss-20b.toml", "gpt-oss-20b", gpt_oss(24, 32).as_str()),
        ("model-specs/gpt-oss-120b.toml", "gpt-oss-120b", &gpt_oss(36, 128)),
        ("model-specs/tinyllama-1.1b.toml", "tinyllama-1.1b", TINYLLAMA),
        ("model-specs/nano/nano.toml", "nano", &nano),
    ] {
        let text = from_config(name, config).unwrap();
        expect_test::expect_file![repository().join(path)].assert_eq(&text);
    }
}

#[test]
fn both_spellings_of_rope_write_the_same_spec() {
    let old = gpt_oss(4, 8);
    let new = old
        .replace("\"rope_scaling\": {", "\"rope_parameters\": {\"rope_theta\": 150000.0, ")
        .replace("\"rope_theta\": 150000, ", "");
    assert_ne!(old, new);
    assert_eq!(from_config("m", &old).unwrap(), from_config("m", &new).unwrap());
}

#[test]
fn every_committed_checkpoint_is_the_one_its_config_describes() {
    let mut found = 0;
    let mut dirs = vec![repository().join("model-specs/nano")];
    dirs.extend(
        std::fs::read_dir(repository().join("tests/fixtures/oracle")).unwrap().map(|e| e.unwrap().path()),
    );
    for dir in dirs.iter().filter(|d| d.join("config.json").exists()) {
        let config = std::fs::read_to_string(dir.join("config.json")).unwrap();
        let text = from_config("m", &config).unwrap();
        let graph = spec::lower(&Spec::parse("m.toml", &text).unwrap()).unwrap();
        let checkpoint = Checkpoint::open(dir).unwrap();
        checkpoint::bind(&graph, &checkpoint).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
        found += 1;
    }
    assert!(found >= 8, "found {found} checkpoints");
}

#[test]
fn what_cannot_be_imported_says_why() {
    let base = gpt_oss(2, 4);
    let cases = [
        ("[]", "expected a JSON object"),
        ("{", "not JSON"),
        ("{}", "`architectures` is missing"),
        (r#"{"architectures": ["MambaForCausalLM"]}"#, "supported are: GptOssForCausalLM, LlamaForCausalLM"),
        (
            &base.replace("\"hidden_size\": 2880", "\"hidden_size\": 0"),
            "`hidden_size` is 0: expected a whole number",
        ),
        (&base.replace("\"hidden_size\": 2880", "\"hidden_size\": -1"), "`hidden_size` is -1"),
        (&base.replace("\"hidden_size\": 2880", "\"hidden_size\": 2881"), "rows of mxfp4 tensor"),
        (&base.replace("\"hidden_size\": 2880", "\"hidden_size\": 2e40"), "`hidden_size` is 2e+40"),
        (
            &base.replace("\"num_hidden_layers\": 2", "\"num_hidden_layers\": 2000000000"),
            "expected at most 1024",
        ),
        (
            &base.replace("\"num_hidden_layers\": 2", "\"num_hidden_layers\": 3"),
            "`layer_types` has 2 entries",
        ),
        (&base.replace("\"num_experts_per_tok\": 4", "\"num_experts_per_tok\": 3"), "expected the same"),
        (
            &base.replace("per_token\": 4", "per_token\": 9").replace("per_tok\": 4", "per_tok\": 9"),
            "top-9 of 4 experts",
        ),
        (&base.replace("\"yarn\"", "\"longrope\""), "RoPE scaling `longrope`"),
        (&base.replace("\"truncate\"", "\"mscale\": 1.0, \"truncate\""), "YaRN with `mscale`"),
        (&base.replace("\"quant_method\": \"mxfp4\"", "\"quant_method\": \"fp8\""), "quantization `fp8`"),
        (&base.replace("quantization_config", "other"), "experts that are not in MXFP4"),
        (&base.replace("\"rope_theta\": 150000", "\"rope_theta\": \"big\""), "`rope_theta` is \"big\""),
        (&base.replace("\"head_dim\": 64", "\"head_dim\": 63"), "RoPE rotates pairs"),
    ];
    for (config, expected) in cases {
        let error = from_config("m", config).unwrap_err().to_string();
        assert!(error.contains(expected), "{expected}: {error}");
    }
}

#[test]
fn hostile_numbers_do_not_panic() {
    let base: serde_json::Value = serde_json::from_str(&gpt_oss(2, 4)).unwrap();
    let hostile = [
        "0",
        "-1",
        "1",
        "3",
        "1e308",
        "1.5",
        "2147483648",
        "18446744073709551615",
        "null",
        "[]",
        "{}",
        "\"\"",
    ];
    for key in base.as_object().unwrap().keys() {
        for value in hostile {
            let mut config = base.clone();
            config[key] = serde_json::from_str(value).unwrap();
            let _ = from_config("m\n\"\u{7f}", &config.to_string());
        }
    }
}
