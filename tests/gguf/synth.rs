//! Random GGUF files that the project writes itself (`kernmill synth -o FILE.gguf`).

use super::decode::compare_tiles;
use super::{in_f32, logits};
use crate::harness::{Model, program};
use kernmill_checkpoint::gguf::Gguf;
use kernmill_compiler::front::import::from_config;
use kernmill_compiler::front::spec::{Spec, lower};
use kernmill_compiler::ir::Graph;
use kernmill_compiler::passes::quant::Preset;
use kernmill_compiler::synth::{SynthError, write_gguf};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const TOKENS: [u32; 5] = [3, 1, 4, 1, 5];

/// A small model of a published class; `own` is more of its `config.json`.
fn graph(class: &str, own: &str) -> Graph {
    let text = format!(
        r#"{{"architectures": ["{class}"], "hidden_size": 256, "intermediate_size": 512, "num_attention_heads": 4,
        "num_key_value_heads": 2, "num_hidden_layers": 3, "max_position_embeddings": 512, "rms_norm_eps": 1e-06,
        "vocab_size": 300, {own}}}"#
    );
    lower(&Spec::parse("small.toml", &from_config("small", &text).unwrap()).unwrap()).unwrap()
}

fn llama() -> Graph {
    graph("LlamaForCausalLM", r#""tie_word_embeddings": false"#)
}

/// Writes a file of `types`, or of the spec's.
fn written(graph: &Graph, path: &Path, types: Option<&str>, seed: u64) -> Result<(), SynthError> {
    let types = types.map(|types| types.parse().unwrap()).unwrap_or_default();
    write_gguf(graph, path, types, seed, &|done, all| assert!(done <= all))
}

/// The types of the tensors whose names end so, by layer.
fn kinds(gguf: &Gguf, end: &str, layers: usize) -> Vec<&'static str> {
    let kind = |layer| gguf.tensor_type(&format!("blk.{layer}.{end}")).unwrap().name;
    (0..layers).map(kind).collect()
}

