//! SmolLM2-135M-Instruct, a real model: its logits are those of transformers in float32
//! (`tools/smollm2/reference.py`).
//!
//! The model is not part of the project: `tools/models/fetch.py` fetches it into `target/smollm2`, and
//! `KERNMILL_SMOLLM2` names another place. Without it these tests say so and check nothing; where the
//! variable names a file that is not there, they fail.

mod text;

use crate::harness::{Model, RealModel, program, read};
use kernmill_compiler::passes::quant::Preset;
use kernmill_runtime::{EngineConfig, SequenceTokens, Steps};
use std::path::{Path, PathBuf};

/// Tokens whose logits the fixture has for each position.
const LIKELIEST: usize = 8;

/// The model's file, if it is here.
pub fn model(test: &str) -> Option<PathBuf> {
    RealModel { name: "smollm2", file: "SmolLM2-135M-Instruct.Q4_1.gguf" }.find(test)
}

/// The results of transformers for each position.
struct Expected {
    tokens: Vec<u32>,
    /// The likeliest tokens and their logits.
    ids: Vec<u32>,
    logits: Vec<f32>,
    /// Logarithm of the sum of all exponentials.
    lse: Vec<f32>,
}

impl Expected {
    fn read() -> Expected {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/smollm2/expected.safetensors");
        let file = std::fs::read(path).unwrap();
        Expected {
            tokens: read(&file, "tokens", u32::from_le_bytes),
            ids: read(&file, "ids", u32::from_le_bytes),
            logits: read(&file, "logits", f32::from_le_bytes),
            lse: read(&file, "lse", f32::from_le_bytes),
        }
    }
}

/// Logits of the likeliest tokens of a position, and its logarithm of the sum of all exponentials.
fn figures(row: &[f32], ids: &[u32]) -> (Vec<f32>, f32) {
    let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = row.iter().map(|x| f64::from(x - largest).exp()).sum();
    (ids.iter().map(|&id| row[id as usize]).collect(), largest + sum.ln() as f32)
}

/// Calls `check` with each position, its figures, and those expected.
fn compare(path: &Path, preset: Preset, mut check: impl FnMut(usize, (Vec<f32>, f32), (&[f32], f32))) {
    let (model, expected) = (Model::open(path), Expected::read());
    let mut engine = model.engine(preset, EngineConfig::default());
    let sequence = engine.create().unwrap();
    let mut position = 0;
    engine
        .extend_in_order(&[SequenceTokens::all(sequence, &expected.tokens)], &mut |row| {
            let likeliest = position * LIKELIEST..(position + 1) * LIKELIEST;
            let found = figures(row.logits, &expected.ids[likeliest.clone()]);
            check(position, found, (&expected.logits[likeliest], expected.lse[position]));
            position += 1;
        })
        .unwrap();
    assert_eq!(position, expected.tokens.len());
}

#[test]
fn exact_logits_are_those_of_transformers() {
    let Some(path) = model("smollm2::exact_logits_are_those_of_transformers") else { return };
    compare(&path, Preset::Exact, |position, (logits, lse), (expected, expected_lse)| {
        for (rank, (logit, expected)) in logits.iter().zip(expected).enumerate() {
            let difference = (logit - expected).abs();
            assert!(difference <= 2e-3, "position {position}, rank {rank}: {logit}, expected {expected}");
        }
        assert!((lse - expected_lse).abs() <= 2e-3, "position {position}: {lse}, expected {expected_lse}");
    });
}

/// The divergence of the distribution over the 8 likeliest tokens and one for all others, which is at most
/// that of the whole. It is 8.23e-4 nats on every CPU, since the bits are the same; the rest is what rounding
/// activations costs, because the weights are the file's own.
#[test]
fn faithful_distributions_diverge_little_from_float32() {
    let Some(path) = model("smollm2::faithful_distributions_diverge_little_from_float32") else { return };
    let mut sum = 0.0;
    let mut positions = 0;
    compare(&path, Preset::Faithful, |_, (logits, lse), (expected, expected_lse)| {
        let shares = |logits: &[f32], lse: f32| -> Vec<f64> {
            let mut shares: Vec<f64> = logits.iter().map(|x| f64::from(x - lse).exp()).collect();
            shares.push((1.0 - shares.iter().sum::<f64>()).max(1e-12));
            shares
        };
        let (ours, theirs) = (shares(&logits, lse), shares(expected, expected_lse));
        sum += theirs.iter().zip(&ours).map(|(p, q)| p * (p / q).ln()).sum::<f64>();
        positions += 1;
    });
    let mean = sum / f64::from(positions);
    assert!(mean <= 8.4e-4, "mean divergence {mean:e} nats");
    assert!(mean > 0.0);
}

/// A short text takes the memory of the plan, of the keys and values that it has, and what every model has:
/// the program's own code, the tokenizer, and buffers.
#[test]
fn a_short_text_takes_little_more_than_the_plan() {
    const OWN: u64 = 80_000_000;
    let Some(path) = model("smollm2::a_short_text_takes_little_more_than_the_plan") else { return };
    let dir = tempfile::tempdir().unwrap();
    let plan = dir.path().join("smollm2.plan");
    let compiled = program().arg("compile").arg(&path).arg("-o").arg(&plan).arg("-q").status().unwrap();
    assert!(compiled.success());
    let run = ["--prompt", "The capital of France is", "-n", "8", "--temp", "0", "--json"];
    let output = program().arg("run").arg(&plan).args(run).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let peak = report["memory"]["peak_resident"].as_u64().unwrap();
    let bytes = std::fs::metadata(&plan).unwrap().len();
    println!("a plan of {bytes} bytes ran in {peak}");
    assert!(peak <= bytes + OWN, "{peak} bytes for a plan of {bytes}");
}
