//! Models of every class as llama.cpp's own converter writes them: the same bits as from the published files.

use super::{logits, tokens_in};
use crate::harness::{Model, ggufs, imports};
use kernmill_compiler::passes::quant::Preset;

/// Models of which a GGUF file does not hold everything, and what it lacks.
const LOSSY: [(&str, &str); 8] = [
    ("bert-masked", "the activation"),
    ("gemma2", "a scale of attention of its own"),
    ("gptoss-plain", "the constants of the activation"),
    ("mistral-window", "windows"),
    ("phi3", "windows that are read"),
    ("qwen2-windows", "windows"),
    ("smollm3", "windows"),
    ("xlm-roberta", "the activation"),
];

#[test]
fn files_of_the_converter_have_the_logits_of_the_published_ones() {
    let mut wrong = Vec::new();
    let mut compared = 0;
    for entry in std::fs::read_dir(ggufs()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let published = imports().join(name);
        let tokens = tokens_in(&published);
        let (expected, actual) = (Model::open(&published), Model::open(&path));
        for preset in [Preset::Exact, Preset::Faithful] {
            let same = logits(&expected, preset, &tokens) == logits(&actual, preset, &tokens);
            let lossy = LOSSY.iter().find(|(lossy, _)| *lossy == name);
            if same == lossy.is_some() {
                wrong.push(format!("{name}, {}: same = {same}, lacks {lossy:?}", preset.name()));
            }
            compared += 1;
        }
    }
    assert!(compared >= 2 * 32 && wrong.is_empty(), "{compared}: {wrong:#?}");
}
