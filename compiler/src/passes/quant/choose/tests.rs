use super::*;
use crate::emit::pack::{MemorySource, MemorySourceError};
use crate::interp::RawTensor;
use crate::testing::{Mlp, ModelShape, build, random_weights};

fn names(graph: &Graph) -> Vec<(&str, MatrixClass)> {
    candidates(graph)
        .into_iter()
        .map(|(id, lora_target)| (graph.tensor(id).name.as_str(), lora_target))
        .collect()
}

/// Random weights, as the packer reads them.
fn source(graph: &Graph) -> MemorySource {
    let mut source = MemorySource::default();
    for (tensor, raw) in graph.tensors.iter().zip(random_weights(graph, 3).raw) {
        if !matches!(raw, RawTensor::Mxfp4 { .. }) {
            source.f32.insert(tensor.name.clone(), raw.to_f32());
        }
    }
    source
}

fn measured(graph: &Graph, source: &MemorySource, threads: usize) -> FormatChoices {
    FormatChoices::measured(graph, source, threads, &|_| ()).unwrap()
}

#[test]
fn candidates_are_attention_and_unembedding() {
    use MatrixClass::{Attention, Unembedding};
    let attention = ["q", "k", "v", "o"].map(|part| (format!("layers.0.{part}.weight"), Attention));
    for shape in [ModelShape::mini_gpt_oss(), ModelShape::mini_llama()] {
        let graph = build(&ModelShape { layers: 1, ..shape }).unwrap();
        let mut expected: Vec<(&str, MatrixClass)> =
            attention.iter().map(|(n, s)| (n.as_str(), *s)).collect();
        expected.push(("unembed", Unembedding));
        assert_eq!(names(&graph), expected);
    }
}

#[test]
fn every_random_model_has_them_in_every_preset() {
    use crate::passes::quant::{Preset, quantise};
    for seed in 0..60 {
        let graph = build(&ModelShape::random(seed)).unwrap();
        let found = candidates(&graph);
        assert!(found.values().any(|lora_target| *lora_target == MatrixClass::Unembedding), "seed {seed}");
        assert_eq!(found.len(), 4 * graph.nodes.iter().filter(|n| n.op.attention().is_some()).count() + 1);
        assert_eq!(candidates(&quantise(&graph, Preset::Faithful).unwrap()), found, "seed {seed}");
    }
}

#[test]
fn experts_in_plain_floats_are_none() {
    let mlp = Mlp::Experts { experts: 2, top_k: 1, inner: 32, format: WeightFormat::Bf16 };
    let graph = build(&ModelShape { mlp, ..ModelShape::mini_gpt_oss() }).unwrap();
    assert!(names(&graph).iter().all(|(name, _)| !name.contains("gate") && !name.contains("router")));
}

#[test]
fn the_limit_decides() {
    assert_eq!(decide(0.0), WeightFormat::Int4);
    assert_eq!(decide(MAX_RELATIVE_ERROR), WeightFormat::Int4);
    assert_eq!(decide(MAX_RELATIVE_ERROR * 1.000_001), WeightFormat::Int8);

    let graph = build(&ModelShape::mini_gpt_oss()).unwrap();
    let mut source = source(&graph);
    let choices = measured(&graph, &source, 1);
    assert!(choices.list.iter().all(|c| c.format == WeightFormat::Int4), "{choices:?}");
    assert_eq!(choices.elements_at_4_bits(&graph), choices.elements(&graph));

    // One large element in every block costs the others their precision.
    let spiky = graph.find_tensor("layers.1.o.weight").unwrap();
    for block in source.f32.get_mut("layers.1.o.weight").unwrap().chunks_mut(32) {
        block[5] *= 6.0 / block[5].abs() * block[6].abs();
    }
    let spiked = measured(&graph, &source, 1);
    for (before, after) in choices.list.iter().zip(&spiked.list) {
        let changed = before.tensor == spiky;
        assert_eq!(before != after, changed);
        assert_eq!(after.format == WeightFormat::Int8, changed, "{after:?}");
    }
    assert!(spiked.of(spiky).unwrap().error.unwrap() > MAX_RELATIVE_ERROR);
    assert!(spiked.elements_at_4_bits(&graph) < spiked.elements(&graph));
}

#[test]
fn what_a_file_has_in_blocks_is_none() {
    for matrix in WeightFormat::blocked() {
        let mlp = Mlp::Dense { inner: 256 };
        let shape = ModelShape { hidden: 256, heads: 8, mlp, ..ModelShape::mini_llama() };
        assert_eq!(names(&build(&shape.in_blocks(matrix)).unwrap()), [], "{matrix:?}");
    }
}

#[test]
fn errors_are_of_what_the_packer_writes() {
    use crate::passes::quant::{Preset, quantise_chosen};
    let graph = build(&ModelShape::mini_llama()).unwrap();
    let source = source(&graph);
    let choices = measured(&graph, &source, 2);
    let fast = quantise_chosen(&graph, Preset::Fast, Some(&choices)).unwrap();
    for choice in &choices.list {
        let (tensor, weights) = (fast.tensor(choice.tensor), &source.f32[&graph.tensor(choice.tensor).name]);
        let packed = RawTensor::F32(weights.clone()).convert(tensor).unwrap().to_f32();
        let square = |x: f32| f64::from(x) * f64::from(x);
        let error: f64 = weights.iter().zip(&packed).map(|(w, q)| square(w - q)).sum();
        let expected = (error / weights.iter().map(|w| square(*w)).sum::<f64>()).sqrt();
        assert!((choice.error.unwrap() / expected - 1.0).abs() < 1e-5, "{}: {choice:?}", tensor.name);
    }
}

#[test]
fn threads_change_nothing() {
    let shape = ModelShape { hidden: 96, ..ModelShape::mini_gpt_oss() };
    let graph = build(&shape).unwrap();
    let source = source(&graph);
    let one = measured(&graph, &source, 1);
    for threads in 2..5 {
        assert_eq!(measured(&graph, &source, threads), one);
    }
}

#[test]
fn bad_weights_are_named() {
    let graph = build(&ModelShape::mini_gpt_oss()).unwrap();
    let mut source = source(&graph);
    source.f32.get_mut("unembed").unwrap()[70 * 64 + 3] = f32::NAN;
    source.f32.get_mut("layers.1.v.weight").unwrap()[2 * 64 + 33] = 1e9;
    for threads in 1..4 {
        let error = FormatChoices::measured(&graph, &source, threads, &|_| ()).unwrap_err().to_string();
        assert!(error.contains("layers.1.v.weight") && error.contains("row 2, k 33"), "{error}");
        assert!(error.contains("too large for int4"), "{error}");
    }
    source.f32.remove("layers.0.q.weight");
    let error = FormatChoices::measured(&graph, &source, 2, &|_| ()).unwrap_err();
    assert!(matches!(error, PackWeightsError::Source(MemorySourceError { .. })), "{error}");
}
