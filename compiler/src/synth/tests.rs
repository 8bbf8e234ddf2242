use super::*;
use crate::front::spec::{self, Spec};
use crate::ir::Role;
use crate::weights::{CheckpointWeights, WeightSource};
use kernmill_checkpoint::Checkpoint;

/// A spec that nothing reads.
const SPEC: (&str, &str) = ("kernmill.toml", "");
const SMALL: &str = r#"{"architectures": ["GptOssForCausalLM"], "head_dim": 32, "hidden_size": 64,
    "initial_context_length": 64, "intermediate_size": 64, "max_position_embeddings": 512, "num_attention_heads": 4, "num_experts_per_tok": 4,
    "num_hidden_layers": 2, "num_key_value_heads": 2, "num_local_experts": 32, "rms_norm_eps": 1e-05,
    "quantization_config": {"quant_method": "mxfp4"}, "rope_theta": 10000.0, "sliding_window": 16, "vocab_size": 512}"#;

fn small() -> Graph {
    let text = crate::front::import::from_config("small", SMALL).unwrap();
    spec::lower(&Spec::parse("small.toml", &text).unwrap()).unwrap()
}

#[test]
fn a_synthetic_checkpoint_binds_and_has_the_scatter_it_should() {
    let (graph, dir) = (small(), tempfile::tempdir().unwrap());
    let last = AtomicU64::new(0);
    write(&graph, SPEC, dir.path(), 1, &|done, total| {
        assert!(done <= total);
        last.fetch_max(done, Ordering::Relaxed);
    })
    .unwrap();
    let checkpoint = Checkpoint::open(dir.path()).unwrap();
    assert_eq!(last.into_inner(), checkpoint.bytes());
    let weights = CheckpointWeights::new(&graph, &checkpoint).unwrap();
    for (tensor, scatter) in graph.tensors.iter().zip(fill::scatters(&graph)) {
        if matches!(tensor.role, Role::Vector | Role::ExpertVector) {
            continue;
        }
        let mut rows = Vec::new();
        weights.f32_rows(tensor, 0, 0..tensor.shape[tensor.shape.len() - 2], &mut rows).unwrap();
        let std = (rows.iter().map(|x| x * x).sum::<f32>() / rows.len() as f32).sqrt();
        assert!((std / scatter.std - 1.0).abs() < 0.06, "{}: {std} for {scatter:?}", tensor.name);
        weights.done_with(tensor, 0, 0..tensor.shape[tensor.shape.len() - 2]);
    }
}

#[test]
fn the_seed_decides_the_bytes() {
    let graph = small();
    let make = |seed| {
        let dir = tempfile::tempdir().unwrap();
        write(&graph, SPEC, dir.path(), seed, &|_, _| {}).unwrap();
        assert!(matches!(write(&graph, SPEC, dir.path(), seed, &|_, _| {}), Err(SynthError::Exists { .. })));
        std::fs::read(dir.path().join(SINGLE_FILE)).unwrap()
    };
    let (a, b, c) = (make(1), make(1), make(2));
    assert!(a == b);
    assert!(a != c);
}

/// The spec of a model of one of the published classes, small.
fn published(class: &str, own: &str) -> String {
    let text = format!(
        r#"{{"architectures": ["{class}"], "hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 4,
        "num_key_value_heads": 2, "num_hidden_layers": 3, "max_position_embeddings": 512, "rms_norm_eps": 1e-06,
        "vocab_size": 300, {own}}}"#
    );
    crate::front::import::from_config("small", &text).unwrap_or_else(|e| panic!("{class} {own}: {e}"))
}

fn lowered(text: &str) -> Graph {
    spec::lower(&Spec::parse("small.toml", text).unwrap()).unwrap()
}

