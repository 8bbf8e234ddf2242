use super::*;
use crate::weights;
use kernmill_checkpoint::{Checkpoint, Dtype};
use safetensors::tensor::TensorView;
use serde_json::json;
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

/// `None` if the model is refused.
fn llama(changes: &[(&str, &str)]) -> Result<String> {
    let mut config: serde_json::Value = serde_json::from_str(TINYLLAMA).unwrap();
    for (key, value) in changes {
        config[key] = serde_json::from_str(value).unwrap();
    }
    let map = config.as_object_mut().unwrap();
    map.retain(|_, value| value.as_str() != Some("missing"));
    from_config("m", &config.to_string())
}

#[test]
fn spellings_of_rope_are_compared_by_what_they_mean() {
    let linear = llama(&[("rope_scaling", r#"{"type": "linear", "factor": 2}"#)]).unwrap();
    assert!(linear.contains("scaling  = { kind = \"linear\", factor = 2.0 }"), "{linear}");
    for rope_parameters in [
        r#"{"rope_type": "linear", "factor": 2.0, "rope_theta": 10000}"#,
        r#"{"rope_type": "linear", "type": "linear", "factor": 2.0}"#,
        r#"{"rope_theta": 10000.0}"#,
    ] {
        let scaling = ("rope_scaling", r#"{"rope_type": "linear", "factor": 2.0}"#);
        assert_eq!(llama(&[("rope_parameters", rope_parameters), scaling]).unwrap(), linear);
    }
    let plain = llama(&[]).unwrap();
    assert_eq!(
        llama(&[("rope_parameters", r#"{"rope_type": "default", "rope_theta": 10000.0}"#)]).unwrap(),
        plain
    );
    assert_eq!(llama(&[("rope_scaling", "{}"), ("rope_theta", "\"missing\"")]).unwrap(), plain);
    for (parameters, scaling, says) in [
        (
            r#"{"rope_type": "linear", "factor": 4.0}"#,
            r#"{"type": "linear", "factor": 2.0}"#,
            "different scalings",
        ),
        (r#"{"rope_type": "default"}"#, r#"{"type": "linear", "factor": 2.0}"#, "different scalings"),
        (
            r#"{"rope_theta": 500000.0}"#,
            "null",
            "`rope_parameters.rope_theta` is 500000 but `rope_theta` is 10000",
        ),
    ] {
        let error =
            llama(&[("rope_parameters", parameters), ("rope_scaling", scaling)]).unwrap_err().to_string();
        assert!(error.contains(says), "{says}: {error}");
    }
}

#[test]
fn dynamic_scaling_ends_the_context_with_the_original_one() {
    let text = llama(&[("rope_scaling", r#"{"type": "dynamic", "factor": 4.0}"#)]).unwrap();
    assert!(text.contains("max_context = 2048"), "{text}");
    assert!(text.contains("{ kind = \"dynamic\", factor = 4.0, original_context = 2048 }"), "{text}");
    let extended = r#"{"type": "dynamic", "factor": 4.0, "original_max_position_embeddings": 512}"#;
    assert!(llama(&[("rope_scaling", extended)]).unwrap().contains("max_context = 512"));
}

/// Qwen 2.5's cards have readers add YaRN to a config and change nothing else in it; others state the whole
/// context. A window as long as the context without the scaling is one, then.
#[test]
fn yarn_reaches_as_far_as_its_factor() {
    let scaled = |key: &'static str, scaling: &'static str, stated: &'static str| {
        llama(&[(key, scaling), ("max_position_embeddings", stated)]).unwrap()
    };
    let card = r#"{"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}"#;
    let newer = r#"{"rope_type": "yarn", "factor": 2.5, "rope_theta": 10000.0,
        "original_max_position_embeddings": 8192}"#;
    let bare = r#"{"type": "yarn", "factor": 4.0}"#;
    for (key, scaling, stated, expected) in [
        ("rope_scaling", card, "32768", 131_072),
        ("rope_scaling", card, "131072", 131_072),
        ("rope_scaling", card, "262144", 262_144),
        ("rope_parameters", newer, "8192", 20_480),
        ("rope_scaling", bare, "2048", 8192),
    ] {
        let text = scaled(key, scaling, stated);
        assert!(text.contains(&format!("max_context = {expected}\n")), "{scaling} {stated}: {text}");
    }
    let config = |stated: u64| {
        json!({
            "architectures": ["MistralForCausalLM"], "sliding_window": 4096, "max_position_embeddings": stated,
            "rope_scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": stated},
        })
    };
    let text = from_config("m", &config(4096).to_string()).unwrap();
    assert!(text.contains("max_context = 16384") && text.contains("sliding_window = 4096"), "{text}");
}

/// The defaults are those of transformers' configuration classes.
#[test]
fn missing_keys_are_what_the_class_takes() {
    let given = llama(&[
        ("rope_theta", "10000.0"),
        ("rms_norm_eps", "1e-6"),
        ("max_position_embeddings", "2048"),
        ("num_key_value_heads", "32"),
    ]);
    let missing = llama(&[
        ("rope_theta", "\"missing\""),
        ("rms_norm_eps", "\"missing\""),
        ("max_position_embeddings", "null"),
        ("num_key_value_heads", "null"),
        ("architectures", "\"missing\""),
        ("model_type", "\"llama\""),
        ("tie_word_embeddings", "null"),
    ]);
    assert_eq!(missing.unwrap(), given.unwrap());
    for (class, says) in [
        (
            "LlamaForCausalLM",
            &["vocab      = 32000", "hidden     = 4096", "layers     = 32", "theta    = 10000.0"][..],
        ),
        ("MistralForCausalLM", &["kv_heads       = 8", "sliding_window = 4096", "max_context = 131072"]),
        ("Qwen2ForCausalLM", &["vocab      = 151936", "kv_heads   = 32", "mlp_hidden = 22016"]),
        (
            "GptOssForCausalLM",
            &["experts        = 128", "theta    = 150000.0", "kind = \"yarn\", factor = 32.0"],
        ),
    ] {
        let text = from_config("m", &format!("{{\"architectures\": [\"{class}\"]}}")).unwrap();
        says.iter().for_each(|line| assert!(text.contains(line), "{class}: {line}\n{text}"));
    }
}

#[test]
fn keys_that_a_class_ignores_change_nothing() {
    let plain = llama(&[]).unwrap();
    for changes in [
        &[("sliding_window", "4096")][..],
        &[("use_sliding_window", "true"), ("max_window_layers", "3")],
        &[
            ("torch_dtype", "\"bfloat16\""),
            ("use_cache", "false"),
            ("unsloth_fixed", "true"),
            ("pretraining_tp", "2"),
        ],
        &[("attention_multiplier", "1.0"), ("no_rope_layers", "[]")],
    ] {
        assert_eq!(llama(changes).unwrap(), plain, "{changes:?}");
    }
}

#[test]
fn windows_of_mistral_and_qwen2_are_their_classes() {
    let of = |class: &str, keys: &str| {
        let sizes = r#""hidden_size": 64, "num_attention_heads": 2, "num_key_value_heads": 1, "num_hidden_layers": 4"#;
        let text =
            from_config("m", &format!("{{\"architectures\": [\"{class}\"], {sizes}, {keys}}}")).unwrap();
        let graph = spec::lower(&Spec::parse("m", &text).unwrap()).unwrap();
        let windows = graph.nodes.iter().filter_map(|node| match &node.op {
            crate::ir::Op::Attention(a) => Some(a.window.unwrap_or(0)),
            _ => None,
        });
        windows.collect::<Vec<u32>>()
    };
    assert_eq!(of("MistralForCausalLM", r#""sliding_window": 16"#), [16; 4]);
    assert_eq!(of("MistralForCausalLM", r#""sliding_window": null"#), [0; 4]);
    assert_eq!(of("MistralForCausalLM", r#""sliding_window": 512, "max_position_embeddings": 512"#), [0; 4]);
    let qwen = |keys: &str| of("Qwen2ForCausalLM", keys);
    assert_eq!(qwen(r#""sliding_window": 16, "max_window_layers": 1"#), [0; 4]);
    assert_eq!(
        qwen(r#""sliding_window": 16, "max_window_layers": 1, "use_sliding_window": true"#),
        [0, 16, 16, 16]
    );
    assert_eq!(qwen(r#""sliding_window": 16, "max_window_layers": 0, "use_sliding_window": true"#), [16; 4]);
    assert_eq!(qwen(r#""sliding_window": 16, "use_sliding_window": true"#), [0; 4]);
    let types =
        r#""layer_types": ["full_attention", "sliding_attention", "full_attention", "sliding_attention"]"#;
    assert_eq!(
        qwen(&format!(r#""sliding_window": 16, "use_sliding_window": true, {types}"#)),
        [0, 16, 0, 16]
    );
}

#[test]
fn the_experts_activation_has_the_factor_that_the_config_states() {
    let alpha = |alpha: &str| {
        from_config("m", &gpt_oss(2, 4).replace("\"swiglu_limit\"", &format!("{alpha} \"swiglu_limit\"")))
            .unwrap()
    };
    assert_eq!(alpha(""), alpha("\"swiglu_alpha\": 1.702,"));
    assert!(alpha("\"swiglu_alpha\": 1.25,").contains("sigmoid(1.25 * min(gate, 7))"));
    assert!(alpha("\"swiglu_alpha\": 2,").contains("sigmoid(2 * min(gate, 7))"));
}

#[test]
fn every_committed_checkpoint_is_the_one_its_config_describes() {
    let mut found = 0;
    let unpacked = tempfile::tempdir().unwrap();
    for fixtures in ["oracle", "imports", "quantised"].map(|name| format!("tests/fixtures/{name}.tar")) {
        let mut tar = std::process::Command::new("tar");
        let tar = tar.arg("-xf").arg(repository().join(fixtures)).arg("-C").arg(unpacked.path());
        assert!(tar.status().unwrap().success());
    }
    let mut dirs = vec![repository().join("model-specs/nano")];
    dirs.extend(std::fs::read_dir(unpacked.path()).unwrap().map(|e| e.unwrap().path()));
    for dir in dirs.iter().filter(|d| d.join("config.json").exists()) {
        let config = std::fs::read_to_string(dir.join("config.json")).unwrap();
        let checkpoint = Checkpoint::open(dir).unwrap();
        let text = from_checkpoint("m", &config, &checkpoint).unwrap();
        let graph = spec::lower(&Spec::parse("m.toml", &text).unwrap()).unwrap();
        weights::bind(&graph, &checkpoint).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
        found += 1;
    }
    assert!(found >= 24, "found {found} checkpoints");
}

#[test]
fn what_cannot_be_imported_says_why() {
    let base = gpt_oss(2, 4);
    let cases = [
        ("[]", "expected a JSON object"),
        ("{", "not JSON"),
        ("{}", "`architectures` is missing"),
        (
            r#"{"architectures": ["MambaForCausalLM"]}"#,
            "docs/user/architectures.md lists the architectures that run",
        ),
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
        (&base.replace("\"yarn\"", "\"longrope\""), "`rope_scaling.short_factor` is missing"),
        (
            &base.replace("\"truncate\"", "\"mscale\": -1.0, \"mscale_all_dim\": 1.0, \"truncate\""),
            "`rope_scaling.mscale`",
        ),
        (&base.replace("\"quant_method\": \"mxfp4\"", "\"quant_method\": \"fp8\""), "quantization `fp8`"),
        (&base.replace("quantization_config", "other"), "unknown key `other`"),
        (
            &base.replace("\"swiglu_limit\"", "\"use_qk_norm\": true, \"swiglu_limit\""),
            "unknown key `use_qk_norm`",
        ),
        (&base.replace("\"beta_slow\"", "\"alpha\": 2.0, \"beta_slow\""), "unknown key `rope_scaling.alpha`"),
        (
            &base.replace("\"swiglu_limit\"", "\"partial_rotary_factor\": 1.5, \"swiglu_limit\""),
            "`partial_rotary_factor` is 1.5",
        ),
        (&base.replace("\"sliding_attention\"", "\"chunked_attention\""), "layer type `chunked_attention`"),
        (
            &base.replace("\"hidden_act\": \"silu\"", "\"hidden_act\": \"relu\""),
            "`hidden_act` other than silu",
        ),
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

/// A Llama of two layers whose tensors have these types by name; `skipped` ones are left out, `more` are
/// added.
fn small_llama(dtype: impl Fn(&str) -> Dtype, skipped: &str, more: &[(&str, &[usize])]) -> Checkpoint {
    let (hidden, vocab) = (32, 8);
    let mut shapes: Vec<(String, Vec<usize>)> =
        vec![(weights::EMBEDDING.into(), vec![vocab, hidden]), ("model.norm.weight".into(), vec![hidden])];
    for layer in 0..2 {
        let mut own = |name: &str, shape: &[usize]| {
            shapes.push((format!("model.layers.{layer}.{name}.weight"), shape.to_vec()));
        };
        own("input_layernorm", &[hidden]);
        own("post_attention_layernorm", &[hidden]);
        ["q", "k", "v", "o"].iter().for_each(|m| own(&format!("self_attn.{m}_proj"), &[hidden, hidden]));
        ["gate", "up"].iter().for_each(|m| own(&format!("mlp.{m}_proj"), &[64, hidden]));
        own("mlp.down_proj", &[hidden, 64]);
    }
    shapes.retain(|(name, _)| name != skipped);
    shapes.extend(more.iter().map(|(name, shape)| ((*name).to_owned(), shape.to_vec())));
    let zeros = vec![0; 64 * 1024];
    let views = shapes.iter().map(|(name, shape)| {
        let bytes = shape.iter().product::<usize>() * dtype(name).bitsize() / 8;
        (name, TensorView::new(dtype(name), shape.clone(), &zeros[..bytes]).unwrap())
    });
    Checkpoint::from_bytes("small.safetensors", safetensors::serialize(views, None).unwrap()).unwrap()
}

fn small_config(tied: bool) -> String {
    format!(
        r#"{{"model_type": "llama", "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
        "num_attention_heads": 1, "vocab_size": 8, "torch_dtype": "float64", "tie_word_embeddings": {tied}}}"#
    )
}

/// The spec, whose tensors are all in the checkpoint, with their own types.
fn bound(config: &str, checkpoint: &Checkpoint) -> String {
    let text = from_checkpoint("m", config, checkpoint).unwrap();
    let graph = spec::lower(&Spec::parse("m", &text).unwrap()).unwrap();
    weights::bind(&graph, checkpoint).unwrap_or_else(|error| panic!("{error}\n{text}"));
    text
}

#[test]
fn tensors_have_the_types_of_their_headers() {
    let head = [(weights::UNEMBEDDING, &[8, 32][..])];
    let all = |dtype: Dtype| bound(&small_config(false), &small_llama(|_| dtype, "", &head));
    assert_eq!(all(Dtype::F16).matches("format = \"f16\"").count(), 12);
    assert_eq!(all(Dtype::F32).matches("format = \"f32\"").count(), 12);
    let mixed = |name: &str| match name {
        "model.norm.weight" | "model.layers.0.mlp.up_proj.weight" => Dtype::F32,
        weights::UNEMBEDDING => Dtype::F16,
        _ => Dtype::BF16,
    };
    let text = bound(&small_config(false), &small_llama(mixed, "", &head));
    let format = |tensor: &str| {
        let line = text.lines().find(|line| line.contains(&format!("from = \"{tensor}"))).unwrap();
        line.split("format = ").nth(1).unwrap().split('"').nth(1).unwrap().to_owned()
    };
    assert_eq!(format("model.norm.weight"), "f32");
    assert_eq!(format("lm_head.weight"), "f16");
    assert_eq!(format("model.embed_tokens.weight"), "bf16");
    // Layers that differ are read as f32.
    assert_eq!(format("model.layers.{layer}.mlp.up_proj"), "f32");
    assert_eq!(format("model.layers.{layer}.mlp.down_proj"), "bf16");
}

#[test]
fn tied_embeddings_may_be_stored_under_either_name_or_both() {
    let bf16 = |_: &str| Dtype::BF16;
    let head = [(weights::UNEMBEDDING, &[8, 32][..])];
    for (checkpoint, table, unembedding) in [
        (small_llama(bf16, "", &[]), weights::EMBEDDING, weights::EMBEDDING),
        (small_llama(bf16, "", &head), weights::EMBEDDING, weights::UNEMBEDDING),
        (small_llama(bf16, weights::EMBEDDING, &head), weights::UNEMBEDDING, weights::UNEMBEDDING),
    ] {
        let text = bound(&small_config(true), &checkpoint);
        for (name, from) in [("embed ", table), ("lm_head ", unembedding)] {
            let line = text.lines().find(|line| line.starts_with(name) && line.contains("from")).unwrap();
            assert!(line.contains(from), "{line}");
        }
    }
    let error =
        from_checkpoint("m", &small_config(false), &small_llama(bf16, "", &[])).unwrap_err().to_string();
    assert!(error.contains("has no `lm_head.weight`, and `tie_word_embeddings` is not true"), "{error}");
}

/// A spec of tied embeddings goes with a file that has the table twice, if both are the same.
#[test]
fn a_second_copy_of_tied_embeddings_is_no_tensor_too_many() {
    let spec = bound(&small_config(true), &small_llama(|_| Dtype::BF16, "", &[]));
    let graph = spec::lower(&Spec::parse("m", &spec).unwrap()).unwrap();
    let head = [(weights::UNEMBEDDING, &[8, 32][..])];
    weights::bind(&graph, &small_llama(|_| Dtype::BF16, "", &head)).unwrap();
    for other in [&[(weights::UNEMBEDDING, &[4, 32][..])][..], &[("head.weight", &[8, 32])]] {
        let error = weights::bind(&graph, &small_llama(|_| Dtype::BF16, "", other)).unwrap_err().to_string();
        assert!(error.contains("1 tensor that the model does not use"), "{error}");
    }
}

#[test]
fn experts_are_as_their_tensors_say() {
    let experts = |config: &str| from_config("m", config).unwrap();
    let packed = experts(&gpt_oss(2, 4));
    assert!(packed.contains("gate_up_proj_blocks") && packed.contains("format = \"mxfp4\""));
    let plain = experts(&gpt_oss(2, 4).replace("\"quant_method\": \"mxfp4\"", ""));
    let gate = "from = \"model.layers.{layer}.mlp.experts.gate_up_proj\", rows = \"even\", transposed = true";
    assert!(plain.contains(gate), "{plain}");
    assert!(plain.contains(
        "experts.down_proj\", transposed = true, shape = [\"experts\", \"hidden\", \"expert_hidden\"]"
    ));
    assert!(!plain.contains("mxfp4"));
}

#[test]
fn encoders_are_refused_by_name_where_they_are_others() {
    let bert = |more: &str| {
        let config = format!(
            r#"{{"architectures": ["XLMRobertaModel"], "hidden_size": 64, "num_attention_heads": 4,
            "num_hidden_layers": 2, "intermediate_size": 96, "vocab_size": 64, "pad_token_id": 1{more}}}"#
        );
        from_config("m", &config)
    };
    let spec = bert(", \"position_embedding_type\": \"absolute\", \"output_past\": true").unwrap();
    assert!(spec.contains("max_context = 510") && spec.contains("take = \"2..512\""), "{spec}");
    for (more, says) in [
        (r#", "position_embedding_type": "relative_key""#, "`position_embedding_type` `relative_key`"),
        (r#", "is_decoder": true"#, "`is_decoder`"),
        (r#", "add_cross_attention": true"#, "`add_cross_attention`"),
        (r#", "hidden_act": "silu""#, "activation `silu`"),
        (r#", "max_position_embeddings": 2"#, "expected more than 2"),
        (r#", "rope_theta": 1e4"#, "unknown key `rope_theta`"),
        (r#", "num_key_value_heads": 2"#, "unknown key `num_key_value_heads`"),
        (r#", "layer_types": ["sliding_attention", "full_attention"]"#, "unknown key `layer_types`"),
    ] {
        let error = bert(more).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
}
