//! SmolLM2-135M-Instruct, a real model: its logits are those of transformers in float32
//! (`tools/smollm2/reference.py`).
//!
//! The model is not part of the project: `tools/smollm2/fetch.py` fetches it into `target/smollm2`, and
//! `KERNMILL_SMOLLM2` names another place. Without it these tests say so and check nothing; where the
//! variable names a file that is not there, they fail.

mod text;

use crate::harness::{Model, read};
use kernmill_compiler::quant::Preset;
use kernmill_runtime::{EngineConfig, SequenceTokens, Steps};
use std::io::Write;
use std::path::{Path, PathBuf};

const NAME: &str = "SmolLM2-135M-Instruct.Q4_1.gguf";
/// Tokens whose logits the fixture has for each position.
const LIKELIEST: usize = 8;

/// The model's file, if it is here.
pub fn model(test: &str) -> Option<PathBuf> {
    let path = match std::env::var_os("KERNMILL_SMOLLM2") {
        Some(path) => PathBuf::from(path),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("target/smollm2").join(NAME),
    };
    if path.is_file() {
        return Some(path);
    }
    assert!(std::env::var_os("KERNMILL_SMOLLM2").is_none(), "{}: no such file", path.display());
    // Written past the capture of the test's output, so that everybody sees it.
    let note =
        format!("NOT RUN: {test}: SmolLM2 is not in target/smollm2 (python3 tools/smollm2/fetch.py)\n");
    let _ = std::io::stderr().write_all(note.as_bytes());
    None
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
/// that of the whole. Over the whole vocabulary it is 1.55e-3 nats (`benches/runs/2026-11-25-smollm2.md`).
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
    assert!(mean <= 1.7e-3, "mean divergence {mean:e} nats");
    assert!(mean > 0.0);
}
