//! The interpreter against logits that other code made: transformers in float32, and PyTorch for `faithful`.

use super::{Interpreter, RawTensor, TensorData};
use crate::front::spec::{Spec, lower};
use crate::ir::{Graph, Role, Tensor};
use crate::passes::quant::{Preset, quantise};
use crate::weights::{CheckpointWeights, WeightSource};
use kernmill_checkpoint::Checkpoint;
use std::path::Path;
use std::process::Command;

/// The checkpoint's data of one tensor.
fn raw(weights: &CheckpointWeights, tensor: &Tensor) -> RawTensor {
    let (experts, rows) = match (tensor.role, tensor.shape.as_slice()) {
        (Role::ExpertMatrix, shape) => (shape[0], shape[1]),
        (Role::ExpertVector, shape) => (shape[0], shape[1]),
        (_, shape) => (1, shape[0]),
    };
    if tensor.source.scales.is_some() {
        let (mut blocks, mut scales) = (Vec::new(), Vec::new());
        for expert in 0..experts {
            let (mut b, mut s) = (Vec::new(), Vec::new());
            weights.stored_rows(tensor, expert, 0..rows, &mut b, &mut s).unwrap();
            blocks.extend(b);
            scales.extend(s);
        }
        return RawTensor::Mxfp4 { blocks, scales };
    }
    let mut all = Vec::new();
    for expert in 0..experts {
        let mut part = Vec::new();
        weights.f32_rows(tensor, expert, 0..rows, &mut part).unwrap();
        all.extend(part);
    }
    RawTensor::F32(all)
}

fn f32s(checkpoint: &Checkpoint, name: &str) -> Vec<f32> {
    let bytes = checkpoint.tensor(name).unwrap().data;
    bytes.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect()
}

/// Per position the largest difference, ascending.
fn differences(
    dir: &Path,
    graph: &Graph,
    weights: &CheckpointWeights,
    preset: Preset,
    logits: &str,
) -> Vec<f32> {
    let graph = quantise(graph, preset).unwrap();
    let data: Vec<TensorData> =
        graph.tensors.iter().map(|tensor| raw(weights, tensor).convert(tensor).unwrap()).collect();
    let oracle = Checkpoint::open(&dir.join("oracle.safetensors")).unwrap();
    let tokens: Vec<u32> = {
        let bytes = oracle.tensor("tokens").unwrap().data;
        bytes.chunks_exact(4).map(|b| u32::from_le_bytes(b.try_into().unwrap())).collect()
    };
    let wanted = f32s(&oracle, logits);
    let found = Interpreter::new(&graph, &data).unwrap().extend(0, &tokens).unwrap();
    assert_eq!(found.len(), wanted.len());
    let positions = found.chunks(graph.vocab).zip(wanted.chunks(graph.vocab));
    let largest = |(a, b): (&[f32], &[f32])| a.iter().zip(b).fold(0.0f32, |m, (a, b)| m.max((a - b).abs()));
    let mut differences: Vec<f32> = positions.map(largest).collect();
    differences.sort_by(f32::total_cmp);
    differences
}

#[test]
fn agrees_with_the_oracles() {
    let unpacked = tempfile::tempdir().unwrap();
    let archive = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/oracle.tar");
    let tar = Command::new("tar").arg("-xf").arg(archive).arg("-C").arg(unpacked.path()).status();
    assert!(tar.unwrap().success());
    for name in [
        "gptoss-base",
        "gptoss-gqa8",
        "gptoss-mha",
        "gptoss-sharded",
        "gptoss-long",
        "llama-plain",
        "llama-tied",
    ] {
        let dir = unpacked.path().join(name);
        let config = crate::front::import::read_config(&dir).unwrap();
        let checkpoint = Checkpoint::open(&dir).unwrap();
        let spec = crate::front::import::from_checkpoint(name, &config, &checkpoint).unwrap();
        let graph = lower(&Spec::parse(name, &spec).unwrap()).unwrap();
        let weights = CheckpointWeights::new(&graph, &checkpoint).unwrap();
        let exact = differences(&dir, &graph, &weights, Preset::Exact, "logits");
        let faithful = differences(&dir, &graph, &weights, Preset::Faithful, "faithful_logits");
        let at = |d: &[f32], q: usize| d[(d.len() - 1) * q / 100];
        println!(
            "{name}: exact {:e}, faithful median {:e} p95 {:e} max {:e}",
            at(&exact, 100),
            at(&faithful, 50),
            at(&faithful, 95),
            at(&faithful, 100)
        );
        assert!(at(&exact, 100) <= 1e-3, "{name}: exact differs by {}", at(&exact, 100));
        assert!(at(&faithful, 50) <= 1e-3, "{name}: faithful differs by {}", at(&faithful, 50));
    }
}
