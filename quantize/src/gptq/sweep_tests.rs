//! The whole work on files in the shape of nano, with random weights.

use crate::calibrate::CalibrationTexts;
use crate::forward::LayeredModel;
use crate::forward::tests::nano;
use crate::tests::quantize;
use kernmill::compiler::{FusedSet, SourceModel};
use kernmill::locate::{Located, locate};
use kernmill::observe::Silent;
use kernmill_checkpoint::gguf::Gguf;
use kernmill_compiler::synth::write_gguf;
use serde_json::Value;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// A directory with `model.gguf` in F16, experts included, and `text.txt`.
pub(crate) fn files() -> TempDir {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("model.gguf");
    write_gguf(&nano().graph, &path, "f16".parse().unwrap(), 1, &|_, _| {}).unwrap();
    let words = ["one ", "fish, ", "2 of 31 ", "whales\n", "and ", "Swim: ", "\"deep\" "];
    let text: String = (0..900usize).map(|at| words[(at * at / 3 + at) % 7]).collect();
    fs::write(dir.path().join("text.txt"), text).unwrap();
    dir
}

fn report(dir: &Path, name: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(dir.join(name)).unwrap()).unwrap()
}

/// Rows that the first product of each layer gets, of a model and the texts.
fn first_inputs(path: &Path, text: &Path) -> Vec<Vec<f32>> {
    let Located::Source(files) = locate(path).unwrap() else { panic!("it is a plan") };
    let model = SourceModel::open(&files, FusedSet::builtin()).unwrap();
    let layers = LayeredModel::new(model.graph.clone(), &model.checkpoint, 2).unwrap();
    let texts = CalibrationTexts::read(&[text.to_owned()], 1500, &model).unwrap();
    let mut runs = texts.windows.iter().map(|ids| layers.text(ids)).collect::<Vec<_>>();
    let mut found = Vec::new();
    for part in 0..layers.parts() {
        let weights = layers.weights(part, None).unwrap();
        let mut kept =
            layers.run(part, &mut runs, &weights, &|_| None, &|_, input| Some(input.x.to_vec())).unwrap();
        found.extend(kept.remove(0).into_iter().next());
    }
    found
}

#[test]
fn files_are_the_same_from_any_number_of_threads_and_nearer_to_the_model() {
    let dir = files();
    let args = "--type all:q4_0 --calibration text.txt --tokens 1500";
    quantize(dir.path(), 1, &format!("-o a.gguf {args} --report a.json"), &Silent).unwrap();
    let file = fs::read(dir.path().join("a.gguf")).unwrap();
    for threads in [2, 5] {
        quantize(dir.path(), threads, &format!("-o b.gguf {args} --report b.json"), &Silent).unwrap();
        assert!(fs::read(dir.path().join("b.gguf")).unwrap() == file, "{threads}");
        assert_eq!(report(dir.path(), "a.json"), report(dir.path(), "b.json"));
    }
    quantize(dir.path(), 2, &format!("-o fit.gguf {args} --method fit --report fit.json"), &Silent).unwrap();
    let report = report(dir.path(), "a.json");
    let ratio = |name: &str| {
        let tensors = report["tensors"].as_array().unwrap();
        let of = tensors.iter().find(|tensor| tensor["name"] == name).unwrap_or_else(|| panic!("{name}"));
        (of["product_error"].as_f64(), of["fitted_plainly"].as_array().map_or(0, Vec::len))
    };
    // A table is in no product. Each matrix of a layer makes up for its errors.
    assert_eq!(ratio("token_embd.weight"), (None, 0));
    for name in ["blk.0.attn_q.weight", "blk.3.attn_output.weight", "output.weight"] {
        let (error, plain) = ratio(name);
        assert!(error.unwrap() < 0.9 && plain == 0, "{name}: {error:?}");
    }
    // The rows that layers get are nearer to those of the model.
    let text = dir.path().join("text.txt");
    let [base, gptq, fit] =
        ["model.gguf", "a.gguf", "fit.gguf"].map(|name| first_inputs(&dir.path().join(name), &text));
    let distance = |other: &[f32], base: &[f32]| -> f64 {
        other.iter().zip(base).map(|(other, base)| f64::from(other - base).powi(2)).sum()
    };
    let last = base.len() - 1;
    assert!(last >= 4);
    let [of_gptq, of_fit] = [&gptq, &fit].map(|other| distance(&other[last], &base[last]));
    assert!(of_gptq < of_fit, "{of_gptq} {of_fit}");
}

#[test]
fn experts_that_few_tokens_meet_are_fitted_and_listed() {
    let dir = files();
    let text = fs::read_to_string(dir.path().join("text.txt")).unwrap();
    fs::write(dir.path().join("text.txt"), &text[..360]).unwrap();
    let args = "--type all:q4_0 --calibration text.txt";
    quantize(dir.path(), 2, &format!("-o a.gguf {args} --report a.json"), &Silent).unwrap();
    quantize(dir.path(), 2, &format!("-o fit.gguf {args} --method fit"), &Silent).unwrap();
    let report = report(dir.path(), "a.json");
    let name = "blk.0.ffn_down_exps.weight";
    let tensor = report["tensors"].as_array().unwrap().iter().find(|tensor| tensor["name"] == name).unwrap();
    let plain: Vec<usize> =
        tensor["fitted_plainly"].as_array().unwrap().iter().map(|at| at.as_u64().unwrap() as usize).collect();
    let rows = |name: &str, expert: usize| {
        let gguf = Gguf::open(&dir.path().join(name)).unwrap();
        let data = gguf.data(gguf.info("blk.0.ffn_down_exps.weight").unwrap());
        data[expert * data.len() / 8..(expert + 1) * data.len() / 8].to_vec()
    };
    // Some of 8 experts have at least as many of all tokens as half of 192 columns, some less.
    assert!(!plain.is_empty() && plain.len() < 8, "{plain:?}");
    for expert in 0..8 {
        assert_eq!(rows("a.gguf", expert) == rows("fit.gguf", expert), plain.contains(&expert), "{expert}");
    }
}
