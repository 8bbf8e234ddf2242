use super::probe::{ProbedSite, SensitivityProbe};
use crate::forward::LayeredModel;
use crate::forward::tests::{dense, nano};
use crate::state::WorkState;
use kernmill::observe::Silent;
use kernmill_compiler::interp::{Interpreter, TensorData};
use kernmill_compiler::ir::{Graph, Role, Tensor, TensorId};
use kernmill_compiler::weights::CheckpointWeights;

/// Factor on the weights of what is changed.
const FACTOR: f32 = 1.05;

/// Logits of texts, by the interpreter.
fn logits(graph: &Graph, weights: &Vec<TensorData>, windows: &[Vec<u32>]) -> Vec<f32> {
    let mut interpreter = Interpreter::new(graph, weights).unwrap();
    windows.iter().enumerate().flat_map(|(at, ids)| interpreter.extend(at, ids).unwrap()).collect()
}

/// The mean divergence of rows of logits, by its definition.
fn divergence(base: &[f32], other: &[f32], vocab: usize) -> f64 {
    let log_softmax = |row: &[f32]| -> Vec<f64> {
        let most = row.iter().fold(f64::NEG_INFINITY, |most, x| most.max(f64::from(*x)));
        let sum: f64 = row.iter().map(|x| (f64::from(*x) - most).exp()).sum();
        row.iter().map(|x| f64::from(*x) - most - sum.ln()).collect()
    };
    let of = |(base, other): (&[f32], &[f32])| -> f64 {
        let (p, q) = (log_softmax(base), log_softmax(other));
        p.iter().zip(&q).map(|(p, q)| p.exp() * (p - q)).sum()
    };
    let rows = base.len() / vocab;
    base.chunks(vocab).zip(other.chunks(vocab)).map(of).sum::<f64>() / rows as f64
}

#[test]
fn divergences_are_those_of_the_interpreter_with_changed_weights() {
    let nano = nano();
    let graph = &nano.graph;
    let weights = dense(graph, &CheckpointWeights::new(graph, &nano.checkpoint).unwrap());
    let windows: Vec<Vec<u32>> =
        [70, 33].map(|tokens| (0..tokens).map(|at| at * 41 % 3000).collect()).to_vec();
    let base = logits(graph, &weights, &windows);
    let expected = |changed: &[TensorId]| {
        let mut weights = weights.clone();
        for id in changed {
            let TensorData::Dense(elements) = &mut weights[id.0 as usize] else { panic!("not dense") };
            elements.iter_mut().for_each(|x| *x *= FACTOR);
        }
        divergence(&base, &logits(graph, &weights, &windows), graph.vocab)
    };
    let is_matrix = |tensor: &Tensor| matches!(tensor.role, Role::Matrix | Role::ExpertMatrix | Role::Table);
    let all = (0..graph.tensors.len() as u32).map(TensorId).filter(|id| is_matrix(graph.tensor(*id)));
    let all: Vec<TensorId> = all.collect();
    let named = |end: &str| -> TensorId {
        *all.iter().find(|id| graph.tensor(**id).name.ends_with(end)).unwrap_or_else(|| panic!("{end}"))
    };
    let head = graph.nodes.last().unwrap().tensors[0];
    // A table, a matrix, two of experts together, and the one of logits.
    let sites =
        [vec![named("embed")], vec![named(".1.o")], vec![named(".0.gate"), named(".0.up")], vec![head]];
    let change = |_: &Tensor, _: usize, rows: &mut [f32]| rows.iter_mut().for_each(|x| *x *= FACTOR);
    let probed = sites.clone().map(|tensors| ProbedSite { tensors });
    for threads in [1, 3] {
        let model = LayeredModel::new(graph.clone(), &nano.checkpoint, threads).unwrap();
        let probe = SensitivityProbe::new(&model, &windows).unwrap();
        let found = probe.sites(&probed, &change, (&WorkState::none(), &Silent)).unwrap();
        for (tensors, found) in sites.iter().zip(found) {
            let expected = expected(tensors);
            assert!(expected > 1e-6, "{expected}");
            assert!((found - expected).abs() < 0.01 * expected + 1e-7, "{tensors:?}: {found} {expected}");
        }
        let (found, expected) = (probe.together(&change, &Silent).unwrap(), expected(&all));
        assert!((found - expected).abs() < 0.01 * expected, "{found} {expected}");
    }
}
