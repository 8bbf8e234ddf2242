//! The program with GGUF files.

use super::convert::{convert, directory};
use super::writer::BF16;
use crate::harness::program;
use std::fs;
use std::path::Path;
use std::process::Output;

fn kernmill(dir: &Path, args: &[&str]) -> Output {
    program().args(args).current_dir(dir).output().unwrap()
}

#[track_caller]
fn logits(dir: &Path, weights: &[&str]) -> Vec<u8> {
    let args = [&["logits", "--tokens", "ids.json", "--out", "logits.safetensors"], weights].concat();
    let output = kernmill(dir, &args);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    fs::read(dir.join("logits.safetensors")).unwrap()
}

#[test]
fn a_gguf_file_is_a_model() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("ids.json"), "[3, 1, 4, 1, 5]").unwrap();
    fs::write(dir.path().join("model.gguf"), convert("gptoss-base", BF16).bytes()).unwrap();
    let expected = logits(dir.path(), &["--weights", directory("gptoss-base").to_str().unwrap()]);
    assert!(logits(dir.path(), &["--weights", "model.gguf"]) == expected);

    let imported = kernmill(dir.path(), &["import", "model.gguf", "-o", "model.toml"]);
    assert!(imported.status.success(), "{}", String::from_utf8_lossy(&imported.stderr));
    assert!(logits(dir.path(), &["--spec", "model.toml", "--weights", "model.gguf"]) == expected);
}

#[test]
fn refused_files_are_bad_input() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("ids.json"), "[1]").unwrap();
    let refused = |args: &[&str], expected: &str| {
        let output = kernmill(dir.path(), args);
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.starts_with("error: ") && message.contains(expected), "{expected}: {message}");
    };
    let mut writer = convert("llama-plain", BF16);
    let whole = writer.bytes();
    fs::write(dir.path().join("cut.gguf"), &whole[..whole.len() / 2]).unwrap();
    refused(&["import", "cut.gguf"], "cut.gguf: corrupt: tensor `");
    fs::write(dir.path().join("empty.gguf"), "").unwrap();
    refused(&["import", "empty.gguf"], "empty.gguf");
    writer.set("tokenizer.ggml.model", "llama");
    fs::write(dir.path().join("spm.gguf"), writer.bytes()).unwrap();
    let logits = ["logits", "--weights", "spm.gguf", "--tokens", "ids.json", "--out", "o.safetensors"];
    refused(
        &logits,
        "its tokenizer is SentencePiece's (`llama`); supported is: byte-level BPE (`gpt2`), or the model's",
    );
}