#[test]
fn a_directory_holds_its_spec_and_the_token_that_ends_a_text() {
    let mixture = r#""num_local_experts": 4, "num_experts_per_tok": 2, "head_dim": 32, "sliding_window": 16"#;
    let slides = r#""use_sliding_window": true, "sliding_window": 64"#;
    for (class, own) in [
        ("GptOssForCausalLM", format!(r#"{mixture}, "quantization_config": {{"quant_method": "mxfp4"}}"#)),
        ("GptOssForCausalLM", format!(r#"{mixture}, "swiglu_limit": 5.5, {}"#,
            r#""swiglu_alpha": 1.25, "attention_bias": false"#)),
        ("GptOssForCausalLM", format!(r#"{mixture}, "rope_scaling": {{"rope_type": "default"}}, "swiglu_limit": 1.0"#)),
        ("LlamaForCausalLM", r#""tie_word_embeddings": true, "torch_dtype": "float32""#.to_owned()),
        ("LlamaForCausalLM", concat!(r#""attention_bias": true, "mlp_bias": true, "#,
            r#""hidden_act": "gelu", "head_dim": 24"#).to_owned()),
        (
            "LlamaForCausalLM",
            r#""rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
            "original_max_position_embeddings": 128}"#
                .to_owned(),
        ),
        ("LlamaForCausalLM", r#""rope_scaling": {"type": "linear", "factor": 2.5}, "rope_theta": 5e5"#.to_owned()),
        ("MistralForCausalLM", r#""sliding_window": 100"#.to_owned()),
        ("MistralForCausalLM", r#""sliding_window": null, "hidden_act": "gelu_new""#.to_owned()),
        ("Qwen2ForCausalLM", format!(r#"{slides}, "max_window_layers": 2"#)),
        ("Qwen2ForCausalLM", format!(r#"{slides}, "max_window_layers": 0"#)),
        ("Qwen2ForCausalLM", concat!(r#""rope_scaling": {"type": "yarn", "factor": 4.0, "#,
            r#""original_max_position_embeddings": 128}"#).into()),
    ] {
        let (text, dir) = (published(class, &own), tempfile::tempdir().unwrap());
        write(&lowered(&text), (SPEC.0, &text), dir.path(), 1, &|_, _| {}).unwrap();
        let read = std::fs::read_to_string(dir.path().join(SPEC.0)).unwrap();
        crate::weights::bind(&lowered(&read), &Checkpoint::open(dir.path()).unwrap()).unwrap();
        let text = std::fs::read_to_string(dir.path().join(GENERATION_FILE)).unwrap();
        assert_eq!(text, "{\"eos_token_id\": 299}\n");
    }
}

#[test]
fn what_lies_in_the_directory_stays() {
    let graph = small();
    for name in
        ["model.safetensors", "model.safetensors.index.json", "tokenizer.json", "generation_config.json"]
    {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(name), "mine").unwrap();
        let error = write(&graph, SPEC, dir.path(), 0, &|_, _| {}).unwrap_err();
        assert!(matches!(&error, SynthError::Exists { path } if path.ends_with(name)), "{name}: {error}");
        assert_eq!(std::fs::read_to_string(dir.path().join(name)).unwrap(), "mine");
    }
}

#[test]
fn tokenizers_have_exactly_the_ids_of_the_vocabulary() {
    for vocab in [1, 96, 256, 257, 512, 201_088] {
        let json: serde_json::Value = serde_json::from_str(&tokenizer_json(vocab)).unwrap();
        let mut ids: Vec<u64> =
            json["model"]["vocab"].as_object().unwrap().values().filter_map(|v| v.as_u64()).collect();
        ids.extend(json["added_tokens"].as_array().unwrap().iter().filter_map(|t| t["id"].as_u64()));
        ids.sort_unstable();
        assert!(ids.into_iter().eq(0..vocab as u64), "{vocab}");
    }
}

#[test]
fn too_little_space_is_found_before_the_work() {
    let dir = tempfile::tempdir().unwrap();
    assert!(matches!(check_space(dir.path(), u64::MAX), Err(SynthError::Space { .. })));
    check_space(dir.path(), 1).unwrap();
}

#[test]
fn blocks_with_their_scales_within_are_refused() {
    let mut graph = small();
    let tensor = graph.tensors.iter_mut().find(|tensor| tensor.source.scales.is_some()).unwrap();
    tensor.source.scales = None;
    let dir = tempfile::tempdir().unwrap();
    let error = write(&graph, SPEC, dir.path(), 0, &|_, _| {}).unwrap_err();
    assert!(matches!(error, SynthError::Blocks { .. }), "{error}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn specs_of_gguf_files_become_those_of_checkpoints() {
    let spec = r#"[tensors]
a = { from = "a", shape = ["n", "m"], format = "bf16" }
b = { from = "b.{layer}", shape = ["n", "m"], format = ["q4_k", "bf16"] }
c = { from = "c", shape = ["e", "n", "m"], format = "mxfp4" }
d = { from = "d", scales = "d", shape = ["e", "n", "m"], format = "mxfp4" }
e = { from = "e", scales = "s", shape = ["e", "n", "m"], format = "mxfp4" } # kept
f = { format = "int8", from = "f", shape = ["n", "m"] }
"#;
    let expected = r#"[tensors]
a = { from = "a", shape = ["n", "m"], format = "bf16" }
b = { from = "b.{layer}", shape = ["n", "m"], format = "bf16" }
c = { from = "c", shape = ["e", "n", "m"], scales = "c_scales", format = "mxfp4" }
d = { from = "d", scales = "d_scales", shape = ["e", "n", "m"], format = "mxfp4" }
e = { from = "e", scales = "s", shape = ["e", "n", "m"], format = "mxfp4" } # kept
f = { format = "bf16", from = "f", shape = ["n", "m"] }
"#;
    assert_eq!(of_checkpoint(spec), expected);
}

/// A mixture whose checkpoint has q, k and v in one tensor, and each expert's gate and up in one.
const IN_PIECES: &str = r#"
model = { name = "m", vocab = 64, max_context = 8 }
tensors.table = { from = "table", shape = [64, 32], format = "bf16" }
before.node = [{ out = "x", op = "embed", table = "table" }]

[layer]
count = 2
carry = { x = "y" }
node = [
  { out = "q", op = "linear", input = "x", weight = "q" },
  { out = "k", op = "linear", input = "x", weight = "k" },
  { out = "v", op = "linear", input = "x", weight = "v" },
  { out = "a", op = "attention", q = "q", k = "k", v = "v", heads = 2, kv_heads = 1 },
  { out = "scores", op = "linear", input = "a", weight = "router" },
  { out = "routing", op = "router_topk", input = "scores", k = 1 },
  { out = "y", op = "moe", input = "a", routing = "routing", gate = "gate", up = "up", down = "down", activation = "gate * up" },
]
[layer.tensors]
q = { from = "{layer}.qkv", rows = { of = 64, take = "0..32" }, shape = [32, 32], format = "bf16" }
k = { from = "{layer}.qkv", rows = { of = 64, take = "32..48" }, shape = [16, 32], format = "bf16" }
v = { from = "{layer}.qkv", rows = { of = 64, take = "48..64" }, shape = [16, 32], format = "bf16" }
router = { from = "{layer}.router", shape = [4, 32], format = "bf16" }
gate = { from = "{layer}.{expert}.gate_up", rows = { of = 96, take = "0..48" }, shape = [4, 48, 32], format = "f32" }
up = { from = "{layer}.{expert}.gate_up", rows = { of = 96, take = "48..96" }, shape = [4, 48, 32], format = "f32" }
down = { from = "{layer}.{expert}.down", transposed = true, shape = [4, 32, 48], format = "f32" }

[after]
node = [
  { out = "last", op = "select_rows", input = "x" },
  { out = "logits", op = "logits", input = "last", weight = "head" },
]
[tensors.head]
from = "table"
shape = [64, 32]
format = "bf16"
"#;

#[test]
fn pieces_and_experts_are_written_as_the_checkpoint_has_them() {
    let graph = spec::lower(&Spec::parse("m.toml", IN_PIECES).unwrap()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    write(&graph, SPEC, dir.path(), 1, &|_, _| {}).unwrap();
    let checkpoint = Checkpoint::open(dir.path()).unwrap();
    let weights = CheckpointWeights::new(&graph, &checkpoint).unwrap();
    assert_eq!(checkpoint.names().count(), 1 + 2 * (2 + 4 * 2));
    let shape = |name: &str| checkpoint.tensor(name).unwrap().shape.to_vec();
    assert_eq!(shape("1.qkv"), [64, 32]);
    assert_eq!((shape("1.3.gate_up"), shape("1.3.down")), (vec![96, 32], vec![48, 32]));
    let rows = |name: &str, expert, rows| {
        let tensor = graph.tensors.iter().find(|tensor| tensor.name == name).unwrap();
        let mut out = Vec::new();
        weights.f32_rows(tensor, expert, rows, &mut out).unwrap();
        out.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>()
    };
    let data = checkpoint.tensor("1.3.gate_up").unwrap().data;
    assert!(rows("layers.1.gate", 3, 0..48) == data[..48 * 128]);
    assert!(rows("layers.1.up", 3, 1..48) == data[49 * 128..]);
}
