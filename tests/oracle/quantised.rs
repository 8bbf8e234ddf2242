//! Checkpoints whose matrices are quantised, against the logits of the weights that other readers make of
//! them, in float32 (tools/oracle/make_quantised.py).

use super::{differences, run};
use crate::harness::{Model, quantised, read};
use kernmill_checkpoint::Checkpoint;
use kernmill_compiler::interp::{Interpreter, RawTensor};
use kernmill_compiler::ir::{Graph, Tensor};
use kernmill_compiler::passes::quant::{Preset, quantise};
use kernmill_compiler::weights::{CheckpointWeights, WeightSource, converted};
use kernmill_plan::format::WeightFormat;

/// Models, the format of most of their matrices, and how many of them count as f32 and why.
const MODELS: [(&str, WeightFormat, &str); 10] = [
    ("awq", WeightFormat::Int4Zero, ""),
    ("fp8", WeightFormat::F32, "7 matrices in FP8 count as f32"),
    ("fp8-blocks", WeightFormat::F32, "7 matrices in FP8 count as f32"),
    ("gptq", WeightFormat::Int4, ""),
    ("gptq-v2-rows", WeightFormat::Int4Zero, ""),
    ("gptq-zeros", WeightFormat::Int4Zero, ""),
    ("int8", WeightFormat::Int8, "1 matrix with the integer -128 counts as f32"),
    ("mlx", WeightFormat::Q4_1, ""),
    ("packed", WeightFormat::Int4, ""),
    ("packed-zeros", WeightFormat::Int4Zero, ""),
];

/// Largest difference of a logit in preset `exact`.
const BAR: f32 = 1e-4;

/// The checkpoint's data of a tensor.
fn raw(weights: &CheckpointWeights<'_>, tensor: &Tensor) -> RawTensor {
    let rows = 0..tensor.shape[0];
    if tensor.stored.is_blocked() {
        let (mut bytes, mut scales) = (Vec::new(), Vec::new());
        weights.stored_rows(tensor, 0, rows, &mut bytes, &mut scales).unwrap();
        return RawTensor::Stored { format: tensor.stored, bytes };
    }
    let mut elements = Vec::new();
    weights.f32_rows(tensor, 0, rows, &mut elements).unwrap();
    RawTensor::F32(elements)
}

/// The interpreter's logits of every token.
fn interpreted(graph: &Graph, checkpoint: &Checkpoint, preset: Preset, tokens: &[u32]) -> Vec<f32> {
    let weights = CheckpointWeights::new(graph, checkpoint).unwrap();
    let graph = quantise(graph, preset).unwrap();
    let data: Vec<_> =
        graph.tensors.iter().map(|tensor| raw(&weights, tensor).convert(tensor).unwrap()).collect();
    Interpreter::new(&graph, &data).unwrap().extend(0, tokens).unwrap()
}

#[test]
fn quantised_checkpoints_are_what_other_readers_make_of_them() {
    for (name, format, note) in MODELS {
        let directory = quantised().join(name);
        let file = std::fs::read(directory.join("oracle.safetensors")).unwrap();
        let tokens = read(&file, "tokens", u32::from_le_bytes);
        let expected = read(&file, "logits", f32::from_le_bytes);
        let exact = differences(&run(&directory, Preset::Exact, &tokens), &expected, tokens.len());
        let faithful = run(&directory, Preset::Faithful, &tokens);
        let lost = differences(&faithful, &expected, tokens.len());
        let (worst, median) = (exact[exact.len() - 1], lost[lost.len() / 2]);
        println!("{name}: exact {worst:.2e}, faithful median {median:.2e}");
        assert!(worst <= BAR, "{name}: a logit differs by {worst}");
        assert!(median <= 0.2, "{name}: faithful differs by {median}");

        let (model, checkpoint) = (Model::open(&directory), Checkpoint::open(&directory).unwrap());
        let interpreted = interpreted(&model.graph, &checkpoint, Preset::Faithful, &tokens);
        assert!(
            interpreted.iter().zip(&faithful).all(|(a, b)| a.to_bits() == b.to_bits()),
            "{name}: not the interpreter's bits"
        );
        let matrices =
            model.graph.tensors.iter().filter(|tensor| tensor.source.name.contains("_proj.weight"));
        let others: Vec<&str> = matrices
            .filter(|tensor| tensor.stored != format)
            .map(|tensor| tensor.source.name.as_str())
            .collect();
        match name {
            "int8" => assert_eq!(others, ["model.layers.0.mlp.down_proj.weight"]),
            _ => assert_eq!(others, [""; 0], "{name}"),
        }
        let notes = converted(&checkpoint, "faithful");
        assert!(notes.len() == usize::from(!note.is_empty()), "{name}: {notes:?}");
        assert!(notes.iter().all(|said| said.starts_with(note)), "{name}: {notes:?}");
    }
}

/// Nothing of a matrix in blocks is lost but by rounding inputs, which some products therefore do less.
#[test]
fn inputs_of_kept_matrices_keep_more_than_8_bits() {
    let text = |name: &str| {
        let directory = quantised().join(name);
        let config = std::fs::read_to_string(directory.join("config.json")).unwrap();
        let checkpoint = Checkpoint::open(&directory).unwrap();
        kernmill_compiler::front::import::from_checkpoint("m", &config, &checkpoint).unwrap()
    };
    let keeps = |text: &str| {
        ["weight = \"v\", activations = \"q8x2\"", "= \"mlp_input\"", "= \"down_input\"", "\"q8x2\"]"]
            .map(|key| text.matches(key).count())
    };
    let [kept, converted, mlx] = ["gptq", "fp8", "mlx"].map(text);
    assert_eq!([keeps(&kept), keeps(&converted), keeps(&mlx)], [[1, 2, 1, 2], [0; 4], [1, 2, 1, 2]]);
    assert!(
        mlx.contains("weight = \"lm_head\", activations = \"f32\"")
            && !kept.contains("activations = \"f32\" }")
    );
}