#[test]
fn plans_of_every_mix_hold_the_values_of_the_file_and_run() {
    let mixture = r#""num_local_experts": 4, "num_experts_per_tok": 2, "head_dim": 64, "sliding_window": 16,
        "quantization_config": {"quant_method": "mxfp4"}"#;
    let llama3 = r#""rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
        "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}, "rope_theta": 500000.0"#;
    let experts = r#""head_dim": 64, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 256,
        "norm_topk_prob": true"#;
    let gemma = r#""head_dim": 64, "query_pre_attn_scalar": 64, "sliding_window": 16, "num_hidden_layers": 7,
        "rope_local_base_freq": 10000.0, "rope_theta": 1e6, "rope_scaling": {"rope_type": "linear", "factor": 8.0},
        "hidden_activation": "gelu_pytorch_tanh", "sliding_window_pattern": 6"#;
    let dir = tempfile::tempdir().unwrap();
    for (number, (class, own, types)) in [
        ("LlamaForCausalLM", llama3, "q4_k_m"),
        ("LlamaForCausalLM", r#""tie_word_embeddings": true"#, "q5_k_m"),
        ("LlamaForCausalLM", llama3, "q4_0"),
        ("MistralForCausalLM", r#""sliding_window": null"#, "q6_k"),
        ("Qwen2ForCausalLM", r#""tie_word_embeddings": true"#, "q4_k_m"),
        ("Qwen2ForCausalLM", r#""rope_theta": 1e6"#, "all:q5_0"),
        ("GptOssForCausalLM", mixture, "mxfp4_moe"),
        ("GptOssForCausalLM", mixture, "q5_k_m"),
        ("LlamaForCausalLM", llama3, "q8_0"),
        ("Qwen3ForCausalLM", r#""head_dim": 64"#, "q5_k_m"),
        ("Qwen3MoeForCausalLM", experts, "q4_k_m"),
        ("Gemma3ForCausalLM", gemma, "q4_k_m"),
    ]
    .into_iter()
    .enumerate()
    {
        let path = dir.path().join(format!("{number}.gguf"));
        written(&graph(class, own), &path, Some(types), 1).unwrap();
        let (gguf, model) = (Gguf::open(&path).unwrap(), Model::open(&path));
        let is_llama = gguf.architecture().unwrap() == "llama";
        let paired =
            |name: &str| (is_llama && name.contains("attn_q") | name.contains("attn_k")).then_some(64);
        let compared = compare_tiles(&model, &gguf, &paired);
        assert!(compared.elements > 1_000_000, "{class} {types}: {compared:?}");
        let row = logits(&model, Preset::Faithful, &TOKENS);
        assert!(row.iter().all(|&bits| f32::from_bits(bits).is_finite()), "{class} {types}");
        assert!(row.iter().any(|&bits| f32::from_bits(bits).abs() > 0.5), "{class} {types}");
    }
}

/// Elements by themselves are the same in a file's and a checkpoint's models, whatever the rows' order.
#[test]
fn files_of_plain_elements_and_of_other_blocks_run() {
    let dir = tempfile::tempdir().unwrap();
    for types in [
        None,
        Some("f16"),
        Some("all:f32"),
        Some("all:q2_k"),
        Some("all:q3_k"),
        Some("all:iq4_xs"),
        Some("all:nvfp4"),
        Some("all:q4_1"),
        Some("iq4_nl"),
    ] {
        let path = dir.path().join(format!("{}.gguf", types.unwrap_or("spec").replace(':', "-")));
        written(&llama(), &path, types, 1).unwrap();
        let mut model = Model::open(&path);
        let faithful = logits(&model, Preset::Faithful, &TOKENS);
        assert!(faithful.iter().all(|&bits| f32::from_bits(bits).is_finite()), "{types:?}");
        if types == Some("all:f32") {
            let exact = logits(&model, Preset::Exact, &TOKENS);
            model.graph = in_f32(&model.graph);
            assert!(exact == logits(&model, Preset::Exact, &TOKENS));
        }
    }
}

#[test]
fn the_seed_decides_the_bytes_of_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let bytes = |name: &str, seed| {
        let path = dir.path().join(name);
        written(&llama(), &path, Some("q4_k_m"), seed).unwrap();
        fs::read(path).unwrap()
    };
    let (a, b, c) = (bytes("a", 1), bytes("b", 1), bytes("c", 2));
    assert!(a == b);
    assert!(a != c && a.len() == c.len());
}

/// The types that a quantiser gave a published model of these shapes: see `tests/gemma3/`, whose file has
/// the same.
#[test]
fn narrower_blocks_take_the_place_of_those_that_do_not_fit() {
    let own = r#""tie_word_embeddings": true, "head_dim": 256"#;
    let mut graph = graph("LlamaForCausalLM", own);
    let text = r#"{"architectures": ["LlamaForCausalLM"], "hidden_size": 640, "intermediate_size": 2048,
        "num_attention_heads": 4, "num_key_value_heads": 1, "num_hidden_layers": 18, "head_dim": 256,
        "max_position_embeddings": 512, "rms_norm_eps": 1e-06, "vocab_size": 300, "tie_word_embeddings": true}"#;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file.gguf");
    written(&graph, &path, Some("q4_k_m"), 1).unwrap();
    assert_eq!(kinds(&Gguf::open(&path).unwrap(), "attn_v.weight", 3), ["Q4_K", "Q4_K", "Q6_K"]);
    fs::remove_file(&path).unwrap();

    graph = lower(&Spec::parse("s", &from_config("small", text).unwrap()).unwrap()).unwrap();
    written(&graph, &path, Some("q4_k_m"), 1).unwrap();
    let gguf = Gguf::open(&path).unwrap();
    let more = |layer: usize| [0, 1, 4, 7, 10, 13, 15, 16, 17].contains(&layer);
    let by_layer =
        |more_bits, fewer| (0..18).map(|n| if more(n) { more_bits } else { fewer }).collect::<Vec<_>>();
    assert_eq!(kinds(&gguf, "attn_v.weight", 18), by_layer("Q8_0", "Q5_0"));
    assert_eq!(kinds(&gguf, "ffn_down.weight", 18), by_layer("Q6_K", "Q4_K"));
    assert_eq!(kinds(&gguf, "attn_q.weight", 18), ["Q5_0"; 18]);
    assert_eq!(kinds(&gguf, "attn_output.weight", 18), ["Q4_K"; 18]);
    assert_eq!(gguf.tensor_type("token_embd.weight").unwrap().name, "Q8_0");
    let error = written(&graph, &dir.path().join("no"), Some("all:q4_k"), 1).unwrap_err().to_string();
    assert!(
        error.starts_with("tensor `token_embd.weight` has rows of 640 elements, and blocks of Q4_K have 256"),
        "{error}"
    );
}

#[test]
fn models_that_no_file_describes_are_refused_and_leave_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |graph: &Graph, expected: &str| {
        let error = written(graph, &dir.path().join("file.gguf"), None, 1).unwrap_err().to_string();
        assert!(error.contains(expected), "{expected}: {error}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "{expected}");
    };
    let unknown = "no GGUF file describes such a model";
    refused(&graph("LlamaForCausalLM", r#""hidden_act": "gelu""#), unknown);
    refused(&graph("MistralForCausalLM", r#""sliding_window": 64"#), unknown);
    let mut named = llama();
    named.tensors[3].source.name = "wte.weight".into();
    refused(&named, "tensor `wte.weight`: GGUF files have no name for it");
}

fn kernmill(dir: &Path, args: &[&str]) -> (Option<i32>, String, String) {
    let mut command: Command = program();
    let output = command.args(args).current_dir(dir).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn the_program_writes_files_that_it_runs() {
    let dir = tempfile::tempdir().unwrap();
    let nano: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("model-specs/nano/nano.toml");
    let nano = nano.to_str().unwrap();
    let (status, _, message) = kernmill(dir.path(), &["synth", nano, "-o", "a.gguf", "--types", "mxfp4_moe"]);
    assert_eq!(status, Some(0), "{message}");
    assert!(message.contains("`kernmill run` takes the file"), "{message}");
    // The file's own spec, and its own types, make the same file.
    let (status, _, message) = kernmill(dir.path(), &["synth", "a.gguf", "-o", "b.gguf"]);
    assert_eq!(status, Some(0), "{message}");
    let kinds = |name: &str| -> Vec<_> {
        let gguf = Gguf::open(&dir.path().join(name)).unwrap();
        let kind = |end: &str| gguf.tensor_type(&format!("blk.0.{end}.weight")).unwrap().name;
        ["attn_q", "attn_norm", "ffn_gate_inp", "ffn_up_exps"].map(kind).into()
    };
    assert_eq!(kinds("a.gguf"), ["Q8_0", "F32", "F32", "MXFP4"]);
    assert_eq!(kinds("a.gguf"), kinds("b.gguf"));
    let (status, text, message) =
        kernmill(dir.path(), &["run", "a.gguf", "--prompt", "A slice", "-n", "5", "-q"]);
    assert_eq!(status, Some(0), "{message}");
    assert!(!text.is_empty());
    for (args, expected, code) in [
        (&["-o", "a.gguf"][..], "a.gguf: already there; expected a new file", 2),
        (
            &["-o", "c.gguf", "--types", "q4_k"],
            "expected all:q4_k for one type everywhere, or one of: q4_k_m",
            2,
        ),
        (&["-o", "c.gguf", "--types", "q4_0", "--lora", "4"], "--lora", 2),
        (&["-o", "no/c.gguf"], "no: No such file", 1),
    ] {
        let (status, _, message) = kernmill(dir.path(), &[&["synth", nano], args].concat());
        assert_eq!(status, Some(code), "{args:?}: {message}");
        assert!(message.contains(expected), "{args:?}: {message}");
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
}
