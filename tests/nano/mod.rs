//! The embedded model: its logits against PyTorch's, its compression of held-out text, the words it writes.

mod talks;

use crate::harness::{Model, read};
use kernmill_compiler::passes::quant::Preset;
use kernmill_runtime::{Engine, EngineConfig, SequenceTokens, Steps, Tokenizer};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn nano(preset: Preset) -> Engine {
    Model::open(&path("model-specs/nano")).engine(preset, EngineConfig::default())
}

fn tokenizer(engine: &Engine) -> Tokenizer {
    let json = std::fs::read(path("model-specs/nano/tokenizer.json")).unwrap();
    Tokenizer::from_json(&json, engine.model().vocab).unwrap()
}

/// A number of tests/fixtures/nano/expected.json, which tools/nano/evaluate.py writes.
fn expected(key: &str) -> f64 {
    let text = std::fs::read_to_string(path("tests/fixtures/nano/expected.json")).unwrap();
    serde_json::from_str::<serde_json::Value>(&text).unwrap()[key].as_f64().unwrap()
}

#[test]
fn exact_logits_are_pytorchs() {
    let oracle = std::fs::read(path("tests/fixtures/nano/logits.safetensors")).unwrap();
    let tokens = read(&oracle, "tokens", u32::from_le_bytes);
    let positions = read(&oracle, "positions", u32::from_le_bytes);
    let logits = read(&oracle, "logits", f32::from_le_bytes);
    let mut engine = nano(Preset::Exact);
    let id = engine.create().unwrap();
    let vocab = engine.model().vocab as usize;
    let mut worst = 0f32;
    engine
        .extend_in_order(&[SequenceTokens::all(id, &tokens)], &mut |row| {
            if let Some(i) = positions.iter().position(|p| *p as usize == row.token) {
                let pairs = row.logits.iter().zip(&logits[i * vocab..][..vocab]);
                worst = pairs.map(|(a, e)| (a - e).abs()).fold(worst, f32::max);
            }
        })
        .unwrap();
    assert!(worst <= 1e-3, "a logit differs by {worst}");
}

/// Bits per byte of the held-out text, by the procedure in expected.json.
fn bits_per_byte(engine: &mut Engine) -> f64 {
    let text = std::fs::read_to_string(path("model-specs/nano/heldout.txt")).unwrap();
    let tokenizer = tokenizer(engine);
    let ids = tokenizer.encode(&text, false).unwrap();
    assert_eq!(ids.len() as f64, expected("heldout_tokens"));
    let start = tokenizer.token_id("<|endoftext|>").unwrap();
    let mut nats = 0f64;
    for chunk in ids.chunks(expected("chunk_tokens") as usize) {
        let id = engine.create().unwrap();
        let input: Vec<u32> = [&[start], &chunk[..chunk.len() - 1]].concat();
        engine
            .extend_in_order(&[SequenceTokens::all(id, &input)], &mut |row| {
                let (token, row) = (row.token, row.logits);
                let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                let sum: f64 = row.iter().map(|x| f64::from(x - largest).exp()).sum();
                nats += sum.ln() - f64::from(row[chunk[token] as usize] - largest);
            })
            .unwrap();
        engine.drop_sequence(id);
    }
    nats / std::f64::consts::LN_2 / text.len() as f64
}

#[test]
fn held_out_text_takes_few_bits_and_faithful_costs_none() {
    let (float32, xz) = (expected("bits_per_byte_float32"), expected("xz_bits_per_byte"));
    let faithful = bits_per_byte(&mut nano(Preset::Faithful));
    println!("bits per byte: faithful {faithful:.4}, PyTorch float32 {float32:.4}, xz -9e {xz:.4}");
    assert!(faithful <= 0.8 * xz, "{faithful} is more than 0.8 of {xz}");
    assert!((faithful / float32 - 1.0).abs() <= 0.003, "{faithful} is not within 0.3 % of {float32}");
}

#[test]
fn fast_costs_less_than_a_hundredth() {
    let float32 = expected("bits_per_byte_float32");
    let model = Model::open(&path("model-specs/nano"));
    let share = model.share_at_4_bits();
    let fast = bits_per_byte(&mut nano(Preset::Fast));
    println!("bits per byte: fast {fast:.4}, PyTorch float32 {float32:.4}; {:.1} % at 4 bits", share * 100.0);
    assert!(share >= 0.9, "{share} of the attention and unembedding parameters have 4 bits");
    assert!((fast / float32 - 1.0).abs() <= 0.01, "{fast} is not within 1 % of {float32}");
}

#[test]
fn greedy_text_is_made_of_known_words() {
    let words = std::fs::read_to_string(path("tests/fixtures/nano/words.txt")).unwrap();
    let known: HashSet<&str> = words.lines().collect();
    let mut engine = nano(Preset::Faithful);
    let tokenizer = tokenizer(&engine);
    let id = engine.create().unwrap();
    let mut token = tokenizer.token_id("<|endoftext|>").unwrap();
    let (mut ids, mut logits) = (Vec::new(), Vec::new());
    while ids.len() < 2000 {
        engine.append(id, &[token], &mut logits).unwrap();
        token = (0..logits.len() as u32)
            .max_by(|a, b| logits[*a as usize].total_cmp(&logits[*b as usize]))
            .unwrap();
        ids.push(token);
    }
    let text = tokenizer.decode(&ids).unwrap().to_lowercase();
    let written: Vec<&str> =
        text.split(|c: char| !c.is_ascii_alphabetic()).filter(|word| !word.is_empty()).collect();
    let share = written.iter().filter(|word| known.contains(*word)).count() as f64 / written.len() as f64;
    println!("{} words, {:.2} % of them known", written.len(), share * 100.0);
    assert!(written.len() > 200 && share >= 0.9, "{share} of {} words are known", written.len());
}
