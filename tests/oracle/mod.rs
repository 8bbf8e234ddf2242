//! Logits against PyTorch: transformers in float32, and a simulation of the quantised graph (tools/oracle/).

use kernmill_compiler::build::build_weights;
use kernmill_compiler::checkpoint::{Checkpoint, Weights, bind};
use kernmill_compiler::import::from_config;
use kernmill_compiler::pipeline::{Options, compile};
use kernmill_compiler::quant::Preset;
use kernmill_compiler::spec::{Spec, lower};
use kernmill_plan::target::Level;
use kernmill_runtime::{Engine, EngineConfig, PlanImage, Want};
use safetensors::SafeTensors;
use std::path::{Path, PathBuf};

/// Committed checkpoints: GPT-OSS in several shapes, spellings and shardings, and two Llamas.
const FIXTURES: [&str; 7] = [
    "gptoss-base", "gptoss-gqa8", "gptoss-long", "gptoss-mha", "gptoss-sharded", "llama-plain", "llama-tied",
];

fn directory(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/oracle").join(name)
}

/// An f32 tensor, or an i32 one as f32 bits, by name.
fn read<T>(bytes: &[u8], name: &str, element: impl Fn([u8; 4]) -> T) -> Vec<T> {
    let file = SafeTensors::deserialize(bytes).unwrap();
    let data = file.tensor(name).unwrap().data().to_vec();
    data.chunks_exact(4).map(|b| element(b.try_into().unwrap())).collect()
}

/// The import, compile and run of a checkpoint directory.
fn run(directory: &Path, preset: Preset, tokens: &[u32]) -> Vec<f32> {
    let config = std::fs::read_to_string(directory.join("config.json")).unwrap();
    let text = from_config("config.json", &config).unwrap();
    let graph = lower(&Spec::parse("imported.toml", &text).unwrap()).unwrap();
    let checkpoint = Checkpoint::open(directory).unwrap();
    bind(&graph, &checkpoint).unwrap();
    let level = *Level::supported().last().expect("tests run on x86-64-v3 or better");
    let compiled = compile(&graph, &Options { preset, ..Options::new(level) }).unwrap();
    let weights = Weights::new(&graph, &checkpoint).unwrap();
    let image = PlanImage {
        weights: build_weights(&compiled, &weights, 2, &|_| {}).unwrap(),
        program: compiled.program,
        code_hash: None,
        tokenizer_json: None,
        chat_template: None,
    };
    let mut engine = Engine::new(&image, EngineConfig::default()).unwrap();
    let id = engine.create().unwrap();
    let mut logits = Vec::new();
    engine.step(&[(id, tokens)], Want::All, &mut |_, row| logits.extend_from_slice(row)).unwrap();
    logits
}

/// Largest absolute difference at each position, ascending.
fn differences(actual: &[f32], expected: &[f32], positions: usize) -> Vec<f32> {
    assert_eq!(actual.len(), expected.len());
    let vocab = actual.len() / positions;
    let largest = |(a, e): (&[f32], &[f32])| a.iter().zip(e).map(|(a, e)| (a - e).abs()).fold(0.0, f32::max);
    let mut list: Vec<f32> = actual.chunks(vocab).zip(expected.chunks(vocab)).map(largest).collect();
    list.sort_by(f32::total_cmp);
    assert!(list.iter().all(|d| d.is_finite()));
    list
}

#[test]
fn exact_is_float32_within_a_thousandth() {
    for name in FIXTURES {
        let oracle = std::fs::read(directory(name).join("oracle.safetensors")).unwrap();
        let tokens = read(&oracle, "tokens", u32::from_le_bytes);
        let expected = read(&oracle, "logits", f32::from_le_bytes);
        let actual = run(&directory(name), Preset::Exact, &tokens);
        let differences = differences(&actual, &expected, tokens.len());
        let worst = differences[differences.len() - 1];
        println!("{name}: {} positions, worst difference {worst:.2e}", tokens.len());
        assert!(worst <= 1e-3, "{name}: a logit differs by {worst}");
    }
}

#[test]
fn faithful_is_the_simulation_of_the_quantised_graph() {
    for name in FIXTURES {
        let oracle = std::fs::read(directory(name).join("oracle.safetensors")).unwrap();
        let tokens = read(&oracle, "tokens", u32::from_le_bytes);
        let expected = read(&oracle, "faithful_logits", f32::from_le_bytes);
        let actual = run(&directory(name), Preset::Faithful, &tokens);
        let differences = differences(&actual, &expected, tokens.len());
        let at = |share: f64| differences[(((differences.len() - 1) as f64) * share).ceil() as usize];
        let (median, high) = (at(0.5), at(0.95));
        println!("{name}: median {median:.2e}, 95th percentile {high:.2e}, worst {:.2e}", at(1.0));
        assert!(median <= 1e-3 && high <= 1e-2, "{name}: median {median}, 95th percentile {high}");
    }
}
