//! Logits against PyTorch: transformers in float32, and a simulation of the quantised graph (tools/oracle/).

mod adapters;
mod quantised;
mod spoilt;
mod vectors;

use crate::harness::{Model, imports, oracle, read};
use kernmill_compiler::passes::quant::Preset;
use kernmill_runtime::{EngineConfig, SequenceTokens, Steps};
use std::path::{Path, PathBuf};

/// Committed checkpoints: GPT-OSS in several shapes, spellings and shardings, and two Llamas.
const FIXTURES: [&str; 7] = [
    "gptoss-base",
    "gptoss-gqa8",
    "gptoss-long",
    "gptoss-mha",
    "gptoss-sharded",
    "llama-plain",
    "llama-tied",
];

/// Logits of every token.
fn run(directory: &Path, preset: Preset, tokens: &[u32]) -> Vec<f32> {
    let mut engine = Model::open(directory).engine(preset, EngineConfig::default());
    let id = engine.create().unwrap();
    let mut logits = Vec::new();
    engine
        .extend_in_order(&[SequenceTokens::all(id, tokens)], &mut |row| logits.extend_from_slice(row.logits))
        .unwrap();
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
        let file = std::fs::read(oracle(name).join("oracle.safetensors")).unwrap();
        let tokens = read(&file, "tokens", u32::from_le_bytes);
        let expected = read(&file, "logits", f32::from_le_bytes);
        let actual = run(&oracle(name), Preset::Exact, &tokens);
        let differences = differences(&actual, &expected, tokens.len());
        let worst = differences[differences.len() - 1];
        println!("{name}: {} positions, worst difference {worst:.2e}", tokens.len());
        assert!(worst <= 1e-3, "{name}: a logit differs by {worst}");
    }
}

/// Models as transformers saves them, of every class: `exact` differs from float32 by at most 1e-4, and by
/// 1e-5 at 95 of 100 positions.
#[test]
fn models_as_transformers_saves_them_are_float32() {
    let mut directories: Vec<PathBuf> =
        std::fs::read_dir(imports()).unwrap().map(|entry| entry.unwrap().path()).collect();
    directories.sort();
    assert!(directories.len() >= 28, "{directories:?}");
    let mut wrong = Vec::new();
    for directory in directories {
        let file = std::fs::read(directory.join("oracle.safetensors")).unwrap();
        let tokens = read(&file, "tokens", u32::from_le_bytes);
        let expected = read(&file, "logits", f32::from_le_bytes);
        let exact = differences(&run(&directory, Preset::Exact, &tokens), &expected, tokens.len());
        let faithful = differences(&run(&directory, Preset::Faithful, &tokens), &expected, tokens.len());
        let (worst, most) = (exact[exact.len() - 1], exact[exact.len() * 95 / 100]);
        let median = faithful[faithful.len() / 2];
        let name = directory.file_name().unwrap().to_string_lossy();
        let says = format!("{name}: exact {worst:.2e}, 95 % {most:.2e}, faithful median {median:.2e}");
        println!("{says}");
        // The price of int8, as a share of the logits' scatter.
        let scatter = (expected.iter().map(|x| x * x).sum::<f32>() / expected.len() as f32).sqrt();
        if worst > 1e-4 || most > 1e-5 || median > 0.15 * scatter {
            wrong.push(says);
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// How near the logits are to a simulation's. Of that only `exp` differs, in its last bits, so that now and
/// then an activation is rounded the other way, which later positions see as well.
struct Nearness {
    median: f32,
    /// Share of positions whose largest difference is at most `most`.
    share: f64,
    most: f32,
}

fn check_simulated(names: &[&str], preset: Preset, logits: &str, nearness: &Nearness) {
    for name in names {
        let file = std::fs::read(oracle(name).join("oracle.safetensors")).unwrap();
        let tokens = read(&file, "tokens", u32::from_le_bytes);
        let expected = read(&file, logits, f32::from_le_bytes);
        let actual = run(&oracle(name), preset, &tokens);
        let differences = differences(&actual, &expected, tokens.len());
        let at = |share: f64| differences[(((differences.len() - 1) as f64) * share).ceil() as usize];
        let (median, high) = (at(0.5), at(nearness.share));
        println!("{name}: median {median:.2e}, of most {high:.2e}, worst {:.2e}", at(1.0));
        let near = median <= nearness.median && high <= nearness.most;
        assert!(near, "{name}: median {median}, at {} of positions {high}", nearness.share);
    }
}

#[test]
fn faithful_is_the_simulation_of_the_quantised_graph() {
    let nearness = Nearness { median: 1e-3, share: 0.95, most: 1e-2 };
    check_simulated(&FIXTURES, Preset::Faithful, "faithful_logits", &nearness);
}

#[test]
fn bf16_is_the_simulation_of_its_graph() {
    let experts: Vec<&str> = FIXTURES.into_iter().filter(|name| name.starts_with("gptoss")).collect();
    let nearness = Nearness { median: 1e-5, share: 0.85, most: 1e-4 };
    check_simulated(&experts, Preset::Bf16, "bf16_logits", &nearness);
}
