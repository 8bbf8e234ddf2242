//! Adapters against PEFT on PyTorch, in float32 (tools/oracle/make_adapters.py).

use super::differences;
use crate::harness::{Model, adapter, oracle, read};
use kernmill_compiler::passes::quant::Preset;
use kernmill_runtime::{AdapterUse, Engine, EngineConfig, SequenceTokens, Steps};
use std::path::Path;

/// Adapters and their checkpoints.
const ADAPTERS: [(&str, &str); 10] = [
    ("qv", "gptoss-base"),
    ("attention-rslora", "gptoss-base"),
    ("patterns", "gptoss-sharded"),
    ("experts", "gptoss-mha"),
    ("experts-swapped", "gptoss-mha"),
    ("everything", "gptoss-base"),
    ("down-only", "gptoss-gqa8"),
    ("dora", "gptoss-base"),
    ("dora-rslora", "llama-tied"),
    ("all-linear", "llama-plain"),
];

/// Adapters of `gptoss-base` with weights, on one sequence.
const MIXES: [(&str, &[(&str, f32)]); 4] = [
    ("one-scaled", &[("qv", -0.5)]),
    ("two", &[("qv", 0.7), ("attention-rslora", 0.4)]),
    ("three", &[("qv", 1.0), ("attention-rslora", -0.3), ("everything", 0.5)]),
    ("dora-scaled", &[("dora", 0.5)]),
];

/// Largest difference that a logit may have.
const BAR: f32 = 1e-3;

/// An engine of a checkpoint with the named adapters loaded.
fn engine(base: &str, names: &[&str]) -> Engine {
    let image = Model::open(&oracle(base)).image_with(Preset::Exact, true);
    let mut engine = Engine::new(&image, EngineConfig { sequences: 2, ..EngineConfig::default() }).unwrap();
    let loader = engine.adapter_store().loader().unwrap();
    for name in names {
        let adapter = loader.load(&adapter(name), 1.0).unwrap();
        engine.adapter_store_mut().insert(name, adapter).unwrap();
    }
    engine
}

/// The largest difference from the logits in a file, with these adapters.
fn worst(engine: &mut Engine, uses: &[AdapterUse], file: &Path) -> f32 {
    let oracle = std::fs::read(file).unwrap();
    let tokens = read(&oracle, "tokens", u32::from_le_bytes);
    let expected = read(&oracle, "logits", f32::from_le_bytes);
    let id = engine.create_with(uses).unwrap();
    let mut logits = Vec::new();
    // A prompt, then tokens one by one: both kinds of kernels.
    let (prompt, rest) = tokens.split_at(tokens.len() - 6);
    for piece in std::iter::once(prompt).chain(rest.chunks(1)) {
        engine
            .extend_in_order(&[SequenceTokens::all(id, piece)], &mut |row| {
                logits.extend_from_slice(row.logits)
            })
            .unwrap();
    }
    engine.drop_sequence(id);
    *differences(&logits, &expected, tokens.len()).last().unwrap()
}

#[test]
fn logits_are_those_of_peft() {
    for (name, base) in ADAPTERS {
        let mut engine = engine(base, &[name]);
        let worst = worst(&mut engine, &[AdapterUse::of(name)], &adapter(name).join("expected.safetensors"));
        println!("{name} on {base}: worst difference {worst:.2e}");
        assert!(worst <= BAR, "{name}: a logit differs by {worst}");
    }
}

#[test]
fn combined_adapters_are_those_of_peft() {
    for (mix, parts) in MIXES {
        let names: Vec<&str> = parts.iter().map(|(name, _)| *name).collect();
        let mut engine = engine("gptoss-base", &names);
        let uses: Vec<AdapterUse> =
            parts.iter().map(|(name, weight)| AdapterUse { name: (*name).into(), weight: *weight }).collect();
        let worst = worst(&mut engine, &uses, &adapter(&format!("{mix}.mix.safetensors")));
        println!("{mix}: worst difference {worst:.2e}");
        assert!(worst <= BAR, "{mix}: a logit differs by {worst}");
    }
}

#[test]
fn a_scale_at_loading_is_a_weight() {
    let mut engine = engine("gptoss-base", &[]);
    let loader = engine.adapter_store().loader().unwrap();
    let half = loader.load(&adapter("dora"), 0.5).unwrap();
    engine.adapter_store_mut().insert("half", half).unwrap();
    let worst = worst(&mut engine, &[AdapterUse::of("half")], &adapter("dora-scaled.mix.safetensors"));
    assert!(worst <= BAR, "a logit differs by {worst}");
}
