use super::{LayeredModel, ProductInput};
use kernmill::compiler::{FusedSet, SourceModel};
use kernmill::locate::SourceFiles;
use kernmill_compiler::interp::{Data, Interpreter, NodeRun, RawTensor, TensorData};
use kernmill_compiler::ir::{Graph, Node, Role};
use kernmill_compiler::weights::{CheckpointWeights, WeightSource};

/// The embedded model: attention with windows and sinks, experts, biases.
pub(crate) fn nano() -> SourceModel {
    SourceModel::open(&SourceFiles::default(), FusedSet::builtin()).unwrap()
}

/// All weights as the interpreter takes them, in f32.
pub(crate) fn dense(graph: &Graph, weights: &CheckpointWeights<'_>) -> Vec<TensorData> {
    let all = |tensor: &kernmill_compiler::ir::Tensor| {
        let experts =
            if tensor.role.dims() - tensor.row_dim() < tensor.role.dims() { tensor.shape[0] } else { 1 };
        let experts =
            if matches!(tensor.role, Role::ExpertMatrix | Role::ExpertVector) { experts } else { 1 };
        let (mut data, mut rows) = (Vec::new(), Vec::new());
        for expert in 0..experts {
            weights.f32_rows(tensor, expert, 0..tensor.shape[tensor.row_dim()], &mut rows).unwrap();
            data.extend_from_slice(&rows);
        }
        TensorData::Dense(RawTensor::F32(data).to_f32())
    };
    graph.tensors.iter().map(all).collect()
}

#[test]
fn inputs_and_results_are_those_of_the_interpreter() {
    let nano = nano();
    let weights = CheckpointWeights::new(&nano.graph, &nano.checkpoint).unwrap();
    let ids: Vec<u32> = (0..70).map(|at| at * 37 % 3000).collect();
    let mut interpreter = Interpreter::new(&nano.graph, &dense(&nano.graph, &weights)).unwrap();
    interpreter.extend(0, &ids).unwrap();
    let mut counts = Vec::new();
    for threads in [1, 3] {
        let model = LayeredModel::new(nano.graph.clone(), &nano.checkpoint, threads).unwrap();
        let mut texts: Vec<NodeRun> = vec![model.text(&ids[..9]), model.text(&ids)];
        let mut seen = 0;
        for part in 0..model.parts() {
            let weights = model.weights(part, None).unwrap();
            let see = |text: usize, input: &ProductInput<'_>| {
                let is_it = |node: &&Node| {
                    node.op.matmul().is_some()
                        && model.graph.tensor(node.tensors[0]).name == input.tensor.name
                };
                let node = model.graph.nodes.iter().find(is_it).unwrap();
                (text == 1).then(|| (model.graph.value(node.inputs[0]).name.clone(), input.x.to_vec()))
            };
            let kept = model.run(part, &mut texts, &weights, &|_| None, &see).unwrap();
            assert!(kept[0].is_empty());
            for (name, x) in &kept[1] {
                let Some(Data::F32(expected)) = interpreter.value(name) else { panic!("{name}") };
                let largest = expected.iter().fold(0.0f32, |most, x| most.max(x.abs()));
                assert_eq!(x.len(), expected.len(), "{name}");
                for (x, expected) in x.iter().zip(expected) {
                    assert!((x - expected).abs() <= 1e-4 * largest, "{name}: {x} {expected}");
                }
                seen += 1;
            }
        }
        counts.push(seen);
    }
    // Queries, keys, values, outputs, a router and three matrices of experts in each layer, and logits.
    let layers = nano.graph.nodes.iter().filter(|node| node.op.attention().is_some()).count();
    assert_eq!(counts, [8 * layers + 1; 2]);
}
