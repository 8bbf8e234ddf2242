use super::*;
use crate::checkpoint::{Checkpoint, Weights};
use crate::graph::Role;
use crate::spec::{self, Spec};

const SMALL: &str = r#"{"architectures": ["GptOssForCausalLM"], "head_dim": 32, "hidden_size": 64, "initial_context_length": 64,
    "intermediate_size": 64, "max_position_embeddings": 512, "num_attention_heads": 4, "num_experts_per_tok": 4,
    "num_hidden_layers": 2, "num_key_value_heads": 2, "num_local_experts": 32, "rms_norm_eps": 1e-05,
    "quantization_config": {"quant_method": "mxfp4"}, "rope_theta": 10000.0, "sliding_window": 16, "vocab_size": 512}"#;

fn small() -> Graph {
    let text = crate::import::from_config("small", SMALL).unwrap();
    spec::lower(&Spec::parse("small.toml", &text).unwrap()).unwrap()
}

#[test]
fn a_synthetic_checkpoint_binds_and_has_the_scatter_it_should() {
    let (graph, dir) = (small(), tempfile::tempdir().unwrap());
    let last = AtomicU64::new(0);
    write(&graph, dir.path(), 1, &|done, total| {
        assert!(done <= total);
        last.fetch_max(done, Ordering::Relaxed);
    })
    .unwrap();
    let checkpoint = Checkpoint::open(dir.path()).unwrap();
    assert_eq!(last.into_inner(), checkpoint.bytes());
    let weights = Weights::new(&graph, &checkpoint).unwrap();
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
        write(&graph, dir.path(), seed, &|_, _| {}).unwrap();
        assert!(matches!(write(&graph, dir.path(), seed, &|_, _| {}), Err(SynthError::Exists { .. })));
        std::fs::read(dir.path().join(SINGLE_FILE)).unwrap()
    };
    let (a, b, c) = (make(1), make(1), make(2));
    assert!(a == b);
    assert!(a != c);
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
